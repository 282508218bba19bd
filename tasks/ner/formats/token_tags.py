"""Tokens and their tags as lists: ``{"tokens": ["中", "国"], "ner_tags": ["B-LOC", "I-LOC"]}``.

Hugging Face's datasets write this, with names of tags or with numbers whose names are not in the file: only names are
read. The keys may have other names. Tokens may be a string, of one token a character or of tokens separated by spaces;
tags a string separated by spaces or commas. Source: https://huggingface.co/docs/datasets
"""

import re
from collections.abc import Iterable, Iterator

from tasks.common.errors import InputError
from tasks.common.texts.json_records import check_encodable, json_line
from tasks.common.texts.text_files import shown
from tasks.ner.examples import Example
from tasks.ner.formats.records import Records, check_like
from tasks.ner.formats.tagging import BIO, join_tokens, parse_tag
from tasks.ner.formats.tags import Sentence, find_scheme, tags_of, to_examples

TOKEN_KEYS = ("tokens", "words", "chars", "text")
TAG_KEYS = ("ner_tags", "tags", "labels", "label")
_BETWEEN = re.compile(r"[\s,]+")


def has_tags(record: dict) -> bool:
    """Whether a record has tokens and tags, or a text and tags that are lists or strings of tags."""
    key, tokens = _first(record, TOKEN_KEYS)
    _, tags = _first(record, TAG_KEYS)
    if key is None or not isinstance(tags, list):
        return False
    if key != "text" or isinstance(tokens, list):
        return True
    return bool(tags) and all(isinstance(tag, str) and parse_tag(tag) is not None for tag in tags)


def _first(record, keys):
    """The first key that a record has, and its value; tags in a string are a list."""
    key = next((key for key in keys if key in record), None)
    value = record.get(key)
    return key, _BETWEEN.split(value.strip()) if keys is TAG_KEYS and isinstance(value, str) else value


def read(records: Records, name: str) -> list[Example]:
    sentences = [Sentence(where, *_tokens_and_tags(record, where)) for where, record in records]
    return to_examples(sentences, find_scheme(sentences, name), name)


def tokens_of(record: dict, where: str) -> list[str]:
    """The tokens of a record."""
    key, tokens = _first(record, TOKEN_KEYS)
    if isinstance(tokens, str):
        tokens = tokens.split() if key != "text" else list(tokens)
    check_like(tokens, ["中"], key or TOKEN_KEYS[0], where)
    if not tokens or not all(tokens):
        raise InputError(f"{where}: the tokens are {shown(tokens)}; give at least one, and none that is empty")
    check_encodable("".join(tokens), "a token", where)
    return tokens


def _tokens_and_tags(record, where):
    """(tokens, tags) of a record, lists of the same length."""
    key, tags = _first(record, TAG_KEYS)
    if key is None:
        raise InputError(f'{where}: no "{TAG_KEYS[0]}", the file is unlabeled; give labeled data, or predict with it')
    if isinstance(tags, list) and int in map(type, tags):
        raise InputError(
            f'{where}: "{key}" holds numbers, and the names of the tags are not in the file; write '
            f'names, with names = dataset.features["{key}"].feature.names and dataset.map(lambda one: {{"{key}": '
            f'[names[i] for i in one["{key}"]]}}).to_json(FILE, force_ascii=False)'
        )
    check_like(tags, ["B-LOC"], key, where)
    check_encodable("".join(tags), "a tag", where)
    tokens, text = tokens_of(record, where), record.get("text")
    if len(tokens) != len(tags) and isinstance(text, str) and len(text.split()) == len(tags):
        tokens = text.split()
    if len(tokens) != len(tags):
        raise InputError(f"{where}: {len(tokens)} tokens and {len(tags)} tags; give each token one tag")
    return tokens, tags


def text_of(record: dict, where: str) -> str:
    """The text of a record of tokens."""
    return join_tokens(tokens_of(record, where))[0]


def write(examples: Iterable[Example]) -> Iterator[str]:
    """One token a character."""
    for example in examples:
        yield json_line({"tokens": list(example.text), "ner_tags": tags_of(example, BIO, "")})
