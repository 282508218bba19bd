"""Where the library is, when it computes, and what is said of it."""

import os
import shutil
import subprocess
import sys

import paddle
import pytest

from paddle_rope.native import build as building
from paddle_rope.native import library as loading
from paddle_rope.native.build import BuildError, build, library_path
from paddle_rope.native.dispatch import is_enabled, plain_forms
from tasks.ner.features.jieba_dictionary import cache_file
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
    assert not is_enabled(paddle.ones([1]))


def test_where_nothing_is_built_the_command_is_named(empty_cache):
    assert loading.state_in_words().endswith("python -m paddle_rope.native builds them")


def test_a_compiler_that_fails_leaves_nothing(empty_cache, monkeypatch):
    monkeypatch.setenv("CXX", sys.executable)  # which knows none of the flags
    with pytest.raises(BuildError, match="cannot compile"):
        build()
    assert [path.name for path in empty_cache.rglob("*") if path.is_file()] == []


@pytest.fixture
def copied(empty_cache, monkeypatch):
    """The library of the tests, copied into a cache folder: its path."""
    monkeypatch.undo()
    library_path.cache_clear()
    source = library_path()
    monkeypatch.setenv("XDG_CACHE_HOME", str(empty_cache))
    library_path.cache_clear()
    library_path().parent.mkdir(mode=0o700)
    shutil.copy(source, library_path())
    return library_path()


DAMAGES = {
    "no library": lambda content: b"no library",
    "empty": lambda content: b"",
    "cut": lambda content: content[:5000],
    "one byte less": lambda content: content[:-1],
    "one bit": lambda content: content[:9000] + bytes([content[9000] ^ 1]) + content[9001:],
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_library_is_named_not_used_and_built_again(copied, damage, monkeypatch):
    whole = copied.read_bytes()
    copied.write_bytes(DAMAGES[damage](whole))
    assert loading.library() is None and "is damaged" in loading.state_in_words()
    monkeypatch.setattr(building, "_compile", lambda program, output: output.write_bytes(whole[: -building.DIGEST]))
    build()
    assert copied.read_bytes() == whole
    loading.library.cache_clear()
    assert loading.library() is not None


def test_a_library_without_our_functions_is_a_line(copied, monkeypatch):
    monkeypatch.setitem(loading._SIGNATURES, "no_such_function", "l")
    assert loading.library() is None and "cannot be loaded" in loading.state_in_words()


FOREIGN = {  # what is changed, to which mode
    "the file": ("file", 0o777),
    "the file, by the group": ("file", 0o775),
    "its folder": ("folder", 0o777),
    "the cache folder": ("cache", 0o777),
}


@pytest.mark.parametrize("kind", FOREIGN)
def test_a_library_that_others_may_write_is_not_loaded(copied, kind):
    changed, mode = FOREIGN[kind]
    {"file": copied, "folder": copied.parent, "cache": copied.parent.parent}[changed].chmod(mode)
    assert loading.library() is None and "others may" in loading.state_in_words()
    if changed == "cache":
        with pytest.raises(BuildError, match="others may"):
            build()


@pytest.mark.parametrize("changed", ["file", "folder"])
def test_a_library_of_another_user_is_not_loaded(copied, changed, monkeypatch):
    if os.getuid():
        pytest.skip("only root gives files away")
    os.chown(copied if changed == "file" else copied.parent, 65534, -1)
    assert loading.library() is None and "another user" in loading.state_in_words()


def test_folders_that_are_made_for_the_library_are_private(empty_cache, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(empty_cache / "a" / "b"))
    library_path.cache_clear()
    monkeypatch.setattr(building, "_compile", lambda program, output: output.write_bytes(b"library"))
    before = os.umask(0)
    try:
        build()
    finally:
        os.umask(before)
    made = [library_path(), *list(library_path().parents)[:3]]
    assert [path.stat().st_mode & 0o077 for path in made] == [0, 0, 0, 0]


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
    assert is_enabled(x)
    with plain_forms():
        assert not is_enabled(x)
    paddle.enable_static()
    try:
        assert not is_enabled()
    finally:
        paddle.disable_static()
