"""paddle-rope train: a configuration and its overrides, several seeds, an interrupted run."""

from tasks.commands.options import choose
from tasks.common.cli.run_config import read_run_config
from tasks.common.errors import InputError
from tasks.common.key_listing import listing
from tasks.common.process import prepare
from tasks.experiments.plan import parse_seeds
from tasks.recipes import check_run, get_arguments

USAGE = """\
Train {what}.

    {command} CONFIG.yaml [--key value ...]
    {command} CONFIG.yaml --seeds 42,43,44 [--key value ...]
    {command} --resume OUTPUT_DIR

CONFIG.yaml and --key take the keys below. A CONFIG.yaml that begins with configs/ may be one of those that come with
this command: configs/ner/demo.yaml, configs/classification/demo.yaml, ...
--seeds trains once for each seed, into OUTPUT_DIR/seed_N, and prints mean and spread of the scores.
{more}--resume continues a run that was interrupted, or a series of runs, to the result it would have had.
On several GPUs, or CPU processes: python -m paddle.distributed.launch $(which paddle-rope) train ...

{keys}"""

# name -> what it trains, more options
RECIPES = {
    "ner": ("a NER model", "After the last seed, the models are also scored as an ensemble.\n"),
    "matching": (
        "a model of text matching: pairs of texts with 0/1 or a grade, or triples",
        (
            "--folds 5 cuts train_file into folds by the first text, trains once for each, into OUTPUT_DIR/fold_N, "
            "tests\non it, and prints mean and spread. With --seeds the folds are drawn anew for each seed.\n"
        ),
    ),
    "classification": ("a classifier of documents", ""),
    "pretraining": (
        "a RoFormer as a masked language model",
        "OUTPUT_DIR/model is what other recipes take as --pretrained.\n",
    ),
    "language_model": ("a causal language model of characters", ""),
    "relative_position": ("a model on the task whose answer only relative position gives", ""),
}


def train(words):
    name, words = choose("paddle-rope train", "recipe", words, {name: what for name, (what, _) in RECIPES.items()})
    command = f"paddle-rope train {name}"
    if {"-h", "--help"} & {*words}:
        what, more = RECIPES[name]
        print(USAGE.format(what=what, command=command, more=more, keys=listing(name, get_arguments(name))))
    elif words[:1] == ["--resume"]:
        if len(words) != 2:
            raise InputError(f"usage: {command} --resume OUTPUT_DIR; the run keeps its configuration")
        _engine().resume(name, words[1])
    elif any(word.partition("=")[0] == "--resume" for word in words):
        raise InputError(f"--resume stands alone: {command} --resume OUTPUT_DIR; the run keeps its configuration")
    elif not words or words[0].startswith("--"):
        raise InputError(f"no configuration file; usage: {command} CONFIG.yaml [--key value ...]")
    else:
        config = read_run_config(words[0], words[1:])
        if config.get("seeds") is not None:
            parse_seeds(config["seeds"])
        check_run(name, config)  # mistakes are reported before the seconds that importing paddle takes
        _engine().train(name, config)
    return 0


def _engine():
    prepare()
    from tasks.experiments import engine

    return engine
