"""The recipe of named entity recognition."""

import functools
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from paddle_rope.roformer import CharTokenizer
from paddle_rope.roformer.tokenization.tokenizer import Tokenizer
from paddle_rope.tasks.common.errors import InputError, visible
from paddle_rope.tasks.common.process import is_first_process, process_count
from paddle_rope.tasks.common.recipe import Recipe
from paddle_rope.tasks.common.training.callbacks import dev_scores_so_far
from paddle_rope.tasks.common.training.data import MemoryData
from paddle_rope.tasks.common.training.run import MODEL_FOLDER, Run
from paddle_rope.tasks.common.training.settings import Settings
from paddle_rope.tasks.ner import calibration
from paddle_rope.tasks.ner.arguments import NerArguments
from paddle_rope.tasks.ner.batching import NerDataset, pad_spans, refuse_longer, with_unseen
from paddle_rope.tasks.ner.data.splits import mark_types, read_splits, read_teacher, read_unlabeled
from paddle_rope.tasks.ner.examples import Example, Found, as_record, entity_types, first_overlap
from paddle_rope.tasks.ner.features import WordFeatures
from paddle_rope.tasks.ner.fitting import FEWEST_STEPS, fit_keys
from paddle_rope.tasks.ner.lengths import TrainingLengths, training_lengths, window_settings
from paddle_rope.tasks.ner.masked_lm import pretrain
from paddle_rope.tasks.ner.metrics import entity_scores, scores_and_errors
from paddle_rope.tasks.ner.model import NerModel
from paddle_rope.tasks.ner.monitoring import NerMonitor
from paddle_rope.tasks.ner.prediction.finding import find_in_windows
from paddle_rope.tasks.ner.prediction.predictor import NerPredictor
from paddle_rope.tasks.ner.reports.printed import print_data_report, print_first_texts, print_scores
from paddle_rope.tasks.ner.reports.reliability import reliability

TYPES_NAMED = 40  # most type names in a printed line
MOST_UNKNOWN = 0.01  # of the characters; about 0.0004 of CLUENER are unknown to the small encoder


@dataclass
class NerRun(Run):
    """A run of the NER recipe."""

    unlabeled: list[Example] = field(default_factory=list)
    distilled: list[Example] = field(default_factory=list)
    features: WordFeatures | None = None
    kept_types: list[str] = field(default_factory=list)  # of the model ``pretrained``, found in the examples or not
    evaluation: Any = None  # the Evaluation of the trained model on dev


