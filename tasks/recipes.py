"""The registry of recipes: the one place where recipe names are resolved to code."""

from __future__ import annotations

import os
import pkgutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from paddle_rope.options import did_you_mean
from paddle_rope.tasks.common.datasets import check_there
from paddle_rope.tasks.common.errors import InputError, as_input_error
from paddle_rope.tasks.common.files import check_new_folder
from paddle_rope.tasks.common.model_folder import (
    ENCODER,
    folders_of,
    recipe_in,
    refuse_incomplete,
    refuse_other_recipe,
)
from paddle_rope.tasks.common.process import check_device, is_first_process
from paddle_rope.tasks.common.run_config import ALIASES, read_run_config, shipped
from paddle_rope.tasks.common.training.arguments import parse_seeds
from paddle_rope.tasks.common.training.data import NO_DATA, MemoryData, read_memory
from paddle_rope.tasks.common.training.run import CONFIG_FILE, check_readable, data_files, read_config
from paddle_rope.tasks.common.training.settings import check_config

if TYPE_CHECKING:
    from paddle_rope.tasks.common.prediction_options import PredictorOptions
    from paddle_rope.tasks.common.training.arguments import EncoderArguments
    from paddle_rope.tasks.common.training.recipe import Recipe


class Registered(NamedTuple):
    """The locations of a recipe's parts, which are imported only when they are used."""

    summary: str  # what it trains
    predictor: str = ""  # "module:class" in the recipe's package; "" if it does not predict
    exporter: str = ""
    checker: str = ""  # "module:function" that looks at the data before Paddle is imported
    report: str = ""  # "module:function" that makes files from the finished runs of a plan
    tune: str = ""  # "module:function" that fits thresholds of a trained model to labeled data
    select: str = ""  # "module:function" that selects texts to label next
    demo: str = ""  # what ``write_demo`` of the module ``demo`` writes


RECIPES = {
    "ner": Registered(
        "entities of texts",
        predictor="prediction.predictor:NerPredictor",
        exporter="export:NerExporter",
        checker="data.reading:check_early",
        tune="tuning:tune_model",
        select="prediction.selection:select",
        demo="a corpus of Chinese sentences with nested entities: train.jsonl and dev.jsonl in the format of CLUENER",
    ),
    "relations": Registered(
        "entities of texts, and relations between them",
        predictor="prediction:RelationsPredictor",
        exporter="export:RelationsExporter",
        demo="a corpus of Chinese sentences with entities and relations: train.jsonl and dev.jsonl",
    ),
    "matching": Registered(
        "scores of pairs and triples",
        predictor="prediction:MatchingPredictor",
        exporter="recipe:MatchingExporter",
        demo="pairs of texts with 0/1, pairs with grades, triples",
    ),
    "classification": Registered(
        "classes of documents", predictor="prediction:Classifier", exporter="recipe:ClassificationExporter"
    ),
    "pretraining": Registered("a masked language model, to start other runs from"),
    "language_model": Registered("a causal language model of characters", report="report:report"),
}


def recipes_with(part: str) -> tuple[str, ...]:
    """The names of the recipes that have a part, such as ``"predictor"`` or ``"tune"``."""
    return tuple(name for name, recipe in RECIPES.items() if getattr(recipe, part))


PREDICTING = recipes_with("predictor")


def get_recipe(name: str) -> Recipe:
    """The recipe called ``name``; this imports it, and Paddle with it. Raises InputError if there is no such recipe."""
    return _resolve(name, "recipe:{prefix}Recipe")()


def get_arguments(name: str) -> type[EncoderArguments]:
    """The dataclass of a recipe's configuration keys. Imports no Paddle. Raises as :func:`get_recipe`."""
    return _resolve(name, "arguments:{prefix}Arguments")


def get_options(name: str) -> type[PredictorOptions]:
    """The dataclass of the options of a recipe's predictor. Imports no Paddle."""
    return _resolve(name, "arguments:{prefix}Options")


def get_predictor(name: str) -> Any:
    """The predictor class of a recipe that predicts. Does not import Paddle."""
    return _resolve(name, "{predictor}")


def get_part(name: str, part: str) -> Any:
    """The class or function of a recipe that a field of :class:`Registered` names, such as ``"tune"``, or its function
    ``write_demo`` for ``"demo"``; None if the recipe does not have this part."""
    place = getattr(RECIPES[name], part)
    return _resolve(name, "demo:write_demo" if part == "demo" else place) if place else None


