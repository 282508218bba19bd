"""The base class of all recipes: how a model is trained, resumed and evaluated, whatever the task."""

import contextlib
import functools
import math
import os
import shutil
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, ClassVar

import paddle
from paddlenlp.trainer import set_seed
from tqdm import tqdm

from paddle_rope.native.dispatch import is_enabled
from paddle_rope.roformer import CharTokenizer, RoFormerPretrainedModel, load_tokenizer
from paddle_rope.roformer.checkpoints.reading import read_config as read_encoder_config
from paddle_rope.roformer.config import folder_of
from paddle_rope.roformer.tokenization.tokenizer import Tokenizer
from paddle_rope.tasks.common.errors import InputError, as_input_error, visible
from paddle_rope.tasks.common.files import atomic_writer, check_new_folder, json_line
from paddle_rope.tasks.common.inference import pad_items
from paddle_rope.tasks.common.model_folder import refuse_changed
from paddle_rope.tasks.common.predictor import Predictor, bfloat16_pays
from paddle_rope.tasks.common.process import choose_device, is_first_process, quiet_paddlenlp
from paddle_rope.tasks.common.reports.tables import scores_line
from paddle_rope.tasks.common.training.arguments import BY_EPOCHS, EncoderArguments
from paddle_rope.tasks.common.training.callbacks import dev_scores_so_far
from paddle_rope.tasks.common.training.checkpoints import last_checkpoint
from paddle_rope.tasks.common.training.data import LabeledData, MemoryData, config_with, read_memory
from paddle_rope.tasks.common.training.interruption import explained, interruptible
from paddle_rope.tasks.common.training.monitor import VisualDLMonitor
from paddle_rope.tasks.common.training.run import (
    BEFORE_FOLDER,
    CHECKPOINTS_FOLDER,
    METRICS_FILE,
    Run,
    read_config,
    refuse_links,
)
from paddle_rope.tasks.common.training.settings import Settings, check_config, finished
from paddle_rope.tasks.common.training.trainer import RecipeTrainer, StepTrainer

SPECIAL_TOKENS = {"max_characters": 2, "max_tokens": 0}  # length key of a recipe -> tokens that are added
MOST_SPARE = 0.01  # of a published model's embeddings, which belong to no token: 36 of 18,000 in ERNIE 1.0


