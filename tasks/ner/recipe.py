"""Training and evaluation of NER."""

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
from tasks.common.training.trainer import RecipeTrainer
from tasks.ner.arguments import resolve_config
from tasks.ner.batching import NerDataset, SpanCollator
from tasks.ner.data.reading import entity_types, read_examples
from tasks.ner.data.splits import has_overlap, read_more_texts, read_splits
from tasks.ner.examples import as_record, without_overlaps
from tasks.ner.features import WordFeatures
from tasks.ner.masked_lm import pretrain
from tasks.ner.metrics import entity_scores, score_predictions
from tasks.ner.model import NerConfig, NerModel
from tasks.ner.prediction.predictor import NerPredictor, predict_entities
from tasks.ner.prediction.thresholds import LOWEST_THRESHOLD, above, thresholds_for
from tasks.ner.reports.error_analysis import error_analysis, worst_examples
from tasks.ner.reports.monitoring import LOWEST_LOGIT, NerMonitor
from tasks.ner.reports.printed import print_data_report, print_errors, print_scores, print_worst_examples

FIGURES = ("precision", "recall", "f1")
TYPES_NAMED = 40  # in what is printed


class NerTrainer(RecipeTrainer):
    """Entity scores of the dev set as its evaluation, which ``monitor`` shows."""

    def score_dev(self):
        """dict of precision, recall and f1, overall and by type."""
        watch = self.monitor.watch(self.model, self.eval_dataset, self.state.global_step)
        scores, _ = evaluate_model(self.model, self.eval_dataset, self.args.per_device_eval_batch_size, watch)
        metrics = {name: scores[name] for name in FIGURES}
        for kind, row in scores["per_type"].items():
            metrics.update({f"{name}_by_type/{kind}": row[name] for name in FIGURES})
        if self.is_world_process_zero():
            tqdm.write(
                f"epoch {self.state.epoch:4.1f}  dev precision {scores['precision']:.4f}  "
                f"recall {scores['recall']:.4f}  F1 {scores['f1']:.4f}"
            )
        return metrics


def evaluate_model(model, dataset, batch_size, watch=None):
    """Scores and errors of ``model`` on a :class:`NerDataset`, and its predictions (start, end, type, score) for each
    text. ``watch`` is called with all spans that score above ``LOWEST_LOGIT``, in the same form."""
    config = model.config
    if watch is None:
        found = _find(model, dataset, batch_size, config.thresholds)
        if not config.allow_overlap:
            found = list(map(without_overlaps, found))
    else:
        candidates = _find(model, dataset, batch_size, LOWEST_LOGIT)
        watch(candidates)
        found = above(candidates, config.thresholds, config.types, config.allow_overlap)
    return scores_and_errors(dataset.examples, found, config.types), found


def _find(model, dataset, batch_size, thresholds):
    """All that scores above the thresholds, overlapping or not."""
    config = model.config
    return predict_entities(model, dataset.texts, config.types, config.pad_token_id, batch_size, thresholds=thresholds)


def scores_and_errors(examples, found, types):
    """What is said of predictions: :func:`entity_scores` and :func:`error_analysis` in one dict."""
    gold = [example.entities for example in examples]
    return {**entity_scores(gold, found, types), **error_analysis(gold, found, types)}


def _train(checkpoint, config, run, arguments):
    started = time.perf_counter()
    examples = read_splits(run)
    types = entity_types(*examples.values())
    more = read_more_texts(run)
    features = None
    if run.features is not None:
        features = WordFeatures.from_examples(examples["train"], run.features.split(","), more=more)
    tokenizer, model = build_model(config, run, types, examples["train"], features, more)
    datasets = {
        name: NerDataset(split, tokenizer, types, run.max_length, run.max_span_length, features, name == "train")
        for name, split in examples.items()
    }
    parameters = sum(int(p.size) for p in model.parameters())

    output_dir = Path(config["output_dir"])
    if is_first_process():
        print_data_report(datasets)
        named = ", ".join(types[:TYPES_NAMED]) + (", ..." if len(types) > TYPES_NAMED else "")
        print(f"model: {model.config.attention} attention, {parameters:,} parameters, {len(types)} types: {named}")
        print(f"entities {'may' if model.config.allow_overlap else 'do not'} overlap")
        if not run.has_dev:
            print("no dev data: the last epoch is kept")
        runs.claim(config, checkpoint)
    trainer = NerTrainer(
        NerMonitor(arguments.logging_dir, config, FIGURES if run.has_dev else (), run.log_histograms),
        lengths=[len(text.ids) for text in datasets["train"].texts],
        ema_decay=run.ema_decay,
        patience=run.early_stopping_patience,
        model=model,
        args=arguments,
        train_dataset=datasets["train"],
        eval_dataset=datasets.get("dev"),
        data_collator=SpanCollator(tokenizer.pad_token_id),
    )
    training_started = time.perf_counter()
    if checkpoint is None and run.masked_lm_epochs:
        texts = datasets["train"].texts + NerDataset(more, tokenizer, types, run.max_length, features=features).texts
        pretrain(model, texts, tokenizer, arguments, run.masked_lm_epochs)
    trainer.train(checkpoint)
    train_seconds = time.perf_counter() - training_started
    if not is_first_process():
        return None

    if run.tune_thresholds:
        candidates = _find(model, datasets["dev"], arguments.per_device_eval_batch_size, LOWEST_THRESHOLD)
        model.config.thresholds = thresholds_for(examples["dev"], candidates, types, model.config.allow_overlap)
    metrics = {"train_seconds": round(train_seconds, 1), "parameters": parameters, "seed": arguments.seed}
    predictions = {}
    for name in [name for name in ("dev", "test") if name in datasets]:
        metrics[name], predictions[name] = evaluate_model(model, datasets[name], arguments.per_device_eval_batch_size)
        print_scores(name, metrics[name])
    if run.has_dev and not metrics["dev"]["predicted"]:
        print(
            "note: nothing is found in dev. If training was not just too short, it did not take hold: try a lower "
            f"learning_rate than {arguments.learning_rate:g}, or a larger warmup_ratio than {arguments.warmup_ratio:g}"
        )
    runs.save_model(output_dir, model, tokenizer, *([] if features is None else [features]))
    if "dev" in predictions:
        write_json_lines(
            output_dir / "predictions_dev.jsonl",
            (as_record(example.text, found) for example, found in zip(examples["dev"], predictions["dev"])),
        )
    what_next = "predict:  python tools/predict_ner.py {model} --input FILE"
    runs.finish(output_dir, metrics, started, what_next, trainer.state.log_history, FIGURES)
    return metrics


