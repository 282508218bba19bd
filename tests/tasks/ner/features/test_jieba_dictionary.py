"""jieba's dictionary as a file: in the cache folder, in model folders, and shared by threads."""

import importlib.util
import os
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tasks.common.errors import InputError
from tasks.ner.examples import Entity, Example
from tasks.ner.features import FEATURE_KINDS, WordFeatures, jieba_dictionary
from tests.tasks.ner.features.plain_features import same

TEXT = "他在北京大学学习计算机，龘龘3.5亿"
OFFSETS = [(at, at + 1) for at in range(len(TEXT))]


@pytest.fixture(scope="module")
def features():
    return WordFeatures.from_examples([Example(TEXT, (Entity(2, 6, "school"),), "x:1")] * 3, FEATURE_KINDS)


@pytest.fixture(scope="module")
def arrays():
    """The content of jieba's own files."""
    return jieba_dictionary.read_jieba()


@pytest.fixture
def reads(monkeypatch, arrays):
    """One entry for each time that jieba's own files are read; they are read once for all tests."""
    calls = []
    monkeypatch.setattr(jieba_dictionary, "read_jieba", lambda: calls.append(1) or {**arrays})
    return calls


@pytest.fixture
def new_process(monkeypatch):
    """``new_process()``: nothing has been read yet."""
    return lambda: monkeypatch.setattr(jieba_dictionary, "_shared", [])


@pytest.fixture
def cache(monkeypatch, new_process, tmp_path):
    """An empty cache folder of a new process."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    new_process()
    return tmp_path / "cache" / "paddle_rope"


@pytest.fixture
def without_jieba(monkeypatch, new_process):
    """``without_jieba()``: jieba is not installed in a new process."""

    def without_jieba():
        new_process()
        monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)

    return without_jieba


def columns():
    words = jieba_dictionary.installed_words()
    features = WordFeatures(["segmentation"], {"segmentation": ["B-nt", "E-nt"]}, words=words)
    return features(TEXT, OFFSETS).columns.tolist()


DAMAGES = {
    "truncated": lambda content: content[: len(content) // 2],
    "changed": lambda content: content[:999_999] + bytes([content[999_999] ^ 255]) + content[1_000_000:],
    "text": lambda content: b"words",
}


@pytest.mark.parametrize("damage", DAMAGES.values(), ids=DAMAGES)
def test_the_file_is_made_once_and_then_read_and_made_again_if_it_is_damaged(cache, reads, new_process, damage):
    expected = columns()
    (file,) = cache.iterdir()
    for change, number in ((bytes, 1), (damage, 2), (bytes, 2)):
        file.write_bytes(change(file.read_bytes()))
        new_process()
        assert columns() == expected and len(reads) == number


class Evil:
    """As a pickle: makes a folder where it is read."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_a_file_of_another_format_or_with_pickles_is_made_again(cache, reads, new_process):
    cache.mkdir(parents=True)
    for number, format in enumerate((np.array(7), np.array([Evil(cache / "evil")], dtype=object)), 1):
        np.savez(jieba_dictionary.cache_file(), format=format)
        new_process()
        columns()
        assert len(reads) == number and not (cache / "evil").exists()


def test_another_jieba_has_another_file(cache, monkeypatch, tmp_path):
    before = jieba_dictionary.cache_file()
    folder = shutil.copytree(jieba_dictionary._folder(), tmp_path / "jieba")
    with open(folder / "dict.txt", "a", encoding="utf-8") as file:
        file.write("大学学习 1000000 nz\n")
    monkeypatch.setattr(jieba_dictionary, "_folder", lambda: folder)
    assert jieba_dictionary.cache_file() != before
    words = jieba_dictionary.installed_words()
    assert WordFeatures(["words"], {"words": ["大学学习"]}, words=words)(TEXT, OFFSETS).columns[4, 1] == 2


def test_the_cache_folder_is_the_users_and_need_not_be_writable(reads, new_process, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    for value in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", value)
        assert jieba_dictionary.cache_file().parent == tmp_path / ".cache" / "paddle_rope"
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    new_process()
    columns()
    assert len(reads) == 1 and list(tmp_path.iterdir()) == [tmp_path / "file"]


def test_a_folder_with_the_dictionary_needs_no_jieba(features, without_jieba, tmp_path):
    expected = features(TEXT, OFFSETS)
    features.save_pretrained(tmp_path, with_dictionary=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["features.json", "words.npz"]
    bare = tmp_path / "bare"
    bare.mkdir()
    features.save_pretrained(bare)
    without_jieba()
    with pytest.raises(InputError, match="jieba is not installed.*pip install"):
        WordFeatures.from_pretrained(bare)(TEXT, OFFSETS)
    loaded = WordFeatures.from_pretrained(tmp_path)
    assert same(loaded(TEXT, OFFSETS), expected)
    loaded.save_pretrained(tmp_path, with_dictionary=True)
    assert same(WordFeatures.from_pretrained(tmp_path)(TEXT, OFFSETS), expected)
    path = tmp_path / "words.npz"
    path.write_bytes(path.read_bytes()[:-1000])
    with pytest.raises(ValueError, match="words.npz: is damaged"):
        WordFeatures.from_pretrained(tmp_path)


def test_threads_share_the_dictionary_and_get_the_same_features(cache, features, monkeypatch, reads, tmp_path):
    texts = [TEXT[at:] + TEXT[:at] for at in range(len(TEXT))] * 4
    expected = [features(text, OFFSETS) for text in texts]
    features.save_pretrained(tmp_path)
    loaded = WordFeatures.from_pretrained(tmp_path)
    monkeypatch.setattr("tasks.ner.features.chinese_words.MAX_REMEMBERED", 3)
    ready = threading.Barrier(4)

    def work(part):
        ready.wait()
        return [loaded(text, OFFSETS) for text in part]

    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(work, [texts] * 4):
            assert all(same(one, other) for one, other in zip(found, expected, strict=True))
    assert len(reads) == 1
