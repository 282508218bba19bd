"""JSON files, without paddle."""

import json
import os
from pathlib import Path
from typing import Any


def read_json_object(path: str | os.PathLike) -> dict[str, Any]:
    """The object in a JSON file.

    Raises:
        ValueError: the file cannot be read or holds no JSON object; the message names it.

    Example:
        >>> read_json_object("no/such/file.json")
        Traceback (most recent call last):
        ValueError: no/such/file.json: cannot be read (No such file or directory)
    """
    try:
        value = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"{path}: cannot be read ({error.strerror})") from None
    except RecursionError:
        raise ValueError(f"{path}: is nested too deep; copy or download it again") from None
    except ValueError as error:
        raise ValueError(f"{path}: is not JSON ({error}); copy or download it again") from None
    if not isinstance(value, dict):
        raise ValueError(f"{path}: is not a JSON object; copy or download it again")
    return value
