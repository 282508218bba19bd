"""Encoders that come with the package: a folder of ``encoders/`` each, with its model card in ``README.md``."""

import os
from pathlib import Path

ENCODERS = Path(__file__).with_name("encoders")


def folder_of(name: str | os.PathLike) -> str | os.PathLike:
    """The folder of a model: ``name`` if there is such a folder here, or else the encoder of this name that comes with
    the package. A name that is neither is returned unchanged, so that its reader reports the error.

    Example:
        >>> folder_of("small").parent.name
        'encoders'
    """
    is_shipped = not os.path.isdir(name) and os.fspath(name) in os.listdir(ENCODERS)
    return ENCODERS / name if is_shipped else name
