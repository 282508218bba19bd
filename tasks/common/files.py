"""Reading and writing files so that nothing is lost or half-written."""

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import tempfile
from pathlib import Path

from paddle_rope import files
from paddle_rope.tasks.common.errors import NO_ROOM, InputError

# ---- writing


@contextlib.contextmanager
def atomic_writer(path, binary=False):
    """Open ``path`` for writing UTF-8 text, or bytes; the file appears under its name only when it is complete. Raises
    InputError if the folder is missing or not writable, or ``path`` is a folder or a device."""
    path = Path(path)
    check_output_file(path)
    temporary = files.temporary_path(path)
    try:
        text = {} if binary else {"encoding": "utf-8", "newline": "\n"}
        file = open(temporary, "xb" if binary else "x", **text)  # noqa: SIM115  closed below
    except OSError as error:
        if error.errno in NO_ROOM:  # the folder is right
            raise
        raise InputError(f"{path}: cannot be written ({error.strerror}); give a file in a folder that exists") from None
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())  # a power cut after the rename must not leave an empty file
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def atomic_folder(path):
    """Yield an empty folder to write into; it appears as ``path`` only when the block ends without an error. Raises
    InputError as :func:`check_new_folder`."""
    check_new_folder(path, "folder")
    path = Path(os.path.realpath(path))  # a link cannot be replaced
    if os.path.ismount(path) or path == Path.cwd():
        raise InputError(
            f"{path}: is a mount point or the current folder, which cannot be replaced; name a folder in it"
        )
    temporary = files.temporary_path(path)
    temporary.mkdir(parents=True)
    try:
        yield temporary
        os.replace(temporary, path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def write_files(folder, contents):
    """Write files into ``folder``; ``contents`` is a dict from file names to text or bytes."""
    for name, content in contents.items():
        with atomic_writer(folder / name, binary=True) as file:
            file.write(content if isinstance(content, bytes) else content.encode("utf-8"))


def write_json(path, value):
    """Write ``value`` as indented JSON."""
    with atomic_writer(path) as file:
        file.write(json_line(value, indent=2))


def json_line(value, **options):
    """``value`` as JSON with a line end, encodable as UTF-8: half of a surrogate pair, as in file names that are not
    UTF-8, becomes an escape. ``options`` are passed to ``json.dumps``."""
    return json.dumps(value, ensure_ascii=False, **options).encode("utf-8", "backslashreplace").decode("utf-8") + "\n"


# ---- checks of output paths before long work; they create nothing


def check_output_file(path, inputs=()):
    """Raise InputError if ``path`` cannot be written, or lies in the ``inputs`` as in :func:`check_apart`."""
    check_apart(path, inputs)
    path = Path(path)
    if os.path.isdir(path):  # not Path.is_dir, which raises OSError for a name that is too long
        raise InputError(f"{path}: is a folder; give the name of a file")
    if os.path.exists(path) and not os.path.isfile(path):  # a file would replace it
        raise InputError(f"{path}: is a device or pipe; give the name of a file")
    if not path.parent.is_dir() or not os.access(path.parent, os.W_OK):
        raise InputError(f"{path}: cannot be written ({path.parent} is not a writable folder); give another file")


def check_apart(path, inputs):
    """Raise InputError if ``path`` is one of the ``inputs``, the other paths of the same command, or lies in one."""
    place = Path(os.path.realpath(path))
    if {place, *place.parents} & set(map(Path, map(os.path.realpath, inputs))):
        raise InputError(f"{path}: is among the other files of this command; give another place to write")


def check_new_folder(path, option="--output_dir"):
    """Raise InputError unless ``path``, given as ``option``, is missing or empty, and can be made."""
    if os.path.isdir(path) and os.listdir(path):
        raise InputError(f"{path}: is not empty; give another {option} or remove it")
    check_makeable(path, option)


def check_makeable(path, option):
    """Raise InputError unless ``path``, given as ``option``, is or can become a writable folder."""
    path = Path(path)
    if os.path.lexists(path) and not path.is_dir():
        raise InputError(f"{path}: is a file; give another {option}")
    existing = "it"
    try:
        existing = next(parent for parent in [path, *path.absolute().parents] if parent.exists())
        with tempfile.TemporaryFile(dir=existing):  # permissions alone do not tell: root has them even on /proc
            return
    except OSError:  # also from exists, for a name that is too long
        raise InputError(
            f"{path}: cannot be made ({existing} is not a writable folder); give another {option}"
        ) from None


# ---- reading


def read_json_object(path, remedy):
    """The JSON object in a file that this project wrote; raises InputError, with the ``remedy``, if it is damaged."""
    try:
        return files.read_json_object(path)
    except ValueError as error:
        raise InputError(f"{error}; {remedy}") from None


@contextlib.contextmanager
def locked(folder):
    """Within this block the process holds an exclusive lock on a run's folder, which is released if the process dies.
    Raises InputError if another process holds it."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(f"{folder}: another process works on this run; wait for its end") from None
        yield
    finally:
        os.close(handle)


def file_sha256(path):
    """Hexadecimal SHA-256 of a file."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:  # hashlib.file_digest is new in Python 3.11
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def fingerprint(path):
    """[size in bytes, hexadecimal SHA-256] of a file; None if there is none, or a link in its place."""
    return [path.stat().st_size, file_sha256(path)] if path.is_file() and not path.is_symlink() else None


def digest_of(path):
    """Hexadecimal SHA-256 of a file, or of the checksums of a folder's files. Subfolders are ignored, because no reader
    looks into them."""
    if not path.is_dir():
        return file_sha256(path)
    return hashlib.sha256(checksums(path).encode("utf-8", "surrogateescape")).hexdigest()


def checksums(folder, *but):
    """The SHA-256 of each file in a folder except those named ``but``, in the format of the program sha256sum."""
    paths = sorted(path for path in folder.iterdir() if path.is_file() and path.name not in but)
    return "".join(f"{file_sha256(path)}  {path.name}\n" for path in paths)


def changed_files(folder, sums, and_new=False):
    """The names of files in a folder that are missing or changed compared with its file ``sums`` of :func:`checksums`;
    ``and_new`` adds files that ``sums`` does not list. Raises ValueError if ``sums`` is empty."""
    written = {*(folder / sums).read_text(encoding="utf-8").splitlines()}
    if not written:
        raise ValueError(f"{sums} is empty")
    found = {*checksums(folder, sums).splitlines()}
    return sorted(line.partition("  ")[2] for line in (written ^ found if and_new else written - found))
