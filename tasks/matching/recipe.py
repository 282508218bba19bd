"""Training and evaluation of text matching."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

from tqdm import tqdm

from paddle_rope.roformer import CharTokenizer, load_tokenizer
from tasks.common.errors import InputError
from tasks.common.files import write_json_lines
from tasks.common.model_folder import check_vocabulary
from tasks.common.runs import life as runs
from tasks.common.tool.device import is_first_process
from tasks.common.tool.quiet import quiet_paddlenlp
from tasks.common.training.monitor import VisualDLMonitor
from tasks.common.training.trainer import RecipeTrainer
from tasks.matching.arguments import METRIC, resolve_config
from tasks.matching.batching import ItemCollator, MatchingDataset
from tasks.matching.data import read_labelled
from tasks.matching.examples import PAIRS, TRIPLES, task_of
from tasks.matching.metrics import FIGURES, best_threshold, choosing_figure, matching_figures
from tasks.matching.model import MatchingConfig, MatchingModel
from tasks.matching.prediction import MatchingPredictor
from tasks.matching.report import data_report, figures_line
from tasks.matching.scoring import score_dataset
from tasks.matching.splits import read_splits

__all__ = ["FIGURES", "evaluate", "resume", "train"]


class MatchingTrainer(RecipeTrainer):
    """Figures of the dev set as its evaluation; ``score`` is the one that chooses the epoch."""

    def score_dev(self):
        """dict of the figures of :func:`tasks.matching.metrics.matching_figures`, and ``score``."""
        config = self.model.config
        figures, _ = evaluate_model(self.model, self.eval_dataset, self.args.per_device_eval_batch_size, True)
        figures[METRIC] = figures[choosing_figure(config.task, config.is_cross_encoder)]
        if self.is_world_process_zero():
            tqdm.write(f"epoch {self.state.epoch:4.1f}  dev {figures_line(figures)}")
        return figures


def evaluate_model(model, dataset, batch_size, chooses_threshold=False):
    """Figures of ``model`` on a :class:`MatchingDataset`, and its scores ``[examples, candidates]``.

    With ``chooses_threshold`` a bi-encoder of 0/1 pairs takes the threshold that is best for these data; it is among
    the figures.
    """
    config = model.config
    scores = score_dataset(model, dataset, config.pad_token_id, batch_size)
    labels = [example.label for example in dataset.examples]
    task, threshold = task_of(dataset.examples), config.threshold
    if chooses_threshold and config.task == PAIRS and not config.is_cross_encoder:
        threshold = best_threshold(labels, scores[:, 0])
    figures = matching_figures(task, labels, scores, threshold)
    if task == PAIRS and threshold is not None:
        figures["threshold"] = threshold
    return figures, scores


def _train(checkpoint, config, run, arguments):
    started = time.perf_counter()
    examples = read_splits(run, arguments.seed)
    tokenizer, model = build_model(config, run, examples["train"])
    datasets = {name: MatchingDataset(split, tokenizer, model.config) for name, split in examples.items()}
    parameters = sum(int(p.size) for p in model.parameters())
    chosen_by = choosing_figure(model.config.task, model.config.is_cross_encoder) if run.has_dev else None

    output_dir = Path(config["output_dir"])
    if is_first_process():
        for name, dataset in datasets.items():
            print(data_report(name, dataset, model.config.max_length))
        print(f"model: {model.config.architecture}, {model.config.attention} attention, {parameters:,} parameters")
        print(f"the epoch is chosen by dev {chosen_by}" if run.has_dev else "no dev data: the last epoch is kept")
        runs.claim(config, checkpoint)
    trainer = MatchingTrainer(
        VisualDLMonitor(arguments.logging_dir, config, (METRIC,) if run.has_dev else (), run.log_histograms),
        lengths=datasets["train"].lengths,
        ema_decay=run.ema_decay,
        patience=run.early_stopping_patience,
        model=model,
        args=arguments,
        train_dataset=datasets["train"],
        eval_dataset=datasets.get("dev"),
        data_collator=ItemCollator(tokenizer.pad_token_id),
    )
    training_started = time.perf_counter()
    trainer.train(checkpoint)
    train_seconds = time.perf_counter() - training_started
    if not is_first_process():
        return None

    metrics = {"train_seconds": round(train_seconds, 1), "parameters": parameters, "seed": arguments.seed}
    metrics["chosen_by"] = chosen_by
    for name in [name for name in ("dev", "test") if name in datasets]:
        metrics[name], scores = evaluate_model(
            model, datasets[name], arguments.per_device_eval_batch_size, chooses_threshold=name == "dev"
        )
        print(f"{name}: {figures_line(metrics[name])}")
        if name == "dev":
            model.config.threshold = metrics[name].get("threshold")
            write_json_lines(output_dir / "predictions_dev.jsonl", _scored(examples[name], scores))
    runs.save_model(output_dir, model, tokenizer)
    what_next = "predict:  python tools/predict_matching.py {model} --input FILE"
    runs.finish(output_dir, metrics, started, what_next, trainer.state.log_history, FIGURES)
    return metrics


train = partial(runs.start, resolve_config, _train)
resume = partial(runs.resume, resolve_config, _train)


def _scored(examples, scores):
    """Scores as they are written, without the texts: place, label and score; of triples the closer one's first."""
    for example, row in zip(examples, scores.tolist()):
        if len(row) == 1:
            yield {"where": example.where, "label": example.label, "score": row[0]}
        else:
            closer, farther = row if example.label == 1 else row[::-1]
            yield {"where": example.where, "closer": closer, "farther": farther}


def build_model(config, run, train_examples):
    """The tokenizer and the :class:`MatchingModel`: new ones of the sizes in ``run``, or those of the folder
    ``pretrained`` with a new head."""
    task = task_of(train_examples)
    is_cross_encoder = run.architecture == "cross_encoder"
    labels = [example.label for example in train_examples]
    options = {
        **run.model_options(),
        "task": task,
        "threshold": 0.5 if task == PAIRS and is_cross_encoder else None,
        "grades": [min(labels), max(labels)] if task != TRIPLES and is_cross_encoder else None,
    }
    try:
        if run.pretrained is None:
            texts = dict.fromkeys(text for example in train_examples for text in example.texts)
            tokenizer = CharTokenizer.from_corpus(texts, run.vocab_min_count)
            options.update(run.encoder_options())
            options.update(vocab_size=len(tokenizer), type_vocab_size=2 if run.segment_ids else 0)
            return tokenizer, MatchingModel(MatchingConfig(**options))
        tokenizer = load_tokenizer(run.pretrained)
        options.update(run.encoder_options(config))
        model = MatchingModel.from_pretrained(run.pretrained, **options)
    except ValueError as error:
        raise InputError(f"{'configuration' if run.pretrained is None else run.pretrained}: {error}") from None
    check_vocabulary(run.pretrained, tokenizer, model)
    return tokenizer, model


def evaluate(model_dir, data_file, device=None, batch_size=32, max_length=None):
    """Score a trained model on a labelled file, print the figures and return them.

    Raises:
        InputError: the model or the file is wrong.
    """
    quiet_paddlenlp()
    examples = read_labelled(data_file)
    predictor = MatchingPredictor(model_dir, device, batch_size, max_length, show_progress=True)
    dataset = MatchingDataset(examples, predictor.tokenizer, predictor.model.config, predictor.max_length)
    print(data_report(str(data_file), dataset, predictor.max_length))
    figures, _ = evaluate_model(predictor.model, dataset, batch_size)
    print(f"{data_file}: {figures_line(figures)}")
    return figures
