"""Label Studio: its JSON export, one list of tasks, and its smaller export JSON-MIN, one list of annotations.

* JSON: ``[{"data": {"text": "..."}, "annotations": [{"result": [{"from_name": "label", "to_name": "text",
  "type": "labels", "value": {"start": 0, "end": 3, "text": "...", "labels": ["name"]}}]}], ...}]``;
* JSON-MIN: ``[{"text": "...", "label": [{"start": 0, "end": 3, "text": "...", "labels": ["name"]}], "annotation_id": 1,
  ...}]``; a text without entities has no list.

Offsets are half-open. Label Studio counts them in code points; older releases counted the units of UTF-16, in which
an emoji is two. The surface that it writes beside them decides: where it fits the second count only, that one is taken.
It may differ from the text in white space, which a browser joins.

Of several submitted annotations of a text, the one marked as ground truth is taken, else the one that was updated last.
Not taken, and counted in one line of this module's log: texts without a submitted annotation, skipped annotations,
drafts, relations and results that are no labels of text.
Source: https://labelstud.io/guide/task_format, https://github.com/HumanSignal/label-studio/pull/1559 and /issues/3078
"""

from __future__ import annotations

import bisect
import functools
import itertools
import json
import logging
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from xml.sax.saxutils import quoteattr

from tasks.common.errors import InputError
from tasks.common.texts.json_records import check_encodable
from tasks.common.texts.text_files import shown
from tasks.ner.examples import Entity, Example, make_example
from tasks.ner.formats.json_records import Records, check_offsets, check_type, field

logger = logging.getLogger(__name__)

SHAPE = 'write it as {"start": 0, "end": 3, "labels": ["type"]}'
# The names in what is written, and in the labeling configuration.
FROM_NAME, TO_NAME, TEXT_KEY = "label", "text", "text"
ANNOTATION_ID = "annotation_id"
_ABOUT_ANNOTATIONS = ("created_at", "updated_at")  # strings of JSON-MIN that are no text
_WRITTEN_BREAK = re.compile(r"\\n")
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_UNLABELED, _FURTHER = "texts without a submitted annotation", "further annotations of a text"


# ---- reading


def read(records: Records, name: str) -> list[Example]:
    """The JSON export."""
    left_out, found = Counter(), []
    for where, task in records:
        annotation = _annotation(task, where, left_out)
        if annotation is not None:
            found.append((where, _object(task, "data", where), _regions(annotation, where, left_out)))
    objects = sorted({str(region.get("to_name")) for _, _, regions in found for region in regions})
    if len(objects) > 1:
        raise InputError(
            f"{name}:1: labels of several texts of a task ({', '.join(objects)}), and an example has one; export a "
            "project with one text a task"
        )
    key = objects[0] if objects else TEXT_KEY
    examples = []
    for where, data, regions in found:
        text = _Text(_text(data, key, where))
        entities = [entity for region in regions for entity in _entities(_object(region, "value", where), text, where)]
        examples.append(make_example(text.characters, entities, where))
    _tell(name, left_out)
    return examples


def _annotation(task, where, left_out):
    """The annotation of a task that is taken; None if there is none."""
    annotations = task.get("annotations", [])
    if not (isinstance(annotations, list) and all(isinstance(one, dict) for one in annotations)):
        raise InputError(f'{where}: "annotations" is {shown(annotations)}, not a list of objects; export the project')
    left_out["drafts"] += len(task.get("drafts") or ())
    submitted = [one for one in annotations if not one.get("was_cancelled")]
    left_out["skipped annotations"] += len(annotations) - len(submitted)
    if not submitted:
        left_out[_UNLABELED] += 1
        return None
    left_out[_FURTHER] += len(submitted) - 1
    return max(reversed(submitted), key=lambda one: (bool(one.get("ground_truth")), _updated(one)))


def _updated(annotation):
    """When it was changed last; times of Label Studio are ordered as their texts are."""
    return str(annotation.get("updated_at") or annotation.get("created_at") or "")


def _regions(annotation, where, left_out):
    """The labeled spans of an annotation."""
    regions = []
    results = field(annotation, "result", 'write it as {"result": [...]}', where)
    if not (isinstance(results, list) and all(isinstance(one, dict) for one in results)):
        raise InputError(f'{where}: "result" is {shown(results)}, not a list of objects; export the project again')
    for result in results:
        if result.get("type") == "labels":
            regions.append(result)
        else:
            left_out["relations" if result.get("type") == "relation" else "results that are no labels"] += 1
    return regions


