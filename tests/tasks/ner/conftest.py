"""A small corpus, one model trained on it, and help for tests that train, evaluate and predict."""

import contextlib
import functools
import io
import json
import shutil
from types import SimpleNamespace

import pytest

from paddle_rope.tasks.commands.main import main
from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.model_folder import write_checksums
from paddle_rope.tasks.ner import NerPredictor
from paddle_rope.tasks.ner.data.reading import EntityTextStream
from paddle_rope.tasks.ner.demo import write_demo_corpus
from paddle_rope.tasks.ner.examples import Entity, Example, TokenizedText, make_example
from paddle_rope.tasks.ner.model import NerConfig, NerModel
from tests.helpers import runs
from tests.helpers.models import export
from tests.helpers.runs import read_json_lines
from tests.paddle_rope.roformer.small_models import randomise
from tests.tasks.conftest import blank_pictures
from tests.tasks.tiny_recipes import EPOCHS

TINY = {
    **EPOCHS, "recipe": "ner", "hidden_size": 32, "intermediate_size": 64, "head_size": 16, "hidden_dropout_prob": 0.05,
    "max_characters": 64, "logging_steps": 4,
}  # fmt: skip


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    """Files of short sentences with nested entities."""
    train, dev = write_demo_corpus(tmp_path_factory.mktemp("corpus"), train_size=150, dev_size=40)
    return SimpleNamespace(train=train, dev=dev, dev_records=read_json_lines(dev))


@pytest.fixture(scope="session")
def few_texts(tmp_path_factory):
    """Files for tests that train often: 45 texts, and 10 for dev."""
    train, dev = write_demo_corpus(tmp_path_factory.mktemp("few"), train_size=45, dev_size=10)
    return SimpleNamespace(train=train, dev=dev)


@pytest.fixture(scope="session")
def train(corpus):
    """Train a tiny model: ``train(folder, key=value ...)`` -> what the run has left."""
    tiny = {**TINY, "train_file": corpus.train, "dev_file": corpus.dev}
    return lambda folder, config=tiny, **keys: runs.train(config, folder, **keys)


@pytest.fixture(scope="module")
def train_few(train, few_texts):
    files = {"train_file": few_texts.train, "dev_file": few_texts.dev}
    return lambda folder, **options: train(folder, **{**files, **options})


@pytest.fixture(scope="session")
def trained(train, tmp_path_factory):
    """A model that has learned to find entities. Do not change its files."""
    with blank_pictures():  # a fixture of a module would come too late
        return train(tmp_path_factory.mktemp("trained") / "run", num_train_epochs=12, ema_decay=0.8)


@pytest.fixture(scope="session")
def exported(trained, corpus, tmp_path_factory):
    """``exported(format)``: the trained model exported, made at its first use, and what is printed, with the scores of
    both. Do not change its files."""

    @functools.cache
    def exported(format):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            model = export(tmp_path_factory.mktemp(format) / "model", format, trained.model, "--check", corpus.dev)
        return SimpleNamespace(model=model, printed=printed.getvalue())

    return exported


@pytest.fixture(scope="session")
def other(trained, tmp_path_factory):
    """The folder of another model for the same types and vocabulary, with random weights."""
    folder = shutil.copytree(trained.model, tmp_path_factory.mktemp("other") / "model")
    config = NerConfig.from_pretrained(folder, attention="linear", intermediate_size=32)
    randomise(NerModel(config), 0.2).save_pretrained(str(folder))
    write_checksums(folder)
    return folder


@pytest.fixture
def copy_with(trained, tmp_path):
    """Copy the trained model: ``copy_with(key=value ...)`` -> its folder, with other values in config.json."""

    def copy_with(**options):
        folder = shutil.copytree(trained.model, tmp_path / "model")
        (folder / "config.json").write_text(json.dumps({**trained.model_config, **options}), encoding="utf-8")
        return folder

    return copy_with


@pytest.fixture
def evaluate(trained, tmp_path):
    """Scores of the trained model, or of others as one, on a file, by the verb."""

    def evaluate(data, *models):
        output = tmp_path / "scores.json"
        words = [*map(str, models or [trained.model]), str(data), "--output", str(output), "--device", "cpu"]
        assert main(["evaluate", *words]) == 0
        return json.loads(output.read_text(encoding="utf-8"))

    return evaluate


@pytest.fixture
def predict(trained, write, tmp_path):
    """Records that the verb writes for a file, or for the content of a text file."""

    def predict(given, model=trained.model, options=()):
        given, output = write(given, "given.txt") if isinstance(given, str) else given, tmp_path / "found.jsonl"
        words = [model, "--input", given, "--output", output, "--device", "cpu", *options]
        assert main(["predict", *map(str, words)]) == 0
        return read_json_lines(output)

    return predict


@pytest.fixture(scope="session")
def predictor(trained):
    return NerPredictor(trained.model, "cpu")


@pytest.fixture(scope="session")
def dev_texts(corpus):
    return [record["text"] for record in corpus.dev_records]


def spans_of(records):
    """(start, end, type) of the entities of each record."""
    return [[(entity["start"], entity["end"], entity["type"]) for entity in record["entities"]] for record in records]


def example(text, *entities, where="x:1"):
    """An example with entities (start, end, type)."""
    return make_example(text, [Entity(*entity) for entity in entities], where)


def tokenized(ids, spans=(), size=1, features=None):
    """A text of tokens of ``size`` characters each, between [CLS] 2 and [SEP] 3."""
    ids = list(ids)
    offsets = [(0, 0), *((size * place, size * (place + 1)) for place in range(len(ids))), (0, 0)]
    return TokenizedText([2, *ids, 3], offsets, list(spans), features)


def labeled(gold):
    return [Example("", tuple(Entity(*span) for span in spans), "x:1") for spans in gold]


def contents(examples):
    """What examples hold whatever format they come from."""
    return [(one.text, one.entities) for one in examples]


def read_texts(source):
    """All texts of a file to predict: pairs (text, "path:line")."""
    return [pair for chunk in EntityTextStream(source) for pair in chunk]


def error_of(call, *arguments, **named):
    """The message of the InputError that a call raises: one line."""
    with pytest.raises(InputError) as caught:
        call(*arguments, **named)
    message = str(caught.value)
    assert "\n" not in message and len(message) < 700
    return message
