"""Files from the network: resumed where the connection was cut, checked, and under their name only when whole."""

from __future__ import annotations

import http.client
import os
import time
import urllib.error
import urllib.request
import zipfile
import zlib
from pathlib import Path, PurePosixPath

from tqdm import tqdm

from tasks.common.errors import InputError
from tasks.common.files import file_sha256
from tasks.common.language import Message
from tasks.ner.data.bounded_http import bounded_opener

PART = ".part"
LARGEST = 1 << 28  # bytes of a file whose size nobody has published
LONGEST = 3600.0  # seconds
_CHUNK = 1 << 16
_ATTEMPTS = 4  # one after the other that brought nothing
_MOST_ATTEMPTS = 100
_MOST_BYTES = 4  # times those of the file
_OVERHEAD = 1 << 20  # bytes of headers and the like
_LARGEST_MEMBER = 1 << 30
_LONGEST_REASON = 200  # characters
_LONGEST_LENGTH = 18  # digits
_WORTH_ANOTHER_ATTEMPT = (408, 425, 429, 500, 502, 503, 504)


def download(
    url, path, size=None, sha256=None, check=None, timeout=30.0, wait=0.5, longest=LONGEST, show_progress=False
):
    """Download a file. What has arrived is kept as ``path.part`` and completed, also by a later call.

    The file may have changed between two parts: pieces that together are not what was expected are thrown away, and
    the whole is fetched once more. So give ``sha256`` or ``check``. Proxies are those of the environment
    (``https_proxy`` ...).

    Whatever the server does, it ends: after 100 attempts, after ``longest`` seconds, or after four times the bytes of
    the file. A file is not longer than ``size``, or than 256 MB where that is unknown.

    Args:
        url: http or https address.
        path: where to put the file; its folder is made.
        size: its bytes, or None if unknown.
        sha256: its hexadecimal SHA-256, or None if unknown.
        check: called with the path of the whole ``.part`` and ``url``, which stands for it in messages; raises
            InputError if the content is not as expected.
        timeout: seconds without an answer before another attempt.
        wait: seconds before the second of four attempts; doubled before each further one. An attempt that brought
            more than all before it counts anew.
        longest: seconds that all attempts may take together; the last one may take ``timeout`` more.
        show_progress: show a progress bar.

    Raises:
        InputError: the address cannot be reached, answers with an error, gives another content or does not come to an
            end. Then nothing is under the name ``path``; a ``.part`` whose content is wrong is removed.
    """
    path = Path(path)
    part = path.with_name(path.name + PART)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _not_writable(path, error) from None
    source = _Source(url, path, size, timeout, longest)
    with tqdm(total=size, unit="B", unit_scale=True, desc=path.name, disable=not show_progress) as progress:
        for is_last in (False, True):
            pieced = _fetch_all(source, part, wait, progress)
            try:
                check_file(part, url, size, sha256)
                if check is not None:
                    check(part, url)
                break
            except InputError:
                part.unlink()
                if is_last or not pieced:
                    raise
    os.replace(part, path)


class _Source:
    """The address of a file, and what all attempts to fetch it may take together."""

    def __init__(self, url, path, size, timeout, longest):
        self.url, self.path, self.size, self.timeout = url, path, size, timeout
        self.most = LARGEST if size is None else size
        self.attempts = 0
        self._longest, self._end = longest, time.monotonic() + longest
        self._bytes = _MOST_BYTES * self.most + _OVERHEAD
        self._opener = bounded_opener(self.count)

    def open(self, start):
        """Ask for the file from byte ``start`` on."""
        self.attempts += 1
        request = urllib.request.Request(self.url, headers={"User-Agent": "paddle_rope", "Accept-Encoding": "identity"})
        if start:
            request.add_header("Range", f"bytes={start}-")
        try:
            return self._opener.open(request, timeout=self.timeout)
        except (ValueError, OverflowError) as error:  # ours is one; those of sockets are OSError
            raise ConnectionError(f"the server leads to an address that is none: {error}") from None

    def count(self, received=0):
        """Raise InputError if that many bytes more, or the time, are too much."""
        self._bytes -= received
        if self._bytes < 0:
            raise self.failure(f"{_MOST_BYTES} times the bytes of the file have arrived and it is not whole")
        if time.monotonic() > self._end:
            raise self.failure(f"not whole after {self._longest:g} seconds")

    def failure(self, reason):
        """InputError with the remedy; what is not text in the reason, which a server may have written, is shown."""
        words = "".join(
            one if one.isprintable() else one.encode("unicode_escape").decode() for one in " ".join(reason.split())
        )
        return InputError(
            "{url}: cannot be downloaded ({reason}); check the network and https_proxy and run "
            "again, or fetch the address by hand and save it as {path}",
            url=self.url,
            reason=words[:_LONGEST_REASON],
            path=self.path,
        )

    def too_long(self, found, part):
        """InputError for a file of ``found`` bytes, whose ``part`` is removed."""
        part.unlink(missing_ok=True)
        allowed = (
            Message("instead of {size}", size=self.size)
            if self.size is not None
            else Message("where at most {largest} are expected", largest=LARGEST)
        )
        return InputError(
            "{url}: has {found} bytes {allowed}; the file has changed or was not meant",
            url=self.url,
            found=found,
            allowed=allowed,
        )


