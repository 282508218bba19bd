"""Records of labeled files: the names of their keys, what is wrong in them, and the checks that all formats share."""

import functools
import json
import logging
import os
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from paddle_rope.options import read_json_object
from paddle_rope.tasks.common.errors import InputError, as_input_error, did_you_mean
from paddle_rope.tasks.common.files import json_line
from paddle_rope.tasks.common.texts.forms import records
from paddle_rope.tasks.common.texts.json_records import check_encodable, distinct_keys, json_text
from paddle_rope.tasks.common.texts.tables import NAMES as COLUMNS
from paddle_rope.tasks.common.texts.tables import TEXT, TOKENS, header_of
from paddle_rope.tasks.common.texts.text_files import first_non_blank, shown
from paddle_rope.tasks.ner.examples import Entity, Example, make_example

logger = logging.getLogger(__name__)

LONGEST_TYPE = 200  # characters; formats of tags repeat it at each character
Records = Iterable[tuple[str, dict]]  # pairs ("path:line", record), of JSON lines, a JSON list or a table
_LABELS = ("label", "entities", "tags", "ner_tags")  # an empty cell in these columns means a text without entities

# ---- the names of keys

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


class Source:
    """A labeled file: what messages call it, how its keys are called, where to put what is wrong in it (None: the first
    error is raised), and its path if it has one."""

    def __init__(self, name: str, given: str | None = None, faults: "Faults | None" = None, path: str | None = None):
        fields = parse_fields(given or "")
        self.name, self.faults, self._path = name, faults, path
        self._of_entity = {meaning: fields[meaning] for meaning in fields if meaning in OF_ENTITY}
        self._of_record = {meaning: fields[meaning] for meaning in fields if meaning not in OF_ENTITY}

    def named(self, record: dict, where: str) -> dict:
        """A record whose keys are renamed as the option ``fields`` says."""
        missing = [key for meaning, key in self._of_record.items() if key not in record and meaning in (TEXT, TOKENS)]
        if missing:
            raise InputError(f"{where}: no {shown(missing[0])}, which --fields names; the keys are {shown([*record])}")
        record = _renamed(record, self._of_record) if self._of_record else record
        key = self._of_entity and key_of(record, SPANS, where, (list,))
        if key:
            named = [_renamed(one, self._of_entity) if isinstance(one, dict) else one for one in record[key]]
            record = {**record, key: named}
        return record

    @functools.cached_property
    def tag_names(self) -> dict[str, list[str]]:
        """The names of tags that are numbers, by key, of the ``dataset_info.json`` that Hugging Face's datasets write
        beside their files."""
        file = Path(os.path.dirname(self._path or ""), "dataset_info.json")
        if self._path is None or not file.is_file():
            return {}
        named = {self._of_record.get(TAGS): NAMES[TAGS][0]}
        with as_input_error(f"{file}: has no names of tags: ", (ValueError, LookupError, TypeError, AttributeError)):
            lists = {key: one.get("feature") or {} for key, one in read_json_object(file)["features"].items()}
            return {named.get(key, key): one["names"] for key, one in lists.items() if "names" in one}

    def tried(self, call: Callable, *arguments: Any, **options: Any) -> Any:
        """What a call returns; None if it raises InputError, which is among the faults then."""
        try:
            return call(*arguments, **options)
        except InputError as error:
            if self.faults is None:
                raise
            self.faults.add(error)
            return None


# ---- what is wrong

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

    def report(self, name: str) -> None:
        """Log how many of which kind were left out of the file or folder ``name``."""
        for kind, count in self.counts.most_common():
            logger.warning("%s: left out %d %s; the first: %s", name, count, kind, self.messages[kind][0])


# ---- records


def labeled_records(lines: list[str], source: Source) -> Iterator[tuple[str, dict]]:
    """Pairs ("path:line", record) of JSON lines, a JSON list or a table, with keys as the source says. Cells of a table
    that are JSON lists or objects are read as such, except the text; an empty cell of labels is an empty list, other
    empty cells are left out."""
    is_table = header_of(first_non_blank(lines) or "") is not None
    for where, record in records(lines, source.name):
        yield where, source.named(_with_json(record, where) if is_table else record, where)


