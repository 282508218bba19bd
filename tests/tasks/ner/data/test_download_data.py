"""The tool that fetches published data sets, with publishers of this process; what is published agrees with itself."""

import hashlib
import io
import re
import zipfile
from dataclasses import replace

import pytest

from tasks.common.errors import InputError
from tasks.ner.data import published
from tasks.ner.data.published import DATASETS, PublishedFile, fetch_dataset
from tests.helpers.local_server import LocalServer, serve
from tests.helpers.verbs import verb

download_data = verb("download")

TRAIN = '{"text": "叶老桂在北京", "label": {"name": {"叶老桂": [[0, 2]]}, "address": {"北京": [[4, 5]]}}}\n'.encode()
TEST = '{"id": 0, "text": "北京"}\n'.encode()
BMES = "吴 B-NAME\n重 M-NAME\n阳 E-NAME\n\n。 O\n\n".encode()
WEIBO = "老0\tB-PER.NOM\n百1\tI-PER.NOM\n心0\tO\n\n\ufffd\ufffd0\tO\n110\tO\n".encode()


def archive(**members):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as file:
        for name, data in members.items():
            file.writestr(f"{name}.json", data)
    return content.getvalue()


@pytest.fixture
def server():
    members = {"/set.zip": archive(train=TRAIN, test=TEST), "/dev.bmes": BMES, "/w.dev": WEIBO}
    with serve(LocalServer(members)) as server:
        yield server


@pytest.fixture
def files(server, monkeypatch):
    """A data set of each kind of file, as the data set ``resume``; attempts follow each other at once."""
    files = [
        PublishedFile("train.json", f"{server.url}/set.zip", 1, 2),
        PublishedFile("test.json", f"{server.url}/set.zip", 1, labeled=False),
        PublishedFile("dev.bmes", f"{server.url}/dev.bmes", 2, 1),
        PublishedFile("w.dev", f"{server.url}/w.dev", 2, size=len(WEIBO), sha256=hashlib.sha256(WEIBO).hexdigest()),
    ]
    monkeypatch.setitem(DATASETS, "resume", files)
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    return files


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_data_set_is_fetched_checked_and_then_kept(server, files, tmp_path, capsys):
    assert download_data.main(["resume", "--output", str(tmp_path)]) == 0
    folder = tmp_path / "ner" / "resume"
    assert content(folder) == {"train.json": TRAIN, "test.json": TEST, "dev.bmes": BMES, "w.dev": WEIBO}
    assert server.asked == ["/set.zip", "/dev.bmes", "/w.dev"]
    lines = capsys.readouterr().out.splitlines()
    assert lines[2] == f"{folder / 'dev.bmes'}: {len(BMES)} bytes from {server.url}/dev.bmes" and len(lines) == 4
    assert download_data.main(["resume", "--output", str(tmp_path)]) == 0
    assert len(server.asked) == 3
    assert capsys.readouterr().out.splitlines()[3] == f"{folder / 'w.dev'}: is there already, and as published"


def test_only_what_is_missing_is_fetched(server, files, tmp_path):
    (tmp_path / "train.json").write_bytes(TRAIN)
    (tmp_path / "test.json").write_bytes(TEST)
    fetch_dataset(files, tmp_path)
    assert server.asked == ["/dev.bmes", "/w.dev"]


def test_source_put_there_by_hand_is_used_and_kept(server, files, tmp_path):
    (tmp_path / "set.zip").write_bytes(server.files["/set.zip"])
    fetch_dataset(files, tmp_path)
    assert server.asked == ["/dev.bmes", "/w.dev"]
    assert sorted(content(tmp_path)) == ["dev.bmes", "set.zip", "test.json", "train.json", "w.dev"]


@pytest.mark.parametrize(
    "name, given, message",
    [
        ("dev.bmes", "吴 O\n".encode(), "has 1 texts instead of 2 and 0 entities instead of 1; the file has changed"),
        ("dev.bmes", b"<html>", "is not the file as published (NAME:1: no tag in '<html>'; "),
        ("test.json", TEST * 2, "has 2 texts instead of 1; the file has changed or was not meant"),
        ("set.zip", b"<html>", "is no zip archive that can be read (File is not a zip file)"),
        ("w.dev", WEIBO[:-1], f"has {len(WEIBO) - 1} bytes instead of {len(WEIBO)}; "),
    ],
)
def test_other_file_that_is_there_is_refused_and_kept(files, tmp_path, capsys, name, given, message):
    folder = tmp_path / "ner" / "resume"
    folder.mkdir(parents=True)
    (folder / name).write_bytes(given)
    assert download_data.main(["resume", "--output", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: {folder / name}: {message.replace('NAME', str(folder / name))}")
    assert error.endswith(f"; move {folder / name} away, or give another --output\n") and error.count("\n") == 1
    assert (folder / name).read_bytes() == given


def test_wrong_file_of_the_publisher_never_gets_the_name(server, files, tmp_path, capsys):
    folder = tmp_path / "ner" / "resume"
    others = {
        "/dev.bmes": b"<html>login</html>",
        "/set.zip": archive(train=TRAIN + TRAIN, test=TEST),
        "/w.dev": WEIBO.replace(b"0\t", b"1\t"),
    }
    for address, name, message in (
        ("/dev.bmes", "dev.bmes", f"{server.url}/dev.bmes: is not the file as published ("),
        ("/set.zip", "train.json", f"{folder / 'train.json'}: has 2 texts instead of 1 and 4 entities instead of 2; "),
        ("/w.dev", "w.dev", f"{server.url}/w.dev: has SHA-256 "),
    ):
        DATASETS["resume"] = [file for file in files if file.name == name]
        server.files[address] = others[address]
        assert download_data.main(["resume", "--output", str(tmp_path)]) == 2
        assert capsys.readouterr().err.startswith(f"error: {message}")
        assert set(content(folder)) <= {"set.zip"}


def test_interruption_is_said_in_one_line(files, monkeypatch, capsys):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(published, "fetch_dataset", interrupted)
    assert download_data.main(["resume"]) == 130
    assert capsys.readouterr().err == "interrupted; run again to continue where it stopped\n"


def test_unknown_name_is_one_line_with_the_names(fails):
    assert fails(download_data, "conll").startswith("argument NAME: invalid choice: 'conll' (choose from 'cluener',")


def test_published_files_are_described_completely():
    for name, files in DATASETS.items():
        assert files and len({file.name for file in files}) == len(files), name
        for file in files:
            assert file.url.startswith("https://") and file.texts > 0
            known = file.sha256 is not None and re.fullmatch("[0-9a-f]{64}", file.sha256)
            assert (known and file.size > 0) or file.entities or not file.labeled


@pytest.mark.slow
def test_real_files_where_they_are_are_as_published(shared_data):
    present = [
        (file, path)
        for name, files in DATASETS.items()
        for file in files
        if (path := shared_data / "ner" / name / file.name).is_file()
    ]
    for file, path in present:
        file.check(path, path)
        other = replace(file, texts=file.texts + 1, sha256=None)
        if path.stat().st_size < 1e6:
            with pytest.raises(InputError, match=f" has {file.texts} texts instead of {file.texts + 1}; "):
                other.check(path, path)