def _resolve(name, place):
    if not isinstance(name, str) or name not in RECIPES:
        hint = did_you_mean(str(name), RECIPES) or f"the recipes are {', '.join(RECIPES)}"
        raise InputError(f"no recipe {name!r}; {hint}")
    prefix = name.title().replace("_", "")  # of its classes, such as LanguageModelRecipe
    place = place.format(prefix=prefix, **RECIPES[name]._asdict())
    return pkgutil.resolve_name(f"paddle_rope.tasks.{name}.{place}")


def recipe_of_config(config: dict[str, Any], where: str | os.PathLike = "configuration") -> str:
    """The name of the recipe that a configuration is for. Raises InputError if it names none, or an unknown one;
    messages call the configuration ``where``."""
    name = config.get("recipe")
    if not name:
        raise InputError(f"{where}: no 'recipe'; add the line 'recipe: ner', or another of the recipes")
    get_arguments(name)
    return name


def config_for_data(recipe: str = "ner") -> dict[str, Any]:
    """The configuration that a recipe has for data of your own, ``configs/RECIPE/own_data.yaml``; else its name alone.
    Raises as :func:`get_recipe`."""
    get_arguments(recipe)
    file = f"configs/{recipe}/own_data.yaml"
    return read_run_config(file) if shipped(file) != file or os.path.isfile(file) else {"recipe": recipe}


def train(
    data: str | os.PathLike | Iterable[Any],
    output_dir: str | os.PathLike,
    dev: str | os.PathLike | Iterable[Any] | None = None,
    test: str | os.PathLike | Iterable[Any] | None = None,
    recipe: str = "ner",
    **keys: Any,
) -> dict[str, Any] | None:
    """Train a model on labeled data, with the configuration that the recipe has for data of your own.

    Args:
        data: labeled file, or a list of what its lines hold, such as ``{"text": "叶老桂博士", "entities": [...]}``.
        output_dir: a new folder; the model will be in ``output_dir/model``.
        dev, test: the same; without dev, a tenth of ``data`` is held out.
        recipe: one of those that predict, such as ``"matching"``.
        keys: configuration keys, as in ``configs/``.

    Returns:
        dict of scores, and what else :func:`train_config` returns.

    Raises:
        InputError: the data or a key are wrong.

    >>> train("my/data.jsonl", "runs/mine", epochs=20)["dev"]["f1"]  # doctest: +SKIP
    0.87
    """
    config = {**config_for_data(recipe), **{ALIASES.get(key, key): value for key, value in keys.items()}}
    config["output_dir"], memory = os.fspath(output_dir), {}
    for split, given in (("train", data), ("dev", dev), ("test", test)):
        if isinstance(given, (str, os.PathLike)):
            config[f"{split}_file"] = os.fspath(given)
        elif given is not None:
            memory[split] = given
    return train_config(config, memory or None)


def train_config(config: dict[str, Any], data: dict[str, Iterable[Any]] | None = None) -> dict[str, Any] | None:
    """Train the run that a configuration describes, or a series of runs if it has the key ``seeds`` or ``folds``.

    Args:
        config: dict of configuration keys, as in the YAML files of ``configs/``; ``recipe``, ``output_dir``, a new
            folder, and ``train_file`` are required. ``paddle-rope train --recipe RECIPE --help`` lists the keys.
        data: labeled data in memory, in place of files: dict from ``"train"``, ``"dev"`` and ``"test"`` to lists of
            dicts, as in the lines of the recipe's JSON files. Messages call the fourth member of train ``train[3]``.

    Returns:
        dict as written to ``metrics.json``: ``train_seconds``, ``parameters``, ``seed``; under ``dev`` and ``test``, if
        there are such data, a dict of scores; and facts of the recipe. The trained model is in the folder ``model`` of
        ``output_dir``. For a series, see :func:`paddle_rope.tasks.common.training.series.train_series`. None in
        processes other than the first.

    Raises:
        InputError: the configuration or the data are wrong; in that case nothing has been written.
    """
    from paddle_rope.tasks.common.training import loop
    from paddle_rope.tasks.common.training.series import has_folds, train_series

    name, config = recipe_of_config(config), dict(config)
    if data is not None:
        return loop.train(get_recipe(name), config, _in_memory(name, data, config))
    seeds = config.pop("seeds", None)
    if seeds is not None or has_folds(config):
        return train_series(get_recipe(name), config, None if seeds is None else parse_seeds(seeds))
    return loop.train(get_recipe(name), config)


