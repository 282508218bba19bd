"""jieba's dictionary as arrays, built from the installed jieba once per user; and jieba's tables.

The package jieba is not imported: importing it takes long, and it would cut words at a tenth of the speed. The arrays
are stored in a compressed NumPy archive without pickles, with the checksums of that format.
"""

import contextlib
import functools
import importlib.metadata
import importlib.util
import math
import os
import threading
import zipfile
import zlib
from pathlib import Path

import numpy as np

from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.files import atomic_writer
from paddle_rope.tasks.ner.features.chinese_words import ChineseWords

FORMAT = 3  # increased when the arrays change
NAMES = ("node_characters", "node_children", "node_entries", "entry_scores", "entry_is_word", "entry_tags")
DICTIONARY = "dict.txt"
TABLES = ("char_state_tab", "prob_start", "prob_trans", "prob_emit")  # modules of jieba.posseg, with a dict P each
_UNKNOWN = (0, "x")  # frequency and part of speech of a word that is not in the dictionary
_UNREADABLE = (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile, zlib.error)
_lock = threading.Lock()


def installed_words():
    """The :class:`ChineseWords` of the installed jieba, read once per process from the user's cache folder. If they
    are missing or damaged, they are built from jieba's files, which takes about a second, and written there if
    possible. Raises InputError if jieba is not installed."""
    with _lock:  # one thread reads, and the others wait for it
        return _installed_words()


@functools.cache
def _installed_words():
    return ChineseWords(_arrays(), [_module(_folder() / "posseg" / f"{name}.py").P for name in TABLES])


def _arrays():
    try:
        path = cache_file()
    except RuntimeError:  # a user without a home folder
        return read_dictionary()
    with contextlib.suppress(*_UNREADABLE), np.load(path, allow_pickle=False) as archive:
        return {name: archive[name] for name in NAMES}
    arrays = read_dictionary()
    with contextlib.suppress(OSError, InputError):  # the folder is not writable: built again next time
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_writer(path, binary=True) as file:
            np.savez_compressed(file, **arrays)
    return arrays


def cache_file():
    """Path of the file in which the words of the installed jieba are cached."""
    cache = os.environ.get("XDG_CACHE_HOME", "")
    folder = Path(cache) if os.path.isabs(cache) else Path("~/.cache").expanduser()
    return folder / "paddle_rope" / f"words-{FORMAT}-{jieba_version()}.npz"


def jieba_version():
    """Version of the installed jieba; raises InputError if it is not installed."""
    _folder()
    return importlib.metadata.version("jieba")


def _folder():
    spec = importlib.util.find_spec("jieba")
    if spec is None or spec.origin is None:
        raise InputError("jieba is not installed, which these word features need; pip install jieba==0.42.1")
    return Path(spec.origin).parent


def _module(path):
    """A module loaded from its file, without importing the package around it."""
    spec = importlib.util.spec_from_file_location(f"_{path.stem}_of_jieba", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read_dictionary():
    """The words of ``dict.txt`` as a trie: a dict from ``NAMES`` to arrays.

    Its lines are "word frequency part-of-speech"; if a word has several lines, the last one counts, but the sum of
    frequencies includes all lines, as in jieba. Nodes are numbered level by level, and the children of a node follow
    each other, ordered by character; node 0 is the root. Words of equal frequency and part of speech share an entry;
    entry 0 is for unknown words, and for nodes where no word ends.
    """
    text = (_folder() / DICTIONARY).read_text(encoding="utf-8")
    fields = text.replace("\n", " ").split()
    if len(fields) % 3 or text.count(" ") != len(fields) // 3 * 2:
        raise ValueError(f"{DICTIONARY} of jieba has lines other than 'word frequency part-of-speech'")
    frequencies = list(map(int, fields[1::3]))
    total = math.log(sum(frequencies))
    entry_of = dict(zip(fields[::3], zip(frequencies, fields[2::3])))
    words = sorted(entry_of)
    frequent_first = sorted(set(entry_of.values()) - {_UNKNOWN}, reverse=True)  # adjacent in the processor's cache
    entries = {entry: number for number, entry in enumerate((_UNKNOWN, *frequent_first))}
    ends, characters, children = _nodes(words)
    node_entries = np.zeros(len(characters), dtype=np.int64)
    node_entries[ends] = [entries[entry_of[word]] for word in words]
    arrays = (
        *(array.astype(np.min_scalar_type(int(array.max()))) for array in (characters, children, node_entries)),
        # math.log, because numpy's may differ in the last bit and then break ties differently than jieba
        np.array([math.log(frequency or 1) - total for frequency, _ in entries]),
        np.array([frequency > 0 for frequency, _ in entries]),
        np.array([tag for _, tag in entries]),
    )
    return dict(zip(NAMES, arrays))


def _nodes(words):
    """(node at which each word ends, character of each node, number of its children) of sorted words."""
    lengths = np.array(list(map(len, words)))
    characters = np.frombuffer("".join(words).encode("utf-32-le"), dtype="<u4")
    places = np.cumsum(lengths) - lengths
    ends = np.zeros(len(words), dtype=np.int64)  # node that each word has reached
    node_characters, parents, size = [np.zeros(1, dtype=np.int64)], [], 1
    longer = np.arange(len(words))
    for depth in range(lengths.max()):
        longer = longer[lengths[longer] > depth]
        parent, character = ends[longer], characters[places[longer] + depth]
        is_new = np.ones(len(longer), dtype=bool)
        is_new[1:] = (parent[1:] != parent[:-1]) | (character[1:] != character[:-1])
        ends[longer] = size - 1 + np.cumsum(is_new)
        node_characters.append(character[is_new])
        parents.append(parent[is_new])
        size += len(parents[-1])
    return ends, np.concatenate(node_characters), np.bincount(np.concatenate(parents), minlength=size)