def _with_json(row, where):
    record = {}
    for key, cell in row.items():
        bare = cell.strip()
        if key != "text" and bare.startswith(("[", "{")):
            record[key] = _of_cell(cell, where)
        elif key == "text" or bare:
            record[key] = cell
        elif key in _LABELS:
            record[key] = []
    return record


def _of_cell(cell, where):
    """The parsed JSON of a cell; a cell that is not JSON, such as "[1]号", stays a string."""
    try:
        return json.loads(cell, object_pairs_hook=lambda pairs: distinct_keys(pairs, where))
    except json.JSONDecodeError:
        return cell
    except (ValueError, RecursionError) as error:
        raise InputError(f"{where}: a cell of JSON that cannot be read ({error}); write it plainly") from None


def text_of(record: dict, where: str) -> str:
    """The text of a record, which may be empty."""
    return json_text(record, where, (key_of(record, TEXT, where, (str,)) or TEXT,))


def spans_key(record: dict, where: str) -> str | None:
    """The key of the entities of a record, which are a list of objects or lists, or an object; None if it has none."""
    key = key_of(record, SPANS, where, (list, dict))
    has_others = key and isinstance(record[key], list) and not all(isinstance(x, (list, dict)) for x in record[key][:1])
    return None if has_others else key


def reader(
    sample: object, spans_of: Callable[[Any, str, str], Iterable[Iterable]], may_be_empty: bool = False
) -> Callable[[Records, Source], list[Example]]:
    """A reader of records with a text. ``spans_of`` receives the value of the entities, the text and "path:line", and
    returns what :func:`entity_of` takes; the value has to be like ``sample`` (:func:`check_like`)."""

    def read(records: Records, source: Source) -> list[Example]:
        found = (source.tried(read_one, where, record, source) for where, record in records)
        return [example for example in found if example is not None]

    def read_one(where, record, source):
        text = text_of(record, where)
        if not (text or may_be_empty):
            raise InputError(f'{where}: "text" is empty; remove the line or give it a text')
        key = key_of(record, SPANS, where, (list, dict)) or key_of(record, SPANS, where)
        if key is None:
            raise InputError(
                f'{where}: no "entities" or "label", the file is unlabeled; give labeled data (with an empty list for '
                "a text without entities), name the key as in --fields spans=KEY, or use the file for prediction only"
            )
        value = check_like(record[key], sample, key, where)
        entities = (source.tried(entity_of, text, where, *span) for span in spans_of(value, text, where))
        return make_example(text, filter(None, entities), where)

    return read


def check_like(value: Any, sample: Any, name: str, where: str) -> Any:
    """The JSON value called ``name``, if it has the form of a sample (:func:`_is_like`). Otherwise raises InputError,
    which shows the sample and the value, or the first wrong item of a list."""
    if not _is_like(value, sample):
        if isinstance(value, list) and isinstance(sample, list) and len(sample) == 1:
            value = next(item for item in value if not _is_like(item, sample[0]))
        form = json.dumps(sample, ensure_ascii=False).replace("null", "...")
        raise InputError(f'{where}: "{name}" is or has {shown(value)}; write it as {form}')
    return value


def _is_like(value, sample):
    """Whether a value has the types of a sample. A list of one item matches any number of such items, a longer list as
    many. Keys of an object that the sample lacks are ignored. ``<key>`` matches any keys, None any value."""
    if sample is None or type(value) is not type(sample):
        return sample is None
    if isinstance(sample, list):
        items = sample * len(value) if len(sample) == 1 else sample
        return len(value) == len(items) and all(map(_is_like, value, items))
    if isinstance(sample, dict):
        if any(key.startswith("<") for key in sample):
            sample = dict.fromkeys(value, *sample.values())
        return all(key in value and _is_like(value[key], one) for key, one in sample.items())
    return True