def resume(folder: str | os.PathLike, data: dict[str, Iterable[Any]] | None = None) -> dict[str, Any] | None:
    """Continue the interrupted run or series whose ``output_dir`` is ``folder`` from its last complete checkpoint, with
    the result it would have had; a run that ended before its first checkpoint starts over. ``data`` is the data in
    memory that the run was started with. Returns what :func:`train_config` does.

    Raises:
        InputError: the folder holds no unfinished run or holds a symbolic link, no checkpoint is complete, or the data
            have changed.
    """
    from paddle_rope.tasks.common.training import loop
    from paddle_rope.tasks.common.training.series import SERIES_FILE, resume_series

    folder = Path(folder)
    if (folder / SERIES_FILE).is_file():
        return resume_series(folder, get_recipe)
    config = read_config(folder)
    name = recipe_of_config(config, folder / CONFIG_FILE)
    return loop.resume(get_recipe(name), folder, NO_DATA if data is None else _in_memory(name, data, config))


def _in_memory(name: str, data: dict[str, Iterable[Any]], config: dict[str, Any]) -> MemoryData:
    if name not in PREDICTING:
        raise InputError("data: this recipe reads files only; name them in the configuration")
    return read_memory(data, get_predictor(name).labeled, config)


def evaluate(
    model_dir: Any, data: Any, device: str | None = None, batch_size: int = 32, **options: Any
) -> dict[str, Any]:
    """Score a trained or exported model on labeled data, print the scores and return them.

    Args:
        model_dir: as in :func:`load`.
        data: labeled file; or a list in memory, as in :func:`train_config`.
        device, batch_size, options: of the predictor; for NER also ``num_examples``.

    Raises:
        InputError: the model or the data are wrong.
    """
    labeled = get_predictor(recipe_of_model(model_dir)).labeled
    if isinstance(data, (str, os.PathLike)):
        title, examples = str(data), labeled.read_file(data)
    else:
        title, (examples, _) = "data", labeled.read_records(data, "data")
    shown = {name: options.pop(name) for name in ("num_examples",) if name in options}
    options["show_progress"] = sys.stderr.isatty()
    predictor = load(model_dir, device=device, batch_size=batch_size, **options)
    return predictor.evaluate(examples, title, **shown)


def check_run(config: dict[str, Any]) -> None:
    """Raise InputError if a key of a configuration is unknown, a value does not fit, a file of its data is missing, or
    its folder cannot be made. Imports no Paddle."""
    name, config = recipe_of_config(config), dict(config)
    seeds = config.pop("seeds", None)
    if seeds is not None:
        parse_seeds(seeds)
    checked = check_config(config, get_arguments(name))
    check_device(checked.config["device"])
    if checked.keys.pretrained is not None:
        # prediction needs no safetensors
        from paddle_rope.roformer.checkpoints.reading import read_settings, weights_file

        with as_input_error("configuration: pretrained: "):
            read_settings(checked.keys.pretrained)
            weights_file(checked.keys.pretrained)
    for path in data_files(checked.config):
        check_there(path)
    if checker := get_part(name, "checker"):
        checker(checked.keys)
    check_readable(checked.config)
    if is_first_process():  # seen from another process, the first may already have made the folder
        check_new_folder(checked.config["output_dir"])


def load(model_dir: Any, **options: Any) -> Any:
    """The predictor of a trained or exported model of any recipe.

    Args:
        model_dir: OUTPUT_DIR/model of a training run, or an exported model; for NER also a list of them, an ensemble.
        options: of the recipe's predictor: ``device``, ``batch_size``, ``bf16``, ``show_progress``, ``max_tokens`` and
            others, which :func:`get_options` declares.

    Raises:
        InputError: the folder does not hold a model that predicts, several do not compute together, or an option is
            out of range.

    >>> load("runs/mine/model")(["叶老桂博士"])[0]["entities"][0]["type"]  # doctest: +SKIP
    'name'
    """
    folders = folders_of(model_dir)
    return get_predictor(recipe_of_model(folders))(folders if len(folders) > 1 else folders[0], **options)


def recipe_of_model(model_dir: Any) -> str:
    """The name of the recipe whose predictor opens a folder, or a list of folders, by the first one's config.json.
    Raises InputError if there is none, or several models of the recipe do not compute together."""
    folder, *others = folders_of(model_dir)
    refuse_incomplete(folder, ("config.json",))
    name = recipe_in(folder)
    if name == ENCODER:
        refuse_other_recipe(folder, " or ".join(PREDICTING))
    if name not in PREDICTING:
        raise InputError(
            f"{folder}: config.json does not describe a model for {', '.join(PREDICTING)}; give OUTPUT_DIR/model of a "
            "training run"
        )
    if others and not get_options(name).AVERAGES:
        together = " and ".join(one for one in PREDICTING if get_options(one).AVERAGES)
        raise InputError(f"{folder}: is a model of {name}; only models of {together} compute together, so give one")
    return name