def _object(record, key, where):
    if not isinstance(record.get(key), dict):
        raise InputError(f'{where}: "{key}" is {shown(record.get(key))}, not an object; export the project again')
    return record[key]


def _text(data, key, where, ignored=()):
    """The text among the strings of a task: that of ``key``, or the only one."""
    strings = [name for name, value in data.items() if isinstance(value, str) and name not in ignored]
    if key not in strings and len(strings) != 1:
        found = f"{len(strings)} strings ({', '.join(map(shown, strings))})" if strings else "no string"
        raise InputError(f"{where}: {found} in the data, and none is called {key!r}; call the text so")
    text = data[key if key in strings else strings[0]]
    if not text:
        raise InputError(f"{where}: the text is empty; remove the task")
    check_encodable(text, "the text", where)
    return text


def text_of(task: dict, where: str) -> str:
    """The text of a task of the JSON export, labeled or not."""
    return _text(_object(task, "data", where), TEXT_KEY, where)


def _entities(value: dict, text: _Text, where: str) -> Iterator[Entity]:
    """One entity for each label of a span."""
    labels = value.get("labels")
    if not (isinstance(labels, list) and labels):
        raise InputError(f"{where}: the labels of a span are {shown(labels)}, not a list of types; {SHAPE}")
    start, end = _span(value, text, where)
    for label in labels:
        yield Entity(start, end, check_type(label, SHAPE, where))


def _span(value, text, where):
    start, end = (field(value, key, SHAPE, where) for key in ("start", "end"))
    surface = value.get("text")
    if not isinstance(surface, str) or type(start) is not int or type(end) is not int:
        return check_offsets(start, end, text.characters, SHAPE, where)
    if text.holds(start, end, surface):
        return start, end
    first, last = text.from_utf16(start, end)
    if text.holds(first, last, surface):
        return first, last
    start, end = check_offsets(start, end, text.characters, SHAPE, where)
    raise InputError(
        f"{where}: span [{start}, {end}] holds {shown(text.characters[start:end])}, but its text is {shown(surface)}; "
        "correct the offsets, which count characters from 0, the end not included, or the text"
    )


class _Text:
    """A text, prepared for the question what stands in a span: the time for many spans is that for their surfaces."""

    def __init__(self, characters: str):
        self.characters = characters

    def holds(self, start: int, end: int, surface: str) -> bool:
        """Whether a span is in the text and the same as ``surface`` without what :func:`_bare` leaves out."""
        if not 0 <= start < end <= len(self.characters):
            return False
        if end - start == len(surface) and self.characters.startswith(surface, start):
            return True
        bare = _bare(surface)
        # a backslash and an n are left out together: not where the span begins or ends between them
        first = start + (self.characters[start - 1 : start + 1] == "\\n")
        last = end - (self.characters[end - 1 : end + 1] == "\\n")
        before, after = self.characters[start:first], self.characters[last:end]
        kept, place = self._kept
        if place[last] - place[first] != len(bare) - len(before) - len(after):
            return False
        return before + kept[place[first] : place[last]] + after == bare

    def from_utf16(self, *offsets: int) -> list[int]:
        """Offsets in units of UTF-16 -> in characters."""
        if self._units is None:
            return [min(max(0, offset), len(self.characters)) for offset in offsets]
        return [bisect.bisect_right(self._units, offset, 1) - 1 for offset in offsets]

    @functools.cached_property
    def _kept(self) -> tuple[str, list[int]]:
        """The text without what is left out, and for each character, and the end, how much stands before it there."""
        is_kept = [not character.isspace() for character in self.characters]
        for match in _WRITTEN_BREAK.finditer(self.characters):
            is_kept[match.start() : match.end()] = [False, False]
        kept = "".join(itertools.compress(self.characters, is_kept))
        return kept, list(itertools.accumulate(is_kept, initial=0))

    @functools.cached_property
    def _units(self) -> list[int] | None:
        """For each character, and the end, the units before it; None if each is one unit."""
        sizes = [1 + (character > "\uffff") for character in self.characters]
        return None if sum(sizes) == len(sizes) else list(itertools.accumulate(sizes, initial=0))


