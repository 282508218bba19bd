"""The files of a run: train, dev and test, or a part of train held out as dev; and texts without labels."""

import math
import random
from collections import defaultdict
from dataclasses import replace
from functools import partial

import numpy as np

from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.process import is_first_process
from paddle_rope.tasks.common.texts.documents import cut_at_sentences, read_plain_texts
from paddle_rope.tasks.common.texts.text_files import read_text, split_lines
from paddle_rope.tasks.common.training.data import hold_out, hold_out_dev, note_repeated, note_unseen, read_files
from paddle_rope.tasks.ner.data.reading import check_labeled, note_unlabeled, read_examples
from paddle_rope.tasks.ner.examples import Entity, Example, entity_types, first_overlap
from paddle_rope.tasks.ner.formats.records import labeled_records
from paddle_rope.tasks.ner.formats.source import Source
from paddle_rope.tasks.ner.formats.span_records import read_probable

# Neighboring texts share entities, as texts cut from one document do, if the share of dev entities that also occur in
# train is more than HIGHER times as high for a drawn dev part as for a contiguous one, and higher by more than
# STANDARD_ERRORS standard errors. The quotient is 1.00 for CLUENER and the People's Daily (0.88 to 1.13 for any 300 of
# their texts), 1.09 for Resume, and 2.8 for paragraphs of Wikipedia cut into texts of 150 characters.
HIGHER = 1.25
STANDARD_ERRORS = 2


def read_splits(run, seed, memory=None):
    """A dict from ``train`` and, if present, ``dev`` and ``test`` to examples, by the keys of a run; prints types not
    in train. ``seed`` draws the ``train_texts``, of which ``dev_fraction`` is held out; other texts are not used.
    Raises InputError if a file is wrong, no entity is labeled, or there are fewer than ``train_texts`` texts.
    """
    read = partial(read_examples, fields=run.fields, on_error=run.on_error)
    splits, names = read_files(run, read, memory)
    note_repeated(splits, names, lambda example: (example.text, example.entities))
    if run.train_texts is not None:
        count, known, name = run.train_texts, len(splits["train"]), names["train"]
        if count > known:
            raise InputError(f"train_texts {count}: {name} has only {known} texts; give a smaller number")
        if is_first_process():
            print(f"train_texts: {count:,} of the {known:,} texts of {name}, drawn with seed {seed}")
        splits["train"] = draw(splits["train"], count, seed)
        names["train"] = f"the {count:,} texts of {name} drawn with seed {seed}"
    hold_out_dev(run, splits, names, lambda example: [entity.type for entity in example.entities], choose_dev_split)
    for split in ("train", "dev"):
        if split in splits:
            check_labeled(splits[split], names[split])
    if "test" in splits and is_first_process():
        note_unlabeled(splits["test"], names["test"])
    note_unseen(splits, names, "types", entity_types)
    return splits


def mark_types(splits, predictor):
    """Add to the texts of train and dev the entities that a trained model finds of types not labeled there; returns how
    many of each type. If entities may not overlap, labeled ones take precedence."""
    learned = [split for split in ("train", "dev") if split in splits]
    labeled = entity_types(*(splits[split] for split in learned))
    marked = dict.fromkeys((kind for kind in predictor.types if kind not in labeled), 0)
    for split in learned:
        found = predictor.find([example.text for example in splits[split]])
        for number, (example, entities) in enumerate(zip(splits[split], found)):
            barred = () if predictor.model.config.allow_overlap else example.entities
            marks = [
                Entity(*entity[:3])
                for entity in entities
                if entity.type in marked and not any(first_overlap(sorted((entity, label))) for label in barred)
            ]
            splits[split][number] = replace(example, entities=tuple(sorted([*example.entities, *marks])))
            for entity in marks:
                marked[entity.type] += 1
    return marked


