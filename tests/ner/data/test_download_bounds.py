"""Downloads end, whatever the server does: bounds on attempts, bytes and time; and one line says why."""

import hashlib
import itertools
import re
import time

import pytest

from tasks.common.errors import InputError
from tasks.ner.data import download as module
from tasks.ner.data.download import download
from tests.local_server import LocalServer, serve, serve_bytes

CONTENT = bytes(range(256)) * 40
SHA256 = hashlib.sha256(CONTENT).hexdigest()
FAR = 10**9  # a cut behind the end
TRIES = 30  # after which the servers here give in, so that an attempt too many is told from a test that hangs


@pytest.fixture
def server():
    with serve(LocalServer({"/file": CONTENT})) as server:
        yield server


@pytest.fixture
def error(tmp_path):
    """The one line that a download ends with, which leaves no file."""

    def error(url, **options):
        with pytest.raises(InputError) as caught:
            download(f"{url}/file", tmp_path / "file", **{"wait": 0, "timeout": 5, **options})
        line = str(caught.value)
        assert line.startswith(f"{url}/file: ") and line.isprintable() and len(line) < 1000
        assert not (tmp_path / "file").exists()
        return line

    return error


# ---- attempts


def test_wrong_content_in_pieces_is_fetched_twice(server, error):
    server.cuts = [100, FAR] * TRIES
    assert "has SHA-256" in error(server.url, sha256="0" * 64)
    assert server.ranges_asked == [None, "bytes=100-"] * 2


def test_cuts_now_here_and_now_there_are_no_progress(server, error):
    server.ranges, server.cuts = False, [1000, 500] * TRIES
    assert "the connection was cut after 1000 of 10240 bytes" in error(server.url)
    assert len(server.asked) == 1 + 4


def test_answers_416_to_every_part_are_no_progress(error):
    def answer(request):
        if len(asked) == TRIES:
            yield b"HTTP/1.1 404 enough\r\n\r\n"
        elif "Range" in request:
            yield b"HTTP/1.1 416 no\r\nContent-Range: bytes */5\r\nContent-Length: 0\r\n\r\n"
        else:
            yield b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + bytes(100)

    with serve_bytes(answer) as (url, asked):
        assert "the connection was cut" in error(url)
        assert len(asked) == 1 + 4


def test_no_more_than_a_hundred_attempts_a_byte_each(server, error, tmp_path):
    server.cuts = [1] * 1000
    assert "the connection was cut after 100 of 10240 bytes" in error(server.url)
    assert len(server.asked) == 100
    server.cuts = []
    download(f"{server.url}/file", tmp_path / "file", sha256=SHA256)  # goes on there
    assert (tmp_path / "file").read_bytes() == CONTENT and server.ranges_asked[-1] == "bytes=100-"


# ---- bytes


def endless(head, piece=bytes(1 << 12)):
    """An answer of 40 MB."""
    return lambda _: itertools.chain([head], itertools.repeat(piece, 10_000))


