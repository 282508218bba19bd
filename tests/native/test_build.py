"""Where the library is, when it computes, and what is said of it."""

import os
import subprocess
import sys

import paddle
import pytest

from paddle_rope.native import build as building
from paddle_rope.native import library as loading
from paddle_rope.native.build import BuildError, build, library_path
from tasks.ner.features.dictionary_file import cache_file
from tests.conftest import REPOSITORY


@pytest.fixture
def empty_cache(tmp_path, monkeypatch):
    """A cache folder without a library."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for known in (library_path, loading.library):
        known.cache_clear()
    yield tmp_path
    for known in (library_path, loading.library):
        known.cache_clear()


def test_without_a_compiler_nothing_is_built_and_plain_forms_compute(empty_cache, monkeypatch):
    monkeypatch.setenv("CXX", "no-such-compiler")
    build()
    assert list(empty_cache.iterdir()) == []
    assert "no C++ compiler found" in loading.state_in_words()
    assert not loading.computes(paddle.ones([1]))


def test_where_nothing_is_built_the_command_is_named(empty_cache):
    assert loading.state_in_words().endswith("python -m paddle_rope.native builds them")


def test_a_compiler_that_fails_leaves_nothing(empty_cache, monkeypatch):
    monkeypatch.setenv("CXX", sys.executable)  # which knows none of the flags
    with pytest.raises(BuildError, match="cannot compile"):
        build()
    assert [path.name for path in empty_cache.rglob("*") if path.is_file()] == []


def test_a_damaged_library_is_named_and_not_used(empty_cache):
    library_path().parent.mkdir(parents=True)
    library_path().write_bytes(b"no library")
    assert loading.library() is None and "cannot be loaded" in loading.state_in_words()


def test_another_source_has_another_library(empty_cache, monkeypatch, tmp_path):
    before = library_path()
    (tmp_path / "operators.cc").write_text("int one() { return 1; }\n")
    monkeypatch.setattr(building, "SOURCES", tmp_path)
    library_path.cache_clear()
    assert library_path() != before


def test_what_tests_build_is_no_part_of_the_cache_folder_of_the_user():
    assert library_path().is_file()
    for kept in (library_path(), cache_file()):
        assert kept.parent == REPOSITORY / ".pytest_cache" / "home" / "paddle_rope"


def test_a_variable_turns_them_off(monkeypatch):
    monkeypatch.setenv("PADDLE_ROPE_NATIVE", "0")
    loading.library.cache_clear()
    try:
        assert loading.library() is None and loading.state_in_words() == "native operators: off, PADDLE_ROPE_NATIVE=0"
    finally:
        monkeypatch.undo()
        loading.library.cache_clear()


def test_the_command_prints_the_state():
    words = [sys.executable, "-W", "ignore", "-m", "paddle_rope.native"]
    done = subprocess.run(words, capture_output=True, text=True, env={**os.environ, "PADDLE_ROPE_NATIVE": "0"})
    assert (done.returncode, done.stdout) == (0, "native operators: off, PADDLE_ROPE_NATIVE=0\n")


def test_static_graphs_and_plain_forms_do_not_use_them():
    x = paddle.ones([1])
    assert loading.computes(x)
    with loading.plain_forms():
        assert not loading.computes(x)
    paddle.enable_static()
    try:
        assert not loading.computes()
    finally:
        paddle.disable_static()
