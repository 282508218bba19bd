"""Folders that hold a damaged model, or one of before."""

from pathlib import Path

import pytest
import yaml
from safetensors.numpy import load_file, save_file

from tasks.ner import NerPredictor

DAMAGES = yaml.safe_load(Path(__file__).with_name("damages.yaml").read_text(encoding="utf-8"))


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


@pytest.mark.parametrize("case", DAMAGES, ids=lambda case: case["name"])
def test_a_damaged_file_is_one_line_with_the_folder_and_the_remedy(case, refused, copy_with, corpus):
    case = dict(case)
    _, place, folder = case.pop("name"), case.pop("place"), copy_with()
    damage(folder / case.pop("file"), **case)
    message = refused("predict", folder, "--input", corpus.dev, "--output", "found.jsonl")
    assert message.startswith(f"{folder}: ") and place in message
    assert "OUTPUT_DIR/model" in message or "removed" in message


def test_a_model_of_before_finds_what_it_found(copy_with, predictor, dev_texts):
    unused = {"score_scaling_length": None, "convolutions": [], "convolution_size": 3, "position_gaps": None}
    assert NerPredictor(copy_with(**unused), "cpu")(dev_texts) == predictor(dev_texts)
