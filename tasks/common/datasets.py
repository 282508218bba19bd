"""Download the public data sets of ``datasets.yaml``; a file gets its name only when complete and checked."""

import os
import shutil
import zipfile
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path, PurePosixPath
from shlex import quote

from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.files import file_sha256
from paddle_rope.tasks.common.hub import PART, network_reason

_RETRIES = 2
_TIMEOUT = 30.0  # seconds without an answer
_LARGEST_MEMBER = 1 << 30


def download(url, path, part, show_progress=False):
    """Download a file into the folder ``part``, unless it is there, and return its path. pooch retries twice and uses
    the proxies of the environment. Raises InputError, which names the ``path`` that the file is meant for, if the
    address cannot be reached or answers with an error."""
    import pooch

    pooch.get_logger().setLevel("ERROR")
    source = pooch.create(part, "", registry={path.name: None}, urls={path.name: url}, retry_if_failed=_RETRIES)
    downloader = pooch.HTTPDownloader(progressbar=show_progress, timeout=_TIMEOUT)
    try:
        return Path(source.fetch(path.name, downloader=downloader))
    except (OSError, ValueError) as error:  # from requests or the disk; an invalid address
        raise InputError(
            f"{url}: cannot be downloaded ({network_reason(error)}); check the network and https_proxy and run again, "
            f"or fetch the address yourself and save it as {path}"
        ) from None


def read_zip_member(member, path, name):
    """The content of the only file called ``member``, in any folder of the zip archive ``path``, which messages call
    ``name``. Nothing is unpacked, so the archive's paths cannot lead anywhere."""
    try:
        with zipfile.ZipFile(path) as archive:
            called = [info for info in archive.infolist() if PurePosixPath(info.filename).name == member]
            found = [info for info in called if not info.is_dir() and not info.filename.startswith("__MACOSX/")]
            if len(found) != 1 or found[0].file_size > _LARGEST_MEMBER:
                held = ", ".join(archive.namelist()[:8])
                raise InputError(f"{name}: does not hold one {member} (but {held}); the archive has changed")
            return archive.read(found[0])
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, OSError) as error:
        raise InputError(f"{name}: is no zip archive that can be read ({error})") from None


@dataclass(frozen=True)
class PublishedFile:
    """A file of a data set: the downloaded file or, if that is a zip archive, its member of this name."""

    name: str
    url: str
    sha256: str | None = None  # None where nobody has published it
    lines: int | None = None  # that are not blank; checked in place of the SHA-256

    @property
    def source_name(self) -> str:
        """The name of the downloaded file, which may be a zip archive."""
        return self.url.rpartition("/")[2]

    def check(self, path: str | os.PathLike, name: str | os.PathLike) -> None:
        """Raise InputError unless the file at ``path`` is this one; ``name`` is its name in the message."""
        if self.sha256 is not None:
            found, expected = f"SHA-256 {file_sha256(path)}", self.sha256
        else:
            with open(path, "rb") as file:
                found, expected = f"{sum(1 for line in file if line.strip())} lines", str(self.lines)
        if expected not in found.split():
            raise InputError(f"{name}: has {found} instead of {expected}; it was changed or damaged")


@dataclass(frozen=True)
class Dataset:
    """A public data set: the folder for its files, below the one for data, and the files."""

    folder: str
    files: list[PublishedFile]


@lru_cache
def public() -> dict[str, Dataset]:
    """The public data sets by name."""
    import yaml  # not needed to read data

    listed = yaml.safe_load(Path(__file__).with_name("datasets.yaml").read_text(encoding="utf-8"))
    return {name: _dataset(**dataset) for name, dataset in listed.items()}


def _dataset(folder, url, files):
    start = url if url.endswith("/") else None
    return Dataset(folder, [PublishedFile(url=start + file["name"] if start else url, **file) for file in files])


def check_there(path: str) -> None:
    """Raise InputError, with the command that downloads it, if ``path`` is missing and has the name of a public data
    set, or is the path where :func:`fetch_dataset` puts a file of one."""
    if os.path.exists(path):
        return
    if path in public():
        raise InputError(f"{path}: no such file; paddle-rope download {path} downloads it")
    for name, dataset in public().items():
        for file in dataset.files:
            end = Path(dataset.folder, file.name)
            if Path(path).parts[-len(end.parts) :] == end.parts:
                output = str(Path(path).parents[len(end.parts) - 1])
                command = f"paddle-rope download {name}" + ("" if output == "data" else f" --output {quote(output)}")
                raise InputError(f"{path}: no such file; {command} downloads it")


def fetch_dataset(files: Iterable[PublishedFile], folder: str | os.PathLike, show_progress: bool = False) -> None:
    """Put the files of a data set into a folder, created if missing, and print a line for each. Existing files,
    including a zip archive of others, are checked and kept. Raises InputError if a file cannot be downloaded, or exists
    with other content; the files before it stay."""
    part = Path(folder) / PART
    shutil.rmtree(part, ignore_errors=True)  # left by a killed download
    try:
        for file in files:
            print(f"{Path(folder) / file.name}: {_fetch(file, Path(folder), part, show_progress)}")
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _fetch(file, folder, part, show_progress):
    """Put a file into a folder, via the folder ``part``, unless it is there; returns a message about it."""
    path, source, whole = folder / file.name, folder / file.source_name, part / file.name
    there = next((one for one in (path, source) if one.exists()), None)
    try:
        if there == path:
            file.check(path, path)
            return "is there already, and as published"
        part.mkdir(parents=True, exist_ok=True)
        fetched = there or download(file.url, source, part, show_progress)
        if file.url.endswith(".zip"):
            whole.write_bytes(read_zip_member(file.name, fetched, there or file.url))
        file.check(whole, f"{file.name} of {there or file.url}")
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror}); give another --output") from None
    except InputError as error:
        if there is None:
            raise
        raise InputError(f"{error}; move {there} away, or give another --output") from None
    os.replace(whole, path)
    return f"{path.stat().st_size} bytes from {file.url}"
