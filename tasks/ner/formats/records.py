"""Records of labeled files, and the checks that all formats of records share."""

import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.files import json_line
from paddle_rope.tasks.common.texts.forms import Form, form_of, records
from paddle_rope.tasks.common.texts.json_records import check_encodable, distinct_keys, json_text
from paddle_rope.tasks.common.texts.tables import TEXT
from paddle_rope.tasks.common.texts.text_files import shown
from paddle_rope.tasks.ner.examples import Entity, Example, make_example
from paddle_rope.tasks.ner.formats.source import (
    LAST,
    NO_TYPE,
    OTHER_TEXT,
    OUTSIDE,
    SPANS,
    UNRELATED,
    Fault,
    Source,
    key_of,
)

LONGEST_TYPE = 200  # characters; formats of tags repeat it at each character
Records = Iterable[tuple[str, dict]]  # pairs ("path:line", record), of JSON lines, a JSON list or a table
_LABELS = ("label", "entities", "tags", "ner_tags")  # an empty cell in these columns means a text without entities


def labeled_records(lines: list[str], source: Source) -> Iterator[tuple[str, dict]]:
    """Pairs ("path:line", record) of JSON lines, a JSON list or a table, with keys as the source says. Cells of a table
    that are JSON lists or objects are read as such, except the text; an empty cell of labels is an empty list, other
    empty cells are left out."""
    form = form_of(lines)
    for where, record in records(lines, source.name, form):
        yield where, source.named(_with_json(record, where) if form is Form.TABLE else record, where)


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
    sample: object,
    spans_of: Callable[[Any, str, str], Iterable[Iterable]],
    may_be_empty: bool = False,
    relations_of: Callable[..., list] = lambda *_: [],
) -> Callable[[Records, Source], list[Example]]:
    """A reader of records with a text. ``spans_of`` receives the value of the entities, the text and "path:line", and
    returns what :func:`entity_of` takes; the value has to be like ``sample`` (:func:`check_like`). ``relations_of`` is
    from :func:`relations_by`."""

    def read(records: Records, source: Source) -> list[Example]:
        return source.kept(read_one, ((where, record, source) for where, record in records))

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
        entities = [source.tried(entity_of, text, where, *span) for span in spans_of(value, text, where)]
        relations = relations_of(record, value, entities, where, source)
        return make_example(text, filter(None, entities), where, relations)

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
        found = f"holds {shown(text[start : min(behind, start + 60)])}, but its text is {shown(surface)}"
        fits = not inclusive and holds(text, start, end + 1, surface)
        remedy = f", or say that it is: --fields {LAST}=KEY" if fits else ""
        raise Fault(OTHER_TEXT, f"{span} {found}; correct the text or the offsets: {counted}{remedy}")
    return start, behind


def holds(text: str, start: int, end: int, surface: object) -> bool:
    """Whether a span holds the text ``surface``."""
    return isinstance(surface, str) and len(surface) == end - start and text.startswith(surface, start)


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


# ---- relations, which name their entities by identifiers or numbers: brat, doccano, Label Studio and JSON lines


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


def relations_by(head: str, tail: str, id_of: Callable[[int, dict], object]) -> Callable[..., list]:
    """A function from a record with a list ``relations``, the values of its entities, their entities, None for one that
    was left out, "path:line" and the source to the relations. ``head`` and ``tail`` are the keys that name entities as
    ``id_of(number, value)`` does; relations that have neither key are another tool's, and ignored."""

    def relations_of(record, values, entities, where, source):
        found, related, ids = record.get("relations") or [], [], EntityIds()
        if isinstance(found, list):
            found = [one for one in found if not isinstance(one, dict) or head in one or tail in one]
        for number, (value, entity) in enumerate(zip(values, entities)):
            ids.add(id_of(number, value), entity)
        sample = [{head: None, tail: None, "type": "type"}]
        for one in check_like(found, sample, "relations", where):
            related += source.tried(ids.related, one[head], one[tail], one["type"], where) or []
        return related

    return relations_of