@pytest.mark.parametrize(
    "head",
    [b"HTTP/1.0 200 OK\r\n\r\n", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nFFFFFFF\r\n"],
    ids=["no length", "chunk"],
)
def test_a_body_without_end_is_left_behind_the_size(head, error, tmp_path, monkeypatch):
    with serve_bytes(endless(head)) as (url, asked):
        assert error(url, size=9000) == (
            f"{url}/file: has 9001 or more bytes instead of 9000; the file has changed or was not meant"
        )
        monkeypatch.setattr(module, "LARGEST", 5000)
        assert "has 5001 or more bytes where at most 5000 are expected; " in error(url)
        assert len(asked) == 2 and list(tmp_path.iterdir()) == []


def test_a_length_above_the_cap_is_refused_before_the_body(error, monkeypatch, tmp_path):
    monkeypatch.setattr(module, "_append", lambda *_: pytest.fail("something is fetched"))
    with serve_bytes(endless(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n")) as (url, asked):
        assert "has 99999999999 bytes where at most 268435456 are expected; " in error(url)
        assert "has 99999999999 bytes instead of 7; " in error(url, size=7)
        assert len(asked) == 2 and list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "head, piece",
    [
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n" * 100),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1;" + bytes(60_000) + b"\r\n\0\r\n"),
    ],
    ids=["interim answers", "chunk extensions"],
)
def test_bytes_beside_the_file_count_too(head, piece, error):
    with serve_bytes(endless(head, piece)) as (url, _):
        assert "(4 times the bytes of the file have arrived and it is not whole)" in error(url, size=1000)


def test_whole_attempts_without_ranges_are_four_times_the_file_at_most(server, error, monkeypatch):
    monkeypatch.setattr(module, "_OVERHEAD", 2000)
    server.ranges = False
    server.cuts = [len(CONTENT) - 50 + index for index in range(TRIES)]
    assert "4 times the bytes" in error(server.url, size=len(CONTENT))
    assert len(server.asked) == 5


def test_the_body_of_a_redirection_is_not_read(tmp_path):
    def answer(request):
        if request.startswith("GET /file "):
            return endless(b"HTTP/1.1 302 Found\r\nLocation: /other\r\n\r\n")(request)
        return [b"HTTP/1.1 200 OK\r\nContent-Length: 10240\r\n\r\n", CONTENT]

    with serve_bytes(answer) as (url, asked):
        download(f"{url}/file", tmp_path / "file", sha256=SHA256, size=len(CONTENT))
        assert (tmp_path / "file").read_bytes() == CONTENT and len(asked) == 2


def test_a_chunk_of_negative_length_is_not_read_to_its_end(error):
    with serve_bytes(endless(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-5\r\n")) as (url, asked):
        assert re.search(r"has \d+ or more bytes instead of 100; ", error(url, size=100))  # what is there at once
        assert len(asked) == 1


def test_what_a_server_sends_behind_the_length_is_not_waited_for(tmp_path):
    def answer(_):
        yield b"HTTP/1.1 200 OK\r\nContent-Length: 10240\r\n\r\n" + CONTENT
        yield from itertools.repeat(b"more", 10_000)

    with serve_bytes(answer) as (url, asked):
        download(f"{url}/file", tmp_path / "file", sha256=SHA256)
        assert (tmp_path / "file").read_bytes() == CONTENT and len(asked) == 1


# ---- time


@pytest.mark.parametrize(
    "head, piece",
    [
        (b"HTTP/1.1 200 ", b"x"),
        (b"HTTP/1.1 200 OK\r\nX: ", b"x"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 10240\r\n\r\n", b"x"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
        (b"HTTP/1.1 302 Found\r\nLocation: /file2\r\nX: ", b"x"),
    ],
    ids=["status", "headers", "interim", "body", "chunks", "redirection"],
)
def test_a_server_that_drips_is_left(head, piece, error):
    def answer(_):
        yield head
        for _ in range(200):
            time.sleep(0.02)
            yield piece
        yield from itertools.repeat(piece, 10_000)

    with serve_bytes(answer) as (url, asked):
        assert "cannot be downloaded (not whole after 0.2 seconds); check the network" in error(url, longest=0.2)
        assert len(asked) == 1


def test_attempts_end_with_the_time(server, error):
    server.statuses = [503, 404]
    assert "(not whole after 0.05 seconds)" in error(server.url, longest=0.05, wait=0.1)
    assert len(server.asked) == 1


# ---- odd headers


@pytest.mark.parametrize(
    "location",
    [
        "http://[::1", "http://127.0.0.1:99999999/", "http://127.0.0.1:x/", f"http://{'a' * 70}.invalid/", "http://a..b/",
        "ftp://127.0.0.1/file", "file:///etc/passwd", "gopher://x/", "http:///", "http://", "", "/file", "\xb2://",
        "http://\x1b[2J/", "http://127.0.0.1:1/" + "x" * 30_000,
    ],
    ids=lambda location: ascii(location[:30]),
)  # fmt: skip
def test_an_odd_location_is_one_line(location, error):
    answer = f"HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n".encode("latin-1")
    with serve_bytes(lambda _: [answer]) as (url, asked):
        assert "cannot be downloaded (" in error(url)
        assert len(asked) <= 4 * 5  # of urllib's: five times the same address


@pytest.mark.parametrize(
    "length", ["\xb2", "-5", "1e3", "+12", "", "0x10", "9" * 5000, "1" * 19], ids=lambda length: ascii(length[:20])
)
def test_an_odd_length_is_one_line(length, error):
    answer = f"HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n".encode("latin-1") + CONTENT
    with serve_bytes(lambda _: [answer]) as (url, asked):
        assert f"(the server answers with Content-Length {length[:18]!r})" in error(url)
        assert len(asked) == 4


@pytest.mark.parametrize(
    "status", ["404 \x1b[2Jgone\x07", "404 " + "x" * 5000, "1e9 OK", "-1", "x" * 60_000, "\xb2 OK"]
)
def test_an_odd_status_is_one_line_without_control_characters(status, error):
    with serve_bytes(lambda _: [f"HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n".encode("latin-1")]) as (url, _):
        line = error(url)
        assert "cannot be downloaded (" in line and ("\\x1b[2Jgone\\x07" in line) == ("\x1b" in status)
