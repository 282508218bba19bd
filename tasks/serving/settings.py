"""What a service is started with, checked before anything is opened."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from paddle_rope.json_files import read_json_object
from tasks.common.errors import InputError
from tasks.recipes import recipe_of_model

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
LARGEST = {"port": 65535, "workers": 1024, "max_wait_ms": 60_000, "max_seconds": 86_400, "stop_seconds": 86_400}


@dataclass(frozen=True)
class ModelSource:
    """A model to serve: its name in paths, its folder, its recipe, and whether it embeds texts."""

    name: str
    folder: str
    recipe: str
    embeds: bool = False


@dataclass(frozen=True)
class Settings:
    """The options of ``paddle-rope serve``; the first of ``models`` is the default one.

    Attributes:
        batch_size: texts that are computed together at most.
        max_wait_ms: milliseconds that a text waits for others to be computed with, while nothing else is computed.
        max_queue: texts of a worker that may wait, of each request at most ``batch_size``; while so many do, requests
            are refused.
        max_queue_characters: the same for their characters, all of them.
        max_texts: texts, or pairs, of a request.
        max_characters: characters of a text.
        max_request_characters: characters of a request of several texts.
        max_body_bytes: bytes of the body of a request.
        max_seconds: from the arrival of a request to its answer; later it is refused.
        stop_seconds: for the requests in work when the service is told to stop.
        threads: that a worker computes with.
    """

    models: tuple[ModelSource, ...]
    host: str = "127.0.0.1"
    port: int = 8080
    workers: int = 1
    batch_size: int = 32
    max_wait_ms: float = 5.0
    max_queue: int = 256
    max_queue_characters: int = 1_000_000
    max_texts: int = 256
    max_characters: int = 10_000
    max_request_characters: int = 100_000
    max_body_bytes: int = 2_000_000
    max_seconds: float = 30.0
    stop_seconds: float = 30.0
    threads: int = 1
    device: str | None = None
    bf16: bool | None = None

    def __post_init__(self) -> None:
        counts = ("workers", "batch_size", "max_queue", "max_queue_characters", "max_texts", "max_characters")
        counts = (*counts, "max_request_characters", "max_body_bytes", "threads")
        least = {"port": 0, "max_wait_ms": 0, "max_seconds": 0.001, "stop_seconds": 0, **dict.fromkeys(counts, 1)}
        for option, lowest in least.items():
            value = getattr(self, option)
            if not lowest <= value <= LARGEST.get(option, float("inf")):
                upper = f" to {LARGEST[option]}" if option in LARGEST else " or more"
                raise InputError(f"--{option} {value}: must be {lowest}{upper}")


def model_sources(words: list[str]) -> tuple[ModelSource, ...]:
    """The models of the words ``FOLDER`` or ``NAME=FOLDER``; a folder without a name has that of its recipe.

    Raises:
        InputError: a folder holds no model of a recipe that can be served, or two have one name.
    """
    sources: dict[str, ModelSource] = {}
    for word in words:
        name, equals, folder = word.partition("=")
        if not equals or "/" in name:
            name, folder = "", word
        source = _source(name, folder)
        if source.name in sources:
            raise InputError(f"{word}: the name {source.name!r} is taken; give each model one, as in NAME={folder}")
        sources[source.name] = source
    return tuple(sources.values())


def _source(name, folder):
    recipe = recipe_of_model(folder)
    name = name or recipe
    if not NAME.fullmatch(name):
        raise InputError(f"{name!r}: names of models are letters, digits, '.', '_' and '-'")
    config = read_json_object(Path(folder) / "config.json")
    return ModelSource(name, folder, recipe, recipe == "matching" and config.get("architecture") == "bi_encoder")
