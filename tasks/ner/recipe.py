"""Training and evaluation of NER; the only place that knows the trainer."""

from __future__ import annotations

import time

import numpy as np
import paddle
import yaml
from paddlenlp.trainer import Trainer, set_seed
from tqdm import tqdm

from paddle_rope.roformer import CharTokenizer
from tasks.common.errors import InputError
from tasks.common.files import atomic_writer, check_output_dir, claim_output_dir, write_json, write_json_lines
from tasks.common.length_grouping import LengthGroupedBatchSampler
from tasks.common.quiet import quiet_paddlenlp
from tasks.ner.arguments import MODEL_KEYS, resolve_config
from tasks.ner.batching import NerDataset, SpanCollator
from tasks.ner.data import entity_types, read_examples
from tasks.ner.error_analysis import error_analysis, worst_examples
from tasks.ner.features import WordFeatures
from tasks.ner.metrics import entity_scores
from tasks.ner.model import NerConfig, NerModel
from tasks.ner.monitoring import LOWEST_LOGIT, NerMonitor
from tasks.ner.prediction import NerPredictor, as_record, predict_entities
from tasks.ner.report import print_data_report, print_errors, print_scores, print_worst_examples


class NerTrainer(Trainer):
    """PaddleNLP's Trainer with batches of like length, and entity scores as its evaluation, which ``monitor`` shows."""

    def __init__(self, monitor, **kwargs):
        super().__init__(**kwargs)
        self.monitor = monitor
        self.add_callback(monitor)

    def _get_train_sampler(self):
        return LengthGroupedBatchSampler(
            [len(text.ids) for text in self.train_dataset.texts],
            self.args.per_device_train_batch_size,
            seed=self.args.seed,
            num_replicas=self.args.dataset_world_size,
            rank=self.args.dataset_rank,
        )

    def evaluate(self, eval_dataset=None, ignore_keys=None, metric_key_prefix="eval"):
        """Score the dev set; every process computes the same."""
        dataset = eval_dataset or self.eval_dataset
        watch = self.monitor.watch(self.model, dataset, self.state.global_step)
        scores, _ = evaluate_model(self.model, dataset, self.args.per_device_eval_batch_size, watch)
        metrics = {f"{metric_key_prefix}_{name}": scores[name] for name in ("precision", "recall", "f1")}
        for kind, row in scores["per_type"].items():
            for name in ("precision", "recall", "f1"):
                metrics[f"{metric_key_prefix}_{name}_by_type/{kind}"] = row[name]
        if self.is_world_process_zero():
            tqdm.write(
                f"epoch {self.state.epoch:4.1f}  dev precision {scores['precision']:.4f}  "
                f"recall {scores['recall']:.4f}  F1 {scores['f1']:.4f}"
            )
        self.log(dict(metrics))
        self.control = self.callback_handler.on_evaluate(self.args, self.state, self.control, metrics)
        return metrics

    def _save_checkpoint(self, model, metrics=None):
        super()._save_checkpoint(model, metrics=metrics)
        if self.args.local_rank == -1:  # PaddleNLP heeds save_total_limit only where local_rank is 0
            self._rotate_checkpoints(use_mtime=True, output_dir=self.args.output_dir)


def evaluate_model(model, dataset, batch_size, watch=None):
    """Scores and errors of ``model`` on a :class:`NerDataset`, and its predictions (start, end, type, score) for each
    text. ``watch`` is called with all spans that score above ``LOWEST_LOGIT``, in the same form."""
    types, thresholds = model.config.types, model.config.thresholds
    bound = thresholds if watch is None else LOWEST_LOGIT
    found = predict_entities(
        model, dataset.texts, types, model.config.pad_token_id, batch_size, thresholds=bound
    )
    if watch is not None:
        watch(found)
        least = dict(zip(types, np.broadcast_to(thresholds, [len(types)]).tolist()))
        found = [[entity for entity in entities if entity[3] > least[entity[2]]] for entities in found]
    return scores_and_errors(dataset.examples, found, types), found


def scores_and_errors(examples, found, types):
    """What is said of predictions: :func:`entity_scores` and :func:`error_analysis` in one dict."""
    gold = [{(entity.start, entity.end, entity.type) for entity in example.entities} for example in examples]
    predicted = [{(start, end, kind) for start, end, kind, _ in entities} for entities in found]
    return {**entity_scores(gold, predicted, types), **error_analysis(gold, predicted, types)}


