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
    """What jieba's own files hold."""
    return jieba_dictionary.read_jieba()


@pytest.fixture
def reads(monkeypatch, arrays):
    """How often jieba's own files are read; they are read once for all tests, which takes a second."""
    calls = []
    monkeypatch.setattr(jieba_dictionary, "read_jieba", lambda: calls.append(1) or {**arrays})
    return calls


@pytest.fixture
def cache(monkeypatch, tmp_path):
    """An empty cache folder, and a process that has read nothing yet."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(jieba_dictionary, "_shared", [])
    return tmp_path / "cache" / "paddle_rope"


def words_of(text):
    words = jieba_dictionary.installed_words()
    return WordFeatures(["segmentation"], {"segmentation": ["B-nt", "E-nt"]}, words=words)(
        text, OFFSETS
    ).columns.tolist()


def test_the_file_is_made_once_and_then_read(cache, reads, monkeypatch):
    first = words_of(TEXT)
    (file,) = cache.iterdir()
    assert file.name == f"words-{jieba_dictionary.FORMAT}-{jieba_dictionary.jieba_sha256()}.npz" and len(reads) == 1
    monkeypatch.setattr(jieba_dictionary, "_shared", [])
    assert words_of(TEXT) == first and len(reads) == 1


@pytest.mark.parametrize("damage", ["truncated", "changed", "empty", "text", "format"])
def test_a_damaged_file_is_made_again(cache, reads, monkeypatch, damage):
    first = words_of(TEXT)
    (file,) = cache.iterdir()
    content = file.read_bytes()
    half = len(content) // 2
    if damage == "format":
        monkeypatch.setattr(jieba_dictionary, "FORMAT", 0)
        np.savez_compressed(file.with_name(jieba_dictionary.cache_file().name), format=np.array(7))
    else:
        damaged = {
            "truncated": content[:half],
            "changed": content[:half] + bytes([content[half] ^ 255]) + content[half + 1 :],
            "empty": b"",
            "text": b"words",
        }
        file.write_bytes(damaged[damage])
    monkeypatch.setattr(jieba_dictionary, "_shared", [])
    assert words_of(TEXT) == first and len(reads) == 2
    monkeypatch.setattr(jieba_dictionary, "_shared", [])
    assert words_of(TEXT) == first and len(reads) == 2  # it was written again


def test_a_file_with_pickles_is_not_read(cache, reads):
    class Evil:
        def __reduce__(self):
            return os.mkdir, (str(cache / "evil"),)

    cache.mkdir(parents=True)
    np.savez(jieba_dictionary.cache_file(), format=np.array([Evil()], dtype=object))
    words_of(TEXT)
    assert len(reads) == 1 and not (cache / "evil").exists()


def test_another_jieba_has_another_file(cache, monkeypatch, tmp_path):
    before = jieba_dictionary.cache_file()
    folder = tmp_path / "jieba"
    shutil.copytree(jieba_dictionary._folder(), folder)
    with open(folder / "dict.txt", "a", encoding="utf-8") as file:
        file.write("大学学习 1000000 nz\n")
    monkeypatch.setattr(jieba_dictionary, "_folder", lambda: folder)
    assert jieba_dictionary.cache_file() != before
    words = jieba_dictionary.installed_words()
    columns = WordFeatures(["words"], {"words": ["大学学习"]}, words=words)(TEXT, OFFSETS).columns
    assert columns[4, 1] == 2


def test_a_cache_folder_that_cannot_be_made_is_no_error(reads, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setattr(jieba_dictionary, "_shared", [])
    words_of(TEXT)
    assert len(reads) == 1 and sorted(tmp_path.iterdir()) == [tmp_path / "file"]


def test_the_cache_folder_is_that_of_the_user(monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    for value in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", value)
        assert jieba_dictionary.cache_file().parent == tmp_path / ".cache" / "paddle_rope"


def test_a_folder_with_the_dictionary_needs_no_jieba(features, monkeypatch, tmp_path):
    expected = features(TEXT, OFFSETS)
    features.save_pretrained(tmp_path, with_dictionary=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["features.json", "words.npz"]
    monkeypatch.setattr(jieba_dictionary, "_shared", [])
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setattr(jieba_dictionary.importlib.metadata, "version", lambda name: pytest.fail("jieba is asked for"))
    loaded = WordFeatures.from_pretrained(tmp_path)
    assert same(loaded(TEXT, OFFSETS), expected)
    loaded.save_pretrained(tmp_path, with_dictionary=True)
    assert same(WordFeatures.from_pretrained(tmp_path)(TEXT, OFFSETS), expected)


def test_a_damaged_dictionary_of_a_folder_is_an_error(features, tmp_path):
    features.save_pretrained(tmp_path, with_dictionary=True)
    path = tmp_path / "words.npz"
    path.write_bytes(path.read_bytes()[:-1000])
    with pytest.raises(ValueError, match="words.npz: is damaged or of another version .*; export the model again"):
        WordFeatures.from_pretrained(tmp_path)


def test_features_that_need_no_words_have_no_dictionary(tmp_path):
    WordFeatures.from_examples([Example("甲乙", (), "x:1")], ["bigrams"]).save_pretrained(
        tmp_path, with_dictionary=True
    )
    assert [path.name for path in tmp_path.iterdir()] == ["features.json"]


def test_without_jieba_it_is_said_how_to_get_it(monkeypatch, features, tmp_path):
    features.save_pretrained(tmp_path)
    monkeypatch.setattr(jieba_dictionary, "_shared", [])
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(InputError, match="jieba is not installed.*pip install jieba==0.42.1"):
        WordFeatures.from_pretrained(tmp_path)(TEXT, OFFSETS)


def test_threads_share_the_dictionary_and_get_the_same_features(cache, features, monkeypatch, reads, tmp_path):
    texts = [TEXT[at:] + TEXT[:at] for at in range(len(TEXT))] * 4
    expected = [features(text, OFFSETS) for text in texts]
    features.save_pretrained(tmp_path)
    loaded = WordFeatures.from_pretrained(tmp_path)
    monkeypatch.setattr("tasks.ner.features.unknown_words.MAX_REMEMBERED", 3)
    ready = threading.Barrier(4)

    def work(part):
        ready.wait()
        return [loaded(text, OFFSETS) for text in part]

    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(work, [texts] * 4):
            assert all(same(one, other) for one, other in zip(found, expected, strict=True))
    assert len(reads) == 1
