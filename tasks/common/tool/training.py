"""The command line of the training tools: a configuration and its overrides, several seeds, an interrupted run."""

import sys

from tasks.common.errors import InputError
from tasks.common.tool.run_config import read_run_config


def run_training_tool(name, usage, argv=None):
    """Do what the command line says.

    Args:
        name: of the recipe.
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
        from tasks.experiments import engine

        engine.resume(name, words[1])
        return 0
    if not words or words[0].startswith("--"):
        raise InputError(f"no configuration file; usage: {tool} CONFIG.yaml [--key value ...]")
    from tasks.experiments import engine

    engine.train(name, read_run_config(words[0], words[1:]))
    return 0
