"""A service that cannot start says why."""

import socket

import pytest

from tests.tasks.serving.conftest import skip_without_extra

OUT_OF_RANGE = [("port", 70000), ("port", -1), ("workers", 0), ("max_seconds", "nan"), ("max_texts", 0)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "words, message",
    [
        (["STUB", "STUB"], "'ner' is taken"),
        (["a b=STUB"], "'a b'"),
        *((["STUB", f"--{option}", value], f"--{option} must be ") for option, value in OUT_OF_RANGE),
        (["STUB", "--port", "http"], "--port"),
        (["STUB", "--host", "203.0.113.7", "--port", 0], "203.0.113.7:0: "),
        (["STUB", "--port", "TAKEN"], "already in use"),
    ],
)
def test_a_wrong_start_is_told_in_a_line(refused, monkeypatch, stub_folder, words, message):
    skip_without_extra()
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        words = [str(word).replace("STUB", str(stub_folder)).replace("TAKEN", port) for word in words]
        assert message in refused("serve", *words)