def _bare(surface):
    """Without white space, and without line breaks that are written as a backslash and an n."""
    return "".join(_WRITTEN_BREAK.sub("\n", surface).split())


def _tell(name, left_out):
    parts = [f"{count} {what}" for what, count in sorted(left_out.items()) if count]
    if parts:
        logger.warning("%s: left out of the Label Studio export: %s", name, ", ".join(parts))


def read_min(records: Records, name: str) -> list[Example]:
    """The export JSON-MIN."""
    left_out, tasks = Counter(), {}
    for number, (where, record) in enumerate(records):
        if record.get(ANNOTATION_ID) is None:
            left_out[_UNLABELED] += 1
            continue
        id_ = record.get("id")
        before = tasks.setdefault(("id", str(id_)) if id_ is not None else ("number", number), (where, record))
        if before[1] is not record:
            left_out[_FURTHER] += 1
            if _updated(record) > _updated(before[1]):
                tasks["id", str(id_)] = (where, record)
    examples = []
    for where, record in tasks.values():
        text = _Text(_text(record, TEXT_KEY, where, _ABOUT_ANNOTATIONS))
        values = [value for found in record.values() if isinstance(found, list) for value in found if _is_span(value)]
        left_out["spans without labels"] += sum("labels" not in value for value in values)
        entities = [one for value in values if "labels" in value for one in _entities(value, text, where)]
        examples.append(make_example(text.characters, entities, where))
    _tell(name, left_out)
    return examples


def _is_span(value):
    return isinstance(value, dict) and ("labels" in value or {"start", "end"} <= value.keys())


# ---- writing


def write(examples: Iterable[Example]) -> Iterator[str]:
    """As an export with one annotation of each text."""
    return _array(
        {"data": {TEXT_KEY: one.text}, "annotations": [{"result": [_region(one.text, e) for e in one.entities]}]}
        for one in examples
    )


def write_min(examples: Iterable[Example]) -> Iterator[str]:
    for_each = (
        {"id": number, TEXT_KEY: one.text, **_list_of_spans(one), ANNOTATION_ID: number}
        for number, one in enumerate(examples, 1)
    )
    return _array(for_each)


def _list_of_spans(example):
    return {FROM_NAME: [_value(example.text, entity) for entity in example.entities]} if example.entities else {}


def _value(text, entity):
    return {"start": entity.start, "end": entity.end, "text": text[entity.start : entity.end], "labels": [entity.type]}


def _region(text, entity):
    return {"from_name": FROM_NAME, "to_name": TO_NAME, "type": "labels", "value": _value(text, entity)}


def _array(records):
    between = "[\n"
    for record in records:
        yield between + json.dumps(record, ensure_ascii=False)
        between = ",\n"
    yield "\n]\n"


def prediction_task(record: dict, model_version: str) -> dict:
    """A text with what a model found in it, as a task that Label Studio imports: annotators see the entities and
    correct them.

    Args:
        record: as from :class:`tasks.ner.prediction.predictor.NerPredictor`.
        model_version: what Label Studio calls the model.

    Returns:
        dict with ``data`` and ``predictions``. The ``score`` of a region is the probability of its entity, that of the
        task the least of them, by which the data manager sorts doubtful texts to the front; 1 where nothing was found.
    """
    regions, scores = [], []
    for found in record["entities"]:
        entity = Entity(found["start"], found["end"], found["type"])
        scores.append(round(found["probability"], 4))
        regions.append({**_region(record["text"], entity), "score": scores[-1]})
    prediction = {"model_version": model_version, "score": min(scores, default=1.0), "result": regions}
    return {"data": {TEXT_KEY: record["text"]}, "predictions": [prediction]}


def labeling_configuration(types: Iterable[str]) -> str:
    """The XML of the labeling interface of a project whose texts have entities of these types.

    Raises:
        InputError: a type has a control character, which XML cannot hold.
    """
    types = list(types)
    for kind in types:
        if _NOT_IN_XML.search(kind):
            raise InputError(f"the type {shown(kind)} has characters that XML cannot hold; rename it")
    labels = "".join(f"    <Label value={quoteattr(kind)}/>\n" for kind in types)
    return (
        f'<View>\n  <Labels name="{FROM_NAME}" toName="{TO_NAME}">\n{labels}  </Labels>\n'
        f'  <Text name="{TO_NAME}" value="${TEXT_KEY}"/>\n</View>\n'
    )
