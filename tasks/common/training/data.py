"""The labeled data of a run: files, or lists of records in memory, which are read and checked like JSON lines; and the
part of the training data that is held out if there is no dev file."""

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np

from paddle_rope.tasks.common.errors import InputError, visible
from paddle_rope.tasks.common.process import is_first_process
from paddle_rope.tasks.common.texts.text_files import IN_MEMORY, RecordsName, read_text, shown, split_lines

SPLITS = ("train", "dev", "test")


class MemoryData(NamedTuple):
    """Labeled data given to a run in memory."""

    examples: dict[str, list]  # by split
    fingerprints: dict[str, str]  # how inputs.json describes them


NO_DATA = MemoryData({}, {})


class LabeledData(NamedTuple):
    """How a recipe reads labeled data."""

    read_lines: Callable[..., list]  # the lines of a file, or records in memory, and their name
    read_path: Callable[..., list] | None = None  # path -> examples, if a path may be more than one text file
    options: tuple[str, ...] = ()  # names of configuration keys that both of these take

    def read_file(self, path: Any, **options: Any) -> list:
        """The labeled examples of a file in its order, at least one; ``-`` is standard input."""
        if self.read_path is not None:
            return self.read_path(path, **options)
        content, name = read_text(path)
        return self.read_lines(split_lines(content), name)

    def read_records(self, records: Iterable[Any], name: str, **options: Any) -> tuple[list, str]:
        """(examples, SHA-256) of records, which are dicts as in JSON lines. Raises InputError if there is no record, or
        one is wrong; messages call the fourth record of the list ``train`` ``train[3]``."""
        if isinstance(records, (str, bytes, dict)) or not isinstance(records, Iterable):
            raise InputError(
                f"{name}: {shown(records)} is not a list of records; give dicts as the lines of a file hold"
            )
        lines = []
        for number, record in enumerate(records):
            where = f"{name}[{number}]"
            if not isinstance(record, dict):
                raise InputError(f"{where}: {shown(record)} is not a record; give a dict as a line of a file holds")
            try:
                lines.append(json.dumps(record, default=_plain))
            except (TypeError, ValueError, RecursionError) as error:
                raise InputError(f"{where}: {error}; give strings, numbers, lists and dicts") from None
        if not lines:
            raise InputError(f"{name}: there is no record in it; give labeled data")
        digest = hashlib.sha256("\n".join(lines).encode("ascii")).hexdigest()
        return self.read_lines(lines, RecordsName(name), **options), digest


def read_memory(data: Any, labeled: LabeledData, config: dict[str, Any]) -> MemoryData:
    """Labeled data in memory, a dict from splits to records, read as the configuration says and checked."""
    found = MemoryData({}, {})
    if not isinstance(data, dict) or not data.keys() <= {*SPLITS}:
        raise InputError(f"data: {shown(data)} is not a dict of {', '.join(SPLITS)}; write data={{'train': records}}")
    options = {key: config[key] for key in labeled.options if config.get(key) is not None}
    for split, records in data.items():
        read = labeled.read_records(records, split, **options)
        found.examples[split], found.fingerprints[f"{split} {IN_MEMORY}"] = read
    return found


def config_with(config: dict[str, Any], data: Iterable[str]) -> dict[str, Any]:
    """A configuration in which splits of ``data`` replace files; raises InputError if both are given."""
    for split in data:
        if config.get(f"{split}_file") not in (None, "", IN_MEMORY):
            raise InputError(f"data: both {split} and {split}_file are given; leave one out")
    return {**config, **{f"{split}_file": IN_MEMORY for split in data}}


def _plain(value):
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"{type(value).__name__} is not plain data")


# ---- the splits of a run


def read_files(keys, read, memory=None):
    """(splits, names) of a run: a dict from ``train`` and, if given, ``dev`` and ``test`` to examples, and a dict from
    each split to what messages call its data.

    ``read`` returns the examples of a path, such as ``keys.train_file``; ``memory`` has the examples of each split
    whose key is ``IN_MEMORY``.
    """
    names = {split: getattr(keys, f"{split}_file") for split in SPLITS}
    splits = {}
    for split, path in names.items():
        if path == IN_MEMORY and split in (memory or {}):
            splits[split], names[split] = memory[split], split
        elif path == IN_MEMORY:
            why = f"configuration: {split}_file is {IN_MEMORY!r}, of a run that had its data in memory"
            raise InputError(f"{why}; name a file, or give data to train in Python")
        elif path:
            splits[split] = read(path)
    return splits, names


