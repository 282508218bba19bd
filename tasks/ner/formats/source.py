"""A labeled file as its readers know it: the names of its keys, and what becomes of what is wrong in it."""

import functools
import logging
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from paddle_rope.files import read_json_object
from paddle_rope.options import did_you_mean
from paddle_rope.tasks.common.errors import InputError, as_input_error
from paddle_rope.tasks.common.texts.tables import NAMES as COLUMNS
from paddle_rope.tasks.common.texts.tables import TEXT, TOKENS
from paddle_rope.tasks.common.texts.text_files import shown

logger = logging.getLogger(__name__)

TAGS, TAG_NAMES, SPANS = "tags", "names", "spans"
START, END, LAST, TYPE, SURFACE = OF_ENTITY = "start", "end", "end_inclusive", "type", "surface"
# the names that a key may have; --fields renames another key to the first of them
NAMES = {
    TEXT: COLUMNS[TEXT],
    TOKENS: (*COLUMNS[TOKENS], "tokenized_text"),
    TAGS: ("ner_tags", "tags", "labels", "label"),
    TAG_NAMES: ("names", "label_names", "id2label"),  # of tags that are numbers
    SPANS: ("entities", "label", "labels", "spans", "annotations", "mentions", "result_list"),
    START: ("start", "start_offset", "start_idx", "begin"),
    END: ("end", "end_offset", "end_idx"),  # exclusive, except CMeEE's
    LAST: ("end_inclusive",),
    TYPE: ("type", "label", "tag", "entity_type", "entity_group"),
    SURFACE: ("text", "entity", "mention", "surface"),
}


def parse_fields(given: str) -> dict[str, str]:
    """The value of ``--fields``, such as ``text=content,start=begin``, as a dict from meanings to keys."""
    fields = {}
    for pair in filter(None, given.split(",")):
        meaning, _, key = pair.partition("=")
        if meaning not in NAMES or not key:
            suggestion = did_you_mean(meaning, NAMES) or f"the meanings are {', '.join(NAMES)}"
            raise InputError(f"fields: expected MEANING=KEY such as text=content, got {shown(pair)}; {suggestion}")
        fields[meaning] = key
    return fields


def key_of(found: dict, meaning: str, where: str, kinds: tuple[type, ...] = (object,)) -> str | None:
    """The key of an object that has a meaning, and a value of one of the ``kinds``; None if there is none. Raises
    InputError if there are several that are not empty lists, and none is "text"."""
    keys = [key for key in NAMES[meaning] if key in found and isinstance(found[key], kinds)]
    keys = [key for key in keys if found[key] not in ([], {})] or keys[:1]
    if len(keys) > 1 and keys[0] != TEXT:
        several = " and ".join(f'"{key}"' for key in keys)
        raise InputError(f"{where}: {several} may each be the {meaning}; name one: --fields {meaning}={keys[0]}")
    return keys[0] if keys else None


def _renamed(found, fields):
    """An object whose keys of these meanings have their first names; other keys of the same meanings are left out."""
    replaced = {*fields.values(), *(key for meaning in fields for key in NAMES[meaning])}
    kept = {key: value for key, value in found.items() if key not in replaced}
    return {**kept, **{NAMES[meaning][0]: found[key] for meaning, key in fields.items() if key in found}}


def numbered(names: list[str]) -> dict[str, str]:
    """The names of tags by their numbers, written as JSON writes keys."""
    return {str(number): name for number, name in enumerate(names)}


ON_ERROR = STOP, SKIP = "stop", "skip"  # values of the option on_error
OUTSIDE, OTHER_TEXT, NO_TYPE = "spans outside of their text", "spans that hold another text", "blank types"
UNREADABLE, UNRELATED = "annotations that cannot be read", "relations of unknown entities"
NO_RECORD = "texts, because they or all of their labels cannot be read"


class Fault(InputError):
    """A wrong annotation of one of the kinds above; any other InputError in labeled data is about a whole text."""

    def __init__(self, kind, message):
        super().__init__(message)
        self.kind = kind


class Faults:
    """What is wrong in labeled data and was left out, by kind."""

    MOST = 100  # messages kept of a kind

    def __init__(self):
        self.counts: Counter[str] = Counter()
        self.messages: dict[str, list[str]] = defaultdict(list)

    def add(self, error: InputError) -> None:
        kind = getattr(error, "kind", NO_RECORD)
        self.counts[kind] += 1
        if len(self.messages[kind]) < self.MOST:
            self.messages[kind].append(str(error))


@contextmanager
def faults_of(name: str, on_error: str | None) -> Iterator[Faults | None]:
    """The faults of the file or folder ``name``, logged when it has been read; None if the first is to be raised."""
    if on_error not in (None, *ON_ERROR):
        raise InputError(f"on_error {shown(on_error)}: must be {' or '.join(ON_ERROR)}")
    faults = Faults() if on_error == SKIP else None
    yield faults
    for kind, count in faults.counts.most_common() if faults else ():
        logger.warning("%s: left out %d %s; the first: %s", name, count, kind, faults.messages[kind][0])


class Source:
    """A labeled file: what messages call it, how its keys are called, what is wrong in it (None: the first error is
    raised), and its path if it has one."""

    def __init__(self, name: str, fields: str | None = None, faults: Faults | None = None, path: str | None = None):
        self.name, self.faults, self._path = name, faults, path
        given = parse_fields(fields or "")
        self._of_entity = {meaning: given[meaning] for meaning in given if meaning in OF_ENTITY}
        self._of_record = {meaning: given[meaning] for meaning in given if meaning not in OF_ENTITY}

    def named(self, record: dict, where: str) -> dict:
        """A record whose keys are renamed as the option ``fields`` says."""
        missing = [key for meaning, key in self._of_record.items() if key not in record and meaning in (TEXT, TOKENS)]
        if missing:
            raise InputError(f"{where}: no {shown(missing[0])}, which --fields names; the keys are {shown([*record])}")
        if self._of_record:
            record = _renamed(record, self._of_record)
        key = self._of_entity and key_of(record, SPANS, where, (list,))
        if key:
            named = [_renamed(one, self._of_entity) if isinstance(one, dict) else one for one in record[key]]
            record = {**record, key: named}
        return record

    @functools.cached_property
    def tag_names(self) -> dict[str, dict[str, str]]:
        """The names of tags that are numbers, by key and number, in the ``dataset_info.json`` that Hugging Face's
        datasets write beside their files."""
        file = Path(os.path.dirname(self._path or ""), "dataset_info.json")
        if self._path is None or not file.is_file():
            return {}
        named = {self._of_record.get(TAGS): NAMES[TAGS][0]}
        with as_input_error(f"{file}: has no names of tags: ", (ValueError, LookupError, TypeError, AttributeError)):
            lists = {key: one.get("feature") or {} for key, one in read_json_object(file)["features"].items()}
            return {named.get(key, key): numbered(one["names"]) for key, one in lists.items() if "names" in one}

    def tried(self, call: Callable, *arguments: Any) -> Any:
        """What a call returns; None if it raises InputError, which is among the faults then."""
        try:
            return call(*arguments)
        except InputError as error:
            if self.faults is None:
                raise
            self.faults.add(error)
            return None

    def kept(self, call: Callable, calls: Iterable[tuple]) -> list:
        """What :meth:`tried` returns for each tuple of arguments, except None."""
        results = (self.tried(call, *arguments) for arguments in calls)
        return [result for result in results if result is not None]
