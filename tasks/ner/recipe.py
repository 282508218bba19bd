"""The recipe of named entity recognition."""

import functools
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from paddle_rope.roformer import CharTokenizer
from paddle_rope.roformer.checkpoints.reading import read_checkpoint
from paddle_rope.roformer.tokenization.tokenizer import Tokenizer
from paddle_rope.tasks.common.errors import damage_reported, visible
from paddle_rope.tasks.common.model_folder import COPY
from paddle_rope.tasks.common.process import is_first_process, process_count
from paddle_rope.tasks.common.training.callbacks import dev_scores_so_far
from paddle_rope.tasks.common.training.data import MemoryData
from paddle_rope.tasks.common.training.recipe import Recipe
from paddle_rope.tasks.common.training.run import MODEL_FOLDER, Run, RunData
from paddle_rope.tasks.common.training.settings import Settings, resolve
from paddle_rope.tasks.common.word_vectors import WordVectors
from paddle_rope.tasks.ner import calibration, monitoring
from paddle_rope.tasks.ner.arguments import NerArguments
from paddle_rope.tasks.ner.batching import NerDataset, refuse_longer, with_unseen
from paddle_rope.tasks.ner.data.splits import mark_types, read_splits, read_teacher, read_unlabeled
from paddle_rope.tasks.ner.examples import Example, Found, as_record, entity_types, first_overlap
from paddle_rope.tasks.ner.features import FILE_NAME as FEATURES_FILE
from paddle_rope.tasks.ner.features import WordFeatures
from paddle_rope.tasks.ner.fitting import FEWEST_STEPS, fit_keys
from paddle_rope.tasks.ner.lengths import TrainingLengths, training_lengths, window_settings
from paddle_rope.tasks.ner.masked_lm import pretrain
from paddle_rope.tasks.ner.metrics import entity_scores, scores_and_errors
from paddle_rope.tasks.ner.model import word_rows
from paddle_rope.tasks.ner.prediction.finding import find_in_windows
from paddle_rope.tasks.ner.prediction.predictor import NerPredictor
from paddle_rope.tasks.ner.reports.printed import print_data_report, print_first_texts, print_scores
from paddle_rope.tasks.ner.reports.reliability import reliability

TYPES_NAMED = 40  # most type names in a printed line
MOST_UNKNOWN = 0.01  # of the characters; about 0.0004 of CLUENER are unknown to the small encoder


@dataclass
class NerData(RunData):
    """What the NER recipe reads for a run."""

    unlabeled: list[Example] = field(default_factory=list)
    distilled: list[Example] = field(default_factory=list)
    features: WordFeatures | None = None
    word_vectors: WordVectors | None = None  # of the folder ``pretrained``
    kept_types: list[str] = field(default_factory=list)  # of the model ``pretrained``, found in the examples or not


class Evaluation(NamedTuple):
    """The entities that a model finds in labeled texts, and their scores."""

    scores: dict[str, Any]  # from scores_and_errors
    found: Any  # in each text
    candidates: Found | None  # from calibration.find_candidates, if requested


