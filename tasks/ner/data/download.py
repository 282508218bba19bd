"""Download the public NER data sets of ``published.yaml``; a file gets its name only when complete and checked."""

import os
import shutil
import zipfile
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.files import file_sha256
from paddle_rope.tasks.common.hub import PART, network_reason
from paddle_rope.tasks.ner.data.reading import published, read_examples, read_texts

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
    texts: int
    entities: int | None = None  # None: not counted, or not labeled
    labeled: bool = True
    sha256: str | None = None  # None where nobody has published it

    @property
    def source_name(self) -> str:
        """The name of the downloaded file, which may be a zip archive."""
        return self.url.rpartition("/")[2]

    def check(self, path: str | os.PathLike, name: str | os.PathLike) -> None:
        """Raise InputError unless the file at ``path`` is this one; ``name`` is its name in the message."""
        if self.sha256 is not None:
            if (digest := file_sha256(path)) != self.sha256:
                raise InputError(f"{name}: has SHA-256 {digest} instead of {self.sha256}; it was changed or damaged")
            return
        try:
            examples = read_examples(path, name=name) if self.labeled else read_texts(path)
        except InputError as error:
            raise InputError(f"{name}: is not the file as published ({error})") from None
        counts = [("texts", len(examples), self.texts)]
        if self.entities is not None:
            counts.append(("entities", sum(len(example.entities) for example in examples), self.entities))
        wrong = [f"{found} {what} instead of {expected}" for what, found, expected in counts if found != expected]
        if wrong:
            raise InputError(f"{name}: has {' and '.join(wrong)}; the file has changed or was not meant")


def _files(url, files):
    return [PublishedFile(url=url + file["name"] if url.endswith("/") else url, **file) for file in files]


DATASETS = {name: _files(**listed) for name, listed in published().items()}


def fetch_dataset(files: Iterable[PublishedFile], folder: str | os.PathLike, show_progress: bool = False) -> None:
    """Put the files of a data set into a folder, created if missing, and print a line for each. Existing files,
    including a zip archive of others, are checked and kept.

    Raises:
        InputError: a file cannot be downloaded, or exists with other content; the files before it stay.
    """
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
