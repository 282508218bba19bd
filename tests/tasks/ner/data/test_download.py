"""Downloads from a server of this process: checked, and under their name only when whole."""

import hashlib
import socket
import zipfile

import pytest

from tasks.common.errors import InputError
from tasks.ner.data import download as module
from tasks.ner.data.download import PART, download, read_zip_member
from tests.helpers.local_server import LocalServer, serve

CONTENT = bytes(range(256)) * 1000
SHA256 = hashlib.sha256(CONTENT).hexdigest()


@pytest.fixture(autouse=True)
def no_waiting(monkeypatch):
    monkeypatch.setattr("time.sleep", lambda seconds: None)


@pytest.fixture
def server():
    with serve(LocalServer({"/file": CONTENT})) as server:
        yield server


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def get(server, path, **options):
    download(f"{server.url}/file", path, **{"sha256": SHA256, **options})


def test_file_arrives_whole_in_a_folder_that_is_made(server, tmp_path):
    get(server, tmp_path / "new" / "folder" / "file", size=len(CONTENT))
    assert (tmp_path / "new" / "folder" / "file").read_bytes() == CONTENT
    assert names(tmp_path / "new" / "folder") == ["file"]


def test_leftovers_of_a_killed_download_are_removed(server, tmp_path):
    (tmp_path / f"file{PART}").mkdir()
    (tmp_path / f"file{PART}" / "file").write_bytes(CONTENT[:77])
    get(server, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == CONTENT and names(tmp_path) == ["file"]


def test_a_cut_and_a_busy_server_are_asked_again(server, tmp_path):
    server.statuses, server.cuts = [503], [100_000]
    get(server, tmp_path / "file")
    assert (tmp_path / "file").read_bytes() == CONTENT and len(server.asked) == 3


def test_wrong_content_leaves_nothing_and_says_what_is_wrong(server, tmp_path):
    def check(path, name):
        raise InputError(f"{name}: {path.stat().st_size} bytes are refused")

    url = f"{server.url}/file"
    (tmp_path / "file").write_bytes(b"old")
    for options, message in (
        ({"size": 5}, f"{url}: has 256000 bytes instead of 5; "),
        ({"sha256": "0" * 64}, f"{url}: has SHA-256 {SHA256} instead of {'0' * 64}; "),
        ({"check": check}, f"{url}: 256000 bytes are refused"),
    ):
        with pytest.raises(InputError) as error:
            get(server, tmp_path / "file", **options)
        assert str(error.value).startswith(message) and names(tmp_path) == ["file"]
    assert (tmp_path / "file").read_bytes() == b"old"


def test_missing_address_and_closed_network_are_named(server, tmp_path):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        closed = free.getsockname()[1]
    for url, reason in ((f"{server.url}/none", "404"), (f"http://127.0.0.1:{closed}/file", "refused")):
        with pytest.raises(InputError) as error:
            download(url, tmp_path / "file")
        assert str(error.value).startswith(f"{url}: cannot be downloaded (") and reason in str(error.value)
        assert str(tmp_path / "file") in str(error.value) and names(tmp_path) == []


def test_folder_that_cannot_be_made_is_an_error_before_any_request(server, tmp_path):
    (tmp_path / "taken").write_bytes(b"")
    with pytest.raises(InputError, match="cannot be written .*; give another --output"):
        get(server, tmp_path / "taken" / "file")
    assert server.asked == []


def test_proxy_of_the_environment_is_used(server, tmp_path, monkeypatch):
    server.files["http://publisher.invalid/file"] = CONTENT
    monkeypatch.setenv("http_proxy", server.url)
    download("http://publisher.invalid/file", tmp_path / "file", sha256=SHA256)
    assert server.asked == ["http://publisher.invalid/file"]


# ---- zip archives


def zipped(path, *members):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members:
            archive.writestr(name, content)
    return path


def test_member_is_found_in_any_folder(tmp_path):
    path = zipped(tmp_path / "a.zip", ("set/", ""), ("set/train.json", "1"), ("__MACOSX/set/train.json", "2"))
    assert read_zip_member(path, "train.json", "it") == b"1"


@pytest.mark.parametrize("evil", ["../../train.json", "/etc/train.json", "..\\train.json"])
def test_paths_of_an_archive_lead_nowhere(tmp_path, evil):
    inside = tmp_path / "one" / "two"
    inside.mkdir(parents=True)
    path = zipped(inside / "a.zip", (evil, "evil"), ("dev.json", "1"))
    assert read_zip_member(path, "dev.json", "it") == b"1"
    if "\\" not in evil:  # a name like any other
        assert read_zip_member(path, "train.json", "it") == b"evil"
    assert [file.name for file in tmp_path.rglob("*") if file.is_file()] == ["a.zip"]


def test_archive_without_the_member_or_with_two_is_refused(tmp_path):
    path = zipped(tmp_path / "a.zip", ("a/train.json", "1"), ("b/train.json", "2"))
    held = r"\(but a/train.json, b/train.json\); the archive has changed"
    for member in ("train.json", "dev.json"):
        with pytest.raises(InputError, match=f"^it: does not hold one {member} {held}"):
            read_zip_member(path, member, "it")


def test_member_that_unpacks_to_too_much_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_LARGEST_MEMBER", 1000)
    path = zipped(tmp_path / "a.zip", ("train.json", "0" * 1001))
    with pytest.raises(InputError, match="does not hold one train.json"):
        read_zip_member(path, "train.json", "it")


def test_damaged_archives_are_refused(tmp_path):
    whole = zipped(tmp_path / "a.zip", ("train.json", bytes(range(99)) * 9)).read_bytes()
    refused = 0
    for place in range(0, len(whole), 2):
        damaged = bytearray(whole)
        damaged[place] ^= 0xFF
        (tmp_path / "a.zip").write_bytes(damaged)
        try:
            assert read_zip_member(tmp_path / "a.zip", "train.json", "it") == bytes(range(99)) * 9
        except InputError as error:
            assert str(error).startswith("it: ")
            refused += 1
    assert refused > len(whole) / 4
    for content in (b"", b"<html>not found</html>", whole[:-30], whole[:40]):
        (tmp_path / "a.zip").write_bytes(content)
        with pytest.raises(InputError, match="^it: is no zip archive that can be read"):
            read_zip_member(tmp_path / "a.zip", "train.json", "it")