train = partial(runs.start, resolve_config, _train)
resume = partial(runs.resume, resolve_config, _train)


def score_together(config, run_dirs):
    """Scores of the models of several finished runs as one (:class:`tasks.ner.prediction.ensemble.NerEnsemble`).

    Args:
        config: what the runs have in common.
        run_dirs: their folders.

    Returns:
        dict from ``dev`` and ``test``, as far as there are such, to precision, recall and f1, overall and by type.
    """
    _, run, arguments = resolve_config({**config, "output_dir": run_dirs[0]})
    folders = [Path(run_dir) / runs.MODEL_FOLDER for run_dir in run_dirs]
    predictor = NerPredictor(folders, config.get("device"), arguments.per_device_eval_batch_size)
    splits = {name: examples for name, examples in read_splits(run).items() if name != "train"}
    found = {name: predictor.find([example.text for example in examples]) for name, examples in splits.items()}
    return {name: score_predictions(splits[name], found[name], predictor.types) for name in splits}


def build_model(config, run, types, train_examples, features=None, more=()):
    """The tokenizer and the :class:`NerModel`: new ones of the sizes in ``run``, or those of the folder ``pretrained``
    with a new head; ``more`` are examples without labels, for the vocabulary."""
    options = run.head_options()
    options["allow_overlap"] = run.allow_overlap if run.allow_overlap is not None else has_overlap(train_examples)
    options["features"] = features and features.sizes
    try:
        if run.pretrained is None:
            texts = (example.text for example in (*train_examples, *more))
            tokenizer = CharTokenizer.from_corpus(texts, run.vocab_min_count)
            options.update(run.encoder_options())
            options.update(vocab_size=len(tokenizer), unk_token_id=tokenizer.unk_token_id)
            return tokenizer, NerModel(NerConfig(types=types, **options))
        tokenizer = load_tokenizer(run.pretrained)
        options.update(run.encoder_options(config))
        model = NerModel.from_pretrained(run.pretrained, types=types, unk_token_id=tokenizer.unk_token_id, **options)
    except ValueError as error:
        raise InputError(f"{'configuration' if run.pretrained is None else run.pretrained}: {error}") from None
    check_vocabulary(run.pretrained, tokenizer, model)
    return tokenizer, model


def evaluate(model_dir, data_file, device=None, batch_size=32, max_length=None, num_examples=5):
    """Score a trained model on a labelled file, print scores, errors and the worst examples, and return all of it.

    ``model_dir`` may be a list, see :class:`tasks.ner.prediction.predictor.NerPredictor`.

    Raises:
        InputError: the model or the file is wrong, or the file has a type that the model does not know.
    """
    quiet_paddlenlp()
    examples = read_examples(data_file)
    predictor = NerPredictor(model_dir, device, batch_size, max_length, show_progress=True)
    texts = [example.text for example in examples]
    max_span_length = predictor.model.config.max_span_length
    dataset = NerDataset(examples, predictor.tokenizer, predictor.types, max(map(len, texts)), max_span_length)
    print_data_report({str(data_file): dataset})
    found = predictor.find(texts)
    scores = scores_and_errors(examples, found, predictor.types)
    scores["worst_examples"] = worst_examples(examples, found, num_examples)
    print_scores(str(data_file), scores)
    print_errors(scores)
    print_worst_examples(scores["worst_examples"])
    return scores
