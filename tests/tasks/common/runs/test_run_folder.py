"""The folder of a run that is resumed."""

import contextlib
import subprocess

import pytest

from tasks.common.errors import InputError
from tasks.common.runs.run_folder import INPUTS_FILE, claim, finish


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b"1" * 5000, b"[" * 100_000])
def test_damaged_inputs_are_one_line(tmp_path, content):
    (tmp_path / INPUTS_FILE).write_bytes(content)
    with pytest.raises(InputError, match="inputs.json: is damaged; .* or train anew"), contextlib.ExitStack() as stack:
        claim({"output_dir": str(tmp_path)}, tmp_path / "checkpoint-1", stack, is_begun=True)


def test_data_files_whose_names_are_not_utf8_are_those_of_the_run(tmp_path):
    data = tmp_path / "\udcff.json"
    data.write_text("{}")
    config = {"output_dir": str(tmp_path / "run"), "train_file": str(data)}
    with contextlib.ExitStack() as stack:
        claim(config, None, stack)
    with contextlib.ExitStack() as stack:
        claim(config, tmp_path / "run" / "checkpoint-1", stack, is_begun=True)
    data.write_text("[]")
    with pytest.raises(InputError, match=r"\\udcff.json: has changed"), contextlib.ExitStack() as stack:
        claim(config, tmp_path / "run" / "checkpoint-1", stack, is_begun=True)


def test_the_line_that_watches_a_run_can_be_pasted(tmp_path, capsys):
    (tmp_path / "my run").mkdir()
    finish(tmp_path / "my run", {"train_seconds": 1.0}, 0.0, "next")
    title, command = capsys.readouterr().out.splitlines()[-1].split(":", 1)
    done = subprocess.run(f"{command} --version", shell=True, capture_output=True, text=True)
    assert title == "watch" and done.returncode == 0 and done.stdout.startswith("VisualDL"), done.stderr
