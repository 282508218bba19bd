"""The file with jieba's dictionary in the form that is searched here: found or made once a user, or in a model folder.

It is a compressed NumPy archive of arrays, without pickles, with the check sums of its format.
"""

import contextlib
import os
import threading
import zipfile
import zlib
from pathlib import Path

import numpy as np

from tasks.common.errors import InputError
from tasks.common.files import atomic_writer
from tasks.ner.features.chinese_words import ChineseWords
from tasks.ner.features.jieba_files import jieba_sha256, read_jieba

FILE_NAME = "words.npz"  # in a model folder
FORMAT = 1  # raised when the arrays change
_lock = threading.Lock()
_shared: list[ChineseWords] = []  # of the installed jieba, once it is read


def installed_words():
    """The :class:`ChineseWords` of the installed jieba, read once a process.

    They are read from the user's cache folder, where they are kept under the check sum of jieba's files. Where they are
    not there, or damaged, they are made of jieba's files, which takes about a second, and written there if that folder
    can be written.

    Raises:
        InputError: jieba is not installed.
    """
    with _lock:  # of threads, one reads and the others wait for it
        if not _shared:
            _shared.append(ChineseWords(_installed_arrays()))
        return _shared[0]


def read_words(path):
    """The :class:`ChineseWords` of a file of :func:`write_words`.

    Raises:
        ValueError: it cannot be read, is damaged, or was written by another version of this program.
    """
    try:
        return ChineseWords(_read(path))
    except (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"{path}: is damaged or of another version ({error}); export the model again") from None


def write_words(path, words):
    """Write a :class:`ChineseWords` to a file of 2 MB.

    Raises:
        InputError: the folder is missing or not writable.
    """
    _write(path, words.arrays)


def cache_file():
    """Where the words of the installed jieba are kept."""
    cache = os.environ.get("XDG_CACHE_HOME", "")
    folder = Path(cache) if os.path.isabs(cache) else Path("~/.cache").expanduser()
    return folder / "paddle_rope" / f"words-{FORMAT}-{jieba_sha256()}.npz"


def _installed_arrays():
    with contextlib.suppress(RuntimeError):  # a user without a home
        path = cache_file()
        with contextlib.suppress(OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile, zlib.error):
            return _read(path)
        arrays = read_jieba()
        with contextlib.suppress(OSError, InputError):  # a folder that cannot be written: made again next time
            path.parent.mkdir(parents=True, exist_ok=True)
            _write(path, arrays)
        return arrays
    return read_jieba()


def _write(path, arrays):
    with atomic_writer(path, binary=True) as file:
        np.savez_compressed(file, format=np.array(FORMAT), **arrays)


def _read(path):
    with np.load(path, allow_pickle=False) as archive:
        if archive["format"] != FORMAT:
            raise ValueError(f"format {archive['format']}, not {FORMAT}")
        return {name: archive[name] for name in archive.files if name != "format"}