class NerRecipe(Recipe):
    """Entities of texts: precision, recall and micro F1 over exact (start, end, type)."""

    arguments = NerArguments
    report = staticmethod(print_scores)

    def read(self, settings: Settings, memory: MemoryData) -> NerData:
        keys, examples = settings.keys, read_splits(settings.keys, settings.training.seed, memory.examples)
        unlabeled, distilled = read_unlabeled(keys), read_teacher(keys, examples)
        if not keys.cut_long_texts:
            refuse_longer(examples["train"], keys.max_characters)
            refuse_longer(distilled, keys.max_characters)
        data = NerData(examples, unlabeled=unlabeled, distilled=distilled)
        if keys.keep_types:
            _keep_types(settings, data)
        if keys.fit_to_data:
            shared = process_count(), settings.training.gradient_accumulation_steps
            of_dev = examples.get("dev", ()), keys.max_characters
            given = {**settings.given, **data.chosen}
            fit = fit_keys(given, examples["train"], unlabeled, *shared, *of_dev, distilled)
            data.chosen |= {**fit.keys, "fit_to_data": False}  # the saved configuration has explicit keys
            if is_first_process():
                print("\n".join(fit.lines))
        kinds = data.chosen.get("features", keys.features)
        if kinds and not keys.keep_types:
            if "words" in kinds and keys.pretrained:
                data.word_vectors = _word_vectors(keys.pretrained)
            known = data.word_vectors.words if data.word_vectors else ()
            more = unlabeled + distilled
            data.features = WordFeatures.from_examples(examples["train"], kinds, unlabeled=more, known_words=known)
        data.saved = [data.features] if data.features else []
        return data

    def new_tokenizer(self, run: Run) -> Tokenizer:
        texts = (example.text for example in (*run.examples["train"], *run.data.distilled, *run.data.unlabeled))
        return CharTokenizer.from_corpus(texts, run.keys.vocab_min_count)

    def model_options(self, run: Run) -> dict[str, Any]:
        features, overlap = run.data.features, run.keys.allow_overlap
        if overlap is None:
            overlap = any(first_overlap(example.entities) for example in run.examples["train"])
        return {
            "max_characters": run.keys.max_characters,
            "types": sorted({*run.data.kept_types, *entity_types(run.examples["train"])}),
            "allow_overlap": overlap,
            "features": features and features.sizes,
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
            for some in (examples, run.data.distilled)
        )
        train.texts += distilled.texts
        for name, value in training_lengths(train.texts)._asdict().items():
            setattr(run.model.config, name, value)
        return train

    def longest(self, run: Run) -> int:
        """As in any recipe; other splits are read in windows no longer than the longest text of train."""
        of_unlabeled = (len(example.text) + 2 for example in run.data.unlabeled)  # with [CLS] and [SEP]
        return max([*run.datasets["train"].lengths, *of_unlabeled])

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
        if run.data.word_vectors:
            print(f"word vectors of {len(run.data.word_vectors.words):,} words from {run.keys.pretrained}")
        texts, unknown = run.datasets["train"].texts, run.tokenizer.unk_token_id
        share = sum(text.ids.count(unknown) for text in texts) / max(1, sum(text.size for text in texts))
        if run.keys.pretrained is not None and share > MOST_UNKNOWN:
            print(
                f"note: {run.keys.pretrained} does not know {share:.1%} of the characters in train; compare with "
                "--pretrained=, which starts from nothing and learns them"
            )

    def prepare(self, run: Run) -> None:
        if run.resumes_training:
            return
        if run.data.word_vectors:
            run.model.feature_embedding.start_words_from(run.data.word_vectors, run.data.features.words)
        if run.keys.masked_lm_epochs:
            pretrain(run, run.datasets["train"].texts + self._dataset(run, run.data.unlabeled).texts)

    def dev_scores(self, run: Run) -> dict[str, float]:
        """The scores, also of each type. VisualDL shows the evaluations that are the best so far."""
        evaluation = self._evaluate(run, run.datasets["dev"])
        if evaluation.scores["f1"] > max(dev_scores_so_far(run.trainer.state, run.training), default=-1):
            with run.trainer.monitor.showing() as has_time:
                if has_time:
                    self._show(run, evaluation)
        by_type = {f"_by_type/{kind}": row for kind, row in evaluation.scores["per_type"].items()}
        rows = {"": evaluation.scores, **by_type}.items()
        return {f"{name}{kind}": row[name] for kind, row in rows for name in self.arguments.SCORES if name in row}

    def _evaluate(self, run: Run, dataset: NerDataset) -> Evaluation:
        return evaluate_model(run.model, dataset, run.batch_size)

    def _show(self, run: Run, evaluation: Evaluation) -> None:
        dataset, step = run.datasets["dev"], run.trainer.state.global_step
        shown = evaluate_model(run.model, dataset, run.batch_size, with_candidates=True)
        monitoring.show(run.trainer.monitor.writer, run.model, dataset, shown, step, "dev_history")

    def score(self, run: Run, split: str) -> tuple[dict[str, Any], Any]:
        """The scores with reliability. Dev chooses thresholds, if requested, and temperatures, and is shown by
        VisualDL."""
        config, dataset, monitor = run.model.config, run.datasets[split], run.trainer.monitor
        if split == "dev":
            evaluation = tune(run)
            with monitor.opened():
                monitoring.show(monitor.writer, run.model, dataset, evaluation, run.trainer.kept_step, "dev")
        else:
            evaluation = evaluate_model(run.model, dataset, run.batch_size)
        scores, found, _ = evaluation
        scores["reliability"] = reliability(dataset.examples, found, config.types, config.temperatures)
        return scores, (as_record(example.text, of_text) for example, of_text in zip(dataset.examples, found))

    def score_ensemble(self, config: dict[str, Any], run_dirs: list[str]) -> dict[str, dict[str, float]] | None:
        """Scores of a :class:`paddle_rope.tasks.ner.model.NerEnsemble` of the runs; None with ``train_texts``, because
        models trained on other texts have other vocabularies."""
        settings = resolve({**config, "output_dir": run_dirs[0]}, self.arguments)
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
        options = {"max_span_length": run.keys.max_span_length, "features": run.data.features, **options}
        return NerDataset(examples, run.tokenizer, **{"types": run.model.config.types, **options})


