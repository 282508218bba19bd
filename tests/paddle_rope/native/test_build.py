"""Where the library is, when it computes, and what is said of it."""

import os
import runpy
import shutil

import paddle
import pytest

from paddle_rope.native import library as loading
from paddle_rope.native.dispatch import is_enabled
from paddle_rope.native.library import BuildError, build, library_path
from paddle_rope.tasks.common.process import choose_device
from tests.conftest import REPOSITORY


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """A cache folder without a library; the path of the library that the tests use."""
    built = library_path()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for known in (library_path, loading.loaded):
        known.cache_clear()
    yield tmp_path, built
    for known in (library_path, loading.loaded):
        known.cache_clear()


@pytest.fixture
def copied(cache):
    """The library of the tests, copied into a cache folder: its path."""
    library_path().parent.mkdir(mode=0o700)
    return shutil.copy(cache[1], library_path())


@pytest.mark.parametrize("compiler, words", [("no-such-compiler", "no C++ compiler found"), ("sh -e", "not built")])
def test_nothing_is_left_without_a_compiler_or_by_one_that_fails(cache, monkeypatch, capsys, compiler, words):
    monkeypatch.setenv("CXX", compiler)
    if compiler == "sh -e":  # which knows none of the flags
        with pytest.raises(BuildError, match="cannot compile"):
            build()
        assert choose_device("cpu") == "cpu" and "note: sh -e cannot compile" in capsys.readouterr().err
    else:
        build()
    assert [path for path in cache[0].rglob("*") if path.is_file()] == []
    assert words in loading.state_in_words() and not is_enabled(paddle.ones([1]))


def give_away(path):
    if os.getuid():
        pytest.skip("only root gives files away")
    os.chown(path, 65534, -1)


CHANGES = {  # what is done to the file or to a folder above it, what is said of it
    "empty": (lambda file: file.write_bytes(b""), "cannot be loaded"),
    "a text": (lambda file: file.write_bytes(b"no library"), "cannot be loaded"),
    "open": (lambda file: file.chmod(0o777), "others may"),
    "open to the group": (lambda file: file.chmod(0o775), "others may"),
    "in an open folder": (lambda file: file.parent.chmod(0o777), "others may"),
    "in an open cache folder": (lambda file: file.parents[1].chmod(0o777), "others may"),
    "of another user": (give_away, "another user"),
    "in the folder of another user": (lambda file: give_away(file.parent), "another user"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_library_that_is_not_ours_or_that_others_may_write_is_not_loaded(copied, name):
    change, words = CHANGES[name]
    change(copied)
    assert loading.library() is None and words in loading.state_in_words()
    if name == "in an open cache folder":
        with pytest.raises(BuildError, match="others may"):
            build()


def test_a_library_behind_links_that_others_may_replace_is_not_loaded(copied):
    """The cache folder is a link to a link in an open folder, which leads to the private folder of the library."""
    folder, private, shared = copied.parent, copied.parent.with_name("private"), copied.parent.with_name("open")
    folder.rename(private)
    shared.mkdir()
    (shared / "link").symlink_to(os.path.join("..", private.name))
    folder.symlink_to(shared / "link")
    assert loading.library() is not None
    loading.loaded.cache_clear()
    shared.chmod(0o777)
    assert loading.library() is None and f"others may write to {shared};" in loading.state_in_words()


def test_folders_of_the_library_are_private_and_its_name_follows_the_sources(cache, monkeypatch):
    folder, built = cache
    assert built.parent == REPOSITORY / ".pytest_cache" / "home" / "paddle_rope"  # not the user's
    (folder / "operators.cc").write_text("int one() { return 1; }\n")
    monkeypatch.setattr(loading, "SOURCES", folder)
    monkeypatch.setattr(loading, "_compile", lambda program, output: output.write_bytes(b"library"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "a" / "b"))
    library_path.cache_clear()
    before = os.umask(0)
    try:
        build()
    finally:
        os.umask(before)
    made = [library_path(), *list(library_path().parents)[:3]]
    assert made[0].name != built.name
    assert [path.stat().st_mode & 0o077 for path in made] == [0, 0, 0, 0]


def test_a_run_on_the_cpu_builds_them_once_with_a_line(cache, monkeypatch, capsys):
    monkeypatch.setattr(loading, "_compile", lambda program, output: output.write_bytes(b"library"))
    monkeypatch.setenv(loading.VARIABLE, "0")
    choose_device("cpu")
    assert not library_path().exists() and capsys.readouterr().err == ""
    monkeypatch.delenv(loading.VARIABLE)
    choose_device("cpu")
    choose_device("cpu")
    assert library_path().is_file() and capsys.readouterr().err.count("being built") == 1


def test_a_variable_turns_them_off_and_the_command_prints_the_state(copied, monkeypatch, capsys):
    monkeypatch.setenv(loading.VARIABLE, "0")
    with pytest.raises(SystemExit, match="^0$"):
        runpy.run_module("paddle_rope.native", run_name="__main__")
    assert capsys.readouterr().out == "native operators: off, PADDLE_ROPE_NATIVE=0\n"
