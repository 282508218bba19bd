"""Download an encoder from the Hugging Face hub or a mirror; a file gets its name only when complete and checked."""

import contextlib
import hashlib
import os
import re
import shutil

from paddle_rope.tasks.common.errors import InputError, as_input_error, reason_of, visible
from paddle_rope.tasks.common.files import check_makeable, file_sha256

PART = ".part"  # folder of incomplete files, in the folder of the download
_TRIES = 5  # to download a file; each resumes the one before
_TIMEOUT = 30.0  # seconds without an answer
_BESIDE_WEIGHTS = r"((model_|tokenizer_)?config|tokenizer)\.json|vocab\.txt|(README|LICENSE|NOTICE)(\.md|\.txt)?"


def fetch_encoder(name, folder):
    """Put the files of the model ``name``, ``OWNER/NAME``, that are needed here into a folder, and print a line for
    each. They come from HF_ENDPOINT, by default huggingface.co, with the token of HF_TOKEN if there is one, and are
    only stored. Existing files are checked and kept, and an interrupted download is resumed. Raises InputError if the
    model or a file cannot be downloaded or written, or the folder or a file holds something else than published."""
    os.environ.setdefault("HF_HUB_DISABLE_XET", "1")  # Xet asks huggingface.co, whatever HF_ENDPOINT says
    try:
        from huggingface_hub import HfApi, logging
        from huggingface_hub.utils import validate_repo_id

        from paddle_rope.roformer.checkpoints.reading import CONFIG_FILES, read_settings
    except ModuleNotFoundError as error:
        raise InputError(f"{error.name} is not installed; pip install 'paddle_rope[train]'") from None
    logging.set_verbosity_error()
    with as_input_error():
        validate_repo_id(name)
    check_makeable(folder, "--output")
    hub, part = HfApi(), folder / PART
    place = f"{hub.endpoint}/{name}"
    with _explained(place, folder):
        about = hub.model_info(name, timeout=_TIMEOUT, files_metadata=True)
        stated = {file.rfilename: file for file in about.siblings}
        files = {file: stated[file] for file in needed_files(stated)}
    if not files:
        raise InputError(f"{place}: has no weights that can be read here, but {', '.join(list(stated)[:8])}")
    held = sorted(os.listdir(folder)) if folder.is_dir() else []
    for file in held:
        if file in {*files, *needed_files(held)} and not _is_as_stated(folder / file, files.get(file)):
            raise InputError(f"{folder / file}: is not that of {place}; move {folder} away, or give another --output")
    for file in files:  # the weights come last, if the configuration is of a model that can be read
        said = "is there already, and as published"
        if file not in held:
            with _explained(place, folder):
                _download(hub, name, file, about.sha, part)
            if not _is_as_stated(part / file, files[file]):
                shutil.rmtree(part)
                raise InputError(f"{place}: {file} has another checksum than published; run again")
            os.replace(part / file, folder / file)
            said = f"{files[file].size} bytes from {place}"
        print(f"{folder / file}: {said}")
        if file in CONFIG_FILES:
            with as_input_error():
                read_settings(folder)
    shutil.rmtree(part, ignore_errors=True)
    print(visible(f"{folder}: commit {about.sha}, license {getattr(about.card_data, 'license', None) or 'not stated'}"))


def needed_files(names):
    """Those of a repository's files that are needed here, none of them in a subfolder: configuration, vocabulary,
    tokenizer, model card, license, and last the weights in the safest form that is there. Empty without weights."""
    from paddle_rope.roformer.checkpoints.tensor_files import INDEX, WEIGHT_FILES

    for stem, suffix in map(os.path.splitext, WEIGHT_FILES):
        form = rf"{stem}(-\d+-of-\d+)?\{suffix}({INDEX})?"
        if weights := [name for name in names if re.fullmatch(form, name)]:
            return [name for name in names if re.fullmatch(_BESIDE_WEIGHTS, name)] + weights
    return []


def network_reason(error):
    """Why a request failed, in a few words: the status of the answer, or what is wrong with the connection."""
    answer = getattr(error, "response", None)
    if answer is not None:
        return f"HTTP {answer.status_code}"
    reason = str(error.args[0] if error.args else error)
    return reason.rsplit(": ", 1)[-1].strip("'\")") if "ConnectionPool(" in reason else reason


def _download(hub, name, file, commit, part):
    """Download a file into the folder ``part``, or what it lacks of it."""
    from requests.exceptions import ChunkedEncodingError

    for tries_left in reversed(range(_TRIES)):
        try:
            return hub.hf_hub_download(name, file, revision=commit, local_dir=part, etag_timeout=_TIMEOUT)
        except ChunkedEncodingError:  # the connection broke, which huggingface_hub does not try again
            if not tries_left:
                raise


def _is_as_stated(path, file):
    """Whether a file has the published size and checksum: SHA-256 of a large file, otherwise git's. ``file`` is
    its description, None if it is not published."""
    if file is None or path.stat().st_size != file.size:
        return False
    if file.lfs is not None:
        return file_sha256(path) == file.lfs.sha256
    content = path.read_bytes()
    return hashlib.sha1(b"blob %d\0%b" % (len(content), content)).hexdigest() == file.blob_id


@contextlib.contextmanager
def _explained(place, folder):
    """Within this block, which asks a hub about the model ``place`` and writes into ``folder``, every error becomes an
    InputError, and Ctrl-C says how to go on."""
    from requests.exceptions import RequestException

    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt("interrupted; the same command resumes") from None
    except Exception as error:  # an answer can raise anything in the library that reads it
        cause = error.__cause__ or error
        if isinstance(cause, (RequestException, ConnectionError)):
            reason = network_reason(cause)
            remedy = "check the network, https_proxy and HF_ENDPOINT; the same command resumes"
            if reason in ("HTTP 401", "HTTP 403", "HTTP 404"):
                remedy = "check the name; if it is private or gated, accept its terms there and set HF_TOKEN"
            raise InputError(f"{place}: cannot be downloaded ({reason}); {remedy}") from None
        if isinstance(cause, OSError) and cause.errno is not None:
            reason = f"cannot be written ({cause.strerror}); make room, or give another --output"
            raise InputError(f"{folder}: {reason}; the same command resumes") from None
        shutil.rmtree(folder / PART, ignore_errors=True)  # a file may be longer than stated
        raise InputError(f"{place}: its answers do not fit together ({reason_of(cause)}); check HF_ENDPOINT") from None