def check_type(type_: str, where: str) -> str:
    """The type of an entity or relation; raises InputError if it is blank or longer than ``LONGEST_TYPE``."""
    if not type_.strip():
        raise Fault(NO_TYPE, f"{where}: the type {shown(type_)} is no name; give it one")
    if len(type_) > LONGEST_TYPE:
        found = f"{where}: the type {shown(type_)} has more than {LONGEST_TYPE} characters"
        raise Fault(NO_TYPE, f"{found}; shorten it")
    check_encodable(type_, "a type", where)
    return type_


def check_span(
    start: int, end: int, text: str, where: str, surface: object = None, inclusive: bool = False
) -> tuple[int, int]:
    """The half-open offsets of a span, checked to be within the text and, if given, to hold ``surface``; ``inclusive``
    if ``end`` is the last character."""
    behind, span = end + inclusive, f"{where}: span [{start}, {end}]"
    counted = f"offsets count characters from 0, and the end is {'' if inclusive else 'not '}included"
    if not 0 <= start < behind <= len(text):
        what = "is empty" if start == behind else f"is not in the text of {len(text)} characters"
        raise Fault(OUTSIDE, f"{span} {what}; {counted}")
    if surface is not None and not holds(text, start, behind, surface):
        found = f"holds {held(text, start, behind)}, but its text is {shown(surface)}"
        fits = not inclusive and holds(text, start, end + 1, surface)
        remedy = f", or say that it is: --fields {LAST}=KEY" if fits else ""
        raise Fault(OTHER_TEXT, f"{span} {found}; correct the text or the offsets: {counted}{remedy}")
    return start, behind


def holds(text: str, start: int, end: int, surface: object) -> bool:
    """Whether a span holds the text ``surface``."""
    return isinstance(surface, str) and len(surface) == end - start and text.startswith(surface, start)


def held(text: str, start: int, end: int) -> str:
    """What a span holds, for messages."""
    return shown(text[start : min(end, start + 100)])  # a span may be very long, and many may be wrong


def entity_of(
    text: str,
    where: str,
    start: int,
    end: int,
    type_: str,
    surface: object = None,
    inclusive: bool = False,
    probability: Any = None,
) -> Entity:
    """The checked entity of a text; ``surface`` and ``inclusive`` as in :func:`check_span`."""
    span = check_span(start, end, text, where, surface, inclusive)
    return Entity(*span, check_type(type_, where), probability=probability)


write_lines = partial(map, json_line)


def write_list(found: Iterable[object]) -> Iterator[str]:
    """Pieces of a JSON list with one record per line."""
    between = "[\n"
    for record in found:
        yield between + json.dumps(record, ensure_ascii=False)
        between = ",\n"
    yield "[]\n" if between == "[\n" else "\n]\n"


# ---- relations, which name their entities by identifiers: brat, doccano and Label Studio


class EntityIds:
    """The entities of a text by their identifiers, to resolve its relations."""

    def __init__(self):
        self._entities: dict[int | str, Entity | None] = {}
        self._ambiguous: set[int | str] = set()  # identifiers of several spans

    def add(self, id_: object, entity: Entity | None) -> None:
        """Remember an entity; None is one that was left out. If a span has several types, the first one counts."""
        if isinstance(id_, (int, str)):
            first = self._entities.setdefault(id_, entity)
            if first is None:
                self._entities[id_] = entity
            elif entity is not None and entity[:2] != first[:2]:
                self._ambiguous.add(id_)

    def related(self, head: object, tail: object, type_: str, where: str) -> list:
        """[(head entity, tail entity, type)]; an empty list if one of the entities was left out."""
        check_type(type_, where)
        for id_ in (head, tail):
            is_known = isinstance(id_, (int, str)) and id_ in self._entities
            if not is_known or id_ in self._ambiguous:
                called = "several entities are" if is_known else "no entity is"
                raise Fault(
                    UNRELATED,
                    f"{where}: a relation names {shown(id_)}, and {called} called so; give the identifiers of two "
                    "entities of the text",
                )
        ends = self._entities[head], self._entities[tail]
        return [] if None in ends else [(*ends, type_)]
