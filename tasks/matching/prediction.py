"""From texts to scores and embeddings, with a model in training, a trained or an exported one; and how good they are.

A sequence longer than ``max_tokens`` tokens, including special tokens, loses its end. If it holds two texts, tokens are
dropped one by one from the longer one: each text may have half of the tokens, plus what a shorter one leaves unused.
"""

import functools
import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from paddle_rope.tasks.common.errors import InputError, visible
from paddle_rope.tasks.common.inference import Tokens, encoder_outputs, pad_items
from paddle_rope.tasks.common.predictor import Predictor, check_positions
from paddle_rope.tasks.common.reports.tables import f1_row, scores_line
from paddle_rope.tasks.matching.arguments import (
    GRADES,
    PAIRS,
    TRIPLES,
    MatchingArguments,
    MatchingConfig,
    MatchingOptions,
)
from paddle_rope.tasks.matching.data import LABELED, Example, ExampleStream, prediction_records, task_of


class MatchingDataset:
    """Tokenized examples, all pairs or all triples. A sequence that several of them share is kept, and scored, once.

    ``sequences`` are ``Tokens``; ``rows``, int64 ``[examples, parts]``, has the numbers of each example's sequences,
    with parts as in ``MatchingModel.forward``; ``lengths`` are the tokens of each example's longest sequence;
    ``collate`` makes a batch of items; ``num_cut`` sequences are cut to ``max_tokens`` (None: the model's).
    """

    def __init__(self, examples, tokenizer, config, max_tokens=None):
        def parts(example):
            if config.is_cross_encoder:
                return [(example.text, candidate) for candidate in example.texts[1:]]
            return [(text, None) for text in example.texts]

        self.examples = examples
        self.max_tokens = max_tokens or config.max_tokens
        self.sequences, self.num_cut = [], 0
        numbers = {texts: number for number, texts in enumerate(dict.fromkeys(itertools.chain(*map(parts, examples))))}
        for texts in numbers:
            encoding = tokenizer.encode(*texts)
            if len(encoding.ids) > self.max_tokens:
                self.num_cut += 1
                encoding = tokenizer.encode(*texts, self.max_tokens)
            self.sequences.append(Tokens(encoding.ids, encoding.token_type_ids if config.token_type_ids else None))
        self.rows = np.array([[numbers[texts] for texts in parts(example)] for example in examples], dtype=np.int64)
        self.lengths = [max(len(self.sequences[row].ids) for row in rows) for rows in self.rows]
        self.collate = functools.partial(pad_items, pad_token_id=tokenizer.pad_token_id, dtype="float32")

    def __len__(self):
        return len(self.examples)

    def __getitem__(self, index):
        """(sequences, label) of an example."""
        return [self.sequences[row] for row in self.rows[index]], self.examples[index].label


def score_dataset(model, dataset, batch_size, show_progress=False):
    """Scores of the candidates of each example of a :class:`MatchingDataset`.

    float32 ``[examples, candidates]``, one candidate for a pair and two for a triple. A bi-encoder gives cosines; a
    cross-encoder gives the probability that a pair matches, its grade, or logits for triples.
    """
    outputs = encoder_outputs(model, dataset.sequences, batch_size, show_progress)
    if not model.config.is_cross_encoder:
        first, *others = dataset.rows.T
        return np.stack([(outputs[first] * outputs[other]).sum(axis=1) for other in others], axis=1)
    if model.config.grades is not None:
        lowest, highest = model.config.grades
        outputs = (lowest + (highest - lowest) / (1 + np.exp(-outputs.astype(np.float64)))).astype(np.float32)
    return outputs[dataset.rows]


class MatchingPredictor(Predictor):
    """Scores pairs and triples of texts, and embeds texts. Threads may share it. ``threshold`` is the score from which
    a pair matches, None for a model of grades or triples."""

    arguments = MatchingArguments
    labeled = LABELED
    config_class = MatchingConfig
    options_class = MatchingOptions

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        check_positions("max_tokens", self.options.max_tokens, self.model.config, special_tokens=0)
        self.max_tokens = self.options.max_tokens or self.model.config.max_tokens
        self.threshold = self.model.config.threshold

    def __call__(self, tuples: Sequence[Sequence[str]]) -> list[dict[str, Any]]:
        """For each pair, or each triple, its ``prediction_records``, in order."""
        count = 3 if len(tuples) > 0 and len(tuples[0]) == 3 else 2
        return list(prediction_records(tuples, self._score(tuples, count), self.threshold))

    @classmethod
    def stream(cls, source, chunk_items, **reading):
        return ExampleStream(source, chunk_items)

    def evaluate(self, examples: list, title: str) -> dict[str, Any]:
        dataset = MatchingDataset(examples, self.tokenizer, self.model.config, self.max_tokens)
        print(data_report(title, dataset))
        scores, _ = evaluate_model(self.model, dataset, self.batch_size, self.show_progress)
        print(f"{visible(title)}: {scores_line(scores, self.arguments.SCORES)}")
        return scores

    def score(self, pairs: Sequence[Sequence[str]]) -> np.ndarray:
        """How well the texts of each pair of strings match: float32 ``[pairs]``.

        A bi-encoder gives the cosine; a cross-encoder the probability of label 1, or the grade; a cross-encoder trained
        on triples a logit, which is only comparable with logits for the same first text.
        """
        return self._score(pairs, 2)[:, 0]

    def score_triples(self, triples: Sequence[Sequence[str]]) -> np.ndarray:
        """How close B and C are to A in triples (A, B, C) of strings, as in :meth:`score`: float32 ``[triples, 2]``."""
        return self._score(triples, 3)

    def _score(self, tuples, count):
        dataset = self._dataset(tuples, count)
        if not dataset:
            return np.zeros([0, count - 1], dtype=np.float32)
        return score_dataset(self.model, dataset, self.batch_size, self.show_progress)

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        """Vectors of texts, for search: float32 ``[texts, hidden]``, each of length 1. The dot product of two is their
        cosine, the score of the pair. Raises InputError for a cross-encoder, which has no vector for one text."""
        if self.model.config.is_cross_encoder:
            raise InputError(
                f"{self.model_dir}: is a cross_encoder, which reads two texts at once and has no vector for one; "
                "train with architecture: bi_encoder"
            )
        dataset = self._dataset(texts, 1)
        outputs = encoder_outputs(self.model, dataset.sequences, self.batch_size, self.show_progress)
        return outputs[dataset.rows[:, 0]] if dataset else outputs

    def _dataset(self, items, count):
        """The dataset of tuples of ``count`` strings, or of single strings; empty for no items."""
        what = {1: "strings", 2: "pairs of strings", 3: "triples of strings"}[count]
        if isinstance(items, str):
            raise InputError(f"give a list of {what}, got one string")
        tuples = [(item,) if count == 1 else item for item in items]
        for number, texts in enumerate(tuples, 1):
            if isinstance(texts, str) or len(texts) != count or not all(isinstance(text, str) for text in texts):
                raise InputError(f"give a list of {what}; number {number} is {texts!r:.60}")
        examples = [Example(tuple(texts), None, "") for texts in tuples]
        return MatchingDataset(examples, self.tokenizer, self.model.config, self.max_tokens)


