"""Public NER data sets: where they are published, and how a download is checked.

A file is checked by size and SHA-256 where somebody has published them, and otherwise by what is in it: the numbers
of texts and of entities.

* CLUENER: the address is that of the publisher's ``download_clue_data.py``
  (https://github.com/CLUEbenchmark/CLUENER2020); no checksum is published. Its README states the texts of train and
  dev, and the distinct names of each type in each text; the copy that the numbers below are of has just these.
* Resume: the files of https://github.com/jiesutd/LatticeLSTM (paper: https://arxiv.org/abs/1805.02023); no checksum
  is published. The numbers are those that https://github.com/syuoni/eznlp tests, and those of our copy.
* People's Daily, MSRA, Weibo: https://github.com/OYE93/Chinese-NLP-Corpus, which Hugging Face's ``datasets`` takes
  them from; sizes and SHA-256 are those of its ``dataset_infos.json``, texts those of the README of each folder. Our
  copy of People's Daily has the same SHA-256. Of Weibo (first published in https://github.com/hltcoe/golden-horse) it
  is the revised annotation.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tasks.common.errors import InputError
from tasks.common.files import atomic_writer
from tasks.common.texts.text_files import decode
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
        numbers = [("texts", len(examples), self.texts)]
        if self.entities is not None:
            numbers.append(("entities", sum(len(example.entities) for example in examples), self.entities))
        wrong = [f"{found} {what} instead of {wanted}" for what, found, wanted in numbers if found != wanted]
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
                raise InputError(f"{name}:{number}: {line!r} is not a character, its place and a tag; it has changed")
            lines[number - 1] = " ".join(parts.groups())
    return "\n".join(lines).encode("utf-8")


_CLUENER = Source("https://storage.googleapis.com/cluebenchmark/tasks/cluener_public.zip")
_RESUME = "https://raw.githubusercontent.com/jiesutd/LatticeLSTM/master/ResumeNER/"
_CORPUS = "https://raw.githubusercontent.com/OYE93/Chinese-NLP-Corpus/master/NER/"


def _corpus(folder, rows, make=None):
    return [
        PublishedFile(name, Source(f"{_CORPUS}{folder}/{name}", size, sha256), texts, make=make)
        for name, texts, size, sha256 in rows
    ]


DATASETS = {
    "cluener": [
        PublishedFile("train.json", _CLUENER, 10_748, 23_971, make=read_zip_member),
        PublishedFile("dev.json", _CLUENER, 1_343, 3_072, make=read_zip_member),
        PublishedFile("test.json", _CLUENER, 1_345, labeled=False, make=read_zip_member),
    ],
    "msra": _corpus("MSRA", [
        ("msra_train_bio.txt", 45_000, 14_037_265, "b403d1318c5289917ad2ca4136279592521684748327e93f1bf49a3845a40ac7"),
        ("msra_test_bio.txt", 3_442, 1_119_341, "2be8e580bcb22e9086e4403d82a7ec0f6e18019ebef35b0fd52941724bdf89a3"),
    ]),
    "peoples_daily": _corpus("People's%20Daily", [
        ("example.train", 20_864, 6_277_429, "fbacf4110b131354270b7ff470c88eb84645f0ed8df30c3e409dde437cb45e70"),
        ("example.dev", 2_318, 702_455, "7d8e6fcd1745e6adcb99d90307d84c3a0f9f8ff5ee6fe62ca27646cb765fc38a"),
        ("example.test", 4_636, 1_405_788, "233299005f941a4b055e38aadcf3ee853e44bc1f88166078d3b52b26b77ea362"),
    ]),
    "resume": [
        PublishedFile("train.char.bmes", Source(_RESUME + "train.char.bmes"), 3_821, 13_440),
        PublishedFile("dev.char.bmes", Source(_RESUME + "dev.char.bmes"), 463, 1_497),
        PublishedFile("test.char.bmes", Source(_RESUME + "test.char.bmes"), 477, 1_630),
    ],
    "weibo": _corpus("Weibo", [
        (f"weiboNER_2nd_conll.{part}", texts, size, sha256)
        for part, texts, size, sha256 in (
            ("train", 1_350, 536_039, "4e8954c54ab33b0afc9a8abb85715c47422645cc6d1b49fdb24540f4a427e997"),
            ("dev", 270, 105_881, "e72730d83aac680505280b6301c879b3ba470d29ac308979d48cdc58ee4907cc"),
            ("test", 270, 108_767, "faaf6c0ebde5348b935cfd5c89f0f22c9e0779d60667d8b5efbc647b6707d50e"),
        )
    ], make=without_places),
}  # fmt: skip


def fetch_dataset(files, folder, report=print, **options):
    """Put the files of a data set into a folder. Files that are there already are checked and kept.

    Args:
        files: list of :class:`PublishedFile`.
        folder: where to put them; is made.
        report: called with one line for each file.
        options: ``timeout``, ``wait`` and ``show_progress`` of :func:`tasks.ner.data.download.download`.

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
