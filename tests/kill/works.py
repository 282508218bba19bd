"""What is killed: words of the command line on the smallest models, and what they leave."""

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path

import yaml
from visualdl import LogReader

TRAINER = "tasks.common.training.trainer:RecipeTrainer"
RUN = "run"  # folder, in that of a case
ENCODER = {
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "hidden_dropout_prob": 0.1,
    "learning_rate": 1e-2,
    "device": "cpu",
    "checkpoint_minutes": 1e-9,  # after each step
}
NER = {
    "recipe": "ner",
    **ENCODER,
    "head_size": 8,
    "train_file": "../data/train.jsonl",
    "dev_file": "../data/dev.jsonl",
    "num_train_epochs": 2,
    "per_device_train_batch_size": 4,
    "logging_steps": 3,
    "masked_lm_epochs": 2,
    "ema_decay": 0.8,
    "character_dropout": 0.1,
}
PRETRAINING = {
    "recipe": "pretraining",
    **ENCODER,
    "text_files": "../data/texts.txt",
    "stages": "24x4x5,12x4x4",
    "dev_fraction": 0.2,
    "vocab_min_count": 1,
    "save_steps": 3,
    "logging_steps": 4,
}


@dataclass
class Work:
    """Something to kill.

    Attributes:
        zone: function within which it is killed.
        words: of the command line, which does it in the folder of a case.
        resume: the words that go on with it once something can be gone on with; () if those of the beginning do.
        config: of ``config.yaml`` in the folder.
    """

    zone: str
    words: tuple
    resume: tuple = ()
    config: dict = field(default_factory=dict)

    @property
    def key(self):
        """The same for works that differ only in where they are killed."""
        return json.dumps([self.words, self.config])


def _training(zone, config=None, more=()):
    return Work(
        zone,
        ("train", "config.yaml", "--output_dir", RUN, *more),
        ("train", "--resume", RUN),
        config or NER,
    )


TRAINED_BY = "step"  # leaves the model that is exported
WORKS = {
    "step": _training(f"{TRAINER}.training_step"),
    "save": _training(f"{TRAINER}._save_checkpoint"),
    "evaluation": _training(f"{TRAINER}.evaluate"),
    "masked_lm": _training("tasks.ner.recipe:pretrain"),
    "results": _training("tasks.ner.recipe:NerRecipe.score_and_save"),
    "series": _training("tasks.common.training.series:_train_members", more=("--seeds", "1,2")),
    "pretraining": _training("tasks.pretraining.trainer:PretrainingTrainer.train", PRETRAINING),
    "download": Work("tasks.ner.data.download:download", ("download",)),
    "export": Work(
        "tasks.common.export.exporter:export",
        ("export", f"../whole_{TRAINED_BY}/{RUN}/model", "--output", RUN, "--format", "paddle"),
    ),
}


def prepare(folder):
    """Write the data that all cases read."""
    from tasks.ner.demo import write_demo_corpus

    data = folder / "data"
    data.mkdir(parents=True)
    train, _ = write_demo_corpus(data, train_size=22, dev_size=6)
    texts = [json.loads(line)["text"] for line in train.read_text(encoding="utf-8").splitlines()]
    (data / "texts.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")


def begin(work, folder):
    """Make the folder of a case."""
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
            found[name] = _logged(path)
    return found


def _content(path):
    if path.name.endswith(".json"):
        return _without_times(json.loads(path.read_text(encoding="utf-8")))
    if path.name.endswith(".md") or path.name in ("stages.csv", "stages.png", "runs.csv"):
        return "written"  # shows seconds
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _without_times(value):
    if isinstance(value, dict):
        return {name: _without_times(one) for name, one in value.items() if not {"second", "minute"} & _stems(name)}
    return [_without_times(one) for one in value] if isinstance(value, list) else value


def _stems(name):
    return {stem for stem in ("second", "minute") if stem in name}


def _logged(folder):
    """(step, value) of each curve of VisualDL but those of time."""
    curves = {}
    for path in sorted(Path(folder).iterdir()):
        reader = LogReader(file_path=str(path))
        for tag in reader.get_tags().get("scalar", []):
            if "second" not in tag:
                curves.setdefault(tag, []).extend([one.id, one.value] for one in reader.get_data("scalar", tag))
    return curves
