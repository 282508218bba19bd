"""A demo corpus of Chinese sentences with entities and relations, made of the words and clauses of ``demo.yaml``: 2,400
sentences for training, 400 for dev.

A sentence has one to three clauses, and a person of an earlier clause may come back. Each relation has several clauses,
two relations hold between people, and some clauses have entities without any. Organizations may be named after a place,
which is an entity in them. Train and dev have the same clauses, with other names.
"""

import random
import re
from collections import Counter
from pathlib import Path
from typing import Any

import yaml

from paddle_rope.tasks.common.files import atomic_writer, json_line

SIZES = {"train": 2400, "dev": 400}
TYPES = {"p": "person", "q": "person", "o": "organization", "l": "place", "g": "product"}


def write_demo(folder: Path, sizes: dict[str, int] = SIZES) -> list[str]:
    """Write ``train.jsonl`` and ``dev.jsonl``, of so many sentences each, into a folder; return a line about each."""
    lines = []
    for split, size in sizes.items():
        path, made = folder / f"{split}.jsonl", sentences(split, size)
        with atomic_writer(path) as file:
            file.writelines(map(json_line, made))
        counts = Counter(relation["type"] for one in made for relation in one["relations"])
        lines.append(f"{path}: {size} sentences, " + ", ".join(f"{kind} {n}" for kind, n in sorted(counts.items())))
    return lines


def sentences(split: str, size: int) -> list[dict[str, Any]]:
    """The first sentences of ``"train"`` or ``"dev"``, as dicts that read as JSON lines."""
    content = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
    words = {kind: line.split(" / ")[-(split == "dev")].split() for kind, line in content["words"].items()}
    chance = random.Random(split)
    return [_sentence(content, words, chance) for _ in range(size)]


def _sentence(content, words, chance):
    text, spans, relations, person = "", [], [], None
    for clause, *triples in chance.sample(content["clauses"], chance.choice((1, 1, 2, 2, 3))):
        drawn = {kind: _entity(kind, lambda word: chance.choice(words[word]), chance.random() < 0.5) for kind in TYPES}
        if person and chance.random() < 0.3:
            drawn["p"] = person
        numbers = {}  # of the entities of the clause
        text += "，" * bool(text)
        for literal, kind in re.findall(r"([^{]*)(?:\{(\w+)\})?", clause):
            text += literal
            if kind in TYPES:
                numbers[kind] = len(spans)
                spans += [(len(text) + start, len(text) + end, of) for start, end, of in drawn[kind][1]]
                text += drawn[kind][0]
            elif kind:
                text += chance.choice(words[kind])
        relations += [
            {"head": numbers[head], "tail": numbers[tail], "type": name} for head, name, tail in map(str.split, triples)
        ]
        person = drawn["p"] if "p" in numbers else person
    entities = [{"start": start, "end": end, "type": of, "text": text[start:end]} for start, end, of in spans]
    return {"text": text + chance.choice(content["ends"]), "entities": entities, "relations": relations}


def _entity(kind, draw, is_of_place):
    """The text of a new entity and the (start, end, type) of it and of a place in it."""
    place, person = draw("stem") + draw("unit"), draw("surname") + draw("given")
    organization = place + draw("institute") if is_of_place else draw("brand") + draw("company")
    product = draw("brand") + draw("thing") + draw("model")
    text = {"p": person, "q": person, "o": organization, "l": place, "g": product}[kind]
    within = [(0, len(place), TYPES["l"])] * (kind == "o" and is_of_place)
    return text, [(0, len(text), TYPES[kind]), *within]
