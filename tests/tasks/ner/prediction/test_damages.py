"""Folders of models, trained or exported, with a damaged file: one line that names the folder and the remedy."""

import shutil
from pathlib import Path

import pytest
import yaml
from safetensors.numpy import load_file, save_file

from tasks.common.export.operators import message_class
from tasks.common.model_folder import GRAPH_FILES, ONNX_FILE, write_checksums
from tasks.ner.data.reading import read_examples
from tests.helpers.models import FORMATS, export, write_small_ner

DAMAGES = yaml.safe_load(Path(__file__).with_name("damages.yaml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def models(corpus, tmp_path_factory):
    """dict from a kind of model to a folder with random weights."""
    home, examples = tmp_path_factory.mktemp("models"), read_examples(corpus.train)
    plain = write_small_ner(home / "plain", examples, max_tokens=64)
    features = write_small_ner(home / "features", examples, with_features=True)
    return {"plain": plain, "features": features, "exported": export(home / "exported", FORMATS[0], plain)}


def damage(path, old=None, new=None, cut=None, content=None, gone=False, without=None):
    whole = path.read_bytes()
    if old is not None:
        content = whole.replace(old.encode(), new.encode())
        assert content != whole
    elif cut is not None:
        content = whole[:cut]
    path.unlink()
    if without is not None:
        path.write_bytes(whole)
        weights = load_file(path)
        del weights[without]
        save_file(weights, path, metadata={"format": "np"})
    elif not gone:
        path.write_bytes(content if isinstance(content, bytes) else content.encode())


@pytest.mark.slow
@pytest.mark.parametrize("case", DAMAGES, ids=lambda case: case["name"])
def test_a_damaged_file_is_one_line_with_the_folder_and_the_remedy(case, refused, models, tmp_path, write):
    case = dict(case)
    _, place, kind, sums = case.pop("name"), case.pop("place"), case.pop("of", "plain"), case.pop("sums", False)
    folder, file = shutil.copytree(models[kind], tmp_path / "model"), case.pop("file")
    names = ("model.onnx", "inference.pdiparams") if file == "weights" else (file,)
    damage(next(folder / name for name in names if (folder / name).is_file()), **case)
    if sums:
        write_checksums(folder)
    message = refused("predict", folder, "--input", write("甲\n"), "--output", "found.jsonl")
    assert message.startswith(str(folder)) and place in message
    assert kind == "exported" or "OUTPUT_DIR/model" in message or "removed" in message


FOREIGN = {  # tests/tasks/common/export/test_operators.py has all kinds
    ".json": b'{"program": {"#": "1.save"}}',
    ".pdmodel": message_class(".pdmodel")(blocks=[{"operators": [{"operator": [b"save"]}]}]).SerializeToString(),
    ".onnx": message_class(".onnx")(functions=[b""]).SerializeToString(),
}


def test_a_graph_that_could_write_a_file_is_refused(models, tmp_path, refused):
    folder = shutil.copytree(models["exported"], tmp_path / "model")
    (graph,) = [folder / name for name in (ONNX_FILE, *GRAPH_FILES) if (folder / name).is_file()]
    graph.write_bytes(FOREIGN[graph.suffix])
    write_checksums(folder)
    assert f"{graph}: holds '" in refused("predict", folder)
