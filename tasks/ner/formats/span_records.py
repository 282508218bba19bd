"""Formats of records that have a text and its entities; ``TEXT_FORMATS`` has a sample of each.

* CLUENER: type, surface, then pairs of first and last character, the end included
  (https://github.com/CLUEbenchmark/CLUENER2020);
* doccano, sequence labeling: older releases call the key ``labels``;
* doccano, with relations: ``"relations": [{"id": 1, "from_id": 1, "to_id": 2, "type": "at"}]``, which name
  entities by their ``id`` (https://doccano.github.io/doccano);
* CMeEE: the end is inclusive in CMeEE of CBLUE and exclusive in other files of this form, so ``entity`` decides for
  each span: its length fits only one of the two. Written with the end included
  (https://github.com/CBLUEbenchmark/CBLUE);
* the JSON lines of ``paddle-rope predict``: the surface ``text`` is checked if it is there; scores are not read,
  and probabilities only from a teacher. A text may be empty, because one line of input gives one record;
* spaCy's training tuples; and the documents of its version 2: ``[{"id": 0, "paragraphs": [{"raw": "...", "sentences":
  [{"tokens": [{"orth": "...", "ner": "B-name"}, ...]}]}]}]``, tags in the BILUO scheme. Each paragraph is an example;
  its text is ``raw``, or the tokens joined (https://v2.spacy.io/api/annotation).

Offsets count characters and, except in CLUENER and CMeEE, are half-open. Other keys are ignored.
"""

from collections.abc import Iterable, Iterator
from itertools import count
from typing import NamedTuple

from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.texts.json_records import check_encodable, json_text
from paddle_rope.tasks.common.texts.text_files import shown
from paddle_rope.tasks.ner.examples import Entity, Example, make_example
from paddle_rope.tasks.ner.formats.records import EntityIds, Records, check_like, entity_of, reader
from paddle_rope.tasks.ner.formats.tagging import OUTSIDE, decode_tags, join_tokens, parse_tag

# ---- CLUENER


def cluener_records(examples: Iterable[Example]) -> Iterator[dict]:
    for example in examples:
        label: dict = {}
        for entity in example.entities:
            surfaces = label.setdefault(entity.type, {})
            surfaces.setdefault(example.surface(entity), []).append([entity.start, entity.end - 1])
        yield {"text": example.text, "label": label}


def _cluener_entities(label, text, where):
    for type_, surfaces in label.items():
        for surface, pairs in surfaces.items():
            for first, last in pairs:
                yield entity_of(first, last, type_, text, where, surface, True)


read_cluener = reader(("label",), {"<type>": {"<surface>": [[0, 2]]}}, _cluener_entities)

# ---- entities as lists [start, end, type]

LISTED = [[0, 3, "type"]]


def _listed_entities(spans: list[list], text: str, where: str) -> Iterator[Entity]:
    """The entities of lists like ``LISTED``."""
    return (entity_of(*span, text, where) for span in spans)


def _as_lists(example):
    return [[entity.start, entity.end, entity.type] for entity in example.entities]


read_doccano = reader(("label", "labels"), LISTED, _listed_entities)
_read_spacy_tuples = reader(("entities",), LISTED, _listed_entities)


def doccano_records(examples: Iterable[Example]) -> Iterator[dict]:
    return ({"text": example.text, "label": _as_lists(example)} for example in examples)


def spacy_records(examples: Iterable[Example]) -> Iterator[list]:
    return ([example.text, {"entities": _as_lists(example)}] for example in examples)


# ---- entities as objects


class SpanKeys(NamedTuple):
    """The keys of entities that are objects; a surface that ``surface_decides`` tells whether the end is inclusive."""

    start: str
    end: str
    type: str
    surface: str | None = None
    probability: str | None = None
    surface_decides: bool = False
    may_be_empty: bool = False  # whether a text may be empty

    def read(self, records: Records, name: str) -> list[Example]:
        sample = {self.start: 0, self.end: 3, self.type: "type"}
        if self.surface_decides:
            sample[self.surface] = "surface"
        return reader(("entities",), [sample], self.entities, self.may_be_empty)(records, name)

    def entities(self, objects: list[dict], text: str, where: str) -> Iterator[Entity]:
        for one in objects:
            start, end, type_, surface, probability = map(one.get, self[:5])
            if self.surface_decides:
                end += start + len(surface) == end + 1 and text.startswith(surface, start)
            if probability is not None and not (type(probability) in (int, float) and 0 <= probability <= 1):
                raise InputError(f"{where}: the probability {shown(probability)} is not a number from 0 to 1")
            yield entity_of(start, end, type_, text, where, surface)._replace(probability=probability)

    def objects(self, example: Example) -> Iterator[dict]:
        for one in example.entities:
            surface = {self.surface: example.surface(one)} if self.surface else {}
            yield {self.start: one.start, self.end: one.end - self.surface_decides, self.type: one.type, **surface}

    def records(self, examples: Iterable[Example]) -> Iterator[dict]:
        return ({"text": one.text, "entities": [*self.objects(one)]} for one in examples)


