"""Formats of records that have a text and its entities; ``TEXT_FORMATS`` has a sample of each. Offsets count characters
and, except in CLUENER and CMeEE, are half-open. Other keys are ignored.

* CLUENER (https://github.com/CLUEbenchmark/CLUENER2020): pairs of first and last character, the end included;
* doccano, without relations and with them (https://doccano.github.io/doccano);
* CMeEE (https://github.com/CBLUEbenchmark/CBLUE): the end is inclusive there and exclusive in other files of this form,
  so ``entity`` decides for each span: its length fits only one of the two. Written with the end included;
* the JSON lines of ``paddle-rope predict``, in which a text may be empty, because one line of input gives one record;
  ``"relations": [{"head": 0, "tail": 1, "type": "at"}]`` name entities by their place in the list. So are read all
  records with entities that are objects, with any of the ``NAMES`` of keys, as in Prodigy
  (https://prodi.gy/docs/api-interfaces); DuIE's triples (``triples.py``); GLiNER's tokens and spans of tokens
  (https://github.com/urchade/GLiNER); and UIE's results of prompts
  (https://github.com/PaddlePaddle/PaddleNLP, ``model_zoo/uie``);
* spaCy's training tuples; and the documents of its version 2 (https://v2.spacy.io/api/annotation), with tags in the
  BILUO scheme: each paragraph is an example, whose text is ``raw``, or the tokens joined.
"""

import logging
from collections.abc import Iterable, Iterator
from itertools import count
from typing import NamedTuple

from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.texts.json_records import check_encodable, json_text
from paddle_rope.tasks.common.texts.tables import TEXT
from paddle_rope.tasks.common.texts.text_files import shown
from paddle_rope.tasks.ner.examples import Entity, Example, make_example
from paddle_rope.tasks.ner.formats.records import Records, check_like, entity_of, holds, reader, relations_by
from paddle_rope.tasks.ner.formats.source import END, LAST, OF_ENTITY, START, SURFACE, TYPE, Source, key_of
from paddle_rope.tasks.ner.formats.tagging import OUTSIDE, decode_tags, join_tokens, parse_tag
from paddle_rope.tasks.ner.formats.tags import tokens_of
from paddle_rope.tasks.ner.formats.triples import TRIPLES, plain_record

logger = logging.getLogger(__name__)

TOKENIZED = "tokenized_text"  # a key of GLiNER
RESULTS, PROMPT = "result_list", "prompt"  # keys of UIE
LONGEST_PROMPT = 200  # characters, so that reading takes linear time

# ---- CLUENER


def cluener_records(examples: Iterable[Example]) -> Iterator[dict]:
    for example in examples:
        label: dict = {}
        for entity in example.entities:
            surfaces = label.setdefault(entity.type, {})
            surfaces.setdefault(example.surface(entity), []).append([entity.start, entity.end - 1])
        yield {"text": example.text, "label": label}


def _cluener_spans(label, text, where):
    for type_, surfaces in label.items():
        for surface, pairs in surfaces.items():
            for first, last in pairs:
                yield first, last, type_, surface, True


read_cluener = reader({"<type>": {"<surface>": [[0, 2]]}}, _cluener_spans)

# ---- entities as lists [start, end, type]

LISTED = [[0, 3, "type"]]
read_listed = reader(LISTED, lambda spans, text, where: spans)


def _as_lists(example):
    return [[entity.start, entity.end, entity.type] for entity in example.entities]


def doccano_records(examples: Iterable[Example]) -> Iterator[dict]:
    return ({"text": example.text, "label": _as_lists(example)} for example in examples)


def spacy_records(examples: Iterable[Example]) -> Iterator[list]:
    return ([example.text, {"entities": _as_lists(example)}] for example in examples)


# ---- entities as objects


class SpanKeys(NamedTuple):
    """The keys of written entities that are objects."""

    start: str
    end: str
    type: str
    surface: str | None = None
    is_inclusive: bool = False  # whether ``end`` is the last character

    def objects(self, example: Example) -> Iterator[dict]:
        for one in example.entities:
            surface = {self.surface: example.surface(one)} if self.surface else {}
            yield {self.start: one.start, self.end: one.end - self.is_inclusive, self.type: one.type, **surface}

    def records(self, examples: Iterable[Example]) -> Iterator[dict]:
        return ({"text": one.text, "entities": [*self.objects(one)]} for one in examples)


DOCCANO = SpanKeys("start_offset", "end_offset", "label")
CMEEE = SpanKeys("start_idx", "end_idx", "type", "entity", is_inclusive=True)
PREDICTED = SpanKeys("start", "end", "type", "text")


def _spans_of_objects(objects, text, where):
    """The spans of entities whose keys have any of their names. With CMeEE's keys the surface, which has to be there,
    decides whether the end is included."""
    for one in objects:
        keys = {meaning: key_of(one, meaning, where) for meaning in OF_ENTITY}
        end = END if keys[LAST] is None else LAST
        required = (START, end, TYPE, SURFACE)[: 3 + (keys[START] == CMEEE.start)]
        missing = next((meaning for meaning in required if keys[meaning] is None), None)
        if missing:
            raise InputError(f"{where}: no {missing} in {shown(one)}; name its key as in --fields {missing}=KEY")
        check_like(one, {keys[START]: 0, keys[end]: 3, keys[TYPE]: "type"}, "entities", where)
        first, last, type_, surface = (one.get(keys[meaning]) for meaning in (START, end, TYPE, SURFACE))
        decided = SURFACE in required and holds(text, first, last + 1, surface)
        yield first, last, type_, surface, decided or end == LAST


