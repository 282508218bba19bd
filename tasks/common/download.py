"""Files from the network: resumed where the connection was cut, checked, and under their name only when whole."""

from __future__ import annotations

import hashlib
import http.client
import os
import time
import urllib.error
import urllib.request
import zipfile
from pathlib import Path, PurePosixPath

from tqdm import tqdm

from tasks.common.errors import InputError

PART = ".part"
_CHUNK = 1 << 16
_ATTEMPTS = 4
_LARGEST_MEMBER = 1 << 30
_WORTH_ANOTHER_ATTEMPT = (408, 425, 429, 500, 502, 503, 504)


def download(url, path, size=None, sha256=None, check=None, timeout=30.0, wait=0.5, show_progress=False):
    """Download a file. What has arrived is kept as ``path.part`` and gone on with, also by a later call.

    Proxies are those of the environment (``https_proxy`` ...).

    Args:
        url: http or https address.
        path: where to put the file; its folder is made.
        size: its bytes, or None if unknown.
        sha256: its hexadecimal SHA-256, or None if unknown.
        check: called with the path of the whole ``.part``; raises InputError if the content is not as expected.
        timeout: seconds without an answer before another attempt.
        wait: seconds before the second of four attempts; doubled before each further one. An attempt that brought
            something counts anew.
        show_progress: show a progress bar.

    Raises:
        InputError: the address cannot be reached, answers with an error, or gives another content. Then nothing is
            under the name ``path``; a ``.part`` whose content is wrong is removed.
    """
    path = Path(path)
    part = path.with_name(path.name + PART)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with part.open("ab"):
            pass
    except OSError as error:
        raise InputError(f"{path}: cannot be written ({error.strerror}); give another --output") from None
    with tqdm(total=size, unit="B", unit_scale=True, desc=path.name, disable=not show_progress) as progress:
        _fetch_all(url, path, part, size, timeout, wait, progress)
    try:
        check_file(part, url, size, sha256)
        if check is not None:
            check(part)
    except InputError:
        part.unlink()
        raise
    os.replace(part, path)


def _fetch_all(url, path, part, size, timeout, wait, progress):
    """Attempts until ``part`` is whole."""
    failures = 0
    while True:
        before = part.stat().st_size
        try:
            _fetch(url, part, size, timeout, progress)
            return
        except urllib.error.HTTPError as error:
            reason, hopeless = f"HTTP {error.code} {error.reason}", error.code not in _WORTH_ANOTHER_ATTEMPT
        except (urllib.error.URLError, http.client.HTTPException, TimeoutError, ConnectionError) as error:
            reason, hopeless = str(getattr(error, "reason", None) or error) or type(error).__name__, False
        failures = 0 if part.stat().st_size > before else failures + 1
        if hopeless or failures == _ATTEMPTS:
            if part.stat().st_size == 0:
                part.unlink()
            raise InputError(
                f"{url}: cannot be downloaded ({' '.join(reason.split())}); check the network and https_proxy and run "
                f"again, or fetch the address by hand and save it as {path}"
            )
        time.sleep(wait * 2 ** max(failures - 1, 0))


def _fetch(url, part, size, timeout, progress):
    """One attempt to append to ``part`` what it lacks; raises an error of urllib or http if something is missing."""
    have = part.stat().st_size
    if size is not None and have == size:
        return  # whole already, if it is the right file
    request = urllib.request.Request(url, headers={"User-Agent": "paddle_rope", "Accept-Encoding": "identity"})
    if have:
        request.add_header("Range", f"bytes={have}-")
    try:
        response = urllib.request.urlopen(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        if error.code != 416:
            raise
        if error.headers.get("Content-Range") == f"bytes */{have}":
            return  # nothing is missing
        part.unlink()  # longer than the file: of another version
        part.touch()
        raise ConnectionError("the file has changed") from None
    with response:
        resumed = response.status == 206
        if resumed and not (response.headers.get("Content-Range") or "").startswith(f"bytes {have}-"):
            raise ConnectionError("the server answers with another part than asked for")
        length = response.headers.get("Content-Length")
        start = have if resumed else 0
        total = start + int(length) if length is not None and length.isdigit() else None
        if progress.total is None:
            progress.total = total
        progress.n = start
        progress.refresh()
        with part.open("ab" if resumed else "wb") as file:
            while chunk := response.read(_CHUNK):
                file.write(chunk)
                progress.update(len(chunk))
    if total is not None and part.stat().st_size < total:
        raise ConnectionError(f"the connection was cut after {part.stat().st_size} of {total} bytes")


def check_file(path, name, size=None, sha256=None):
    """Raise InputError unless the file has this size and SHA-256; ``name`` stands for it in the message."""
    found = Path(path).stat().st_size
    if size is not None and found != size:
        raise InputError(f"{name}: has {found} bytes instead of {size}; the file has changed or was not meant")
    if sha256 is not None and (digest := file_sha256(path)) != sha256:
        raise InputError(f"{name}: has SHA-256 {digest} instead of {sha256}; the file has changed or was damaged")


def file_sha256(path):
    """Hexadecimal SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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
                raise InputError(f"{name}: does not hold one {member} (but {held}); the archive has changed")
            return archive.read(found[0])
    except (zipfile.BadZipFile, zipfile.LargeZipFile, NotImplementedError, RuntimeError, EOFError, OSError) as error:
        raise InputError(f"{name}: no zip archive that can be read ({error}); remove {path} and run again") from None
