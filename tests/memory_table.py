"""Measure the peak memory of training, and write it beside the estimate into docs: python -m tests.memory_table

The table stands between ``<!-- memory -->`` and ``<!-- end of memory -->``. Each row is a process of its own, which
trains two steps on texts of equal length. All of them take some minutes, and 5 GB.
"""

import json
import random
import re
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLACE = re.compile(r"(<!-- memory -->\n).*?(<!-- end of memory -->)", re.DOTALL)
HEADS = {  # of each page
    "docs/ner.md": ("batch", "characters", "types", "other keys", "measured, GB", "estimated, GB", "ratio"),
    "docs/ner.zh.md": ("批量", "字符数", "类型数", "其他配置项", "实测（GB）", "估计（GB）", "比值"),
}
BASE = {"hidden_size": 768, "intermediate_size": 3072, "num_attention_heads": 12, "num_hidden_layers": 12}
CASES = (  # texts of a batch, their characters, types, other keys
    (4, 64, 10, {}),
    (32, 64, 10, {}),
    (8, 512, 2, {}),
    (8, 512, 10, {}),
    (8, 512, 10, {"span_head": "dense"}),
    (8, 512, 2, {"attention": "linear"}),
    (8, 512, 2, {"num_hidden_layers": 8}),
    (8, 512, 2, {"num_hidden_layers": 8, "recompute": True}),
    (2, 1024, 10, {"attention": "window"}),
    (2, 2100, 4, {"num_hidden_layers": 2}),
    (2, 2100, 10, {"attention": "linear", "max_span_length": 64}),
    (8, 256, 100, {}),
    (16, 128, 300, {}),
    (4, 128, 2, BASE),
)


def made_up(batch, characters, types):
    """Records of twice as many texts as a batch has, with all the types."""
    drawn = random.Random(0)
    labels = [f"type {number}" for number in range(types)]
    records = []
    for number in range(2 * batch):
        text = "".join(chr(0x4E00 + drawn.randrange(800)) for _ in range(characters))
        kinds = labels[number :: 2 * batch] or labels[:1]
        entities = [{"start": 2 * i, "end": 2 * i + 2, "type": kind} for i, kind in enumerate(kinds)]
        records.append({"text": text, "entities": entities})
    return records


def measure(batch, characters, types, keys):
    """(peak, estimate) in bytes of a training run, in a process of its own."""
    case = json.dumps([batch, characters, types, keys])
    done = subprocess.run(
        [sys.executable, "-m", "tests.memory_table", case], cwd=ROOT, stdout=subprocess.PIPE, check=True
    )
    return json.loads(done.stdout.splitlines()[-1])


def train(batch, characters, types, keys):
    """Train two steps in this process, and print the peak and the estimate."""
    from tasks.common.tool.process import prepare

    prepare()
    from tasks.common import recipe
    from tasks.recipes import get_recipe

    loads = []
    recipe.room_note = lambda load, *others: loads.append(load)
    with tempfile.TemporaryDirectory() as folder:
        config = {
            "output_dir": f"{folder}/run", "dev_fraction": 0, "max_steps": 2, "max_characters": characters,
            "per_device_train_batch_size": batch, "device": "cpu", **keys,
        }  # fmt: skip
        get_recipe("ner").train(config, data={"train": made_up(batch, characters, types)})
    print()
    print(json.dumps([resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, loads[0].peak_bytes]))


def row(case, measured, estimated):
    batch, characters, types, keys = case
    named = (
        "`num_hidden_layers: 12`, `hidden_size: 768`"
        if keys == BASE
        else ", ".join(f"`{key}: {as_word(keys[key])}`" for key in keys)
    )
    cells = (
        batch,
        characters,
        types,
        named,
        f"{measured / 1e9:.1f}",
        f"{estimated / 1e9:.1f}",
        f"{estimated / measured:.2f}",
    )
    return f"| {' | '.join(map(str, cells))} |"


def as_word(value):
    return str(value).lower()


def main():
    rows = []
    for case in CASES:
        rows.append(row(case, *measure(*case)))
        print(rows[-1], file=sys.stderr)
    write(rows)


def write(rows):
    """Put the rows into the pages."""
    for name, heads in HEADS.items():
        table = "\n".join([f"| {' | '.join(heads)} |", "|---" * len(heads) + "|", *rows]) + "\n"
        text = (ROOT / name).read_text("utf-8")
        (ROOT / name).write_text(PLACE.sub(lambda match, table=table: match[1] + table + match[2], text), "utf-8")


if __name__ == "__main__":
    train(*json.loads(sys.argv[1])) if sys.argv[1:] else main()
