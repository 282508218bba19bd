"""What the tests of all recipes and verbs share."""

import contextlib
import io
import json
from pathlib import Path

import numpy as np
import pytest
import yaml

from paddle_rope.tasks import recipes
from paddle_rope.tasks.common.reports import figures
from paddle_rope.tasks.ner import monitoring
from tests.tasks.tiny_recipes import KEYS, write_data

SHOW = monitoring.show
FILES = yaml.safe_load(Path(__file__).with_name("files.yaml").read_text(encoding="utf-8"))


class Pipe(io.RawIOBase):
    """A pipe whose writer waits: gives its pieces, bytes, one a read; ``before_each`` is called before each and before
    the end."""

    def __init__(self, *pieces, before_each=None):
        self.pieces, self.before_each = list(pieces), before_each

    def readable(self):
        return True

    def readinto(self, buffer):
        if self.before_each is not None:
            self.before_each()
        piece = self.pieces.pop(0) if self.pieces else b""
        buffer[: len(piece)] = piece
        return len(piece)


@contextlib.contextmanager
def blank_pictures():
    """Runs draw nothing: it takes longer than a small training. All else that VisualDL shows is as it is."""
    blank = np.full([8, 8, 3], 255, dtype=np.uint8)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(figures, "draw_epochs", lambda *_: b"")
        for name in ("draw_scores", "draw_reliability"):
            patch.setattr(monitoring, name, lambda *_: blank)
        yield


@pytest.fixture(scope="module", autouse=True)
def without_pictures():
    """VisualDL shows scores alone: no curves, texts and pictures."""
    with blank_pictures(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(monitoring, "show", lambda *_: None)
        yield


@pytest.fixture
def write(tmp_path):
    """Write a file: ``write(content, name)`` -> its path. The content is text, bytes, a list of records, which becomes
    JSON lines, or a dict, which becomes YAML."""

    def write(content, name="sample.txt"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        if isinstance(content, list):
            content = "".join(json.dumps(record) + "\n" for record in content)
        elif isinstance(content, dict):
            content = yaml.safe_dump(content, sort_keys=False)
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        return path

    return write


@pytest.fixture(scope="session")
def data_of(tmp_path_factory):
    """dict from a recipe, or ``"triples"``, to the keys that name the files of its smallest run."""
    return write_data(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="session")
def config_of(data_of):
    """``config_of(recipe, output_dir)``: the configuration of its smallest run."""
    return lambda recipe, folder, **more: {
        "recipe": recipe, **KEYS[recipe], **data_of[recipe], "output_dir": str(folder), **more
    }  # fmt: skip


@pytest.fixture(scope="session")
def whole(config_of, tmp_path_factory):
    """``whole(recipe)``: the folder of its smallest run, with other keys of another one. Do not change its files."""
    folders = {}

    def whole(recipe, **keys):
        run = (recipe, *keys.items())
        if run not in folders:
            folders[run] = tmp_path_factory.mktemp(recipe) / "run"
            metrics = recipes.train_config(config_of(recipe, folders[run], **keys))
            assert metrics == json.loads((folders[run] / "metrics.json").read_text(encoding="utf-8"))
        return folders[run]

    return whole
