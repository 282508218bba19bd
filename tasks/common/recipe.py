"""The skeleton of a recipe: how a model is trained, resumed and evaluated, whatever the task."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import paddle
from paddle.io import Dataset
from paddlenlp.trainer import TrainingArguments, set_seed
from tqdm import tqdm

from paddle_rope.roformer import CharTokenizer, RoFormerPretrainedModel, load_tokenizer
from paddle_rope.roformer.tokenization.tokenizer import Tokenizer
from tasks.common.errors import InputError
from tasks.common.files import check_output_dir, write_json_lines
from tasks.common.language import tr
from tasks.common.model_folder import check_vocabulary
from tasks.common.runs import life
from tasks.common.runs.interruption import interruptible
from tasks.common.tool.device import is_first_process
from tasks.common.tool.quiet import quiet_paddlenlp
from tasks.common.tool.run_config import read_run_config
from tasks.common.training.arguments import BY_EPOCHS, EncoderArguments, Settings, resolve_config
from tasks.common.training.complete import has_checkpoint, last_checkpoint
from tasks.common.training.failures import explained
from tasks.common.training.memory import (
    IN_MEMORY,
    MemoryData,
    check_resumed,
    check_splits,
    config_with,
    read_records,
)
from tasks.common.training.monitor import VisualDLMonitor
from tasks.common.training.trainer import RecipeTrainer
from tasks.common.visible import visible

SCORE_TITLES = {"f1": "F1", "macro_f1": "macro F1", "spearman": "Spearman"}  # where they differ from the names


@dataclass
class Run:
    """One training run of a recipe, as it fills up.

    Attributes:
        config, keys, training, given: as of :class:`~tasks.common.training.arguments.Settings`.
        examples: dict from ``train`` and, where there are such, ``dev`` and ``test`` to lists of examples.
        datasets: the same, tokenized.
        saved: what goes into the model's folder beside model and tokenizer, each with ``save_pretrained(folder)``.
        memory: dict from the splits that were given in memory, not as files, to their examples.
        facts: what ``metrics.json`` has beside the scores.
        claimed: the block within which the run's folder stays locked.
        checkpoint: from which it is resumed; None for a new run.
    """

    config: dict[str, Any]
    keys: Any
    training: TrainingArguments
    given: dict[str, Any]
    claimed: contextlib.ExitStack
    checkpoint: Path | None = None
    examples: dict[str, list] = field(default_factory=dict)
    datasets: dict[str, Any] = field(default_factory=dict)
    memory: dict[str, list] = field(default_factory=dict)
    saved: list = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    tokenizer: Any = None
    model: Any = None
    trainer: Any = None

    @property
    def output_dir(self) -> Path:
        return Path(self.config["output_dir"])

    @property
    def checkpoints(self) -> Path:
        """The folder of the checkpoints of training itself."""
        return self.output_dir / life.CHECKPOINTS_FOLDER

    @property
    def checkpoints_before(self) -> Path:
        """The folder of those of what :meth:`Recipe.before_training` trains."""
        return self.checkpoints / life.BEFORE_FOLDER

    @property
    def batch_size(self) -> int:
        """Of evaluation."""
        return self.training.per_device_eval_batch_size

    @property
    def batches_per_step(self) -> int:
        """Processes times accumulated gradients."""
        return self.training.gradient_accumulation_steps * self.training.dataset_world_size


class Recipe:
    """How to train for one task. A subclass says how to read, build, batch, score and report; what is here is the same
    for all.

    Attributes:
        name: on the command line and in plans of experiments.
        arguments: dataclass of the configuration keys.
        model_class: of the model.
        scores: names of the scores that are shown, and summed up over several runs.
        next_step: the line after training that says what to do, with ``{model}`` for the model's folder.
        predictor: class of the predictor of a trained model's folder; it takes device, batch_size, show_progress, ...
        example_class: of the examples, which may be given in memory, too; None where data come from files only.
    """

    name: ClassVar[str]
    arguments: ClassVar[type[EncoderArguments]]
    model_class: ClassVar[type[RoFormerPretrainedModel]]
    monitor_class: ClassVar[type[VisualDLMonitor]] = VisualDLMonitor
    scores: ClassVar[tuple[str, ...]] = ()
    next_step: ClassVar[str]
    predictor: ClassVar[Callable[..., Any]]
    example_class: ClassVar[type | None] = None

    # ---- what a recipe says

    def read(self, run: Run) -> None:
        """Fill ``run.examples``."""
        raise NotImplementedError

    def fit(self, run: Run) -> None:
        """Choose keys by what was read, with :meth:`choose`; nothing has been made of the keys yet."""

    def texts(self, run: Run) -> Iterable[str]:
        """The texts whose characters a new tokenizer knows."""
        return (example.text for example in run.examples["train"])

    def model_options(self, run: Run, tokenizer: Any) -> dict[str, Any]:
        """The options of the model's configuration beside those of the encoder."""
        return {}

    def dataset(self, run: Run, split: str) -> Dataset:
        """The tokenized examples of a split."""
        raise NotImplementedError

    def lengths(self, run: Run) -> list[int]:
        """Tokens of each training example, for batches of like length."""
        return [len(text.ids) for text in run.datasets["train"].texts]

    def collator(self, run: Run) -> Any:
        """What makes a batch of tokenized examples."""
        raise NotImplementedError

    def describe(self, run: Run) -> None:
        """Print what is trained on what; nothing has been written yet."""
        raise NotImplementedError

    def before_training(self, run: Run) -> None:
        """Work on the model of a new run, or one resumed from a checkpoint of this work, before it is trained."""

    def after_training(self, run: Run) -> None:
        """Work on the trained model before it is scored."""

    def score(self, run: Run, split: str) -> tuple[dict[str, Any], Any]:
        """(scores, predictions) of the model on a split."""
        raise NotImplementedError

    def dev_scores(self, run: Run) -> dict[str, float]:
        """What an evaluation during training logs; the metric that chooses the checkpoint is among it."""
        scores, _ = self.score(run, "dev")
        return {name: scores[name] for name in self.scores if name in scores}

    def report(self, title: str, scores: dict[str, Any]) -> None:
        """Print scores."""
        print(f"{visible(title)}: {self.scores_line(scores)}")

    def records(self, run: Run, split: str, predictions: Any) -> Iterator[dict[str, Any]]:
        """The lines of ``predictions_dev.jsonl``."""
        raise NotImplementedError

    def score_ensemble(self, config: dict[str, Any], run_dirs: list[str]) -> dict[str, dict[str, float]] | None:
        """Scores of the models of several finished runs as an ensemble, by split; None where there is no such thing."""
        return None

    @staticmethod
    def read_labeled(path: str | os.PathLike) -> list:
        """The examples of a labeled file."""
        raise NotImplementedError

    @staticmethod
    def read_lines(lines: list[str], name: str) -> list:
        """The examples of the lines of a labeled file, or of as many records in memory."""
        raise NotImplementedError

    def record_of(self, example: Any) -> dict[str, Any]:
        """The record, as a line of a file of JSON lines holds it, of an example."""
        raise NotImplementedError

    def evaluate_predictor(self, predictor: Any, examples: list, title: str, **shown: Any) -> dict[str, Any]:
        """Score a predictor on examples, print the scores and return them."""
        raise NotImplementedError

    # ---- what is the same for all

    def resolve(self, config: dict[str, Any]) -> Settings:
        """See :func:`tasks.common.training.arguments.resolve_config`."""
        return resolve_config(config, self.arguments)

    def choose(self, run: Run, chosen: dict[str, Any]) -> None:
        """Give a run the keys ``chosen``, as if they had been in its configuration."""
        run.config, run.keys, run.training, run.given = self.resolve({**run.given, **chosen})

    def train(self, config: dict[str, Any], data: dict[str, Iterable[Any]] | None = None) -> dict[str, Any] | None:
        """Train one run and write its folder.

        Args:
            config: dict of configuration keys, such as a YAML file of ``configs/`` has; those of the recipe and of
                PaddleNLP's ``TrainingArguments``. ``output_dir``, a new folder, and ``train_file`` must be there.
            data: labeled data in memory, in place of files: dict from ``"train"``, ``"dev"`` and ``"test"`` to lists.
                Each member is a dict, as a line of a file of JSON lines that the recipe reads holds it, or one of the
                recipe's examples, such as ``read_labeled`` gives. A split that is not in it comes from its file.
                Messages call the fourth member of train ``train[3]``.

        Returns:
            dict as written to ``metrics.json``: ``train_seconds``, ``parameters``, ``seed``; under ``dev`` and
            ``test``, where there are such data, a dict of scores, among them those that the class names in ``scores``;
            and facts of the recipe. The trained model is in the folder ``model`` of ``output_dir``. None in processes
            other than the first.

        Raises:
            InputError: the configuration or the data are wrong; nothing has been written then.
        """
        quiet_paddlenlp()
        memory = self._in_memory(data)
        settings = self.resolve(config_with(config, memory.examples))
        if is_first_process():
            check_output_dir(settings.config["output_dir"])
        return self._run(settings, None, memory)

    def resume(self, run_dir: str | Path, data: dict[str, Iterable[Any]] | None = None) -> dict[str, Any] | None:
        """Continue an interrupted run from its last whole checkpoint, to the result it would have had.

        Args:
            run_dir: folder of the run, with the configuration it was started with.
            data: the data in memory that it was started with, if any, as of :meth:`train`.

        Returns:
            As :meth:`train`.

        Raises:
            InputError: the folder is not that of an unfinished run, no checkpoint was written before it ended, or the
                data are not those that it was started with.
        """
        quiet_paddlenlp()
        run_dir = Path(run_dir)
        if (run_dir / life.METRICS_FILE).is_file():
            raise InputError(
                "{run_dir}: the run is complete; its scores are in {file}",
                run_dir=run_dir,
                file=run_dir / life.METRICS_FILE,
            )
        if not (run_dir / life.CONFIG_FILE).is_file():
            raise InputError(
                "{run_dir}: no {file} here; give the OUTPUT_DIR of an interrupted run",
                run_dir=run_dir,
                file=life.CONFIG_FILE,
            )
        checkpoints = run_dir / life.CHECKPOINTS_FOLDER
        is_before = not has_checkpoint(checkpoints, within=False) and has_checkpoint(checkpoints)
        checkpoint = last_checkpoint(checkpoints / life.BEFORE_FOLDER if is_before else checkpoints)
        config = {**read_run_config(run_dir / life.CONFIG_FILE), "output_dir": str(run_dir)}
        memory = self._in_memory(data)
        check_resumed(config, memory.examples, run_dir)
        return self._run(self.resolve(config), checkpoint, memory)

    def evaluate(
        self, model_dir: Any, data: Any, device: str | None = None, batch_size: int = 32, **options: Any
    ) -> dict[str, Any]:
        """Score a trained model on labeled data, print the scores and return them.

        Args:
            model_dir: folder that training wrote as ``OUTPUT_DIR/model``; for NER also a list of them, an ensemble.
            data: labeled file; or a list in memory, as of :meth:`train`.
            device: ``"cpu"``, ``"gpu"`` ...; None takes a GPU where there is one.
            batch_size: texts a batch at most.
            options: those of the predictor, such as ``max_tokens``; for NER also ``num_examples``.

        Raises:
            InputError: the model or the data are wrong, or the data have a label that the model does not know.
        """
        quiet_paddlenlp()
        if isinstance(data, (str, os.PathLike)):
            title, examples = str(data), self.read_labeled(data)
        else:
            title, (examples, _) = "data", self._read_records(data, "data")
        shown = {name: options.pop(name) for name in ("num_examples",) if name in options}
        predictor = self.predictor(model_dir, device=device, batch_size=batch_size, show_progress=True, **options)
        return self.evaluate_predictor(predictor, examples, title, **shown)

    def scores_line(self, scores: dict[str, Any]) -> str:
        """The scores that are shown, in one line."""
        shown = [name for name in self.scores if name in scores]
        return "  ".join(f"{SCORE_TITLES.get(name, name)} {scores[name]:.4f}" for name in shown)

    def new_tokenizer(self, run: Run) -> Tokenizer | None:
        """A tokenizer for a model from scratch; None where there is no text."""
        return CharTokenizer.from_corpus(self.texts(run), run.keys.vocab_min_count)

    def build(self, run: Run) -> None:
        """Fill ``run.tokenizer`` and ``run.model``: new ones, or those of the folder ``pretrained`` with a new head."""
        keys = run.keys
        try:
            if keys.pretrained is None:
                run.tokenizer = self.new_tokenizer(run)
                options = self.model_options(run, run.tokenizer)
                if run.tokenizer is not None:
                    options["vocab_size"] = len(run.tokenizer)
                run.model = self.model_class(self.model_class.config_class(**keys.encoder_options(), **options))
                return
            run.tokenizer = load_tokenizer(keys.pretrained)
            options = {**self.model_options(run, run.tokenizer), **keys.encoder_options(run.config)}
            run.model = self.model_class.from_pretrained(keys.pretrained, **options)
        except ValueError as error:
            raise InputError("{where}: {error}", where=keys.pretrained or "configuration", error=error) from None
        check_vocabulary(keys.pretrained, run.tokenizer, run.model)

    def monitor(self, run: Run, shown: Iterable[str]) -> VisualDLMonitor:
        """What writes the log of a run for VisualDL, which compares runs by the scores ``shown``."""
        return self.monitor_class(run.training.logging_dir, run.config, shown, run.keys.log_histograms)

    def make_trainer(self, run: Run) -> RecipeTrainer:
        """The trainer of a run whose model and datasets are there."""
        shown = self.scores if run.keys.METRIC in self.scores else (run.keys.METRIC,)
        return RecipeTrainer(
            self.monitor(run, shown if "dev" in run.datasets else ()),
            lambda: self._evaluate_dev(run),
            lengths=self.lengths(run),
            ema_decay=run.keys.ema_decay,
            patience=run.keys.early_stopping_patience,
            checkpoint_minutes=run.keys.checkpoint_minutes,
            model=run.model,
            args=run.training,
            train_dataset=run.datasets["train"],
            eval_dataset=run.datasets.get("dev"),
            data_collator=self.collator(run),
        )

    def _evaluate_dev(self, run: Run) -> dict[str, float]:
        scores = self.dev_scores(run)
        if is_first_process():
            tqdm.write(f"epoch {run.trainer.state.epoch:4.1f}  dev {self.scores_line(scores)}")
        return scores

    def _in_memory(self, data: Any) -> MemoryData:
        """The examples of data in memory, checked."""
        if data is None:
            return MemoryData({}, {})
        if self.example_class is None:
            raise InputError("data: the recipe {name} reads files only; name them in the configuration", name=self.name)
        check_splits(data)
        read = {split: self._read_records(records, split) for split, records in data.items()}
        return MemoryData(
            {split: examples for split, (examples, _) in read.items()},
            {f"{split} {IN_MEMORY}": digest for split, (_, digest) in read.items()},
        )

    def _read_records(self, records: Any, name: str) -> tuple[list, str]:
        def record_of(record: Any) -> Any:
            is_example = self.example_class is not None and isinstance(record, self.example_class)
            return self.record_of(record) if is_example else record

        return read_records(records, name, record_of, self.read_lines)

    def _run(self, settings: Settings, checkpoint: Path | None, memory: MemoryData) -> dict[str, Any] | None:
        set_seed(settings.training.seed)
        # checkpoints know weights by names that count what the process has made
        with contextlib.ExitStack() as claimed, paddle.utils.unique_name.guard():
            claimed.enter_context(interruptible())
            run = Run(*settings, claimed, checkpoint, memory=memory.examples)
            claimed.enter_context(explained(run.output_dir, f"paddle-rope train {self.name}"))
            try:
                return self._work(run, checkpoint, memory.fingerprints)
            finally:
                run.trainer = None  # it knows the run, and the model would stay in memory until garbage is collected

    def _work(self, run: Run, checkpoint: Path | None, in_memory: dict[str, str]) -> dict[str, Any] | None:
        started = time.perf_counter()
        self.read(run)
        self.fit(run)
        self.build(run)
        run.datasets = {split: self.dataset(run, split) for split in run.examples}
        parameters = sum(int(p.size) for p in run.model.parameters())
        if is_first_process():
            self.describe(run)
            print(
                tr(
                    "model: {attention} attention, {parameters:,} parameters",
                    attention=run.model.config.attention,
                    parameters=parameters,
                )
            )
            if "dev" not in run.datasets:
                print(tr("no dev data: the last epoch is kept"))
            life.claim(run.config, checkpoint, run.claimed, in_memory)
        run.trainer = self.make_trainer(run)
        training_started = time.perf_counter()
        is_before = checkpoint is None or checkpoint.parent != run.checkpoints
        if is_before:
            self.before_training(run)
        run.trainer.train(None if is_before else checkpoint)
        train_seconds = time.perf_counter() - training_started
        if not is_first_process():
            return None

        shutil.rmtree(run.checkpoints_before, ignore_errors=True)
        self.after_training(run)
        metrics = {"train_seconds": round(train_seconds, 1), "parameters": parameters, "seed": run.training.seed}
        metrics.update(run.facts)
        metrics.update(self.score_and_save(run))
        history = run.trainer.state.log_history if self.arguments.PLAN is BY_EPOCHS else ()
        life.finish(run.output_dir, metrics, started, self.next_step, history, self.scores)
        return metrics

    def score_and_save(self, run: Run) -> dict[str, Any]:
        """Score the trained model, write its folder and its predictions; returns the scores of each split."""
        metrics, predictions = {}, {}
        for split in sorted(run.datasets.keys() - {"train"}):  # dev first, which may choose a threshold
            metrics[split], predictions[split] = self.score(run, split)
            self.report(split, metrics[split])
        life.save_model(run.output_dir, run.model, *filter(None, [run.tokenizer, *run.saved]))
        if "dev" in predictions:
            path = run.output_dir / "predictions_dev.jsonl"
            write_json_lines(path, self.records(run, "dev", predictions["dev"]))
        return metrics