class Recipe:
    """How to train for one task. A subclass defines what differs between tasks: the attributes and the first group of
    methods."""

    arguments: ClassVar[type[EncoderArguments]]  # the configuration keys
    model_class: ClassVar[type[RoFormerPretrainedModel]]
    monitor_class: ClassVar[type[VisualDLMonitor]] = VisualDLMonitor
    run_class: ClassVar[type[Run]] = Run
    scores: ClassVar[tuple[str, ...]] = ()  # names of the scores that are shown, and summed up over several runs
    # the line after training, with {model} for the model's folder, {command} for paddle-rope
    next_step: ClassVar[str] = "predict:  {command} predict {model}"
    length_key: ClassVar[str] = "max_characters"  # the configuration key that bounds the length of texts
    label_dtype: ClassVar[str] = "int64"  # of the labels of a batch, where they are numbers
    predictor: ClassVar[type[Predictor] | Any] = None  # of a trained model's folder; says how labeled data are read

    # ---- what a recipe defines

    def read(self, settings: Settings, memory: MemoryData) -> dict[str, Any]:
        """The data of a run, as arguments of ``run_class``: ``examples`` and others; and under ``chosen`` the keys that
        the data decide."""
        raise NotImplementedError

    def new_tokenizer(self, run: Run) -> Tokenizer | None:
        """A tokenizer for a model from scratch; None if there is no text."""
        texts = (example.text for example in run.examples["train"])
        return CharTokenizer.from_corpus(texts, run.keys.vocab_min_count)

    def model_options(self, run: Run) -> dict[str, Any]:
        """The options of the model's configuration that depend on the data or on ``run.tokenizer``."""
        return {}

    def dataset(self, run: Run, split: str) -> Any:
        """The tokenized examples of a split; ``lengths`` of the training data says how many tokens each one has."""
        raise NotImplementedError

    def longest(self, run: Run) -> int:
        """Tokens of the longest text that the model reads at once, in training or evaluation."""
        return max(max(dataset.lengths) for dataset in run.datasets.values())

    def collator(self, run: Run) -> Any:
        """A function that makes a batch from a list of tokenized examples; here from pairs of texts and label."""
        return functools.partial(pad_items, pad_token_id=run.tokenizer.pad_token_id, dtype=self.label_dtype)

    def ends(self, run: Run) -> Iterable[int]:
        """The steps after which a recipe that counts in steps evaluates."""
        raise NotImplementedError

    def describe(self, run: Run) -> None:
        """Print the model and the data of the run; nothing has been written yet."""
        raise NotImplementedError

    def before_training(self, run: Run) -> None:
        """Work on the model of a new run, or one resumed from a checkpoint of this work, before it is trained."""

    def score(self, run: Run, split: str) -> tuple[dict[str, Any], Any]:
        """(scores, predictions) of the model on a split."""
        raise NotImplementedError

    def dev_scores(self, run: Run) -> dict[str, float]:
        """The scores that an evaluation during training logs, including the metric that chooses the checkpoint."""
        scores, _ = self.score(run, "dev")
        return {name: scores[name] for name in self.scores if name in scores}

    def scores_line(self, scores: dict[str, Any]) -> str:
        """The scores that are shown, in one line."""
        return scores_line(scores, self.scores)

    def report(self, title: str, scores: dict[str, Any]) -> None:
        """Print scores."""
        print(f"{visible(title)}: {self.scores_line(scores)}")

    def records(self, run: Run, split: str, predictions: Any) -> Iterator[dict[str, Any]]:
        """The lines of ``predictions_dev.jsonl``."""
        raise NotImplementedError

    def score_ensemble(self, config: dict[str, Any], run_dirs: list[str]) -> dict[str, dict[str, float]] | None:
        """Scores of the models of several finished runs as an ensemble, by split; None if there is no ensemble."""
        return None

    # ---- shared by all recipes

    @property
    def name(self) -> str:
        """The recipe's name, as in the key ``recipe`` of a configuration."""
        return str(self.arguments.recipe)

    @property
    def labeled(self) -> LabeledData | Any:
        """How labeled data are read, for runs on data in memory and for :meth:`evaluate`; None: from files only."""
        return self.predictor and self.predictor.labeled

    def read_labeled(self, path: str | os.PathLike) -> list:
        """The examples of a labeled file."""
        return self.labeled.read_file(path)

    def check(self, config: dict[str, Any]) -> Settings:
        """See :func:`paddle_rope.tasks.common.training.settings.check_config`. No text is read beyond the learned
        positions of ``pretrained``."""
        settings, key = check_config(config, self.arguments), self.length_key
        with contextlib.suppress(ValueError):  # a folder that cannot be read is refused where its weights are needed
            if settings.keys.pretrained is not None and key in SPECIAL_TOKENS:
                most = read_encoder_config(settings.keys.pretrained).most_tokens - SPECIAL_TOKENS[key]
                if most < getattr(settings.keys, key) and settings.given.get("position_embedding") in (None, "learned"):
                    return check_config({**config, key: most}, self.arguments)
        return settings

    def resolve(self, config: dict[str, Any]) -> Settings:
        """The settings of a run whose data decide nothing."""
        return finished(self.check(config), self.arguments)

    def train(self, config: dict[str, Any], data: dict[str, Iterable[Any]] | None = None) -> dict[str, Any] | None:
        """Train one run and write its folder.

        Args:
            config: dict of configuration keys, as in the YAML files of ``configs/``; ``output_dir``, a new folder,
                and ``train_file`` are required. ``paddle-rope train --recipe RECIPE --help`` lists the keys.
            data: labeled data in memory, in place of files: dict from ``"train"``, ``"dev"`` and ``"test"`` to lists of
                the recipe's examples, as ``read_labeled`` returns them, or of dicts, as in the lines of its JSON files.
                Messages call the fourth member of train ``train[3]``.

        Returns:
            dict as written to ``metrics.json``: ``train_seconds``, ``parameters``, ``seed``; under ``dev`` and
            ``test``, if there are such data, a dict of scores; and facts of the recipe. The trained model is in the
            folder ``model`` of ``output_dir``. None in processes other than the first.

        Raises:
            InputError: the configuration or the data are wrong; in that case nothing has been written.
        """
        quiet_paddlenlp()
        memory = read_memory(data, self.labeled, config)
        settings = self.check(config_with(config, memory.examples))
        if is_first_process():
            check_new_folder(settings.config["output_dir"])
        return self._start(settings, memory)

    def resume(self, run_dir: str | Path, data: dict[str, Iterable[Any]] | None = None) -> dict[str, Any] | None:
        """Continue the interrupted run of a folder from its last complete checkpoint, with the result it would have
        had; a run that ended before its first checkpoint starts over. ``data`` is the data in memory that the run was
        started with. Returns what :meth:`train` does.

        Raises:
            InputError: the folder holds no unfinished run or holds a symbolic link, no checkpoint is complete, or
                the data have changed.
        """
        quiet_paddlenlp()
        run_dir = Path(run_dir)
        if (run_dir / METRICS_FILE).is_file():
            raise InputError(f"{run_dir}: the run is complete; its scores are in {run_dir / METRICS_FILE}")
        config = {**read_config(run_dir), "output_dir": str(run_dir)}
        refuse_links(run_dir)
        folders = run_dir / CHECKPOINTS_FOLDER, run_dir / CHECKPOINTS_FOLDER / BEFORE_FOLDER
        checkpoint = next(filter(None, map(last_checkpoint, folders)), None)
        memory = read_memory(data, self.labeled, config)
        return self._start(self.check(config_with(config, memory.examples)), memory, checkpoint, is_begun=True)

    def evaluate(
        self, model_dir: Any, data: Any, device: str | None = None, batch_size: int = 32, **options: Any
    ) -> dict[str, Any]:
        """Score a trained model on labeled data, print the scores and return them.

        Args:
            model_dir: folder that training wrote as ``OUTPUT_DIR/model``; for NER also a list of them, an ensemble.
            data: labeled file; or a list in memory, as in :meth:`train`.
            device, batch_size, options: of the predictor; for NER also ``num_examples``.

        Raises:
            InputError: the model or the data are wrong.
        """
        quiet_paddlenlp()
        if isinstance(data, (str, os.PathLike)):
            title, examples = str(data), self.read_labeled(data)
        else:
            title, (examples, _) = "data", self.labeled.read_records(data, "data")
        shown = {name: options.pop(name) for name in ("num_examples",) if name in options}
        options["show_progress"] = sys.stderr.isatty()
        predictor = self.predictor(model_dir, device=device, batch_size=batch_size, **options)
        return predictor.evaluate(examples, title, **shown)

    def build(self, run: Run) -> None:
        """Fill ``run.tokenizer`` and ``run.model``: new ones, or from the folder ``pretrained`` with a new head."""
        folder = run.keys.pretrained
        if folder is None:
            with as_input_error("configuration: "):
                run.tokenizer = self.new_tokenizer(run)
                options = {**run.keys.model_options(), **self.model_options(run)}
                if run.tokenizer is not None:
                    options["vocab_size"] = len(run.tokenizer)
                run.model = self.model_class(self.model_class.config_class(**options))
            return
        refuse_changed(folder_of(folder))
        with as_input_error():  # these messages name the folder
            run.tokenizer = load_tokenizer(folder)
            options = {**self.model_options(run), **run.keys.model_options(run.config)}
            run.model = self.model_class.from_pretrained(folder, **options)
        known, embedded = len(run.tokenizer), run.model.config.vocab_size
        if not 0 <= embedded - known <= MOST_SPARE * embedded:
            found = f"the tokenizer has {known} tokens, the model embeddings for {embedded}"
            raise InputError(f"{folder}: {found}; they do not belong together")
        run.tokenizer.fill_up(embedded)

    def make_trainer(self, run: Run) -> RecipeTrainer:
        """The trainer of a run whose model and datasets are filled in."""
        keys = run.keys
        shown = self.scores if keys.METRIC in (None, *self.scores) else (keys.METRIC,)  # what VisualDL compares runs by
        shown = shown if "dev" in run.datasets else ()
        shared = {
            "monitor": self.monitor_class(
                run.training.logging_dir, run.config, shown, keys.log_histograms, keys.HYPER_PARAMETERS
            ),
            "score_dev": lambda: self._evaluate_dev(run),
            "checkpoint_minutes": keys.checkpoint_minutes,
            "model": run.model,
            "args": run.training,
            "train_dataset": run.datasets["train"],
        }
        if self.arguments.PLAN is not BY_EPOCHS:
            return StepTrainer(self.ends(run), **shared)
        return RecipeTrainer(
            lengths=run.datasets["train"].lengths,
            ema_decay=keys.ema_decay,
            patience=keys.early_stopping_patience,
            eval_dataset=run.datasets.get("dev"),
            data_collator=self.collator(run),
            **shared,
        )

    def _evaluate_dev(self, run: Run) -> dict[str, float]:
        """Compute and print the dev scores after an epoch, or after some steps, and write the model if it is the best
        so far, or the last is kept. A log shows only the epochs that are the best so far, a terminal shows all."""
        scores, state, metric = self.dev_scores(run), run.trainer.state, self.arguments.METRIC
        if not is_first_process():
            return scores
        is_best = metric is None or scores[metric] > max(dev_scores_so_far(state, run.training), default=-math.inf)
        if is_best or sys.stdout.isatty():
            when = f"step {state.global_step:6}" if metric is None else f"epoch {state.epoch:4.1f}"
            tqdm.write(f"{when}  dev {self.scores_line(scores)}")
        if is_best or not run.trainer.keeps_best:
            run.save_model()
        return scores

    def _start(
        self, settings: Settings, memory: MemoryData, checkpoint: Path | None = None, is_begun: bool = False
    ) -> dict[str, Any] | None:
        started = time.perf_counter()
        device = choose_device(settings.config["device"])
        set_seed(settings.training.seed)
        # checkpoints identify weights by names with a counter, which has to start anew
        with contextlib.ExitStack() as locks, paddle.utils.unique_name.guard():
            locks.enter_context(interruptible())
            locks.enter_context(explained(Path(settings.config["output_dir"])))
            data = self.read(settings, memory)
            chosen = data.pop("chosen", {})
            if not is_begun and settings.training.bf16 and device == "cpu" and not bfloat16_pays(is_first_process()):
                chosen["bf16"] = False
            if chosen:
                settings = self.check({**settings.given, **chosen})
            settings = finished(settings, self.arguments)
            run = self.run_class(*settings, locks, memory, checkpoint, is_begun, started, **data)
            try:
                return self._train_run(run)
            finally:
                run.trainer = None  # it refers to the run, so the model would stay in memory until garbage collection

    def _train_run(self, run: Run) -> dict[str, Any] | None:
        """Do the work of a run from its data to ``metrics.json``; returns what :meth:`train` does."""
        self.build(run)
        run.datasets = {split: self.dataset(run, split) for split in run.examples}
        self._check_positions(run)
        parameters, config = sum(int(p.size) for p in run.model.parameters()), run.model.config
        if is_first_process():
            self.describe(run)
            positions = f", {config.most_tokens} learned positions" if config.most_tokens < math.inf else ""
            print(f"model: {config.attention} attention{positions}, {parameters:,} parameters")
            if is_enabled():
                print("native operators compute; PADDLE_ROPE_NATIVE=0 turns them off")
                if run.training.bf16:
                    print("training multiplies in bfloat16, evaluation in float32")
            run.claim()
        run.trainer = self.make_trainer(run)
        made = run.trainer.started
        is_before = run.checkpoint is None or run.checkpoint.parent != run.checkpoints
        if is_before:
            self.before_training(run)
        run.trainer.train(None if is_before else run.checkpoint)
        train_seconds = time.perf_counter() - run.trainer.started
        started = run.started - (made - run.trainer.started)  # and the seconds before the checkpoint
        if not is_first_process():
            return None
        shutil.rmtree(run.checkpoints_before, ignore_errors=True)
        metrics = {"train_seconds": round(train_seconds, 1), "parameters": parameters, "seed": run.training.seed}
        metrics.update(run.facts)
        metrics.update(self.score_and_save(run))
        if self.arguments.PLAN is BY_EPOCHS:
            from paddle_rope.tasks.common.reports.figures import (
                write_epochs,  # imports matplotlib, which only figures need
            )

            write_epochs(run.output_dir, run.trainer.state.log_history, self.scores)
        run.finish(metrics, started, self.next_step)
        return metrics

    def _check_positions(self, run: Run) -> None:
        """Raise InputError if learned positions end before the longest text does."""
        limit = run.model.config.most_tokens
        if (longest := self.longest(run)) > limit:
            found = f"learned positions end at {limit}, and the longest text has {longest} tokens with special ones"
            remedy = f"lower {self.length_key}, or take another position_embedding, such as qk"
            raise InputError(f"configuration: {found}; {remedy}")

    def score_and_save(self, run: Run) -> dict[str, Any]:
        """Score the trained model, write its folder and its predictions; returns the scores of each split."""
        metrics, predictions = {}, {}
        for split in sorted(run.datasets.keys() - {"train"}):  # dev first, which may choose a threshold
            metrics[split], predictions[split] = self.score(run, split)
            self.report(split, metrics[split])
        run.save_model()
        if "dev" in predictions:
            with atomic_writer(run.output_dir / "predictions_dev.jsonl") as file:
                file.writelines(map(json_line, self.records(run, "dev", predictions["dev"])))
        return metrics