def _keep_types(settings, data):
    """Mark the types of the model ``pretrained`` in the examples, and take its word features."""
    keys, shows = settings.keys, is_first_process() and sys.stderr.isatty()
    folder, size = keys.pretrained, settings.training.per_device_eval_batch_size
    predictor = NerPredictor(folder, settings.config["device"], size, show_progress=shows)
    data.features, data.kept_types = predictor.features, predictor.types
    data.chosen["features"] = list(data.features.kinds) if data.features else None
    marked = mark_types(data.examples, predictor)
    if is_first_process():
        counts = ", ".join(f"{visible(kind)} {count:,}" for kind, count in marked.items())
        print(f"keep_types: marked by {folder}: {counts or 'nothing, as all of its types are labeled'}")


# ---- evaluation on labeled texts, also during training


def _word_vectors(folder):
    """The :class:`WordVectors` of the folder ``pretrained``, or None: those beside an encoder, or the rows of the words
    of a NER model, trained and fixed. Raises InputError if words and vectors do not belong together."""
    path = Path(folder) / FEATURES_FILE
    if not path.is_file():
        return WordVectors.from_pretrained(folder)
    with damage_reported(path, COPY):
        words = WordFeatures.from_pretrained(folder).words
        return WordVectors.checked(words, word_rows(read_checkpoint(folder).tensors)) if words else None


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


def tune(run: Run) -> Evaluation:
    """Choose the temperatures, and thresholds if requested, of a trained model's entities on dev; returns its
    evaluation."""
    config, dataset, keys = run.model.config, run.datasets["dev"], run.keys
    evaluation = evaluate_model(run.model, dataset, run.batch_size, with_candidates=True)
    before, candidates = evaluation.scores["f1"], evaluation.candidates
    if keys.threshold_for_f1:
        config.thresholds = [calibration.threshold_for_f1(before)] * len(config.types)
    if candidates is None:
        print(f"note: thresholds are not tuned and all temperatures are 1, as {calibration.NOT_APART}")
        evaluation = evaluate_model(run.model, dataset, run.batch_size)
    else:
        given = dataset.examples, candidates, config.types, config.allow_overlap
        if keys.tune_thresholds:
            config.thresholds = calibration.thresholds_for(*given)
        config.temperatures = calibration.temperatures_for(*given)
        candidates = calibration.with_probabilities(candidates, config.temperatures, config.types)
        evaluation = scored(config, dataset, candidates, candidates)
    if keys.threshold_for_f1:
        print(
            f"threshold_for_f1: dev F1 is {evaluation.scores['f1']:.4f} with the threshold {config.thresholds[0]:.2f}, "
            f"and {before:.4f} with the threshold 0 of the epochs"
        )
    if not evaluation.scores["predicted"]:
        steps, training = run.trainer.state.max_steps, run.training
        few = f"give {FEWEST_STEPS} steps or more (--num_train_epochs)"
        other = f"try another learning_rate than {training.learning_rate:g}, or a larger warmup_ratio"
        print(f"note: nothing is found in dev after {steps} steps; {few if steps < FEWEST_STEPS else other}")
    return evaluation
