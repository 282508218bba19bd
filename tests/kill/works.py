"""What is killed: words of the command line on the smallest models, and what they leave."""

import hashlib
import json
from dataclasses import dataclass, field

import yaml

from paddle_rope.tasks.ner.data.reading import read_examples
from paddle_rope.tasks.ner.demo import write_demo_corpus
from tests.helpers.models import write_small_ner
from tests.helpers.runs import curves
from tests.tasks.tiny_recipes import KEYS, without_times

TRAINER = "paddle_rope.tasks.common.training.trainer:RecipeTrainer"
RUN = "run"  # folder, in that of a case
AFTER_EACH_STEP = {"checkpoint_minutes": 1e-9}
NER = {
    "recipe": "ner", **KEYS["ner"], **AFTER_EACH_STEP, "features": "", "train_file": "../data/train.jsonl",
    "dev_file": "../data/dev.jsonl", "per_device_train_batch_size": 4, "logging_steps": 3, "masked_lm_epochs": 2,
}  # fmt: skip
PRETRAINING = {"recipe": "pretraining", **KEYS["pretraining"], **AFTER_EACH_STEP, "text_files": "../data/texts.txt"}


@dataclass
class Work:
    zone: str  # function within which it is killed
    words: tuple  # of the command line, which does it in the folder of a case
    resume: tuple = ()  # the words that go on with it once something can be gone on with; () if ``words`` do
    config: dict = field(default_factory=dict)  # of ``config.yaml`` in the folder


def _training(zone, config=None, more=()):
    words = ("train", "config.yaml", "--output_dir", RUN, *more)
    return Work(zone, words, ("train", "--resume", RUN), config or NER)


WORKS = {
    "step": _training(f"{TRAINER}.training_step"),
    "save": _training(f"{TRAINER}._save_checkpoint"),
    "evaluation": _training(f"{TRAINER}.evaluate"),
    "masked_lm": _training("paddle_rope.tasks.ner.recipe:pretrain"),
    "results": _training("paddle_rope.tasks.ner.recipe:NerRecipe.score"),
    "series": _training("paddle_rope.tasks.common.training.series:train_cells", more=("--seeds", "1,2")),
    "pretraining": _training(f"{TRAINER}.train", PRETRAINING),
    "download": Work("paddle_rope.tasks.common.datasets:fetch_dataset", ("download",)),
    "encoder": Work("paddle_rope.tasks.common.hub:fetch_encoder", ("download", "kill/encoder", "--output", RUN)),
    "export": Work(
        "paddle_rope.tasks.common.export.exporter:export",
        ("export", "../model", "--output", RUN, "--format", "paddle"),
    ),
}


def prepare(folder):
    """Write the data that all cases read, and the model that is exported."""
    data = folder / "data"
    data.mkdir(parents=True)
    train, _ = write_demo_corpus(data, train_size=22, dev_size=6)
    write_small_ner(folder / "model", read_examples(train))
    texts = [json.loads(line)["text"] for line in train.read_text(encoding="utf-8").splitlines()]
    (data / "texts.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")


def begin(work, folder):
    folder.mkdir()
    if work.config:
        (folder / "config.yaml").write_text(yaml.safe_dump(work.config), encoding="utf-8")


def left(folder):
    """What a work has left that must be equal: dict from names to digests or values."""
    found = {}
    for path in sorted((folder / RUN).rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and not {"checkpoints", "vdl"} & set(path.parts):
            found[name] = _content(path)
        elif path.name == "vdl":
            found[name] = {tag: values for tag, values in curves(path).items() if "second" not in tag}
    return found


def _content(path):
    if path.name.endswith(".json"):
        return without_times(json.loads(path.read_text(encoding="utf-8")))
    if path.name.endswith(".md") or path.name == "runs.csv":
        return "written"  # shows seconds
    return hashlib.sha256(path.read_bytes()).hexdigest()