def _probable_spans(objects, text, where):
    """The spans of entities that a model has found, with their probabilities; one without is certain."""
    for one, span in zip(objects, _spans_of_objects(objects, text, where)):
        probability = one.get("probability")
        if probability is not None and not (type(probability) in (int, float) and 0 <= probability <= 1):
            raise InputError(f"{where}: the probability {shown(probability)} is not a number from 0 to 1")
        yield *span, probability


read_objects = reader([{}], _spans_of_objects)
read_doccano_entities = reader(
    [{}], _spans_of_objects, relations_of=relations_by("from_id", "to_id", lambda number, one: one.get("id"))
)
_by_number = relations_by("head", "tail", lambda number, one: number)
_read_predicted, read_probable = (
    reader([{}], spans, may_be_empty=True, relations_of=_by_number) for spans in (_spans_of_objects, _probable_spans)
)


def read_jsonl(records: Records, source: Source) -> list[Example]:
    """Examples of entities that are objects, as ``predict`` and many tools write them: the texts that Prodigy's users
    did not accept are left out and counted, and the prompts of UIE about one text become one example."""
    records = list(records)
    accepted = [pair for pair in records if pair[1].get("answer") not in ("reject", "ignore")]
    if left_out := len(records) - len(accepted):
        logger.warning("%s: left out %d texts that were rejected or ignored", source.name, left_out)
    examples = _read_predicted(source.kept(_plain, ((*one, source) for one in accepted)), source)
    return _of_one_text(examples, source.name) if any(RESULTS in record for _, record in accepted) else examples


def _plain(where, record, source):
    """The pair with the record as others write it, if it is one of DuIE, which has triples, of GLiNER, whose spans
    count tokens and include the last one, or of UIE, whose entities have the prompt as their type."""
    if TRIPLES in record:
        return where, plain_record(record, where, source)
    if TOKENIZED in record:
        tokens = tokens_of(record, where)
        text, offsets = join_tokens(tokens)
        spans = check_like(record.get("ner"), LISTED, "ner", where)
        wrong = next((span for span in spans if not 0 <= span[0] <= span[1] < len(tokens)), None)
        if wrong is not None:
            raise InputError(f"{where}: span {wrong} is not in the {len(tokens)} tokens; the last one is included")
        entities = [{START: offsets[first][0], END: offsets[last][1], TYPE: kind} for first, last, kind in spans]
        return where, {TEXT: text, "entities": entities}
    if RESULTS in record and PROMPT in record:
        check_like(record, {RESULTS: [{}], PROMPT: "type"}, "record", where)
        if len(record[PROMPT]) > LONGEST_PROMPT:
            raise InputError(f"{where}: the prompt has {len(record[PROMPT])} characters; give one that names a type")
        record = {**record, RESULTS: [{**one, TYPE: record[PROMPT]} for one in record[RESULTS]]}
    return where, record


def _of_one_text(examples, name):
    """One example for each text. A prompt such as "叶老桂的职位", whose first part is an entity, asks for a relation:
    what it found is left out, and counted in this module's log."""
    of_text, relations = {}, 0
    for example in examples:
        of_text.setdefault(example.text, []).append(example)
    for text, same in of_text.items():
        entities = {entity for one in same for entity in one.entities}
        surfaces = {text[one.start : one.end] for one in entities if one.end - one.start <= LONGEST_PROMPT}
        kept = [one for one in entities if one.type.rpartition("的")[0] not in surfaces]
        of_text[text] = make_example(text, kept, same[0].where)
        relations += len(entities) - len(kept)
    if relations:
        logger.warning("%s: left out %d results of prompts for relations, such as 叶老桂的职位", name, relations)
    return list(of_text.values())


def jsonl_records(examples: Iterable[Example]) -> Iterator[dict]:
    for one in examples:
        related = {"relations": [relation._asdict() for relation in one.relations]} if one.relations else {}
        yield {**next(PREDICTED.records([one])), **related}


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


def read_spacy(records: Records, source: Source) -> list[Example]:
    examples = []
    for where, record in records:
        if PARAGRAPHS in record:
            examples += source.tried(_of_document, record, where, source) or []
        else:
            examples += read_listed([(where, record)], source)
    return examples


def _of_document(record, where, source):
    return [_of_paragraph(*paragraph, where, source) for paragraph in paragraphs_of(record, where)]


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


def _of_paragraph(text, content, sentences, offsets, where, source):
    entities, first = [], 0  # index in the paragraph of the first token of the sentence
    for tokens in sentences:
        tags = [_tag(token.get("ner", "O"), where) for token in tokens]
        for start, end, type_ in decode_tags(tags, must_close=True)[0]:
            entities.append(Entity(offsets[first + start][0], offsets[first + end - 1][1], type_))
        first += len(tokens)
    if "entities" in content:
        spans = check_like(content["entities"], LISTED, "entities", where)
        entities += source.kept(entity_of, ((text, where, *span) for span in spans))
    elif not any("ner" in token for tokens in sentences for token in tokens):
        raise InputError(f'{where}: no token has a "ner", the file is unlabeled; give labeled data, or predict with it')
    return make_example(text, entities, where)


def _tag(tag, where):
    if tag in ("", "-", None):  # not labeled
        return OUTSIDE
    parsed = parse_tag(tag) if isinstance(tag, str) else None
    if parsed is None:
        raise InputError(f"{where}: unknown tag {shown(tag)}; BILUO has B-X, I-X, L-X, U-X and O")
    check_encodable(tag, "a tag", where)
    return parsed
