"""A training run from top to bottom: files -> examples -> finished configuration -> tokenizer and model -> datasets ->
training with evaluations and checkpoints -> scores -> folder. What differs between tasks is in their
:class:`~paddle_rope.tasks.common.training.recipe.Recipe`."""

import contextlib
import math
import pkgutil
import shutil
import sys
import time
from operator import itemgetter
from pathlib import Path
from typing import Any

import paddle
from paddlenlp.trainer import set_seed
from tqdm import tqdm

from paddle_rope.native.dispatch import is_enabled
from paddle_rope.roformer import load_tokenizer
from paddle_rope.roformer.config import folder_of
from paddle_rope.tasks.common.errors import InputError, as_input_error
from paddle_rope.tasks.common.files import atomic_writer, check_new_folder, json_line
from paddle_rope.tasks.common.model_folder import refuse_changed
from paddle_rope.tasks.common.process import bfloat16_pays, choose_device, is_first_process, quiet_paddlenlp
from paddle_rope.tasks.common.reports.tables import scores_line
from paddle_rope.tasks.common.training.arguments import BY_EPOCHS
from paddle_rope.tasks.common.training.callbacks import dev_scores_so_far
from paddle_rope.tasks.common.training.checkpoints import last_checkpoint, step_of
from paddle_rope.tasks.common.training.data import NO_DATA, MemoryData, config_with
from paddle_rope.tasks.common.training.interruption import explained, interruptible
from paddle_rope.tasks.common.training.monitor import VisualDLMonitor
from paddle_rope.tasks.common.training.recipe import Recipe
from paddle_rope.tasks.common.training.run import (
    BEFORE_FOLDER,
    CHECKPOINTS_FOLDER,
    METRICS_FILE,
    Run,
    read_config,
    refuse_links,
)
from paddle_rope.tasks.common.training.settings import Settings, check_config, filled, finished
from paddle_rope.tasks.common.training.trainer import InOrder, LengthGroupedBatchSampler, RecipeTrainer

MOST_SPARE = 0.01  # of a published model's embeddings, which belong to no token: 36 of 18,000 in ERNIE 1.0


def train(recipe: Recipe, config: dict[str, Any], memory: MemoryData = NO_DATA) -> dict[str, Any] | None:
    """Train one run and write its folder; see :func:`paddle_rope.tasks.recipes.train_config`."""
    settings = check_config(config_with(config, memory.examples), recipe.arguments)
    if is_first_process():
        check_new_folder(settings.config["output_dir"])
    return _run(recipe, settings, memory)


def resume(recipe: Recipe, run_dir: str | Path, memory: MemoryData = NO_DATA) -> dict[str, Any] | None:
    """Continue the interrupted run of a folder; see :func:`paddle_rope.tasks.recipes.resume`."""
    run_dir = Path(run_dir)
    if (run_dir / METRICS_FILE).is_file():
        raise InputError(f"{run_dir}: the run is complete; its scores are in {run_dir / METRICS_FILE}")
    config = {**read_config(run_dir), "output_dir": str(run_dir)}
    refuse_links(run_dir)
    folders = run_dir / CHECKPOINTS_FOLDER, run_dir / CHECKPOINTS_FOLDER / BEFORE_FOLDER
    checkpoint = next(filter(None, map(last_checkpoint, folders)), None)
    settings = check_config(config_with(config, memory.examples), recipe.arguments)
    return _run(recipe, settings, memory, checkpoint, is_begun=True)


def _run(
    recipe: Recipe, settings: Settings, memory: MemoryData, checkpoint: Path | None = None, is_begun: bool = False
) -> dict[str, Any] | None:
    started = time.perf_counter()
    quiet_paddlenlp()
    device = choose_device(settings.config["device"])
    set_seed(settings.training.seed)
    # checkpoints identify weights by names with a counter, which has to start anew
    with contextlib.ExitStack() as locks, paddle.utils.unique_name.guard():
        locks.enter_context(interruptible())
        locks.enter_context(explained(Path(settings.config["output_dir"])))

        # files -> examples -> finished configuration
        data = recipe.read(settings, memory)
        if not is_begun and device == "cpu" and settings.training.bf16 is not False:
            data.chosen["bf16"] = bfloat16_pays(settings.training.bf16, is_first_process())
        settings = finished(filled(settings, data.chosen), recipe.arguments)
        run = Run(
            *settings, data=data, locks=locks, memory=memory, checkpoint=checkpoint, is_begun=is_begun, started=started
        )
        try:
            return _train(recipe, run)
        finally:
            run.trainer = None  # it refers to the run, so the model would stay in memory until garbage collection