def choose_dev_split(examples, fraction, name):
    """How to hold out a dev part whose scores carry over to new texts, and a line that says so with both shares. It is
    ``contiguous`` if neighboring texts share entities, but ``stratified`` otherwise, or if the end of the file has no
    entity or has types that the rest lacks."""
    rest, end = hold_out(examples, fraction, "contiguous")
    drawn, contiguous, entities = _known_shares(examples, len({example.text for example in end}))
    mean = (drawn + contiguous) / 2
    error = math.sqrt(mean * (1 - mean) * 2 / max(1, entities))
    shares = (
        f"of the entities of such a part, {100 * drawn:.1f} % also occur in the rest if it is drawn, "
        f"{100 * contiguous:.1f} % if it is contiguous"
    )
    if drawn <= HIGHER * contiguous or drawn - contiguous <= STANDARD_ERRORS * error:
        return "stratified", f"dev is drawn from all of {name} (--dev_split stratified): {shares}"
    types = set(entity_types(end))
    if types and types <= set(entity_types(rest)):
        why = "since neighboring texts share entities"
        return "contiguous", f"dev is the end of {name} (--dev_split contiguous), {why}: {shares}"
    lacks = "types that the rest does not have" if types else "no entity"
    return "stratified", (
        f"note: dev is drawn from all of {name} (--dev_split stratified), since its end has {lacks}: {shares}; "
        "neighboring texts share entities, so dev scores are too high: give a dev_file"
    )


def _known_shares(examples, size):
    """The share of the entities of a dev part of ``size`` texts that also occur in the rest, by type and text, if it is
    drawn at random and if it is contiguous; and the number of entities. Both shares are means over all parts of this
    size, which vary less than the shares of one part."""
    texts = list(dict.fromkeys(example.text for example in examples))
    entities = [(one.text, (entity.type, one.surface(entity))) for one in examples for entity in one.entities]
    shares = []
    for order in (np.random.RandomState(0).permutation(len(texts)), reversed(range(len(texts)))):
        part = {texts[number]: place // size for place, number in enumerate(order)}
        parts = defaultdict(set)  # (type, text) of an entity -> the parts that hold it
        for text, entity in entities:
            parts[entity].add(part[text])
        shares.append(sum(len(parts[entity]) > 1 for _, entity in entities) / max(1, len(entities)))
    return *shares, len(entities)


def draw(examples, count, seed):
    """``count`` of the labeled texts, at most all, in their order. The same seed draws the same texts, and a larger
    ``count`` includes all texts of a smaller one."""
    numbers = list(range(len(examples)))
    random.Random(seed).shuffle(numbers)
    return [examples[number] for number in sorted(numbers[:count])]


def read_unlabeled(run):
    """The texts in ``unlabeled_files`` as examples without entities, cut into pieces of at most ``max_characters``."""
    return [
        Example(piece, (), path)
        for path in run.unlabeled_files or ()
        for text in read_plain_texts(path)
        for piece in cut_at_sentences(text, run.max_characters)
    ]


def read_teacher(run, splits):
    """The texts of ``teacher_files`` with the teacher's predictions; prints how many there are, and how many texts of
    the ``splits`` are among them."""
    examples = []
    for path in run.teacher_files or ():
        content, name = read_text(path)
        source = Source(name)
        of_file = read_probable(labeled_records(split_lines(content), source), source)
        if not of_file:
            raise InputError(f"{name}:1: there is no text in it; give predictions")
        examples += of_file
    if examples and is_first_process():
        probabilities = [entity.probability for example in examples for entity in example.entities]
        expected = sum(1 if probability is None else probability for probability in probabilities)
        print(f"teacher: {len(examples):,} texts, in which it expects {expected:,.0f} entities")
        texts = {example.text for example in examples}
        counts = {split: sum(example.text in texts for example in splits[split]) for split in splits}
        if any(counts.values()):
            shared = ", ".join(f"{count:,} of {split}" for split, count in counts.items() if count)
            print(
                f"note: the teacher's texts include texts of other files: {shared}; texts of train are learned with "
                "both labels, and scores on texts of dev or test are too high"
            )
    return examples
