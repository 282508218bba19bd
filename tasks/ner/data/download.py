"""Public NER data sets, which ``published.yaml`` lists: downloaded, checked, and under their name only when whole."""

import os
import shutil
import zipfile
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath

from tasks.common.errors import InputError
from tasks.common.files import atomic_writer, file_sha256
from tasks.ner.data.reading import published, read_examples, read_texts

PART = ".part"
_RETRIES = 2
_TIMEOUT = 30.0  # seconds without an answer
_LARGEST_MEMBER = 1 << 30


def download(url, path, check, show_progress=False):
    """Download a file with pooch, which retries twice and takes the proxies of the environment. ``check`` is called
    with the path of the whole file, before it has its name, and with ``url``, which names it in messages.

    Raises:
        InputError: the address cannot be reached, answers with an error or gives a content that ``check`` refuses.
            Nothing is then under the name ``path``.
    """
    import pooch

    pooch.get_logger().setLevel("ERROR")
    path = Path(path)
    part = path.with_name(path.name + PART)  # a folder
    try:
        shutil.rmtree(part, ignore_errors=True)  # left by a killed download
        part.mkdir(parents=True)
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror}); give another --output") from None
    try:
        source = pooch.create(part, "", registry={path.name: None}, urls={path.name: url}, retry_if_failed=_RETRIES)
        downloader = pooch.HTTPDownloader(progressbar=show_progress, timeout=_TIMEOUT)
        try:
            fetched = Path(source.fetch(path.name, downloader=downloader))
        except (OSError, ValueError) as error:  # of requests and of the disk; an address that is none
            answer = getattr(error, "response", None)
            reason = str(error).rsplit(": ", 1)[-1].strip("'\")") if answer is None else f"HTTP {answer.status_code}"
            raise InputError(
                f"{url}: cannot be downloaded ({reason}); check the network and https_proxy and run again, "
                f"or fetch the address yourself and save it as {path}"
            ) from None
        check(fetched, url)
        os.replace(fetched, path)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def read_zip_member(member, path, name):
    """The content of the one file called ``member`` in whatever folder of the zip archive ``path``, which messages call
    ``name``. Nothing is unpacked, so the archive's paths cannot lead anywhere."""
    try:
        with zipfile.ZipFile(path) as archive:
            found = [
                info
                for info in archive.infolist()
                if PurePosixPath(info.filename).name == member
                and not (info.is_dir() or info.filename.startswith("__MACOSX/"))
            ]
            if len(found) != 1 or found[0].file_size > _LARGEST_MEMBER:
                held = ", ".join(archive.namelist()[:8])
                raise InputError(f"{name}: does not hold one {member} (but {held}); the archive has changed")
            return archive.read(found[0])
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, OSError) as error:
        raise InputError(f"{name}: is no zip archive that can be read ({error})") from None


@dataclass(frozen=True)
class PublishedFile:
    """A file of a data set: what its address gives, or, of a zip archive, the member of this name."""

    name: str
    url: str
    texts: int
    entities: int | None = None  # None: nobody has counted them, or they are not labeled
    labeled: bool = True
    sha256: str | None = None  # None where nobody has published it

    @property
    def source_name(self) -> str:
        """The name of what is downloaded."""
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
    """Put the files of a data set into a folder, which is made, and print a line for each. Files that are there already
    are checked and kept.

    Raises:
        InputError: a file cannot be downloaded, or is there with another content; those before it stay.
    """
    archives = []  # which were downloaded here, and are removed at the end
    for file in files:
        path, source = Path(folder) / file.name, Path(folder) / file.source_name
        is_new = not path.exists()
        if is_new and file.url.endswith(".zip"):
            if _have(source, file.url, partial(read_zip_member, file.name), show_progress):
                archives.append(source)
            with atomic_writer(path, binary=True) as target:
                target.write(read_zip_member(file.name, source, source))
                target.flush()
                file.check(target.name, path)
        else:
            _have(path, file.url, file.check, show_progress)
        found = f"{path.stat().st_size} bytes from {file.url}" if is_new else "is there already, and as published"
        print(f"{path}: {found}")
    for source in archives:
        source.unlink()


def _have(path, url, check, show_progress):
    """Download a file, or check the one that is there; returns whether it was downloaded."""
    if not path.exists():
        download(url, path, check, show_progress)
        return True
    try:
        check(path, path)
    except InputError as error:
        raise InputError(f"{error}; move {path} away, or give another --output") from None
    return False
