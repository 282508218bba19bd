"""paddle-rope train: a configuration and its overrides, several seeds, an interrupted run."""

import dataclasses
import textwrap
from typing import Any

from paddle_rope.tasks import recipes
from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.process import prepare
from paddle_rope.tasks.common.run_config import read_run_config
from paddle_rope.tasks.common.training.arguments import EncoderArguments
from paddle_rope.tasks.common.training.settings import DOCUMENTED, usable_keys
from paddle_rope.tasks.recipes import RECIPES

USAGE = """\
Train a model.

    paddle-rope train DATA --output_dir FOLDER [--recipe RECIPE] [--key value ...]
    paddle-rope train CONFIG.yaml [--key value ...]
    paddle-rope train CONFIG.yaml --seeds 42,43,44 [--key value ...]
    paddle-rope train --resume OUTPUT_DIR
    paddle-rope train CONFIG.yaml --help, or train --recipe RECIPE --help: the keys of the recipe

DATA is your labeled file, of entities unless --recipe says otherwise; it is trained with the file own_data.yaml of the
recipe in configs/, which fits itself to the size of NER data. CONFIG.yaml has one 'key: value' a line, and --key value
overrides it; --epochs, --lr and --batch_size are short names. The files that come with this command have names such as
configs/ner/demo.yaml and configs/classification/demo.yaml. The key recipe says what is trained:

{recipes}

--seeds trains once for each seed, into OUTPUT_DIR/seed_N, and prints mean and spread of the scores; NER models are also
scored as an ensemble. --folds 5, of matching, cuts train_file into folds by connected texts, trains once for each, into
OUTPUT_DIR/fold_N, tests on it, and prints mean and spread; with --seeds the folds are drawn anew for each seed.
--resume continues a run or a series that was interrupted, to the result it would have had.
On several GPUs, or CPU processes: python -m paddle.distributed.launch $(which paddle-rope) train ..."""


def train(argv):
    asks_help = bool({"-h", "--help"} & {*argv})
    argv = [word for word in argv if word not in ("-h", "--help")]
    if any(word.partition("=")[0] == "--resume" for word in argv):
        _, words = _split(argv)
        if len(words) != 2 or words[0] != "--resume":
            raise InputError("usage: paddle-rope train --resume OUTPUT_DIR; the run keeps its configuration")
        prepare()
        recipes.resume(words[1])
        return
    if not (argv or asks_help):
        raise InputError("no labeled file and no configuration; usage: paddle-rope train DATA --output_dir FOLDER")
    config = read_words(argv) if argv else {}
    if asks_help:
        print(_help(config.get("recipe")))
        return
    recipes.check_run(config)  # report mistakes before importing Paddle, which takes seconds
    prepare()
    recipes.train_config(config)


def read_words(words: list[str]) -> dict[str, Any]:
    """The configuration of a command line: a YAML file, or labeled data with the configuration that their recipe has
    for them, and overrides."""
    recipe, words = _split(words)
    file, overrides = [], words
    if words and not words[0].startswith("--"):
        file, overrides = words[:1], words[1:]
    if file and file[0].endswith((".yaml", ".yml")):
        config = read_run_config(*file, overrides)
        recipes.recipe_of_config(config, *file)
        return {**config, "recipe": recipe[0]} if recipe else config
    config = recipes.config_for_data(*recipe)
    if file:
        config["train_file"] = file[0]
    return {**config, **read_run_config(None, overrides)}


def _split(words):
    """The recipe that words name with ``--recipe``, a list, and the other words."""
    place = words.index("--recipe") if "--recipe" in words else len(words)
    return words[place + 1 : place + 2], [*words[:place], *words[place + 2 :]]


def _help(recipe):
    if recipe is not None:
        keys = listing(recipe, recipes.get_arguments(recipe))
        return f"usage: paddle-rope train CONFIG.yaml [--key value ...]\n\n{keys}"
    width = max(map(len, RECIPES))
    return USAGE.format(recipes="\n".join(f"    {name:{width}}  {one.summary}" for name, one in RECIPES.items()))


# ---- the keys of a recipe as help


WIDTH = 110


def listing(recipe: str, arguments_class: type[EncoderArguments]) -> str:
    """All keys with default, meaning and unit: first the recipe's, then the shared ones, then PaddleNLP's."""
    of_all, of_trainer = EncoderArguments.__dataclass_fields__, usable_keys(arguments_class)
    unused = arguments_class().unused_keys()
    fields = [one for one in dataclasses.fields(arguments_class) if one.name not in unused]
    groups = {  # a field is shared if it is the same object as in the base of all recipes
        f"Keys of {recipe}": [one for one in fields if of_all.get(one.name) is not one],
        "Keys that recipes share": [one for one in fields if of_all.get(one.name) is one],
        "Keys of PaddleNLP's TrainingArguments": map(DOCUMENTED.get, of_trainer),
    }
    required, width = arguments_class.REQUIRED, max(map(len, [*of_trainer, *(one.name for one in fields)]))
    lines = ["Columns: key, default (- for none), meaning."]
    for title, listed in groups.items():
        lines += ["", f"{title}:"]
        for one in sorted(listed, key=lambda one: one.name not in required):
            default = as_yaml(of_trainer.get(one.name, one.default)) or "-"
            head = f"  {one.name:{width}}  {'required' if one.name in required else default:13}  "
            meaning = head + one.metadata["help"].replace("`", "")
            lines += textwrap.wrap(meaning, WIDTH, subsequent_indent=" " * (width + 19), break_on_hyphens=False)
    return "\n".join(lines)


def as_yaml(value: Any) -> str:
    """A default as written in a configuration file; "" for None."""
    if isinstance(value, bool):
        return str(value).lower()
    return "" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
