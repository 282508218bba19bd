"""What the tests of all recipes and verbs share."""

import gc

import pytest

from tasks.commands.main import main


@pytest.fixture
def refused(tmp_path, monkeypatch, capsys):
    """``refused(*words)``: the one line of a command that ends with status 2 and writes nothing, in ``tmp_path``."""
    monkeypatch.chdir(tmp_path)

    def files():
        return {path: path.read_bytes() if path.is_file() else None for path in tmp_path.rglob("*")}

    def refused(*words):
        gc.collect()  # a run that was cut ends its progress bar only now
        before = files()
        capsys.readouterr()
        assert main([str(word) for word in words]) == 2
        error = capsys.readouterr().err
        assert error.startswith("error: ") and error.count("\n") == 1 and "Traceback" not in error, error
        assert files() == before
        return error.removeprefix("error: ").rstrip("\n")

    return refused


@pytest.fixture
def write(tmp_path):
    """Write a file of text or bytes: ``write(content, name)`` -> its path."""

    def write(content, name="sample.txt"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        return path

    return write
