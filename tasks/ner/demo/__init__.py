"""An embedded demo corpus for Chinese NER with nested entities: 2,400 sentences for training, 400 for dev.

The sentences were generated from our own templates and word lists (``tasks/ner/demo/`` at commit e394b37); nothing is
copied from a data set.

The format is CLUENER's (:mod:`paddle_rope.tasks.ner.formats.span_records`), where the END IS INCLUSIVE.

Types: person, place, organization, product, time, position (job title). An entity is annotated wherever it occurs,
also inside another one: persons, places, products and parent organizations in an organization, places in a product
or facility; times and positions contain no entities. A place is one administrative unit (青川市白岭区 is two), its
short name, a road, a scenic spot or a facility; an organization is the longest name with its department; a time is a
point in time, a day or a dated period, but not a duration.

Train and dev differ in the templates, given names, place stems and brand stems, hence in the full surfaces of person,
place, organization and product: no such surface of dev occurs anywhere in train. They share surnames, suffixes,
category nouns, titles, times, model codes and filler words.
"""

import gzip
import json
from collections import Counter
from itertools import islice
from pathlib import Path

from paddle_rope.tasks.ner.data.reading import read_examples

ENTITY_TYPES = ("person", "place", "organization", "product", "time", "position")
FILES = ("train.jsonl", "dev.jsonl")

# Sentences in neither part, with reserved names. The first and the third have nested entities: 雁潭市 in the hospital;
# 槐浦 in 槐浦大学 in 槐浦大学附属医院.
UNSEEN_SENTENCES = (
    "去年10月，雁潭市第二人民医院的护士长陆雨桐在碧洲县举办了健康讲座。",
    "我上周六在鹤湾火车站附近买了一台蓝拓平板电脑S9，拍照很清楚。",
    "槐浦大学附属医院与卓翔科技有限公司签约，由孟子航担任项目经理。",
)


def write_demo(folder: Path) -> list[str]:
    """Write the files of :func:`write_demo_corpus`; return a line about each."""
    lines = []
    for path in write_demo_corpus(folder):
        examples = read_examples(path)
        counts = Counter(entity.type for example in examples for entity in example.entities)
        types = ", ".join(f"{kind} {counts[kind]}" for kind in ENTITY_TYPES)
        lines.append(f"{path}: {len(examples)} sentences, {types}")
    return lines


def write_demo_corpus(folder, train_size: int = 2400, dev_size: int = 400) -> list[Path]:
    """Write the first sentences of ``train.jsonl`` and ``dev.jsonl`` into ``folder``; return the two paths."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, size in zip(FILES, (train_size, dev_size)):
        paths.append(folder / name)
        paths[-1].write_bytes(b"".join(_lines(name, size)))
    return paths


def read_demo_corpus(train_size: int = 2400, dev_size: int = 400) -> tuple[list[dict], list[dict]]:
    """The first examples of train and dev, as dicts."""
    train, dev = ([json.loads(line) for line in _lines(*part)] for part in zip(FILES, (train_size, dev_size)))
    return train, dev


def _lines(name, size):
    with gzip.open(Path(__file__).parent / f"{name}.gz") as file:
        return list(islice(file, size))
