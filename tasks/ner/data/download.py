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

PART = ".part"
_CHUNK = 1 << 16
_ATTEMPTS = 4
_LARGEST_MEMBER = 1 << 30
_WORTH_ANOTHER_ATTEMPT = (408, 425, 429, 500, 502, 503, 504)


def download(url, path, size=None, sha256=None, check=None, timeout=30.0, wait=0.5, show_progress=False):
    """Download a file. What has arrived is kept as ``path.part`` and completed, also by a later call.

    The file may have changed between two parts: pieces that together are not what was expected are thrown away, and
    the whole is fetched once more. So give ``sha256`` or ``check``. Proxies are those of the environment
    (``https_proxy`` ...).

    Args:
        url: http or https address.
        path: where to put the file; its folder is made.
        size: its bytes, or None if unknown.
        sha256: its hexadecimal SHA-256, or None if unknown.
        check: called with the path of the whole ``.part`` and ``url``, which stands for it in messages; raises
            InputError if the content is not as expected.
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
    except OSError as error:
        raise _not_writable(path, error) from None
    with tqdm(total=size, unit="B", unit_scale=True, desc=path.name, disable=not show_progress) as progress:
        while True:
            pieced = _fetch_all(url, path, part, size, timeout, wait, progress)
            try:
                check_file(part, url, size, sha256)
                if check is not None:
                    check(part, url)
                break
            except InputError:
                part.unlink()
                if not pieced:
                    raise
    os.replace(part, path)


def _fetch_all(url, path, part, size, timeout, wait, progress):
    """Attempts until ``part`` is whole. Returns whether it is pieced together."""
    failures = 0
    while True:
        before = _bytes_in(part)
        try:
            return _fetch(url, part, size, timeout, progress)
        except urllib.error.HTTPError as error:
            reason, hopeless = f"HTTP {error.code} {error.reason}", error.code not in _WORTH_ANOTHER_ATTEMPT
        except (OSError, http.client.HTTPException) as error:  # of the network: those of the disk are InputError
            reason, hopeless = str(getattr(error, "reason", None) or error) or type(error).__name__, False
        failures = 0 if _bytes_in(part) > before else failures + 1
        if hopeless or failures == _ATTEMPTS:
            raise InputError(
                f"{url}: cannot be downloaded ({' '.join(reason.split())}); check the network and https_proxy and run "
                f"again, or fetch the address by hand and save it as {path}"
            )
        time.sleep(wait * 2 ** max(failures - 1, 0))


def _fetch(url, part, size, timeout, progress):
    """One attempt to append to ``part`` what it lacks.

    Returns:
        Whether ``part`` is pieced together: not all of it comes from this attempt.

    Raises:
        OSError, http.client.HTTPException: the network failed or something is missing.
        InputError: the disk failed.
    """
    have = _bytes_in(part)
    if have and have == size:
        return True
    request = urllib.request.Request(url, headers={"User-Agent": "paddle_rope", "Accept-Encoding": "identity"})
    if have:
        request.add_header("Range", f"bytes={have}-")
    try:
        response = urllib.request.urlopen(request, timeout=timeout)
    except urllib.error.HTTPError as error:
        if not have or error.code != 416:  # 416: there is nothing from this place on
            raise
        if error.headers.get("Content-Range") == f"bytes */{have}":
            return True
        part.unlink()
        raise ConnectionError("the file is shorter than the part of it that is here") from None
    with response:
        pieced = response.status == 206
        if pieced and not (response.headers.get("Content-Range") or "").startswith(f"bytes {have}-"):
            raise ConnectionError("the server answers with another part than asked for")
        start = have if pieced else 0
        length = response.headers.get("Content-Length")
        total = start + int(length) if length is not None and length.isdigit() else None
        progress.total = progress.total or total
        progress.n = start
        progress.refresh()
        _append(response, part, "ab" if pieced else "wb", progress)
    if total is not None and _bytes_in(part) < total:
        raise ConnectionError(f"the connection was cut after {_bytes_in(part)} of {total} bytes")
    return pieced


def _append(response, part, mode, progress):
    try:
        file = part.open(mode)
    except OSError as error:
        raise _not_writable(part, error) from None
    with file:
        while chunk := response.read(_CHUNK):
            try:
                file.write(chunk)
                file.flush()  # so that a full disk is noticed here
            except OSError as error:
                raise _not_writable(part, error) from None
            progress.update(len(chunk))


def _not_writable(path, error):
    return InputError(f"{path}: cannot be written ({error.strerror}); give another --output")


def _bytes_in(part):
    return part.stat().st_size if part.exists() else 0


def check_file(path, name, size=None, sha256=None):
    """Raise InputError unless the file has this size and SHA-256; ``name`` stands for it in the message."""
    found = Path(path).stat().st_size
    if size is not None and found != size:
        raise InputError(f"{name}: has {found} bytes instead of {size}; the file has changed or was not meant")
    if sha256 is not None and (digest := file_sha256(path)) != sha256:
        raise InputError(f"{name}: has SHA-256 {digest} instead of {sha256}; the file has changed or was damaged")


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
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, OSError) as error:
        raise InputError(f"{name}: is no zip archive that can be read ({error})") from None
