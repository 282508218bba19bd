"""The settings of a service, checked before anything is opened."""

import os
import re
from dataclasses import dataclass, fields
from pathlib import Path

from paddle_rope.files import read_json_object
from paddle_rope.options import POSITIVE, TEXT, choice, integer, number
from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.prediction_options import PredictorOptions
from paddle_rope.tasks.common.training.arguments import check_kinds, option
from paddle_rope.tasks.recipes import get_options, recipe_of_model

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
DAY = 86_400  # seconds
METRICS_FOLDER = "PROMETHEUS_MULTIPROC_DIR"  # read by prometheus_client when imported: where workers add up numbers


@dataclass(frozen=True)
class ModelSource:
    """A model to serve: its name in paths, its folder, its recipe, whether it embeds texts, and its entity types."""

    name: str
    folder: str
    recipe: str
    embeds: bool = False
    types: tuple[str, ...] = ()

    @property
    def predicting(self) -> type[PredictorOptions]:
        """The facts about its predictions."""
        return get_options(self.recipe)


@dataclass
class ServiceSettings(PredictorOptions):
    """The options of ``paddle-rope serve``; the first of ``models`` is the default one."""

    models: tuple[ModelSource, ...] = ()
    host: str = option("127.0.0.1", "address to listen at; 0.0.0.0 for all of this machine", TEXT)
    port: int = option(8080, "port to listen at; 0 for a free one, which is printed", integer(0, 65535))
    workers: int = option(1, "processes; each has its own models and cores // workers threads", integer(1, 1024))
    max_wait_ms: float = option(5.0, "milliseconds that a text waits for others in its batch", number(0, 60_000))
    max_queue: int = option(256, "texts of a worker that may wait, of each request at most a batch; then 503", POSITIVE)
    max_queue_characters: int = option(1_000_000, "characters of a worker that may wait; then 503", POSITIVE)
    max_texts: int = option(256, "texts or pairs of a request", POSITIVE)
    max_characters: int = option(10_000, "characters of a text", POSITIVE)
    max_request_characters: int = option(100_000, "characters of several texts, or of a dictionary", POSITIVE)
    max_body_bytes: int = option(2_000_000, "bytes of a request's body; an answer may have 5 times as many", POSITIVE)
    max_seconds: float = option(30.0, "from a request to its answer; later it is refused with 503", number(0.001, DAY))
    api_key: str = option("", "key that requests must send as Authorization: Bearer KEY; empty: none", TEXT)
    log: str = option("none", "`json` prints a line for each request, with its X-Request-ID", choice("none", "json"))
    stop_seconds: float = option(30.0, "for requests in progress when the service is told to stop", number(0, DAY))
    threads: int = 1

    def __post_init__(self) -> None:
        check_kinds(self, "--")


def options() -> list:
    """The fields of :class:`ServiceSettings` that are command-line options, with a meaning and a default."""
    return [one for one in fields(ServiceSettings) if one.metadata]


def model_sources(arguments: list[str]) -> tuple[ModelSource, ...]:
    """The models of ``FOLDER`` or ``NAME=FOLDER``; without a name, a model is named after its recipe. Raises InputError
    if a folder holds no model of a recipe that can be served, or two models have the same name."""
    sources: dict[str, ModelSource] = {}
    for argument in arguments:
        name, equals, folder = argument.partition("=")
        if not equals or "/" in name:
            name, folder = "", argument
        recipe = recipe_of_model(folder)
        name = name or recipe
        if not NAME.fullmatch(name):
            raise InputError(f"{name!r}: names of models are letters, digits, '.', '_' and '-'")
        if name in sources:
            raise InputError(f"{argument}: the name {name!r} is taken; give each model one, as in NAME={folder}")
        config = read_json_object(Path(folder) / "config.json")
        types = tuple(config["types"]) if isinstance(config.get("types"), list) else ()
        embeds = get_options(recipe).embeds(config)
        sources[name] = ModelSource(name, os.path.abspath(folder), recipe, embeds, types)
    return tuple(sources.values())