class NerRecipe(Recipe):
    """Entities of texts: precision, recall and micro F1 over exact (start, end, type)."""

    arguments = NerArguments
    model_class = NerModel
    monitor_class = NerMonitor
    scores = ("precision", "recall", "f1")
    run_class = NerRun
    predictor = NerPredictor
    report = staticmethod(print_scores)

    def read(self, settings: Settings, memory: MemoryData) -> dict[str, Any]:
        keys, examples = settings.keys, read_splits(settings.keys, settings.training.seed, memory.examples)
        unlabeled, distilled = read_unlabeled(keys), read_teacher(keys, examples)
        if not keys.cut_long_texts:
            refuse_longer(examples["train"], keys.max_characters)
            refuse_longer(distilled, keys.max_characters)
        found = {"examples": examples, "unlabeled": unlabeled, "distilled": distilled, "chosen": {}}
        if keys.keep_types:
            found |= self._keep_types(settings, examples)
        if keys.fit_to_data:
            shared = process_count(), settings.training.gradient_accumulation_steps
            of_dev = examples.get("dev", ()), keys.max_characters
            given = {**settings.given, **found["chosen"]}
            fit = fit_keys(given, examples["train"], unlabeled, *shared, *of_dev, distilled)
            found["chosen"] |= {**fit.keys, "fit_to_data": False}  # the saved configuration has explicit keys
            if is_first_process():
                print("\n".join(fit.lines))
        kinds = found["chosen"].get("features", keys.features)
        if kinds and not keys.keep_types:
            found["features"] = WordFeatures.from_examples(examples["train"], kinds, unlabeled=unlabeled + distilled)
        return {**found, "saved": [found["features"]] if found.get("features") else []}

    def _keep_types(self, settings: Settings, examples: dict[str, list[Example]]) -> dict[str, Any]:
        """Mark the types of the model ``pretrained`` in the examples; returns them and its word features."""
        keys, shows = settings.keys, is_first_process() and sys.stderr.isatty()
        folder, size = keys.pretrained, settings.training.per_device_eval_batch_size
        predictor = NerPredictor(folder, settings.config["device"], size, show_progress=shows)
        features = predictor.features
        kinds = list(features.kinds) if features else []
        if not set(keys.features or ()) <= set(kinds):
            raise InputError(f"{folder}: its word features are {', '.join(kinds) or 'none'}; give the same features")
        marked = mark_types(examples, predictor)
        if is_first_process():
            counts = ", ".join(f"{visible(kind)} {count:,}" for kind, count in marked.items())
            print(f"keep_types: marked by {folder}: {counts or 'nothing, as all of its types are labeled'}")
        return {"features": features, "kept_types": predictor.types, "chosen": {"features": kinds or None}}

    def new_tokenizer(self, run: NerRun) -> Tokenizer:
        texts = (example.text for example in (*run.examples["train"], *run.distilled, *run.unlabeled))
        return CharTokenizer.from_corpus(texts, run.keys.vocab_min_count)

    def model_options(self, run: NerRun) -> dict[str, Any]:
        overlap = run.keys.allow_overlap
        if overlap is None:
            overlap = any(first_overlap(example.entities) for example in run.examples["train"])
        return {
            "max_characters": run.keys.max_characters,
            "types": sorted({*run.kept_types, *entity_types(run.examples["train"])}),
            "allow_overlap": overlap,
            "features": run.features and run.features.sizes,
            "unk_token_id": run.tokenizer.unk_token_id,
            "thresholds": 0.0,  # not the thresholds of a trained model in ``pretrained``
            "temperatures": 1.0,
            **dict.fromkeys(TrainingLengths._fields),  # known once the training data are tokenized
        }

    def dataset(self, run: Run, split: str) -> NerDataset:
        examples = run.examples[split]
        if split != "train":
            return self._dataset(run, examples, types=with_unseen(run.model.config.types, examples))
        own = {} if run.keys.keep_types else {example.text: example for example in examples}
        train, distilled = (
            self._dataset(run, some, own=own, max_characters=run.keys.max_characters)
            for some in (examples, run.distilled)
        )
        train.texts += distilled.texts
        for name, value in training_lengths(train.texts)._asdict().items():
            setattr(run.model.config, name, value)
        return train

    def longest(self, run: NerRun) -> int:
        """As in any recipe; other splits are read in windows no longer than the longest text of train."""
        of_unlabeled = (len(example.text) + 2 for example in run.unlabeled)  # with [CLS] and [SEP]
        return max(*run.datasets["train"].lengths, *of_unlabeled)

    def collator(self, run: Run) -> Any:
        return functools.partial(pad_spans, pad_token_id=run.tokenizer.pad_token_id)

    def describe(self, run: Run) -> None:
        for split, examples in run.examples.items():
            print_first_texts(split, examples)
        print_data_report(run.datasets)
        config = run.model.config
        named = ", ".join(config.types[:TYPES_NAMED]) + (", ..." if len(config.types) > TYPES_NAMED else "")
        overlap = "may overlap" if config.allow_overlap else "do not overlap"
        unseen = sorted({kind for dataset in run.datasets.values() for kind in dataset.types} - {*config.types})
        missed = f"; not in train, so never found: {', '.join(unseen)}" if unseen else ""
        print(f"{len(config.types)} types: {visible(named)}; entities {overlap}{visible(missed)}")
        settings = window_settings(config)
        print(
            f"lengths: training texts of up to {config.longest_text} tokens, entities of up to "
            f"{config.longest_entity}; texts of more than {settings.max_tokens} are {settings.windows}; entities of up "
            f"to {settings.max_entity_tokens} are found"
        )
        texts, unknown = run.datasets["train"].texts, run.tokenizer.unk_token_id
        share = sum(text.ids.count(unknown) for text in texts) / max(1, sum(text.size for text in texts))
        if run.keys.pretrained is not None and share > MOST_UNKNOWN:
            print(
                f"note: {run.keys.pretrained} does not know {share:.1%} of the characters in train; compare with "
                "--pretrained=, which starts from nothing and learns them"
            )

    def before_training(self, run: Run) -> None:
        if run.keys.masked_lm_epochs:
            pretrain(run, run.datasets["train"].texts + self._dataset(run, run.unlabeled).texts)

    def _evaluate_kept(self, run: NerRun) -> float | None:
        """Fill ``run.evaluation``, after thresholds, if requested, and temperatures have been chosen; returns the F1
        before if that set the thresholds."""
        config, dataset, keys = run.model.config, run.datasets["dev"], run.keys
        run.evaluation = evaluate_model(run.model, dataset, run.batch_size, with_candidates=True)
        f1 = run.evaluation.scores["f1"] if keys.threshold_for_f1 else None
        if f1 is not None:
            config.thresholds = [calibration.threshold_for_f1(f1)] * len(config.types)
        candidates = run.evaluation.candidates
        if candidates is None:
            print(f"note: thresholds are not tuned and all temperatures are 1, as {calibration.NOT_APART}")
            run.evaluation = evaluate_model(run.model, dataset, run.batch_size)
            return f1
        given = dataset.examples, candidates, config.types, config.allow_overlap
        if keys.tune_thresholds:
            config.thresholds = calibration.thresholds_for(*given)
        config.temperatures = calibration.temperatures_for(*given)
        run.evaluation = scored(config, dataset, candidates, candidates)
        return f1

    def score(self, run: NerRun, split: str) -> tuple[dict[str, Any], Any]:
        evaluation = (
            run.evaluation if split == "dev" else evaluate_model(run.model, run.datasets[split], run.batch_size)
        )
        scores, found, _ = evaluation
        config = run.model.config
        scores["reliability"] = reliability(run.examples[split], found, config.types, config.temperatures)
        return scores, found

    def dev_scores(self, run: Run) -> dict[str, float]:
        dataset, monitor, state = run.datasets["dev"], run.trainer.monitor, run.trainer.state
        evaluation = evaluate_model(run.model, dataset, run.batch_size)
        if evaluation.scores["f1"] > max(dev_scores_so_far(state, run.training), default=-1):
            with monitor.showing() as has_time:
                if has_time:
                    shown = evaluate_model(run.model, dataset, run.batch_size, with_candidates=True)
                    monitor.show(run.model, dataset, shown, state.global_step)
        by_type = {f"_by_type/{kind}": row for kind, row in evaluation.scores["per_type"].items()}
        rows = {"": evaluation.scores, **by_type}
        return {f"{name}{kind}": row[name] for kind, row in rows.items() for name in self.scores}

    def score_and_save(self, run: Run) -> dict[str, Any]:
        f1 = self._evaluate_kept(run) if "dev" in run.datasets else None
        metrics = super().score_and_save(run)
        if "dev" in metrics:
            monitor = run.trainer.monitor
            with monitor.opened():
                monitor.show(run.model, run.datasets["dev"], run.evaluation, run.trainer.kept_step, group="dev")
        if f1 is not None:
            threshold = run.model.config.thresholds[0]
            print(
                f"threshold_for_f1: dev F1 is {metrics['dev']['f1']:.4f} with the threshold {threshold:.2f}, and "
                f"{f1:.4f} with the threshold 0 of the epochs"
            )
        if "dev" in metrics and not metrics["dev"]["predicted"]:
            steps, training = run.trainer.state.max_steps, run.training
            few = f"give {FEWEST_STEPS} steps or more (--num_train_epochs)"
            other = f"try another learning_rate than {training.learning_rate:g}, or a larger warmup_ratio"
            print(f"note: nothing is found in dev after {steps} steps; {few if steps < FEWEST_STEPS else other}")
        return metrics

    def records(self, run: Run, split: str, predictions: Any) -> Iterator[dict[str, Any]]:
        return (as_record(example.text, found) for example, found in zip(run.examples[split], predictions))

    def score_ensemble(self, config: dict[str, Any], run_dirs: list[str]) -> dict[str, dict[str, float]] | None:
        """Scores of a :class:`paddle_rope.tasks.ner.model.NerEnsemble` of the runs; None with ``train_texts``, because
        models trained on other texts have other vocabularies."""
        settings = self.resolve({**config, "output_dir": run_dirs[0]})
        if settings.keys.train_texts is not None:
            return None
        folders = [Path(run_dir) / MODEL_FOLDER for run_dir in run_dirs]
        predictor = NerPredictor(folders, config.get("device"), settings.training.per_device_eval_batch_size)
        splits = read_splits(settings.keys, settings.training.seed)
        if settings.keys.keep_types:  # dev has the types that the runs were scored with
            mark_types(splits, NerPredictor(settings.keys.pretrained, config.get("device"), predictor.batch_size))
        del splits["train"]
        found = {name: predictor.find([example.text for example in examples]) for name, examples in splits.items()}
        return {name: entity_scores(splits[name], found[name], predictor.types) for name in splits}

    def _dataset(self, run: Run, examples: list, **options: Any) -> NerDataset:
        options = {"max_span_length": run.keys.max_span_length, "features": run.features, **options}
        return NerDataset(examples, run.tokenizer, **{"types": run.model.config.types, **options})