def hold_out_dev(keys, splits, names, labels_of=None, choose=None, cut=None):
    """If dev data are needed but missing, hold out ``dev_fraction`` of train as ``dev_split`` says, changing the dicts
    of :func:`read_files`, and print how. If ``dev_split`` is empty, ``choose`` returns the way and a line about it,
    from the training data, the fraction and the name of the data; without ``choose`` the way is ``stratified``.
    ``cut`` is called like :func:`hold_out`, which it replaces.
    """
    if "dev" in splits or not keys.has_dev:
        return
    file, fraction = names["train"], keys.dev_fraction
    names["dev"] = f"the {fraction:g} of {file} that is held out"
    way, line = keys.dev_split or "stratified", None
    if not keys.dev_split and choose is not None:
        way, line = choose(splits["train"], fraction, file)
    elif way != "contiguous":
        alike = "where neighboring texts are alike, its scores are too high: --dev_split contiguous takes the end"
        line = f"note: dev is drawn from all of {file}; {alike}"
    splits["train"], splits["dev"] = (cut or hold_out)(splits["train"], fraction, way, labels_of)
    if line is not None:
        say(line)


def note_unseen(splits, names, what, labels_of):
    """Print the labels of other splits that train does not have; messages call them ``what``, such as "types"."""
    seen = set(labels_of(splits["train"]))
    for split in splits:
        unseen = sorted(set(labels_of(splits[split])) - seen)
        if unseen:
            say(f"note: {names[split]} has {what} that {names['train']} does not have: {', '.join(unseen)}")


def note_repeated(splits, names, content_of):
    """Print which of the ``splits`` have only texts of train, and how many texts have different labels; ``content_of``
    returns the text and the label of an example."""
    first_of, contradictory = {}, {}  # text -> (first label, place); text -> two places with different labels
    train = {content_of(example)[0] for example in splits["train"]}
    for split, examples in splits.items():
        for example in examples:
            text, label = content_of(example)
            first, where = first_of.setdefault(text, (label, example.where))
            if first != label:
                contradictory.setdefault(text, (where, example.where))
        if split != "train" and all(content_of(example)[0] in train for example in examples):
            note = "its scores do not show how the model does on new texts"
            say(f"note: all texts of {names[split]} are in {names['train']}; {note}")
    if contradictory:
        where, other = next(iter(contradictory.values()))
        say(f"note: texts that are labeled in more than one way: {len(contradictory)} ({where} and {other})")


def say(line):
    """Print a line, in the first process only."""
    if is_first_process():
        print(visible(line))


def hold_out(examples, fraction, way="random", labels_of=None, group_of=None):
    """(rest, held): labeled data split in two, always in the same way, both in the original order; ``held`` has
    ``fraction`` of the texts, at least one. Repeats of a text are on the same side. ``way`` is one of ``DEV_SPLITS``;
    for ``stratified``, ``labels_of`` returns the labels of an example. Raises InputError if there are fewer than two
    different texts.

    With ``group_of``, a function from an example to a string, groups are on the same side, and ``held`` has about
    ``fraction`` of the examples; a group with more examples than that stays in ``rest``."""
    sizes = Counter(map(group_of, examples)) if group_of else dict.fromkeys((e.text for e in examples), 1)
    group_of = group_of or attrgetter("text")
    if len(sizes) < 2:
        raise InputError(f"{examples[0].where}: one text cannot be cut in two; give a dev_file")
    count = max(1, min(sum(sizes.values()) - 1, round(fraction * sum(sizes.values()))))
    groups = [group for group in sizes if sizes[group] <= count]
    if way == "contiguous":
        groups.reverse()
    else:
        groups.sort()
        np.random.RandomState(0).shuffle(groups)
    if way == "stratified":
        groups = _by_labels(groups, sizes, examples, group_of, labels_of)
    total, held, seen, taken = sum(sizes[group] for group in groups), set(), 0, 0
    for group in groups:
        seen += sizes[group]
        reached = seen if way == "stratified" else total  # at even distances, or the first ones
        if (2 * taken + sizes[group]) * total < 2 * count * reached:  # the middle of the group is due
            held.add(group)
            taken += sizes[group]
    return [e for e in examples if group_of(e) not in held], [e for e in examples if group_of(e) in held]


def _by_labels(groups, sizes, examples, group_of, labels_of):
    """The groups in an order that puts the ones with the same rarest labels together, and of these the ones of the same
    size."""
    labels = defaultdict(set)
    for example in examples:
        labels[group_of(example)].update(labels_of(example))
    numbers = Counter(label for group in groups for label in labels[group])
    ranks = {label: rank for rank, label in enumerate(sorted(numbers, key=lambda label: (numbers[label], label)))}
    rarest = {group: sorted(ranks[label] for label in labels[group]) or [len(ranks)] for group in groups}
    return sorted(groups, key=lambda group: (rarest[group], sizes[group]))
