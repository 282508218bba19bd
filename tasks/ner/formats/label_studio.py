"""Label Studio: its JSON export, a list of tasks, and its smaller export JSON-MIN, a list of annotations.

* JSON: ``[{"data": {"text": "..."}, "annotations": [{"result": [{"from_name": "label", "to_name": "text",
  "type": "labels", "value": {"start": 0, "end": 3, "text": "...", "labels": ["name"]}}]}], ...}]``;
* JSON-MIN: ``[{"text": "...", "label": [{"start": 0, "end": 3, "text": "...", "labels": ["name"]}], "annotation_id": 1,
  ...}]``; a text without entities has no list.

Offsets are half-open. Label Studio counts code points; older releases counted units of UTF-16, in which an emoji is
two. The surface in the file decides: if it fits only the second count, that one is used. It may differ from the text
in white space, which a browser joins.

Of several submitted annotations of a text, the one marked as ground truth is used, otherwise the one updated last. Left
out, and counted in this module's log, are texts without a submitted annotation, skipped annotations, drafts, relations
and results that are no labels of text.
Source: https://labelstud.io/guide/task_format, https://github.com/HumanSignal/label-studio/pull/1559 and /issues/3078
"""

from __future__ import annotations

import bisect
import functools
import itertools
import logging
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from xml.sax.saxutils import quoteattr

from tasks.common.errors import InputError
from tasks.common.texts.json_records import check_encodable
from tasks.common.texts.text_files import shown
from tasks.ner.examples import Entity, Example, make_example
from tasks.ner.formats.records import Records, check_objects, check_span, check_type, field, write_list

logger = logging.getLogger(__name__)

SHAPE = 'write it as {"start": 0, "end": 3, "labels": ["type"]}'
# The names in what is written, and in the labeling configuration.
FROM_NAME, TO_NAME, TEXT_KEY = "label", "text", "text"
ANNOTATION_ID = "annotation_id"
MAX_WHITE_SPACE = 1000  # characters by which a span may be longer than its surface
_ABOUT_ANNOTATIONS = ("created_at", "updated_at")  # strings of JSON-MIN that are no text
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_UNLABELED, _FURTHER = "texts without a submitted annotation", "further annotations of a text"
_EXPORT = "export the project again"


# ---- reading


def read(records: Records, name: str) -> list[Example]:
    """The JSON export."""
    left_out: Counter = Counter()
    found = []  # (where, data of the task, labeled spans)
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
    examples = []
    for where, data, regions in found:
        text = _text(data, objects[0] if objects else TEXT_KEY, where)
        values = (_object(region, "value", where) for region in regions)
        examples.append(make_example(text, _entities(values, text, where), where))
    _report(name, left_out)
    return examples


def _annotation(task, where, left_out):
    """The annotation of a task that is used; None if there is none."""
    annotations = check_objects(task.get("annotations", []), "annotations", _EXPORT, where)
    left_out["drafts"] += len(task.get("drafts") or ())
    submitted = [one for one in annotations if not one.get("was_cancelled")]
    left_out["skipped annotations"] += len(annotations) - len(submitted)
    left_out[_UNLABELED] += not submitted
    left_out[_FURTHER] += max(0, len(submitted) - 1)
    return max(reversed(submitted), key=lambda one: (bool(one.get("ground_truth")), _updated(one)), default=None)


def _updated(annotation):
    """Time of the last change; times of Label Studio sort as strings."""
    return str(annotation.get("updated_at") or annotation.get("created_at") or "")


def _regions(annotation, where, left_out):
    """The labeled spans of an annotation."""
    results = check_objects(field(annotation, "result", _EXPORT, where), "result", _EXPORT, where)
    for result in results:
        if result.get("type") != "labels":
            left_out["relations" if result.get("type") == "relation" else "results that are no labels"] += 1
    return [result for result in results if result.get("type") == "labels"]


def _object(record, key, where):
    if not isinstance(record.get(key), dict):
        raise InputError(f'{where}: "{key}" is {shown(record.get(key))}, not an object; {_EXPORT}')
    return record[key]


def _text(data, key, where, ignored=()):
    """The text among the strings of a task: the string of ``key``, or the only one."""
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