# ---- scores of labeled pairs or triples: accuracy, F1 of label 1, Spearman correlation


def evaluate_model(model, dataset, batch_size, show_progress=False, chooses_threshold=False):
    """The scores of a model on a :class:`MatchingDataset`, and its outputs ``[examples, candidates]``.

    With ``chooses_threshold`` a bi-encoder of 0/1 pairs takes the threshold with the highest accuracy on these data.
    """
    config = model.config
    outputs = score_dataset(model, dataset, batch_size, show_progress)
    labels = [example.label for example in dataset.examples]
    task = task_of(dataset.examples)
    if chooses_threshold and config.task == PAIRS and not config.is_cross_encoder:
        config.threshold = best_threshold(labels, outputs[:, 0])
    scores = matching_scores(task, labels, outputs, config.threshold)
    if task == PAIRS and config.threshold is not None:
        scores["threshold"] = config.threshold
    return scores, outputs


def data_report(name, dataset):
    examples = dataset.examples
    task, labels = task_of(examples), [example.label for example in examples]
    if task == PAIRS:
        what = f"{len(examples)} pairs, {labels.count(1)} of them with label 1"
    elif task == GRADES:
        what = f"{len(examples)} pairs with grades from {min(labels):g} to {max(labels):g}"
    else:
        different = len({example.text for example in examples})
        what = f"{len(examples)} triples with {different} different texts A"
    lengths = [len(sequence.ids) for sequence in dataset.sequences]
    cut = f", {dataset.num_cut} of them cut to {dataset.max_tokens}" if dataset.num_cut else ""
    return f"{name}: {what}; {len(lengths)} sequences, {np.mean(lengths):.0f} tokens on average{cut}"


def choosing_score(config):
    """The dev score that chooses the epoch: accuracy if the model itself decides (triples, or a cross-encoder of 0/1
    pairs), Spearman correlation if it only ranks (grades, or a bi-encoder of pairs)."""
    decides = config.task == TRIPLES or (config.task == PAIRS and config.is_cross_encoder)
    return "accuracy" if decides else "spearman"


def matching_scores(task, labels, scores, threshold=None):
    """Scores of examples with ``labels`` and ``scores`` ``[examples, candidates]``: for triples ``accuracy``; for pairs
    and grades ``spearman`` (0 if all scores or all labels are equal); for pairs with a ``threshold``, from which the
    label is 1, also ``accuracy``, and ``precision``, ``recall`` and ``f1`` of label 1."""
    labels, scores = np.asarray(labels, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    if task == TRIPLES:
        return {"accuracy": float(np.mean((scores[:, 0] > scores[:, 1]) == (labels == 1)))}
    scores = scores[:, 0]
    result = {}
    if task == PAIRS and threshold is not None:
        found, gold = scores >= threshold, labels == 1
        row = f1_row(*(int(chosen.sum()) for chosen in (gold, found, found & gold)))
        result = {"accuracy": float(np.mean(found == gold)), **{key: row[key] for key in ("f1", "precision", "recall")}}
    is_constant = np.ptp(scores) == 0 or np.ptp(labels) == 0
    result["spearman"] = 0.0 if is_constant else float(np.corrcoef(_ranks(scores), _ranks(labels))[0, 1])
    return result


def _ranks(values):
    """The rank of each value; equal values share the mean of their ranks."""
    _, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[group]


def best_threshold(labels, scores):
    """The threshold of scores with the highest accuracy; of several, the highest. It is halfway between two scores, the
    lowest score, or just above the highest. ``labels`` are 0 or 1."""
    labels, scores = np.asarray(labels) == 1, np.asarray(scores, dtype=np.float64)
    falling = np.unique(scores)[::-1]
    cuts = np.array([np.nextafter(falling[0], np.inf), *(falling[:-1] + falling[1:]) / 2, falling[-1]])
    positives, negatives = np.sort(scores[labels]), np.sort(scores[~labels])
    correct = np.searchsorted(negatives, cuts) + len(positives) - np.searchsorted(positives, cuts)
    return float(cuts[np.argmax(correct)])