DOCCANO = SpanKeys("start_offset", "end_offset", "label")
CMEEE = SpanKeys("start_idx", "end_idx", "type", "entity", surface_decides=True)
PREDICTED = SpanKeys("start", "end", "type", "text", may_be_empty=True)
PROBABLE = PREDICTED._replace(probability="probability")  # an entity without one is certain


def read_doccano_entities(records: Records, name: str) -> list[Example]:
    records = list(records)
    examples = DOCCANO.read(records, name)
    return [_with_relations(example, record) for example, (_, record) in zip(examples, records, strict=True)]


def _with_relations(example, record):
    ids, entities, where = EntityIds(), record["entities"], example.where
    for entity, read in zip(entities, DOCCANO.entities(entities, example.text, where), strict=True):
        ids.add(entity.get("id"), read)
    sample, relations = [{"from_id": None, "to_id": None, "type": "type"}], []
    for one in check_like(record.get("relations") or [], sample, "relations", where):
        relations += ids.related(one["from_id"], one["to_id"], one["type"], where)
    return make_example(example.text, example.entities, where, relations)


def doccano_entities_records(examples: Iterable[Example]) -> Iterator[dict]:
    numbers, relation_numbers = count(1), count(1)  # unique in a project
    for example in examples:
        entities = [{"id": next(numbers), "label": one["label"], **one} for one in DOCCANO.objects(example)]
        ids = [entity["id"] for entity in entities]
        relations = [
            {"id": next(relation_numbers), "from_id": ids[head], "to_id": ids[tail], "type": type_}
            for head, tail, type_ in example.relations
        ]
        yield {"text": example.text, "entities": entities, "relations": relations}


# ---- documents of spaCy 2

PARAGRAPHS = "paragraphs"
_BIOES_OF = {"U": "S", "L": "E"}  # BILUO prefix -> BIOES prefix


def read_spacy(records: Records, name: str) -> list[Example]:
    examples = []
    for where, record in records:
        if PARAGRAPHS in record:
            examples += [_of_paragraph(*paragraph, where) for paragraph in paragraphs_of(record, where)]
        else:
            examples += _read_spacy_tuples([(where, record)], name)
    return examples


def paragraphs_of(record: dict, where: str) -> Iterator[tuple[str, dict, list[list[dict]], list[tuple[int, int]]]]:
    """For each paragraph its text, its object, the tokens of each sentence, and the half-open offsets of all tokens."""
    for content in check_like(record[PARAGRAPHS], [{}], PARAGRAPHS, where):
        sample = [{"tokens": [{"orth": "word"}]}]
        sentences = [one["tokens"] for one in check_like(content.get("sentences", []), sample, "sentences", where)]
        words = [token["orth"] for tokens in sentences for token in tokens]
        if not all(words):
            raise InputError(f'{where}: the "orth" of a token is empty; remove the token')
        if content.get("raw") is None:
            text, offsets = join_tokens(words)
        else:
            text = json_text(content, where, ("raw",))
            offsets = _found_in(text, words, where)
        if not text:
            raise InputError(f"{where}: a paragraph has no text; remove it")
        check_encodable(text, "a paragraph", where)
        yield text, content, sentences, offsets


def _found_in(text, words, where):
    """The half-open offsets of consecutive words in a text, with only white space between them."""
    offsets, end = [], 0
    for word in words:
        begin = end
        while not word[0].isspace() and text[begin : begin + 1].isspace():
            begin += 1
        if not text.startswith(word, begin):
            raise InputError(
                f"{where}: expected token {shown(word)} in the raw text after {end} characters, found "
                f"{shown(text[end : end + 20])}; correct the tokens or the text"
            )
        end = begin + len(word)
        offsets.append((begin, end))
    return offsets


def _of_paragraph(text, content, sentences, offsets, where):
    entities, first = [], 0  # index in the paragraph of the first token of the sentence
    for tokens in sentences:
        tags = [_tag(token.get("ner", "O"), where) for token in tokens]
        for start, end, type_ in decode_tags(tags, must_close=True)[0]:
            entities.append(Entity(offsets[first + start][0], offsets[first + end - 1][1], type_))
        first += len(tokens)
    if "entities" in content:
        entities += _listed_entities(check_like(content["entities"], LISTED, "entities", where), text, where)
    elif not any("ner" in token for tokens in sentences for token in tokens):
        raise InputError(f'{where}: no token has a "ner", the file is unlabeled; give labeled data, or predict with it')
    return make_example(text, entities, where)


def _tag(tag, where):
    if tag in ("", "-", None):  # not labeled
        return OUTSIDE
    parsed = parse_tag(_BIOES_OF.get(tag[:1], tag[:1]) + tag[1:]) if isinstance(tag, str) else None
    if parsed is None:
        raise InputError(f"{where}: unknown tag {shown(tag)}; BILUO has B-X, I-X, L-X, U-X and O")
    check_encodable(tag, "a tag", where)
    return parsed
