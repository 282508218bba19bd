"""Who may read what is written, and what is said where a permission is missing."""

import os
from pathlib import Path

import pytest

from paddle_rope import CharTokenizer, RoFormerConfig, RoFormerForMaskedLM
from paddle_rope.roformer.checkpoints.huggingface import write_huggingface
from tasks.common.cli.run_config import shipped
from tasks.common.errors import EXIT_BAD_INPUT, exit_on_input_error


@pytest.fixture
def umask():
    before = os.umask(0o027)
    yield 0o640
    os.umask(before)


def denied(*_, **__):
    raise PermissionError(13, "Permission denied", "somewhere")


@pytest.mark.parametrize("write", [RoFormerForMaskedLM.save_pretrained, write_huggingface])
def test_the_umask_decides_who_may_read_a_model(write, umask, tmp_path):
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
    write(RoFormerForMaskedLM(RoFormerConfig(vocab_size=8, **sizes)), tmp_path / "model")
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "model").iterdir()}
    assert {"config.json", "model.safetensors"} <= modes.keys() and set(modes.values()) == {umask}


def test_a_vocabulary_that_may_not_be_read_is_not_called_missing(monkeypatch, tmp_path):
    monkeypatch.setattr(Path, "read_bytes", denied)
    with pytest.raises(ValueError, match=r"vocab.txt: cannot be read \(Permission denied\); check the path"):
        CharTokenizer.from_vocab_file(tmp_path / "vocab.txt")


def test_a_configuration_in_a_closed_folder_keeps_its_name(monkeypatch):
    stat = os.stat
    monkeypatch.setattr(os, "stat", lambda path, **words: (stat if os.path.isabs(path) else denied)(path, **words))
    assert shipped("configs/nowhere.yaml") == "configs/nowhere.yaml"


def test_a_missing_permission_is_one_line_wherever_it_is_noticed(capsys):
    assert exit_on_input_error(denied)([]) == EXIT_BAD_INPUT
    error = capsys.readouterr().err
    assert error.startswith("error: somewhere: no permission") and error.count("\n") == 1
