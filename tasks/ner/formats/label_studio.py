"""Label Studio: its JSON export, a list of tasks, and its smaller export JSON-MIN, a list of annotations.

* JSON: ``[{"data": {"text": "..."}, "annotations": [{"result": [{"from_name": "label", "to_name": "text",
  "type": "labels", "value": {"start": 0, "end": 3, "text": "...", "labels": ["name"]}}]}], ...}]``;
* JSON-MIN: ``[{"text": "...", "label": [{"start": 0, "end": 3, "text": "...", "labels": ["name"]}], "annotation_id": 1,
  ...}]``; a text without entities has no list, and there are no relations.

Offsets are half-open. Label Studio counts code points; older releases counted units of UTF-16, in which an emoji is
two. The surface in the file decides: if it fits only the second count, that one is used. It may differ from the text
in white space, which a browser joins.

A relation is ``{"type": "relation", "from_id": "a", "to_id": "b", "direction": "right", "labels": ["at"]}`` with the
``id`` of two regions. Each of its labels is a relation, in both directions if ``direction`` is ``bi``; one without
labels is called "relation". It belongs to the first label of a region that has several.

Of several submitted annotations of a text, the one marked as ground truth is used, otherwise the one updated last. Left
out, and counted in this module's log, are texts without a submitted annotation, skipped annotations, drafts, results
that are no labels of text, and relations of those.
Source: https://labelstud.io/guide/task_format, https://github.com/HumanSignal/label-studio/pull/1559 and /issues/3078
"""

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
from tasks.ner.formats.records import (
    EntityIds,
    Records,
    check_kind,
    check_objects,
    check_span,
    check_type,
    field,
    write_list,
)

logger = logging.getLogger(__name__)

SHAPE = 'write it as {"start": 0, "end": 3, "labels": ["type"]}'
RELATION_SHAPE = (
    'write it as {"from_id": "a", "to_id": "b", "direction": "right", "labels": ["type"]}, with the "id" of two regions'
)
UNLABELED_RELATION = "relation"
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
    found = []  # (where, data of the task, results)
    for where, task in records:
        annotation = _annotation(task, where, left_out)
        if annotation is not None:
            results = check_objects(field(annotation, "result", _EXPORT, where), "result", _EXPORT, where)
            found.append((where, _object(task, "data", where), results))
    objects = sorted({str(one.get("to_name")) for *_, results in found for one in results if _is_labeled(one)})
    if len(objects) > 1:
        raise InputError(
            f"{name}:1: labels of several texts of a task ({', '.join(objects)}), and an example has one; export a "
            "project with one text a task"
        )
    examples = []
    for where, data, results in found:
        text = _text(data, objects[0] if objects else TEXT_KEY, where)
        examples.append(_example(results, text, where, left_out))
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


def _is_labeled(result):
    return result.get("type") == "labels"


def _example(results, text, where, left_out):
    """The example of the results of an annotation."""
    entities, relations, ids = [], [], EntityIds()
    for result in results:
        if _is_labeled(result):
            labeled = list(_entities([_object(result, "value", where)], text, where))
            entities += labeled
            ids.add(result.get("id"), labeled[0])
        elif result.get("type") != "relation":
            left_out["results that are no labels"] += 1
            ids.add(result.get("id"), None)
    for result in results:  # a relation may precede its regions
        if result.get("type") == "relation":
            for head, tail, label in _ends(result, where):
                related = ids.related(head, tail, label, RELATION_SHAPE, where)
                relations += related
                left_out["relations of results that are no labels"] += not related
    return make_example(text, entities, where, relations)


def _ends(relation, where):
    """Triples (identifier of the head, of the tail, type) of a relation."""
    ends = tuple(field(relation, key, RELATION_SHAPE, where) for key in ("from_id", "to_id"))
    labels, direction = relation.get("labels") or [UNLABELED_RELATION], relation.get("direction") or "right"
    if not isinstance(labels, list) or direction not in ("right", "left", "bi"):
        raise InputError(
            f"{where}: the labels of a relation are {shown(labels)} and its direction is {shown(direction)}, not a "
            f"list and one of right, left and bi; {RELATION_SHAPE}"
        )
    directed = {"right": [ends], "left": [ends[::-1]], "bi": [ends, ends[::-1]]}[direction]
    return [(*pair, label) for pair in directed for label in labels]


def _object(record, key, where):
    return check_kind(record.get(key), dict, f'"{key}"', _EXPORT, where)


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
    return write_list({"data": {TEXT_KEY: one.text}, "annotations": [{"result": _results(one)}]} for one in examples)


def _results(example):
    regions = [_region(example.text, entity) for entity in example.entities]
    if not example.relations:
        return regions
    regions = [{"id": str(number), **region} for number, region in enumerate(regions, 1)]
    return regions + [
        {"type": "relation", "from_id": regions[head]["id"], "to_id": regions[tail]["id"]}
        | {"direction": "right", "labels": [type_]}
        for head, tail, type_ in example.relations
    ]


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
