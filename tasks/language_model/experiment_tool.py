"""The command line of the tools that compute a grid."""

import sys

from tasks.common.errors import InputError
from tasks.common.tool.quiet import quiet_paddlenlp
from tasks.common.tool.run_config import read_run_config
from tasks.language_model.grid import report, run_grid


def run_experiment_tool(experiment, usage, argv=None):
    """Do what the command line says.

    Args:
        experiment: :class:`tasks.language_model.grid.Experiment`.
        usage: text for ``--help``.
        argv: words of the command line; None for those of the process.

    Returns:
        Exit status.

    Raises:
        InputError: the command line is wrong, or as of :func:`tasks.language_model.grid.run_grid`.
    """
    words = sys.argv[1:] if argv is None else list(argv)
    tool = f"python {sys.argv[0]}"
    if words and words[0] in ("-h", "--help"):
        print(usage.strip())
        return 0
    quiet_paddlenlp()
    if words[:1] == ["--report"]:
        if len(words) != 2:
            raise InputError(f"usage: {tool} --report OUTPUT_DIR")
        report(experiment, words[1])
        return 0
    if not words or words[0].startswith("--"):
        raise InputError(f"no configuration file; usage: {tool} CONFIG.yaml [--key value ...]")
    run_grid(experiment, read_run_config(words[0], words[1:]))
    return 0
