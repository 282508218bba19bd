"""Whether the files of a run are still what they were when it began."""

import hashlib
from pathlib import Path

from tasks.common.errors import InputError
from tasks.common.texts.text_files import unreadable

_FILE_KEYS = ("_file", "_files", "texts")  # ends of the keys that name data


def fingerprints(config):
    """dict from each path that a configuration names as data to the SHA-256 of the file, or of a folder's files.

    Raises:
        InputError: one of them cannot be read.
    """
    named = [value for key, value in config.items() if key.endswith(_FILE_KEYS) and isinstance(value, str)]
    paths = [path.strip() for value in named for path in value.split(",")]
    digests = {}
    for path in filter(None, paths):
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
                "{path}: has changed since the run began, which cannot resume with other data; put it back as it was, "
                "or train anew in another --output_dir",
                path=path,
            )


def digest_of(path):
    """The SHA-256 of a file, or of a folder's files with their names, in hexadecimal digits. Folders within it do not
    count: no reader looks into them."""
    digest = hashlib.sha256()
    for file in sorted(one for one in path.iterdir() if one.is_file()) if path.is_dir() else [path]:
        digest.update(file.name.encode("utf-8", "surrogateescape"))
        with open(file, "rb") as content:
            hashlib.file_digest(content, lambda: digest)
    return digest.hexdigest()
