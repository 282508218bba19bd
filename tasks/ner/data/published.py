"""Public NER data sets, which ``published.yaml`` lists: how a download is checked and put into a folder."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from shlex import quote

import yaml

from tasks.common.errors import InputError
from tasks.common.files import atomic_writer
from tasks.common.texts.text_files import decode, shown
from tasks.ner.data.download import check_file, download, read_zip_member
from tasks.ner.data.reading import read_examples, read_texts


@dataclass(frozen=True)
class Source:
    """What is downloaded; size and SHA-256 are None where nobody has published them."""

    url: str
    size: int | None = None
    sha256: str | None = None

    @property
    def name(self) -> str:
        return self.url.rpartition("/")[2]


@dataclass(frozen=True)
class PublishedFile:
    """A file of a data set: its source as it is, or made from it by ``make``.

    ``make`` takes the path of the source, the name of this file, and what stands for the source in messages; it
    returns this file's content.
    """

    name: str
    source: Source
    texts: int
    entities: int | None = None  # None: nobody states them, or not labeled
    labeled: bool = True
    make: Callable[[Path, str, str], bytes] | None = None

    def check(self, path: str | os.PathLike, name: str) -> None:
        """Raise InputError unless the file at ``path`` is this one; ``name`` stands for it in the message."""
        if self.make is None and self.source.sha256 is not None:
            check_file(path, name, self.source.size, self.source.sha256)
            return
        try:
            examples = read_examples(path, name=name) if self.labeled else read_texts(path)
        except InputError as error:
            raise InputError(f"{name}: is not the file as published ({error})") from None
        numbers = {"texts": (len(examples), self.texts)}
        if self.entities is not None:
            numbers["entities"] = sum(len(example.entities) for example in examples), self.entities
        wrong = [f"{found} {what} instead of {wanted}" for what, (found, wanted) in numbers.items() if found != wanted]
        if wrong:
            raise InputError(f"{name}: has {' and '.join(wrong)}; the file has changed or was not meant")

    def check_source(self, path: Path, name: str) -> None:
        """Raise InputError unless this file can be made of the source at ``path``."""
        check_file(path, name, self.source.size, self.source.sha256)
        self.make(path, self.name, name)


def without_places(path: Path, _: str, name: str) -> bytes:
    """Weibo's lines ``字0<tab>TAG`` without the place of the character in its word, and with a space for the tab."""
    lines = decode(path.read_bytes(), name).split("\n")
    for number, line in enumerate(lines, 1):
        if line.strip():
            parts = re.fullmatch(r"(.+?)\d{1,2}\t(\S+)\s*", line)
            if parts is None:
                what = "is not a character, its place and a tag"
                raise InputError(f"{name}:{number}: {shown(line)} {what}; it has changed")
            lines[number - 1] = " ".join(parts.groups())
    return "\n".join(lines).encode("utf-8")


_MAKERS = {function.__name__: function for function in (read_zip_member, without_places)}


def _published(url, name, texts, make=None, size=None, sha256=None, **numbers):
    source = Source(url + name if url.endswith("/") else url, size, sha256)
    return PublishedFile(name, source, texts, make=make and _MAKERS[make], **numbers)


DATASETS = {
    name: [_published(listed["url"], make=listed.get("make"), **file) for file in listed["files"]]
    for name, listed in yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8")).items()
}


def check_there(path: str) -> None:
    """Raise InputError, with the command that downloads it, if ``path`` is missing and has the name of a published
    data set, or the place to which :func:`fetch_dataset` puts a file of one."""
    if os.path.exists(path):
        return
    folder, file = Path(path).parent, Path(path).name
    if file in DATASETS:
        command = f"paddle-rope download {file}"
    elif folder.parent.name == "ner" and file in [one.name for one in DATASETS.get(folder.name, ())]:
        output = str(folder.parent.parent)
        command = f"paddle-rope download {folder.name}" + ("" if output == "data" else f" --output {quote(output)}")
    else:
        return
    raise InputError(f"{path}: no such file; {command} downloads it")


def fetch_dataset(files, folder, report=print, **options):
    """Put the files of a data set into a folder. Files that are there already are checked and kept.

    Args:
        files: list of :class:`PublishedFile`.
        folder: where to put them; is made.
        report: called with one line for each file.
        options: ``show_progress`` of :func:`tasks.ner.data.download.download`.

    Raises:
        InputError: a file cannot be downloaded, or is there with another content; those before it stay.
    """
    folder = Path(folder)
    missing = []
    for file in files:
        path = folder / file.name
        if path.exists():
            _check_given(path, file.check)
            report(f"{path}: is there already, and as published")
        else:
            missing.append(file)
    fetched = []  # sources that files have been made of
    for file in missing:
        path, source = folder / file.name, file.source
        if file.make is None:
            download(source.url, path, source.size, source.sha256, file.check, **options)
        else:
            raw = folder / source.name
            if raw == path:
                raw = folder / f"{source.name}.raw"
            if not raw.exists():
                download(source.url, raw, source.size, source.sha256, file.check_source, **options)
                fetched.append(raw)
            elif raw not in fetched:  # put there by hand
                _check_given(raw, file.check_source)
            with atomic_writer(path, binary=True) as target:
                target.write(file.make(raw, file.name, raw))
                target.flush()
                file.check(target.name, path)
        report(f"{path}: {path.stat().st_size} bytes from {source.url}")
    for raw in fetched:
        raw.unlink()


def _check_given(path, check):
    try:
        check(path, path)
    except InputError as error:
        raise InputError(f"{error}; move {path} away, or give another --output") from None
