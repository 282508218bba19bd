"""Files that are written as a whole or not at all, and JSON files that hold one object."""

import json
import os
import secrets
from pathlib import Path
from typing import Any


def read_json_object(path: str | os.PathLike) -> dict[str, Any]:
    """The object in a JSON file. Raises ValueError, naming the file, if it cannot be read or holds no object."""
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


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Write an object to a JSON file with sorted keys, creating the folder if it is missing."""
    # numpy's integers fit options, but not json
    text = json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True, default=lambda number: number.item())
    replace_file(path, f"{text}\n".encode())


def replace_file(path: Path, content: bytes) -> None:
    """Write a file as a whole, or not at all; the folder is made if it is missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = temporary_path(path)
    try:
        with open(temporary, "xb") as file:
            file.write(content)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def temporary_path(path: Path) -> Path:
    """A path in the same folder that nobody can guess: open it with mode ``x``, which follows no link, and rename it
    when the content is complete."""
    return path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
