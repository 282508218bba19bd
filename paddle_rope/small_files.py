"""Files of settings, which are small: a large one is refused before it is read. Without paddle."""

import json
import os
from typing import Any

MOST_BYTES = 2**26  # 64 MB


def read_text(path: str | os.PathLike, most_bytes: int = MOST_BYTES) -> str:
    """The text of a UTF-8 file.

    Raises:
        OSError: it cannot be read.
        ValueError: it has more than ``most_bytes`` bytes, or is not UTF-8.
    """
    with open(path, "rb") as file:
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise ValueError(f"{path}: has more than {most_bytes:,} bytes, too many for a file of settings")
    return content.decode("utf-8")


def read_json_object(path: str | os.PathLike) -> dict[str, Any]:
    """The object in a JSON file.

    Raises:
        ValueError: the file cannot be read, is too large, or holds no JSON object; the message names it.
    """
    try:
        value = json.loads(read_text(path))
    except OSError as error:
        raise ValueError(f"{path}: cannot be read ({error.strerror})") from None
    except RecursionError:
        raise ValueError(f"{path}: is nested too deep; copy or download it again") from None
    except ValueError as error:
        raise ValueError(f"{path}: is not JSON ({error}); copy or download it again") from None
    if not isinstance(value, dict):
        raise ValueError(f"{path}: is not a JSON object; copy or download it again")
    return value
