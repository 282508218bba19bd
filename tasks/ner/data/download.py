"""Files from the network: checked, and under their name only when whole."""

import os
import shutil
import zipfile
import zlib
from pathlib import Path, PurePosixPath

from tasks.common.errors import InputError
from tasks.common.files import file_sha256

PART = ".part"
_RETRIES = 2
_TIMEOUT = 30.0  # seconds without an answer
_LARGEST_MEMBER = 1 << 30


def download(url, path, check, show_progress=False):
    """Download a file with pooch, which retries twice and takes the proxies of the environment.

    Args:
        url: http or https address.
        path: where to put the file; its folder is made.
        check: called with the path of the whole file, before it has its name, and with ``url``, which stands for it in
            messages; raises InputError if the content is not as expected.
        show_progress: show a progress bar.

    Raises:
        InputError: the address cannot be reached, answers with an error or gives another content. Nothing is then
            under the name ``path``.
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


def check_file(path, name, size=None, sha256=None):
    """Raise InputError unless the file has this size and SHA-256; ``name`` stands for it in the message."""
    found = Path(path).stat().st_size
    if size is not None and found != size:
        raise InputError(f"{name}: has {found} bytes instead of {size}; the file has changed or was not meant")
    if sha256 is not None and (digest := file_sha256(path)) != sha256:
        raise InputError(f"{name}: has SHA-256 {digest} instead of {sha256}; the file has changed or was damaged")


def read_zip_member(path, member, name):
    """The content of the one file called ``member`` in whatever folder of a zip archive, which messages call ``name``.
    Nothing is unpacked, so the archive's paths cannot lead anywhere."""
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