def train(config):
    """Train one run and write its folder.

    Args:
        config: dict of configuration keys, as from :func:`tasks.common.run_config.read_run_config`.

    Returns:
        dict as written to ``metrics.json``.

    Raises:
        InputError: the configuration or a data file is wrong; nothing has been written then.
    """
    started = time.perf_counter()
    quiet_paddlenlp()
    config, run, arguments = resolve_config(config)
    output_dir = config["output_dir"]
    if is_first_process():
        check_output_dir(output_dir)
    set_seed(arguments.seed)

    examples = read_splits(run)
    types = entity_types(*examples.values())
    tokenizer = CharTokenizer.from_corpus((e.text for e in examples["train"]), run.vocab_min_count)
    features = None
    if run.features:
        features = WordFeatures.from_examples(examples["train"], run.features.split(","))
    datasets = {
        name: NerDataset(split, tokenizer, types, run.max_length, run.max_span_length, features, name == "train")
        for name, split in examples.items()
    }
    model = build_model(run, types, tokenizer, features)
    parameters = sum(int(p.size) for p in model.parameters())

    if is_first_process():
        output_dir = claim_output_dir(output_dir)
        print_data_report(datasets)
        print_too_long(datasets, run.max_span_length)
        print(f"model: {run.attention} attention, {parameters:,} parameters, {len(types)} types: {', '.join(types)}")
        with atomic_writer(output_dir / "config.yaml") as file:
            yaml.safe_dump(config, file, allow_unicode=True, sort_keys=False)
    trainer = NerTrainer(
        NerMonitor(arguments.logging_dir, config, ["precision", "recall", "f1"]),
        model=model,
        args=arguments,
        train_dataset=datasets["train"],
        eval_dataset=datasets["dev"],
        data_collator=SpanCollator(tokenizer.pad_token_id),
    )
    training_started = time.perf_counter()
    trainer.train()
    train_seconds = time.perf_counter() - training_started
    if not is_first_process():
        return None

    metrics = {"train_seconds": round(train_seconds, 1), "parameters": parameters, "seed": arguments.seed}
    predictions = {}
    for name in [name for name in ("dev", "test") if name in datasets]:
        metrics[name], predictions[name] = evaluate_model(
            model, datasets[name], arguments.per_device_eval_batch_size
        )
        print_scores(name, metrics[name])
    model.save_pretrained(str(output_dir / "model"), safe_serialization=True)
    tokenizer.save_pretrained(output_dir / "model")
    if features is not None:
        features.save_pretrained(output_dir / "model")
    write_json_lines(
        output_dir / "predictions_dev.jsonl",
        (as_record(example.text, found) for example, found in zip(examples["dev"], predictions["dev"])),
    )
    write_json(output_dir / "metrics.json", metrics)
    print(f"{output_dir}: trained in {train_seconds:.0f} s, {time.perf_counter() - started:.0f} s in all")
    print(f"predict:  python tools/predict_ner.py {output_dir / 'model'} --input FILE")
    print(f"watch:    visualdl --logdir {output_dir / 'vdl'}")
    return metrics


def build_model(run, types, tokenizer, features=None):
    """A new :class:`NerModel` of the sizes in ``run``."""
    sizes = {key: getattr(run, key) for key in MODEL_KEYS}
    sizes.update(features=features and features.sizes, unk_token_id=tokenizer.unk_token_id)
    try:
        return NerModel(NerConfig(types=types, vocab_size=len(tokenizer), **sizes))
    except ValueError as error:
        raise InputError(f"configuration: {error}") from None


def read_splits(run):
    """dict from ``train``, ``dev`` and, where given, ``test`` to their examples; tells of types that train lacks."""
    files = {"train": run.train_file, "dev": run.dev_file, "test": run.test_file}
    splits = {name: read_examples(path) for name, path in files.items() if path}
    for name in ("train", "dev"):
        if not entity_types(splits[name]):
            raise InputError(f"{files[name]}: no entity is labelled in it; give data with entities")
    for name in splits:
        unseen = sorted(set(entity_types(splits[name])) - set(entity_types(splits["train"])))
        if unseen and is_first_process():
            print(f"note: {files[name]} has types that {run.train_file} does not have: {', '.join(unseen)}")
    return splits


def evaluate(model_dir, data_file, device=None, batch_size=32, max_length=None, num_examples=5):
    """Score a trained model on a labelled file, print scores, errors and the worst examples, and return all of it.

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
    print_too_long({str(data_file): dataset}, max_span_length)
    found = predictor.find(texts)
    scores = scores_and_errors(examples, found, predictor.types)
    scores["worst_examples"] = worst_examples(examples, found, num_examples)
    print_scores(str(data_file), scores)
    print_errors(scores)
    print_worst_examples(scores["worst_examples"])
    return scores


def print_too_long(datasets, max_span_length):
    """Print the gold entities of each data set that are longer than a banded head scores."""
    for name, dataset in datasets.items():
        if dataset.too_long:
            examples = "; ".join(
                f"{example.where} {entity.type} {example.text[entity.start : entity.end]!r}"
                for example, entity in dataset.too_long[:3]
            )
            print(
                f"{name}: {len(dataset.too_long)} entities have more than max_span_length {max_span_length} tokens and "
                f"cannot be found by the model (they count as missed): {examples}"
            )


def is_first_process():
    return paddle.distributed.get_rank() == 0
