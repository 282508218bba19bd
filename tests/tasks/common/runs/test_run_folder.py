"""The folder of a run that is resumed, and files of a run that must stay as they were."""

import contextlib
import subprocess
from types import SimpleNamespace

import pytest

from tasks.common.errors import InputError
from tasks.common.runs.run_folder import INPUTS_FILE, check_fingerprints, claim, data_files, fingerprints, finish


def claimed(folder, checkpoint="checkpoint-1", is_begun=True, **config):
    memory = SimpleNamespace(fingerprints={})
    with contextlib.ExitStack() as stack:
        claim(SimpleNamespace(
            output_dir=folder, config={"output_dir": str(folder), **config}, checkpoint=checkpoint, claimed=stack,
            memory=memory, is_begun=is_begun,
        ))  # fmt: skip


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b"1" * 5000, b"[" * 100_000], ids=lambda one: one[:9])
def test_damaged_inputs_are_one_line(tmp_path, content):
    (tmp_path / INPUTS_FILE).write_bytes(content)
    with pytest.raises(InputError, match="inputs.json: is .* or train anew"):
        claimed(tmp_path)


def test_data_files_whose_names_are_not_utf8_are_those_of_the_run(tmp_path):
    data, run = tmp_path / "\udcff.json", tmp_path / "run"
    data.write_text("{}")
    claimed(run, None, False, train_file=str(data))
    claimed(run, train_file=str(data))
    data.write_text("[]")
    with pytest.raises(InputError, match=r"\\udcff.json: has changed"):
        claimed(run, train_file=str(data))


def test_the_line_that_watches_a_run_can_be_pasted(tmp_path, capsys):
    (tmp_path / "my run").mkdir()
    finish(tmp_path / "my run", {"train_seconds": 1.0}, 0.0, "next")
    title, command = capsys.readouterr().out.splitlines()[-1].split(":", 1)
    done = subprocess.run(f"{command} --version", shell=True, capture_output=True, text=True)
    assert title == "watch" and done.returncode == 0 and done.stdout.startswith("VisualDL"), done.stderr


@pytest.fixture
def config(tmp_path):
    for name in ("a.txt", "b.txt", "folder/x.ann"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name, encoding="utf-8")
    files = {"text_files": f"{tmp_path}/a.txt, {tmp_path}/b.txt", "train_file": f"{tmp_path}/folder", "dev_file": None}
    return {**files, "test_file": "", "output_dir": str(tmp_path)}


def test_every_file_that_is_named_has_a_fingerprint_and_folders_within_a_folder_do_not_count(config, tmp_path):
    before = fingerprints(config)
    assert set(before) == {f"{tmp_path}/{name}" for name in ("a.txt", "b.txt", "folder")}
    (tmp_path / "folder" / "within").mkdir()
    (tmp_path / "folder" / "within" / "y.ann").write_text("y")
    assert len(set(before.values())) == 3 and fingerprints(config) == before
    check_fingerprints(before, fingerprints(config))
    assert data_files({"train_texts": "32", "texts": "a, b", "train_file": "c"}) == ["a", "b", "c"]


@pytest.mark.parametrize("name, said", [("b.txt", "b.txt"), ("folder/x.ann", "folder"), ("folder/y.ann", "folder")])
def test_a_change_is_named(config, tmp_path, name, said):
    before = fingerprints(config)
    with open(tmp_path / name, "a", encoding="utf-8") as file:
        file.write("more")
    for one, other in ((before, fingerprints(config)), ({}, before)):
        with pytest.raises(InputError, match=f"{tmp_path}/{said if one else ''}.*: has changed since the run began"):
            check_fingerprints(one, other)
    with pytest.raises(InputError, match=r"^xxx.*: cannot be read .File name too long.; check the path"):
        fingerprints({**config, "train_file": "x" * 300})