# ---- evaluation on labeled texts, also during training


class Evaluation(NamedTuple):
    """The entities that a model finds in labeled texts, and their scores."""

    scores: dict[str, Any]  # from scores_and_errors
    found: Found  # in each text
    candidates: Found | None  # from calibration.find_candidates, if requested


def evaluate_model(model: Any, dataset: NerDataset, batch_size: int, with_candidates: bool = False) -> Evaluation:
    """Evaluate a :class:`paddle_rope.tasks.ner.model.NerModel`, also during training."""
    config, candidates = model.config, None
    if with_candidates:
        find = functools.partial(find_in_windows, model, batch_size=batch_size, thresholds=calibration.LOWEST_THRESHOLD)
        lengths = [len(example.text) for example in dataset.examples]
        candidates = calibration.find_candidates(find, dataset.texts, lengths)
    found = find_in_windows(model, dataset.texts, batch_size) if candidates is None else candidates
    return scored(config, dataset, found, candidates)


def scored(config: Any, dataset: NerDataset, found: Found, candidates: Found | None) -> Evaluation:
    """The :class:`Evaluation` of what is ``found`` above the thresholds of a model's ``config``."""
    found = calibration.above_thresholds(found, config.thresholds, config.types, config.allow_overlap)
    return Evaluation(scores_and_errors(dataset.examples, found, dataset.types), found, candidates)
