"""Label Studio: its JSON export, a list of tasks, and its smaller export JSON-MIN, a list of annotations without
relations, in which a text without entities has no list; ``TEXT_FORMATS`` has a sample of both.

Label Studio counts code points; older releases counted UTF-16 code units, two for an emoji. The surface in the file
decides: if it fits only the second count, that one is used. It may differ from the text in white space, which browsers
collapse. A relation names the ``id`` of two regions; each of its labels is a relation, in both directions if its
``direction`` is ``bi``. If a region has several labels, the relation belongs to the first.

Of several submitted annotations of a text, the one marked as ground truth is used, otherwise the one updated last. This
module's log counts what is left out: texts without a submitted annotation, skipped annotations, drafts, results that
are not labels of text, and relations of such results.
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

from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.texts.json_records import check_encodable
from paddle_rope.tasks.common.texts.text_files import shown
from paddle_rope.tasks.ner.examples import Entity, Example, entities_of, make_example
from paddle_rope.tasks.ner.formats.records import EntityIds, Records, check_like, check_span, check_type
from paddle_rope.tasks.ner.formats.source import Source

logger = logging.getLogger(__name__)

UNLABELED_RELATION = "relation"
# Names in written tasks and in the labeling configuration.
FROM_NAME, TO_NAME, TEXT_KEY = "label", "text", "text"
ANNOTATION_ID = "annotation_id"
MAX_WHITE_SPACE = 1000  # characters by which a span may be longer than its surface
_TIMES = ("updated_at", "created_at")
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


# ---- reading


def read(records: Records, source: Source) -> list[Example]:
    """The examples of a JSON export."""
    left_out: Counter = Counter()
    found = source.kept(_annotated, ((task, where, left_out) for where, task in records))
    objects = sorted(
        {str(one.get("to_name")) for *_, results in found for one in results if one.get("type") == "labels"}
    )
    if len(objects) > 1:
        raise InputError(
            f"{source.name}:1: labels of several texts of a task ({', '.join(objects)}), and an example has one; "
            "export a project with one text a task"
        )
    examples = source.kept(_example, ((*one, objects, left_out, source) for one in found))
    parts = [f"{count} {what}" for what, count in sorted(left_out.items()) if count]
    if parts:
        logger.warning("%s: left out of the Label Studio export: %s", source.name, ", ".join(parts))
    return examples


def _annotated(task, where, left_out):
    """(where, data, results) of the annotation of a task that is used; None if there is none."""
    annotations = check_like(task.get("annotations", []), [{}], "annotations", where)
    left_out["drafts"] += len(check_like(task.get("drafts") or [], [None], "drafts", where))
    submitted = [one for one in annotations if not one.get("was_cancelled")]
    left_out["skipped annotations"] += len(annotations) - len(submitted)
    left_out["texts without a submitted annotation"] += not submitted
    left_out["further annotations of a text"] += max(0, len(submitted) - 1)

    def rank(one):  # times of Label Studio sort as strings
        return bool(one.get("ground_truth")), str(next(filter(None, map(one.get, _TIMES)), ""))

    annotation = max(reversed(submitted), key=rank, default=None)
    if annotation is None:
        return None
    results = check_like(annotation.get("result"), [{}], "result", where)
    return where, check_like(task.get("data"), {}, "data", where), results


def _example(where, data, results, objects, left_out, source):
    """The example of the results of an annotation."""
    text, entities, relations, ids = text_of(data, where, *objects), [], [], EntityIds()
    for result in results:
        if result.get("type") == "labels":
            labeled = source.tried(_entities, result.get("value"), text, where) or [None]
            entities += filter(None, labeled)
            ids.add(result.get("id"), labeled[0])
        elif result.get("type") != "relation":
            left_out["results that are no labels"] += 1
            ids.add(result.get("id"), None)
    for result in results:  # a relation may precede its regions
        if result.get("type") == "relation":
            for head, tail, label in source.tried(_ends, result, where) or []:
                related = source.tried(ids.related, head, tail, label, where)
                relations += related or []
                left_out["relations of results that are no labels"] += related == []
    return make_example(text, entities, where, relations)


def _ends(relation, where):
    """Triples (identifier of the head, of the tail, type) of a relation."""
    check_like(relation, {"from_id": None, "to_id": None}, "relation", where)
    labels = check_like(relation.get("labels") or [UNLABELED_RELATION], ["type"], "labels", where)
    ends, direction = (relation["from_id"], relation["to_id"]), relation.get("direction") or "right"
    if direction not in ("right", "left", "bi"):
        raise InputError(f"{where}: a relation has the direction {shown(direction)}; write right, left or bi")
    directed = {"right": [ends], "left": [ends[::-1]], "bi": [ends, ends[::-1]]}[direction]
    return [(*pair, label) for pair in directed for label in labels]


def text_of(data: dict, where: str, key: str = TEXT_KEY) -> str:
    """The text of a task, labeled or not: the string called ``key``, or the only string."""
    strings = [name for name, value in data.items() if isinstance(value, str)]
    if key not in strings and len(strings) != 1:
        found = f"{len(strings)} strings ({', '.join(map(shown, strings))})" if strings else "no string"
        raise InputError(f"{where}: {found} in the data, and none is called {key!r}; call the text so")
    text = data[key if key in strings else strings[0]]
    if not text:
        raise InputError(f"{where}: the text is empty; remove the task")
    check_encodable(text, "the text", where)
    return text


def _entities(value, text, where):
    """An entity for each label of a span."""
    check_like(value, {"start": 0, "end": 3, "labels": ["type"]}, "value", where)
    if not value["labels"]:
        raise InputError(f"{where}: the labels of a span are []; give it one")
    span = _span(value, text, where)
    return [Entity(*span, check_type(label, where)) for label in value["labels"]]


def _span(value, text, where):
    start, end, surface = value["start"], value["end"], value.get("text")
    if not isinstance(surface, str):
        return check_span(start, end, text, where)
    if _holds(text, start, end, surface):
        return start, end
    units = _utf16_offsets(text)
    first, last = (bisect.bisect_right(units, offset, 1) - 1 for offset in (start, end))
    return (first, last) if _holds(text, first, last, surface) else check_span(start, end, text, where, surface)


def _holds(text, start, end, surface):
    """Whether a span is in the text and equals ``surface``, ignoring white space."""
    if not 0 <= start < end <= len(text) or end - start > len(surface) + MAX_WHITE_SPACE:
        return False
    return _bare(text[start:end]) == _bare(surface)


def _bare(surface):
    """The surface without white space, including line breaks written as a backslash and an n."""
    return "".join(surface.replace("\\n", "\n").split())


@functools.lru_cache(maxsize=1)
def _utf16_offsets(text: str) -> list[int]:
    """The number of UTF-16 code units before each character and before the end of the text."""
    return list(itertools.accumulate((1 + (character > "\uffff") for character in text), initial=0))


def read_min(records: Records, source: Source) -> list[Example]:
    """The examples of a JSON-MIN export, whose records are the annotations of the tasks of a JSON export."""
    tasks: dict = {}
    for number, (where, record) in enumerate(records):
        id_ = number if record.get("id") is None else str(record["id"])
        strings = {key: value for key, value in record.items() if isinstance(value, str) and key not in _TIMES}
        _, task = tasks.setdefault(id_, (where, {"data": strings, "annotations": []}))
        if record.get(ANNOTATION_ID) is not None:
            found = [one for value in record.values() if isinstance(value, list) for one in value]
            results = [
                {"type": "labels" if "labels" in span else "choices", "to_name": TEXT_KEY, "value": span}
                for span in found
                if isinstance(span, dict) and ("labels" in span or {"start", "end"} <= span.keys())
            ]
            task["annotations"].append({**record, "result": results})
    return read(tasks.values(), source)


# ---- writing


def tasks(examples: Iterable[Example]) -> Iterator[dict]:
    """The tasks of an export, with one annotation for each text."""
    return ({"data": {TEXT_KEY: one.text}, "annotations": [{"result": _results(one)}]} for one in examples)


def _results(example):
    return _with_relations([_region(example.text, entity) for entity in example.entities], example.relations)


def _with_relations(regions, relations):
    """The regions, with identifiers if there are relations (number of the head, of the tail, type), and these."""
    if not relations:
        return regions
    regions = [{"id": str(number), **region} for number, region in enumerate(regions, 1)]
    return regions + [
        {"type": "relation", "from_id": regions[head]["id"], "to_id": regions[tail]["id"]}
        | {"direction": "right", "labels": [type_]}
        for head, tail, type_ in relations
    ]


def min_annotations(examples: Iterable[Example]) -> Iterator[dict]:
    for number, one in enumerate(examples, 1):
        labels = {FROM_NAME: [_value(one.text, entity) for entity in one.entities]} if one.entities else {}
        yield {"id": number, TEXT_KEY: one.text, **labels, ANNOTATION_ID: number}


def _value(text, entity):
    return {"start": entity.start, "end": entity.end, "text": text[entity.start : entity.end], "labels": [entity.type]}


def _region(text, entity):
    return {"from_name": FROM_NAME, "to_name": TO_NAME, "type": "labels", "value": _value(text, entity)}


def prediction_task(record: dict, model_version: str) -> dict:
    """A record of predicted entities, and relations if it has them, as a task that Label Studio imports, so that
    annotators can correct them.

    The ``score`` of a region is the probability of its entity; the score of the task is their minimum, by which the
    data manager sorts doubtful texts to the front. A task without entities has none.
    """
    regions, scores = [], []
    for entity in entities_of(record):
        scores.append(round(entity.probability, 4))
        regions.append({**_region(record["text"], entity), "score": scores[-1]})
    score = {"score": min(scores)} if scores else {}
    relations = [(one["head"], one["tail"], one["type"]) for one in record.get("relations", ())]
    prediction = {"model_version": model_version, **score, "result": _with_relations(regions, relations)}
    return {"data": {TEXT_KEY: record["text"]}, "predictions": [prediction]}


def labeling_configuration(types: Iterable[str]) -> str:
    """The XML of the labeling interface of a project whose texts have entities of these types. Raises InputError if a
    type has a control character, which XML cannot hold."""
    labels = ""
    for kind in types:
        if _NOT_IN_XML.search(kind):
            raise InputError(f"the type {shown(kind)} has characters that XML cannot hold; rename it")
        labels += f"    <Label value={quoteattr(kind)}/>\n"
    return (
        f'<View>\n  <Labels name="{FROM_NAME}" toName="{TO_NAME}">\n{labels}  </Labels>\n'
        f'  <Text name="{TO_NAME}" value="${TEXT_KEY}"/>\n</View>\n'
    )
