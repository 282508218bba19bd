"""The files that a run reads: whether they are there, and still what they were when it began."""

import hashlib
import os
from pathlib import Path

from tasks.common.errors import InputError
from tasks.common.files import add_content
from tasks.common.texts.text_files import IN_MEMORY, STDIN, open_bytes, unreadable

_FILE, _FILES, _TEXTS = "_file", "_files", "texts"  # keys that end so, or are so, name a file or several
_NOT_FILES = (STDIN, IN_MEMORY, "demo")  # the last: generated text for the recipe language_model


def data_files(config):
    """The paths that a configuration names as data."""
    paths = []
    for key, value in config.items():
        if key.endswith(_FILE) and isinstance(value, str):
            paths.append(value)
        elif key.endswith(_FILES) or key == _TEXTS:  # a list, or with commas as in the configurations of earlier runs
            paths += value.split(",") if isinstance(value, str) else value or []
    return [path.strip() for path in paths if path and path not in _NOT_FILES]


def check_readable(config):
    """Raise InputError unless the data that a configuration names are there and may be read. Reads nothing."""
    for path in data_files(config):
        if os.path.isdir(path):
            try:
                os.listdir(path)
            except OSError as error:
                raise unreadable(path, error) from None
        elif os.path.isfile(path) or not os.path.exists(path):  # a pipe is opened once only
            open_bytes(path).close()


def fingerprints(config):
    """dict from each path that a configuration names as data to the SHA-256 of the file, or of a folder's files.

    Raises:
        InputError: one of them cannot be read.
    """
    digests = {}
    for path in data_files(config):
        try:
            if Path(path).exists():
                digests[path] = digest_of(Path(path))
        except OSError as error:
            raise unreadable(path, error) from None
    return digests


def check_fingerprints(before, now):
    """Raise InputError if data of ``before``, as from :func:`fingerprints`, are others ``now``."""
    for path, digest in before.items():
        if now.get(path) != digest:
            raise InputError(
                f"{path}: has changed since the run began, which cannot resume with other data; put it back as it "
                "was, or train anew in another --output_dir"
            )


def digest_of(path):
    """The SHA-256 of a file, or of a folder's files with their names, in hexadecimal digits. Folders within it do not
    count: no reader looks into them."""
    digest = hashlib.sha256()
    for file in sorted(one for one in path.iterdir() if one.is_file()) if path.is_dir() else [path]:
        digest.update(file.name.encode("utf-8", "surrogateescape"))
        add_content(digest, file)
    return digest.hexdigest()