def _entities(values: Iterable[dict], text: str, where: str) -> Iterator[Entity]:
    """One entity for each label of each span."""
    for value in values:
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
        return check_span(start, end, text, SHAPE, where)
    if _holds(text, start, end, surface):
        return start, end
    units = _utf16_offsets(text)
    first, last = (bisect.bisect_right(units, offset, 1) - 1 for offset in (start, end))
    return (first, last) if _holds(text, first, last, surface) else check_span(start, end, text, SHAPE, where, surface)


def _holds(text, start, end, surface):
    """Whether a span is in the text and the same as ``surface`` without white space."""
    if not 0 <= start < end <= len(text) or end - start > len(surface) + MAX_WHITE_SPACE:
        return False
    return _bare(text[start:end]) == _bare(surface)


def _bare(surface):
    """Without white space, and without line breaks that are written as a backslash and an n."""
    return "".join(surface.replace("\\n", "\n").split())


@functools.lru_cache(maxsize=1)
def _utf16_offsets(text: str) -> list[int]:
    """For each character, and the end, the units of UTF-16 before it."""
    return list(itertools.accumulate((1 + (character > "\uffff") for character in text), initial=0))


def _report(name, left_out):
    parts = [f"{count} {what}" for what, count in sorted(left_out.items()) if count]
    if parts:
        logger.warning("%s: left out of the Label Studio export: %s", name, ", ".join(parts))


def read_min(records: Records, name: str) -> list[Example]:
    """The export JSON-MIN."""
    left_out: Counter = Counter()
    tasks: dict = {}  # the annotation of each task that is used, and its place
    for number, (where, record) in enumerate(records):
        if record.get(ANNOTATION_ID) is None:
            left_out[_UNLABELED] += 1
            continue
        id_ = record.get("id")
        key = ("number", number) if id_ is None else ("id", str(id_))
        left_out[_FURTHER] += key in tasks
        if key not in tasks or _updated(record) > _updated(tasks[key][1]):
            tasks[key] = where, record
    examples = []
    for where, record in tasks.values():
        text = _text(record, TEXT_KEY, where, _ABOUT_ANNOTATIONS)
        spans = [value for found in record.values() if isinstance(found, list) for value in found if _is_span(value)]
        labeled = [value for value in spans if "labels" in value]
        left_out["spans without labels"] += len(spans) - len(labeled)
        examples.append(make_example(text, _entities(labeled, text, where), where))
    _report(name, left_out)
    return examples


def _is_span(value):
    return isinstance(value, dict) and ("labels" in value or {"start", "end"} <= value.keys())


# ---- writing


def write(examples: Iterable[Example]) -> Iterator[str]:
    """As an export with one annotation of each text."""
    return write_list(
        {"data": {TEXT_KEY: one.text}, "annotations": [{"result": [_region(one.text, e) for e in one.entities]}]}
        for one in examples
    )


def write_min(examples: Iterable[Example]) -> Iterator[str]:
    def labels(one):
        return {FROM_NAME: [_value(one.text, entity) for entity in one.entities]} if one.entities else {}

    return write_list(
        {"id": number, TEXT_KEY: one.text, **labels(one), ANNOTATION_ID: number}
        for number, one in enumerate(examples, 1)
    )


def _value(text, entity):
    return {"start": entity.start, "end": entity.end, "text": text[entity.start : entity.end], "labels": [entity.type]}


def _region(text, entity):
    return {"from_name": FROM_NAME, "to_name": TO_NAME, "type": "labels", "value": _value(text, entity)}


def prediction_task(record: dict, model_version: str) -> dict:
    """A record of predicted entities as a task that Label Studio imports, so that annotators can correct them.

    The ``score`` of a region is the probability of its entity; the score of the task is their minimum, by which the
    data manager sorts doubtful texts to the front, and 1 without entities.
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
    labels = ""
    for kind in types:
        if _NOT_IN_XML.search(kind):
            raise InputError(f"the type {shown(kind)} has characters that XML cannot hold; rename it")
        labels += f"    <Label value={quoteattr(kind)}/>\n"
    return (
        f'<View>\n  <Labels name="{FROM_NAME}" toName="{TO_NAME}">\n{labels}  </Labels>\n'
        f'  <Text name="{TO_NAME}" value="${TEXT_KEY}"/>\n</View>\n'
    )
