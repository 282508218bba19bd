"""Files of a run that must stay as they were."""

import pytest

from tasks.common.errors import InputError
from tasks.common.runs.run_folder import check_fingerprints, data_files, fingerprints


@pytest.fixture
def config(tmp_path):
    for name in ("a.txt", "b.txt", "folder/x.ann"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name, encoding="utf-8")
    return {
        "text_files": f"{tmp_path}/a.txt, {tmp_path}/b.txt",
        "train_file": f"{tmp_path}/folder",
        "dev_file": None,
        "test_file": "",
        "output_dir": str(tmp_path),
    }


def test_every_file_that_is_named_has_one(config, tmp_path):
    before = fingerprints(config)
    assert set(before) == {f"{tmp_path}/{name}" for name in ("a.txt", "b.txt", "folder")}
    assert len(set(before.values())) == 3 and fingerprints(config) == before
    check_fingerprints(before, fingerprints(config))


@pytest.mark.parametrize("name, said", [("b.txt", "b.txt"), ("folder/x.ann", "folder"), ("folder/y.ann", "folder")])
def test_a_change_is_named(config, tmp_path, name, said):
    before = fingerprints(config)
    with open(tmp_path / name, "a", encoding="utf-8") as file:
        file.write("more")
    with pytest.raises(InputError, match=f"{tmp_path}/{said}: has changed since the run began"):
        check_fingerprints(before, fingerprints(config))


def test_what_cannot_be_read_is_named(config):
    name = "x" * 300
    with pytest.raises(InputError, match=f"^{name}: cannot be read .File name too long.; check the path"):
        fingerprints({**config, "train_file": name})


def test_folders_within_a_folder_do_not_count(config, tmp_path):
    before = fingerprints(config)
    (tmp_path / "folder" / "within").mkdir()
    (tmp_path / "folder" / "within" / "y.ann").write_text("y")
    assert fingerprints(config) == before


def test_a_number_of_texts_is_no_file():
    assert data_files({"train_texts": "32", "texts": "a, b", "train_file": "c"}) == ["a", "b", "c"]