def _fetch_all(source, part, wait, progress):
    """Attempts until ``part`` is whole. Returns whether it is pieced together."""
    failures, most = 0, _bytes_in(part)
    while True:
        source.count()
        try:
            return _fetch(source, part, progress)
        except urllib.error.HTTPError as error:
            error.close()
            reason, hopeless = f"HTTP {error.code} {error.reason}", error.code not in _WORTH_ANOTHER_ATTEMPT
        except (OSError, http.client.HTTPException) as error:  # of the network: those of the disk are InputError
            reason, hopeless = str(getattr(error, "reason", None) or error) or type(error).__name__, False
        # a server that cuts now here and now there brings nothing new
        failures = 0 if _bytes_in(part) > most else failures + 1
        most = max(most, _bytes_in(part))
        if hopeless or failures == _ATTEMPTS or source.attempts >= _MOST_ATTEMPTS:
            raise source.failure(reason)
        time.sleep(wait * 2 ** max(failures - 1, 0))


def _fetch(source, part, progress):
    """One attempt to append to ``part`` what it lacks.

    Returns:
        Whether ``part`` is pieced together: not all of it comes from this attempt.

    Raises:
        OSError, http.client.HTTPException: the network failed or something is missing.
        InputError: the disk failed, the file is too long, or the source has taken too much.
    """
    have = _bytes_in(part)
    if have and have == source.size:
        return True
    try:
        response = source.open(have)
    except urllib.error.HTTPError as error:
        if not have or error.code != 416:  # 416: there is nothing from this place on
            raise
        error.close()
        if error.headers.get("Content-Range") == f"bytes */{have}":
            return True
        part.unlink()
        raise ConnectionError("the file is shorter than the part of it that is here") from None
    with response:
        pieced = response.status == 206
        if pieced and not (response.headers.get("Content-Range") or "").startswith(f"bytes {have}-"):
            raise ConnectionError("the server answers with another part than asked for")
        start = have if pieced else 0
        length = _content_length(response)
        total = start + length if length is not None else None
        progress.total = progress.total or total
        progress.n = start
        progress.refresh()
        if total is not None and total > source.most:
            raise source.too_long(total, part)
        _append(response, part, "ab" if pieced else "wb", start, total, source, progress)
    if total is not None and _bytes_in(part) < total:
        raise ConnectionError(f"the connection was cut after {_bytes_in(part)} of {total} bytes")
    return pieced


def _content_length(response):
    """Bytes of the answer, or None where it does not say."""
    length = response.headers.get("Content-Length")
    if length is None or response.chunked:
        return None
    if not (length.isascii() and length.isdigit() and len(length) <= _LONGEST_LENGTH):
        raise ConnectionError(f"the server answers with Content-Length {length[:_LONGEST_LENGTH]!r}")
    return int(length)


def _append(response, part, mode, have, total, source, progress):
    """Append what arrives to ``part``, of which the first ``have`` of ``total`` bytes are there: None if unknown."""
    try:
        file = part.open(mode)
    except OSError as error:
        raise _not_writable(part, error) from None
    with file:
        # read1: what is there at once, so that a server that sends byte by byte is noticed
        while have != total and (chunk := response.read1(min(_CHUNK, (total or source.most + 1) - have))):
            have += len(chunk)
            if have > source.most:
                raise source.too_long(f"{have} or more", part)
            try:
                file.write(chunk)
                file.flush()  # so that a full disk is noticed here
            except OSError as error:
                raise _not_writable(part, error) from None
            progress.update(len(chunk))


def _not_writable(path, error):
    return InputError("{path}: cannot be written ({reason}); give another --output", path=path, reason=error.strerror)


def _bytes_in(part):
    return part.stat().st_size if part.exists() else 0


def check_file(path, name, size=None, sha256=None):
    """Raise InputError unless the file has this size and SHA-256; ``name`` stands for it in the message."""
    found = Path(path).stat().st_size
    if size is not None and found != size:
        raise InputError(
            "{name}: has {found} bytes instead of {size}; the file has changed or was not meant",
            name=name,
            found=found,
            size=size,
        )
    if sha256 is not None and (digest := file_sha256(path)) != sha256:
        raise InputError(
            "{name}: has SHA-256 {digest} instead of {sha256}; the file has changed or was damaged",
            name=name,
            digest=digest,
            sha256=sha256,
        )


def read_zip_member(path, member, name):
    """The content of the one file called ``member`` in whatever folder of a zip archive.

    Nothing is unpacked, so the archive's paths cannot lead anywhere. ``name`` stands for the archive in messages.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            found = [
                info
                for info in archive.infolist()
                if not info.is_dir()
                and PurePosixPath(info.filename).name == member
                and not info.filename.startswith("__MACOSX/")
            ]
            if len(found) != 1 or found[0].file_size > _LARGEST_MEMBER:
                held = ", ".join(archive.namelist()[:8])
                raise InputError(
                    "{name}: does not hold one {member} (but {held}); the archive has changed",
                    name=name,
                    member=member,
                    held=held,
                )
            return archive.read(found[0])
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, OSError) as error:
        raise InputError("{name}: is no zip archive that can be read ({error})", name=name, error=error) from None