def _train(recipe: Recipe, run: Run) -> dict[str, Any] | None:
    # tokenizer and model, datasets
    _build(recipe, run)
    run.datasets = {split: recipe.dataset(run, split) for split in run.examples}
    _check_positions(run, recipe.longest(run), recipe.arguments.LENGTH_KEY)
    parameters, config = sum(int(p.size) for p in run.model.parameters()), run.model.config
    if is_first_process():
        recipe.describe(run)
        positions = f", {config.most_tokens} learned positions" if config.most_tokens < math.inf else ""
        print(f"model: {config.attention} attention{positions}, {parameters:,} parameters")
        if is_enabled():
            print("native operators compute; PADDLE_ROPE_NATIVE=0 turns them off")
            if run.training.bf16:
                print("training multiplies in bfloat16, evaluation in float32; --bf16 false turns it off")
        run.claim()

    # batches, optimizer, training with evaluations and checkpoints
    run.trainer = _new_trainer(recipe, run)
    made = run.trainer.started
    recipe.prepare(run)
    run.trainer.train(run.checkpoint if run.resumes_training else None)
    train_seconds = time.perf_counter() - run.trainer.started
    started = run.started - (made - run.trainer.started)  # and the seconds before the checkpoint
    if not is_first_process():
        return None
    shutil.rmtree(run.checkpoints_before, ignore_errors=True)

    # scores, folder
    scores, records = {}, {}
    for split in sorted(run.datasets.keys() - {"train"}):  # dev first, which may choose a threshold
        scores[split], records[split] = recipe.score(run, split)
        recipe.report(split, scores[split])
    run.save_model()
    if records.get("dev") is not None:
        with atomic_writer(run.output_dir / "predictions_dev.jsonl") as file:
            file.writelines(map(json_line, records["dev"]))
    if recipe.arguments.PLAN is BY_EPOCHS:
        # matplotlib, which only figures need
        from paddle_rope.tasks.common.reports.figures import write_epochs

        write_epochs(run.output_dir, run.trainer.state.log_history, recipe.arguments.SCORES)
    metrics = {"train_seconds": round(train_seconds, 1), "parameters": parameters, "seed": run.training.seed}
    metrics = {**metrics, **run.facts, **scores}
    run.finish(metrics, started, recipe.arguments.NEXT_STEP)
    return metrics


def _build(recipe, run):
    """Fill ``run.tokenizer`` and ``run.model``: new ones, or from the folder ``pretrained`` with a new head."""
    folder, model_class = run.keys.pretrained, pkgutil.resolve_name(recipe.arguments.MODEL)
    if folder is None:
        with as_input_error("configuration: "):
            run.tokenizer = recipe.new_tokenizer(run)
            options = {**run.keys.model_options(), **recipe.model_options(run), "vocab_size": len(run.tokenizer)}
            run.model = model_class(model_class.config_class(**options))
        return
    refuse_changed(folder_of(folder))
    with as_input_error():  # these messages name the folder
        run.tokenizer = load_tokenizer(folder)
        options = {**recipe.model_options(run), **run.keys.model_options(run.config)}
        run.model = model_class.from_pretrained(folder, **options)
    known, embedded = len(run.tokenizer), run.model.config.vocab_size
    if not 0 <= embedded - known <= MOST_SPARE * embedded:
        found = f"the tokenizer has {known} tokens, the model embeddings for {embedded}"
        raise InputError(f"{folder}: {found}; they do not belong together")
    run.tokenizer.fill_up(embedded)


def _check_positions(run, longest, key):
    """Raise InputError if learned positions end before the longest text does."""
    limit = run.model.config.most_tokens
    if longest > limit:
        found = f"learned positions end at {limit}, and the longest text has {longest} tokens with special ones"
        raise InputError(f"configuration: {found}; lower {key}, or take another position_embedding, such as qk")


def _new_trainer(recipe, run):
    keys, scores = run.keys, recipe.arguments.SCORES
    shown = scores if keys.METRIC in (None, *scores) else (keys.METRIC,)  # what VisualDL compares runs by
    shown = shown if "dev" in run.datasets else ()
    train = run.datasets["train"]
    shared = {
        "monitor": VisualDLMonitor(
            run.training.logging_dir, run.config, shown, keys.log_histograms, keys.HYPER_PARAMETERS
        ),
        "score_dev": lambda: _evaluate_dev(recipe, run),
        "checkpoint_minutes": keys.checkpoint_minutes,
        "model": run.model,
        "args": run.training,
        "train_dataset": train,
    }
    if keys.PLAN is not BY_EPOCHS:
        done = step_of(run.checkpoint) if run.resumes_training else 0
        processes = run.training.dataset_world_size, run.training.dataset_rank
        sampler = InOrder(len(train), done * train.batches_per_step, *processes)
        return RecipeTrainer(sampler=sampler, ends=train.ends, data_collator=itemgetter(0), **shared)
    return RecipeTrainer(
        sampler=LengthGroupedBatchSampler.of(run.training, train.lengths),
        ema_decay=keys.ema_decay,
        patience=keys.early_stopping_patience,
        eval_dataset=run.datasets.get("dev"),
        data_collator=train.collate,
        **shared,
    )


def _evaluate_dev(recipe, run):
    """Compute and print the dev scores after an epoch, or after some steps, and write the model if it is the best so
    far, or the last is kept. A log shows only the epochs that are the best so far, a terminal shows all."""
    scores, state, metric = recipe.dev_scores(run), run.trainer.state, run.keys.METRIC
    if not is_first_process():
        return scores
    is_best = metric is None or scores[metric] > max(dev_scores_so_far(state, run.training), default=-math.inf)
    if is_best or sys.stdout.isatty():
        when = f"step {state.global_step:6}" if metric is None else f"epoch {state.epoch:4.1f}"
        tqdm.write(f"{when}  dev {scores_line(scores, run.keys.SCORES)}")
    if is_best or not run.trainer.keeps_best:
        run.save_model()
    return scores
