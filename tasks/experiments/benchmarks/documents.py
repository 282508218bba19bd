"""Many documents in several processes and on Ray: a corpus drawn from real sentences, and the speed of each way."""

from __future__ import annotations

import itertools
import json
import math
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tasks.common.errors import InputError
from tasks.common.files import atomic_folder, write_json_lines
from tasks.common.reports.tables import as_markdown
from tasks.common.runs.fingerprints import digest_of
from tasks.common.texts.documents import SENTENCE_END, read_plain_texts
from tasks.experiments.benchmarks.measuring import timed

PREDICT = (sys.executable, "-m", "paddle_rope", "predict")
SHORTEST_SENTENCE = 4  # characters
SECONDS_A_DAY = 24 * 60 * 60
LOAD = 0.7  # of the time, that a machine which is to keep up should be at work


def write_corpus(folder: Path, text_files: Sequence[str], records: int, files: int, seed: int) -> int:
    """Write sentences, drawn with replacement from those of real texts, as JSON lines in several files.

    Args:
        folder: new folder.
        text_files: paths of plain text or JSON lines with ``text``.
        records: number of sentences in all.
        files: number of files.
        seed: of the choice; the same seed gives the same corpus.

    Returns:
        Number of different sentences to draw from.

    Raises:
        InputError: a file cannot be read, has no sentences, or the folder cannot be made.
    """
    texts = [text for path in text_files for text in read_plain_texts(path)]
    sentences = sorted({sentence for text in texts for sentence in _sentences(text)})
    if not sentences:
        raise InputError(f"{text_files[0]}: no sentence of {SHORTEST_SENTENCE} characters in it; give longer texts")
    draw = random.Random(seed)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with atomic_folder(folder) as made:
        for number in range(files):
            first, last = (records * place // files for place in (number, number + 1))
            drawn = ({"id": place, "text": draw.choice(sentences)} for place in range(first, last))
            write_json_lines(made / f"sentences-{number:03}.jsonl", drawn)
    return len(sentences)


def _sentences(text):
    ends = [0, *(match.end() for match in SENTENCE_END.finditer(text)), len(text)]
    parts = (text[start:end].strip() for start, end in itertools.pairwise(ends))
    return [part for part in parts if len(part) >= SHORTEST_SENTENCE]


def measure_ways(argv: Sequence[str], processes: Sequence[int], actors: Sequence[int], output: Path) -> str:
    """Predict the corpus ``output/input`` with ``paddle-rope predict`` in several ways, each into its own folder in
    ``output``. What is finished is not computed again; its time is that of the call that finished it.

    Args:
        argv: model folders and options of the command.
        processes: numbers of processes of this machine.
        actors: numbers of actors of Ray on this machine.
        output: folder.

    Returns:
        Markdown: documents per second, memory of the largest process in the first and in the last quarter, how many
        such processes a million documents a day need, and whether all gave the same results.
    """
    ways = {f"processes_{count}": (count, []) for count in processes}
    ways |= {f"ray_{count}": (count, ["--ray"]) for count in actors}
    rows, digests = [], {}
    for name, (count, on_ray) in ways.items():
        folder = output / name
        seconds = timed(lambda: _predict(argv, output / "input", folder, count, on_ray))["seconds"]  # noqa: B023
        call = json.loads((folder / "summary.json").read_text(encoding="utf-8"))["last_call"]
        digests[name] = [digest_of(path) for path in sorted(folder.glob("part-*.jsonl"))]
        a_day = call["documents_per_second"] * SECONDS_A_DAY
        rows.append(
            {
                "way": name,
                "documents": f"{call['answered']:,}",
                "seconds": round(call["seconds"]),
                "with start": round(max(seconds, call["seconds"])),
                "documents/s": round(call["documents_per_second"], 1),
                "MB, first quarter": call["megabytes_first"],
                "MB, last quarter": call["megabytes_last"],
                "million/day": round(a_day / 1e6, 2),
                f"processes for 1 million/day at {LOAD:.0%} load": math.ceil(1e6 / (a_day / count * LOAD)),
            }
        )
    different = [name for name in digests if digests[name] != next(iter(digests.values()))]
    note = f"The results of {', '.join(different)} differ from the first." if different else "All results are the same."
    return f"{as_markdown(rows, list(rows[0]))}\n{note}"


def _predict(argv, corpus, folder, count, on_ray):
    command = [*PREDICT, *argv, "--input", str(corpus), "--output", str(folder), "--processes", str(count), *on_ray]
    status = subprocess.run(command, check=False).returncode
    if status:
        raise SystemExit(status)  # the command has said why
