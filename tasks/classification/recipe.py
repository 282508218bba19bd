"""Training and evaluation of document classification."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

from tqdm import tqdm

from paddle_rope.roformer import CharTokenizer, load_tokenizer
from tasks.classification.arguments import resolve_config
from tasks.classification.batching import ClassificationDataset, TextCollator
from tasks.classification.data import class_names, read_examples
from tasks.classification.metrics import classification_scores
from tasks.classification.model import ClassificationConfig, ClassificationModel
from tasks.classification.prediction import Classifier, as_record, predict_probabilities
from tasks.classification.report import print_data_report, print_scores
from tasks.classification.splits import read_splits
from tasks.common.errors import InputError
from tasks.common.files import write_json_lines
from tasks.common.model_folder import check_vocabulary
from tasks.common.runs import life as runs
from tasks.common.tool.device import is_first_process
from tasks.common.tool.quiet import quiet_paddlenlp
from tasks.common.training.monitor import VisualDLMonitor
from tasks.common.training.trainer import RecipeTrainer

FIGURES = ("accuracy", "macro_f1")


class ClassificationTrainer(RecipeTrainer):
    """Accuracy and macro F1 of the dev set as its evaluation."""

    def score_dev(self):
        scores, _ = evaluate_model(self.model, self.eval_dataset, self.args.per_device_eval_batch_size)
        if self.is_world_process_zero():
            tqdm.write(
                f"epoch {self.state.epoch:4.1f}  dev accuracy {scores['accuracy']:.4f}  "
                f"macro F1 {scores['macro_f1']:.4f}"
            )
        return {name: scores[name] for name in FIGURES}


def evaluate_model(model, dataset, batch_size):
    """Scores of ``model`` on a :class:`ClassificationDataset`, and the probabilities ``[texts, classes]``."""
    classes = model.config.classes
    probabilities = predict_probabilities(model, dataset.texts, batch_size)
    return score(dataset.examples, probabilities, classes), probabilities


def score(examples, probabilities, classes):
    """:func:`classification_scores` of labelled examples."""
    predicted = [classes[best] for best in probabilities.argmax(axis=1)]
    return classification_scores([example.label for example in examples], predicted, classes)


def _train(checkpoint, config, run, arguments):
    started = time.perf_counter()
    examples = read_splits(run)
    classes = class_names(example for split in examples.values() for example in split)
    tokenizer, model = build_model(config, run, classes, examples["train"])
    datasets = {
        name: ClassificationDataset(split, tokenizer, classes, run.max_length) for name, split in examples.items()
    }
    parameters = sum(int(p.size) for p in model.parameters())

    output_dir = Path(config["output_dir"])
    if is_first_process():
        print_data_report(datasets)
        print(f"model: {model.config.attention} attention, {parameters:,} parameters, {len(classes)} classes")
        if not run.has_dev:
            print("no dev data: the last epoch is kept")
        runs.claim(config, checkpoint)
    trainer = ClassificationTrainer(
        VisualDLMonitor(arguments.logging_dir, config, FIGURES if run.has_dev else (), run.log_histograms),
        lengths=[len(text.ids) for text in datasets["train"].texts],
        ema_decay=run.ema_decay,
        patience=run.early_stopping_patience,
        model=model,
        args=arguments,
        train_dataset=datasets["train"],
        eval_dataset=datasets.get("dev"),
        data_collator=TextCollator(tokenizer.pad_token_id),
    )
    training_started = time.perf_counter()
    trainer.train(checkpoint)
    train_seconds = time.perf_counter() - training_started
    if not is_first_process():
        return None

    metrics = {"train_seconds": round(train_seconds, 1), "parameters": parameters, "seed": arguments.seed}
    metrics["texts_cut"] = {name: dataset.cut for name, dataset in datasets.items()}
    predictions = {}
    for name in [name for name in ("dev", "test") if name in datasets]:
        metrics[name], predictions[name] = evaluate_model(model, datasets[name], arguments.per_device_eval_batch_size)
        print_scores(name, metrics[name])
    runs.save_model(output_dir, model, tokenizer)
    if "dev" in predictions:
        write_json_lines(
            output_dir / "predictions_dev.jsonl",
            (
                {**as_record(example.text, classes, found), "gold": example.label}
                for example, found in zip(examples["dev"], predictions["dev"])
            ),
        )
    what_next = "predict:  python tools/predict_classification.py {model} --input FILE"
    runs.finish(output_dir, metrics, started, what_next, trainer.state.log_history, FIGURES)
    return metrics


train = partial(runs.start, resolve_config, _train)
resume = partial(runs.resume, resolve_config, _train)


def build_model(config, run, classes, train_examples):
    """The tokenizer and the :class:`ClassificationModel`: new ones of the sizes in ``run``, or those of the folder
    ``pretrained``, with a new classifier unless the folder has one of as many classes."""
    options = {"classes": classes, "max_length": run.max_length, "pooling": run.pooling}
    try:
        if run.pretrained is None:
            tokenizer = CharTokenizer.from_corpus((example.text for example in train_examples), run.vocab_min_count)
            options.update(run.encoder_options(), vocab_size=len(tokenizer))
            return tokenizer, ClassificationModel(ClassificationConfig(**options))
        tokenizer = load_tokenizer(run.pretrained)
        model = ClassificationModel.from_pretrained(run.pretrained, **options, **run.encoder_options(config))
    except ValueError as error:
        raise InputError(f"{'configuration' if run.pretrained is None else run.pretrained}: {error}") from None
    check_vocabulary(run.pretrained, tokenizer, model)
    return tokenizer, model


def evaluate(model_dir, data_file, device=None, batch_size=32, max_length=None):
    """Score a trained model on a labelled file, print the scores and return them.

    Raises:
        InputError: the model or the file is wrong, or the file has a class that the model does not know.
    """
    quiet_paddlenlp()
    examples = read_examples(data_file)
    classifier = Classifier(model_dir, device, batch_size, max_length, show_progress=True)
    dataset = ClassificationDataset(examples, classifier.tokenizer, classifier.classes, classifier.max_length)
    print_data_report({str(data_file): dataset})
    probabilities = predict_probabilities(classifier.model, dataset.texts, batch_size, show_progress=True)
    scores = score(examples, probabilities, classifier.classes)
    print_scores(str(data_file), scores)
    return scores
