"""jieba's dictionary as a file in the cache folder, and shared by threads."""

import functools
import importlib.metadata
import importlib.util
import io
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from paddle_rope.tasks.ner.examples import Entity, Example
from paddle_rope.tasks.ner.features import FEATURE_KINDS, WordFeatures, jieba_dictionary
from tests.helpers.runs import Bomb
from tests.tasks.ner.conftest import error_of
from tests.tasks.ner.features.plain_features import same

TEXT = "他在北京大学学习计算机，龘龘3.5亿"
OFFSETS = [(at, at + 1) for at in range(len(TEXT))]
read_once = functools.cache(jieba_dictionary.read_dictionary)
new_process = jieba_dictionary._installed_words.cache_clear  # nothing has been read yet


@pytest.fixture(scope="module")
def features():
    return WordFeatures.from_examples([Example(TEXT, (Entity(2, 6, "school"),), "x:1")] * 3, FEATURE_KINDS)


@pytest.fixture
def reads(monkeypatch):
    """One entry for each time that jieba's own files are read; they are read once for all tests."""
    calls = []
    monkeypatch.setattr(jieba_dictionary, "read_dictionary", lambda: calls.append(1) or {**read_once()})
    return calls


@pytest.fixture
def cache(monkeypatch, tmp_path):
    """An empty cache folder of a new process."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    new_process()
    yield tmp_path / "cache" / "paddle_rope"
    new_process()


def archive(scores):
    np.savez(file := io.BytesIO(), entry_scores=scores)
    return file.getvalue()


def test_the_file_is_made_once_and_then_read_and_made_again_if_it_is_damaged(cache, features, reads):
    expected, evil = features(TEXT, OFFSETS), cache / "evil"
    (file,) = cache.iterdir()
    whole, place = file.read_bytes(), 999_999
    changed = whole[:place] + bytes([whole[place] ^ 255]) + whole[place + 1 :]
    pickles = np.array([Bomb(evil)], dtype=object)
    for damaged in (whole[: len(whole) // 2], changed, b"words", archive(np.array(7)), archive(pickles)):
        before = len(reads)
        for content, number in ((whole, 0), (damaged, 1), (None, 1)):
            if content is not None:
                file.write_bytes(content)
            new_process()
            assert same(features(TEXT, OFFSETS)[:2], expected[:2]) and len(reads) == before + number
    assert not evil.exists()


def test_another_jieba_has_another_file_and_none_is_an_error(cache, features, monkeypatch):
    before = jieba_dictionary.cache_file()
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "9.9")
    assert jieba_dictionary.cache_file() != before
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert "jieba is not installed, which these word features need; pip" in error_of(features, TEXT, OFFSETS)


def test_the_cache_folder_is_the_users_and_need_not_be_writable(cache, features, reads, monkeypatch, tmp_path):
    monkeypatch.setenv("HOME", str(tmp_path))
    for value in ("", "relative"):
        monkeypatch.setenv("XDG_CACHE_HOME", value)
        assert jieba_dictionary.cache_file().parent == tmp_path / ".cache" / "paddle_rope"
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    new_process()
    features(TEXT, OFFSETS)
    assert len(reads) == 1 and list(tmp_path.iterdir()) == [tmp_path / "file"]


def test_threads_share_the_dictionary_and_get_the_same_features(cache, features, monkeypatch, reads):
    texts = [TEXT[at:] + TEXT[:at] for at in range(len(TEXT))] * 4
    expected = [features(text, OFFSETS) for text in texts]
    new_process()
    monkeypatch.setattr("paddle_rope.tasks.ner.features.chinese_words.MAX_REMEMBERED", 3)
    ready = threading.Barrier(4)

    def work(part):
        ready.wait()
        return [features(text, OFFSETS) for text in part]

    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(work, [texts] * 4):
            assert all(same(one, other) for one, other in zip(found, expected, strict=True))
    assert len(reads) == 1
