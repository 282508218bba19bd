"""The command line of the training tools: a configuration and its overrides, several seeds, an interrupted run."""

import sys

from tasks.common.errors import InputError
from tasks.common.tool.run_config import read_run_config
from tasks.recipes import get_recipe


def run_training_tool(recipe, usage, argv=None):
    """Do what the command line says.

    Args:
        recipe: its name.
        usage: text for ``--help``.
        argv: words of the command line; None for those of the process.

    Returns:
        Exit status.

    Raises:
        InputError: the command line is wrong, or as of the recipe.
    """
    words = sys.argv[1:] if argv is None else list(argv)
    tool = f"python {next(line for line in usage.splitlines() if 'python ' in line).split()[1]}"  # tools/train_....py
    if words and words[0] in ("-h", "--help"):
        print(usage.strip())
        return 0
    if words[:1] == ["--resume"]:
        if len(words) != 2:
            raise InputError(f"usage: {tool} --resume OUTPUT_DIR; the run keeps its configuration")
        _resume(get_recipe(recipe), words[1])
        return 0
    if not words or words[0].startswith("--"):
        raise InputError(f"no configuration file; usage: {tool} CONFIG.yaml [--key value ...]")
    from tasks.experiments.seeds import parse_seeds, train_with_seeds

    config = read_run_config(words[0], words[1:])
    recipe = get_recipe(recipe)
    if "seeds" in config:
        train_with_seeds(recipe.train, config, parse_seeds(config.pop("seeds")), recipe.scores, recipe.score_ensemble)
    else:
        recipe.train(config)
    return 0


def _resume(recipe, folder):
    from tasks.experiments.seeds import resume_with_seeds
    from tasks.experiments.series import read_series

    if "seeds" in (read_series(folder) or {}):
        resume_with_seeds(folder, recipe.train, recipe.resume, recipe.scores, recipe.score_ensemble)
    else:
        recipe.resume(folder)
