"""DuIE: the triples of a text, with the texts of their entities in place of offsets.

``{"text": ..., "spo_list": [{"subject": ..., "subject_type": ..., "predicate": ..., "object": {"@value": ...},
"object_type": {"@value": ...}}]}``. An entity is the first place of its text. In version 1 the object and its type are
strings; in version 2 an object may have further parts, and each part but ``@value`` makes a relation
``PREDICATE_PART``. Source: https://ai.baidu.com/broad/subordinate?dataset=duie
"""

from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.texts.text_files import shown
from paddle_rope.tasks.ner.formats.records import check_like, text_of
from paddle_rope.tasks.ner.formats.source import OTHER_TEXT, Fault, Source

TRIPLES, VALUE = "spo_list", "@value"  # keys
MOST_ENTITIES = 1000  # of a text, in which each is searched for
_SAMPLE = {"subject": "x", "subject_type": "type", "predicate": "type", "object": None, "object_type": None}


def plain_record(record: dict, where: str, source: Source) -> dict:
    """Convert a record with triples into one with entities, and relations that name them by number."""
    text = text_of(record, where)
    triples = check_like(record[TRIPLES], [_SAMPLE], TRIPLES, where)
    places: dict[tuple[str, str], int] = {}  # of (surface, type)
    relations, numbers = [], {}
    for head, tail, kind in (part for one in triples for part in source.tried(_parts, one, where) or ()):
        if len(places) > MOST_ENTITIES:
            raise InputError(f"{where}: triples of more than {MOST_ENTITIES} entities; give them offsets, as in jsonl")
        for end in (head, tail):
            if end not in places:
                places[end] = text.find(end[0])
        if source.tried(_check_there, [end[0] for end in (head, tail) if places[end] < 0], where):
            ends = [numbers.setdefault(end, len(numbers)) for end in (head, tail)]
            relations.append({"head": ends[0], "tail": ends[1], "type": kind})
    entities = [
        {"start": places[end], "end": places[end] + len(end[0]), "type": end[1], "text": end[0]} for end in numbers
    ]
    return {"text": text, "entities": entities, "relations": relations}


def _parts(triple, where):
    """[((surface, type) of the head, of the tail, relation)] of a triple."""
    values, types = (
        one if isinstance(one, dict) else {VALUE: one} for one in (triple["object"], triple["object_type"])
    )
    head, kind = (triple["subject"], triple["subject_type"]), triple["predicate"]
    parts = [(head, (values[part], types.get(part)), kind if part == VALUE else f"{kind}_{part}") for part in values]
    for one in (end for *ends, _ in parts for end in ends):
        if not all(isinstance(word, str) and word for word in one):
            raise Fault(OTHER_TEXT, f"{where}: expected a text and its type, found {shown(list(one))}; complete it")
    return parts


def _check_there(missing, where):
    """Whether the text holds both entities; otherwise raises InputError."""
    if missing:
        raise Fault(OTHER_TEXT, f"{where}: the text does not hold {shown(missing[0])} of a triple; correct one of them")
    return True
