"""Published data sets from a server of this process: checked, and under their name only when whole."""

import hashlib
import io
import re
import shutil
import socket
import zipfile

import pytest

from paddle_rope.tasks.commands.main import main
from paddle_rope.tasks.common import datasets
from paddle_rope.tasks.common.datasets import PART, Dataset, PublishedFile, fetch_dataset, public, read_zip_member
from tests.conftest import REPOSITORY
from tests.helpers.local_server import LocalServer, serve
from tests.tasks.ner.conftest import error_of

TRAIN = '{"text": "叶老桂在北京", "label": {"name": {"叶老桂": [[0, 2]]}, "address": {"北京": [[4, 5]]}}}\n'.encode()
TEST = '{"id": 0, "text": "北京"}\n'.encode()
BMES = "吴 B-NAME\n重 M-NAME\n阳 E-NAME\n\n。 O\n\n".encode()
WEIBO = "老0\tB-PER.NOM\n百1\tI-PER.NOM\n心0\tO\n\n\ufffd\ufffd0\tO\n110\tO\n".encode()
CONTENT = bytes(range(256)) * 1000
SHA256 = hashlib.sha256(CONTENT).hexdigest()


def zipped(*members):
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members:
            archive.writestr(name, data)
    return content.getvalue()


@pytest.fixture
def server(monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setattr("time.sleep", lambda seconds: None)  # attempts follow each other at once
    archive = zipped(("train.json", TRAIN), ("test.json", TEST))
    with serve(LocalServer({"/file": CONTENT, "/set.zip": archive, "/dev.bmes": BMES, "/w.dev": WEIBO})) as server:
        yield server


def names(folder):
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def get(server, folder, sha256=SHA256):
    fetch_dataset([PublishedFile("file", f"{server.url}/file", sha256=sha256)], folder)


def test_a_file_arrives_whole_after_a_cut_a_busy_server_and_a_killed_download(server, tmp_path):
    folder = tmp_path / "new" / "folder"
    (folder / PART).mkdir(parents=True)
    (folder / PART / "file").write_bytes(CONTENT[:77])
    server.statuses, server.cuts = [503], [100_000]
    get(server, folder)
    assert (folder / "file").read_bytes() == CONTENT and names(tmp_path) == ["file"] and len(server.asked) == 3


def test_what_cannot_be_had_leaves_nothing_and_says_why(server, tmp_path):
    message = error_of(get, server, tmp_path, "0" * 64)
    assert f"{server.url}/file: has SHA-256 {SHA256} instead of " in message
    assert not names(tmp_path)
    (tmp_path / "file").write_bytes(b"old")
    asked = len(server.asked)
    assert "another --output" in error_of(get, server, tmp_path / "file") and len(server.asked) == asked
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        closed = free.getsockname()[1]
    for url, reason in ((f"{server.url}/none", "404"), (f"http://127.0.0.1:{closed}/none", "refused")):
        message = error_of(fetch_dataset, [PublishedFile("none", url, lines=1)], tmp_path)
        assert message.startswith(f"{url}: ") and reason in message and str(tmp_path / "none") in message
    assert (tmp_path / "file").read_bytes() == b"old" and names(tmp_path) == ["file"]


def test_one_member_is_read_in_any_folder_and_nothing_else(tmp_path, write, monkeypatch):
    content = bytes(range(99)) * 9
    whole = zipped(("set/", ""), ("set/train.json", content), ("__MACOSX/set/train.json", "2"), ("../../evil", "3"))
    assert read_zip_member("train.json", write(whole, "a.zip"), "it") == content
    assert read_zip_member("evil", write(whole, "a.zip"), "it") == b"3" and names(tmp_path) == ["a.zip"]
    for damaged in (b"", b"<html>", whole[:-30], whole[:40], whole.replace(content[:9], bytes(9))):
        if damaged != whole:
            assert "it: is no zip archive" in error_of(read_zip_member, "train.json", write(damaged, "a.zip"), "it")
    for archive, member in ((whole, "dev.json"), (zipped(("a/dev", "1"), ("b/dev", "2")), "dev")):
        assert f"it: does not hold one {member} (but " in error_of(read_zip_member, member, write(archive), "it")
    monkeypatch.setattr(datasets, "_LARGEST_MEMBER", 800)
    assert "does not hold one" in error_of(read_zip_member, "train.json", write(whole), "it")


@pytest.fixture
def files(server, monkeypatch):
    """A data set of each kind of file, as the data set ``resume``."""
    files = [
        PublishedFile("train.json", f"{server.url}/set.zip", lines=1),
        PublishedFile("test.json", f"{server.url}/set.zip", lines=1),
        PublishedFile("dev.bmes", f"{server.url}/dev.bmes", lines=4),
        PublishedFile("w.dev", f"{server.url}/w.dev", sha256=hashlib.sha256(WEIBO).hexdigest()),
    ]
    monkeypatch.setitem(public(), "resume", Dataset("ner/resume", files))
    return files


ALL = {"train.json": TRAIN, "test.json": TEST, "dev.bmes": BMES, "w.dev": WEIBO}


def test_a_data_set_is_fetched_checked_and_then_kept(server, files, tmp_path, capsys):
    for said in (f"dev.bmes: {len(BMES)} bytes from {server.url}/dev.bmes", "dev.bmes: is there already"):
        assert main(["download", "resume", "--output", str(tmp_path)]) == 0
        folder = tmp_path / "ner" / "resume"
        assert {path.name: path.read_bytes() for path in folder.iterdir()} == ALL
        assert server.asked == ["/set.zip", "/dev.bmes", "/w.dev"] and said in capsys.readouterr().out


@pytest.mark.parametrize("given", ["train.json test.json", "set.zip"])
def test_only_what_is_missing_is_fetched_and_what_was_there_stays(server, files, tmp_path, given):
    for name in given.split():
        (tmp_path / name).write_bytes({**ALL, "set.zip": server.files["/set.zip"]}[name])
    fetch_dataset(files, tmp_path)
    assert server.asked == ["/dev.bmes", "/w.dev"]
    assert names(tmp_path) == sorted({*ALL, *given.split()})


@pytest.mark.parametrize("name, content, said", [
    ("dev.bmes", "吴 O\n".encode(), "has 1 lines instead of 4"),
    ("test.json", TEST * 2, "has 2 lines instead of 1"),
    ("set.zip", b"<html>", "is no zip archive"),
    ("w.dev", WEIBO.replace(b"0\t", b"1\t"), "has SHA-256"),
])  # fmt: skip
def test_another_file_is_refused_whether_it_is_there_or_comes(server, files, tmp_path, capsys, name, content, said):
    folder = tmp_path / "ner" / "resume"
    folder.mkdir(parents=True)
    (folder / name).write_bytes(content)
    assert main(["download", "resume", "--output", str(tmp_path)]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"error: {folder / name}: {said}") and "another --output" in error
    assert (folder / name).read_bytes() == content
    shutil.rmtree(folder)
    server.files[f"/{name}"] = content
    server.files["/set.zip"] = zipped(("train.json", TRAIN), ("test.json", content)) if "test" in name else content
    left = [file for file in files if name in (file.name, file.source_name)]
    public()["resume"] = Dataset("ner/resume", left)
    assert main(["download", "resume", "--output", str(tmp_path)]) == 2
    assert said in capsys.readouterr().err and name not in names(folder)


def test_real_files_where_they_are_are_as_published(shared_data):
    checked = 0
    for dataset in public().values():
        for file in dataset.files:
            path = shared_data / dataset.folder / file.name
            if path.is_file():
                file.check(path, path)
                checked += 1
    assert checked > 10


SOURCE = r"https://|Data: (?:see (?P<same>\w+\.yaml)|(?P<page>docs/results/experiments\.md#machines-and-data))"


def test_every_public_file_of_a_configuration_is_downloaded_or_has_its_source_named():
    known = {f"data/{dataset.folder}/{file.name}" for dataset in public().values() for file in dataset.files}
    for path in sorted((REPOSITORY / "configs").rglob("*.yaml")):
        text = path.read_text(encoding="utf-8")
        unknown = set(re.findall(r"\bdata/[\w/.]+\.\w+", text)) - known
        source = re.search(SOURCE, text)
        assert not unknown or source, (path, unknown)
        if source and source["same"]:
            assert "https://" in (path.parent / source["same"]).read_text(encoding="utf-8")
        assert not re.search(r"data/\S*README", text), path  # data/ is not in the repository
