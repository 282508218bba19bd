"""What a service is started with, checked before anything is opened."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from paddle_rope.options import read_json_object
from tasks.common.errors import InputError
from tasks.recipes import recipe_of_model

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
DAY = 86_400  # seconds


@dataclass(frozen=True)
class ModelSource:
    """A model to serve: its name in paths, its folder, its recipe, and whether it embeds texts."""

    name: str
    folder: str
    recipe: str
    embeds: bool = False


def _option(default: Any, meaning: str, least: float = 1, most: float | None = None) -> Any:
    """A field that is an option of ``paddle-rope serve``, with its range if it is a number."""
    bounds = {} if isinstance(default, str) else {"least": least, "most": most}
    return field(default=default, metadata={"meaning": meaning, **bounds})


@dataclass(frozen=True)
class Settings:
    """The options of ``paddle-rope serve``; the first of ``models`` is the default one."""

    models: tuple[ModelSource, ...]
    host: str = _option("127.0.0.1", "address to listen at; 0.0.0.0 for all of this machine")
    port: int = _option(8080, "port to listen at; 0 for a free one, which is printed", 0, 65535)
    workers: int = _option(1, "processes; each has its own models and cores // workers threads", 1, 1024)
    batch_size: int = _option(32, "texts, or windows of long texts, computed together")
    max_wait_ms: float = _option(5.0, "milliseconds that a text waits for others to be computed with", 0, 60_000)
    max_queue: int = _option(256, "texts of a worker that may wait, of each request at most a batch; then 503")
    max_queue_characters: int = _option(1_000_000, "characters of a worker that may wait; then 503")
    max_texts: int = _option(256, "texts or pairs of a request")
    max_characters: int = _option(10_000, "characters of a text")
    max_request_characters: int = _option(100_000, "characters of a request of several texts")
    max_body_bytes: int = _option(2_000_000, "bytes of a request's body")
    max_seconds: float = _option(30.0, "from a request to its answer; later it is refused with 503", 0.001, DAY)
    stop_seconds: float = _option(30.0, "for the requests in work when the service is told to stop", 0, DAY)
    threads: int = 1
    device: str | None = None
    bf16: bool | None = None

    def __post_init__(self) -> None:
        for one in options():
            least, most = one.metadata.get("least"), one.metadata.get("most")
            value = getattr(self, one.name)
            if least is not None and not least <= value <= (float("inf") if most is None else most):
                upper = " or more" if most is None else f" to {most}"
                raise InputError(f"--{one.name} {value}: must be {least}{upper}")


def options() -> list:
    """The fields of :class:`Settings` that are options of the command line with a meaning and a default."""
    return [one for one in fields(Settings) if one.metadata]


def model_sources(arguments: list[str]) -> tuple[ModelSource, ...]:
    """The models of ``FOLDER`` or ``NAME=FOLDER``; a folder without a name has that of its recipe.

    Raises:
        InputError: a folder holds no model of a recipe that can be served, or two have one name.
    """
    sources: dict[str, ModelSource] = {}
    for argument in arguments:
        name, equals, folder = argument.partition("=")
        if not equals or "/" in name:
            name, folder = "", argument
        source = _source(name, folder)
        if source.name in sources:
            raise InputError(f"{argument}: the name {source.name!r} is taken; give each model one, as in NAME={folder}")
        sources[source.name] = source
    return tuple(sources.values())


def _source(name, folder):
    recipe = recipe_of_model(folder)
    name = name or recipe
    if not NAME.fullmatch(name):
        raise InputError(f"{name!r}: names of models are letters, digits, '.', '_' and '-'")
    config = read_json_object(Path(folder) / "config.json")
    return ModelSource(name, folder, recipe, recipe == "matching" and config.get("architecture") == "bi_encoder")
