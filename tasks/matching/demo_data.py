"""The embedded demo data: questions that mean the same or not, graded sentences, and cases of which one is closer.

Everything is made of the templates in ``demo_data.yaml`` by a seed; nothing is copied from a data set.
"""

import random
from pathlib import Path

import yaml

from tasks.common.files import atomic_writer, write_json_lines

TEMPLATES = yaml.safe_load(Path(__file__).with_suffix(".yaml").read_text(encoding="utf-8"))
INTENTS, PRODUCTS, SENTENCE, FACTS, SURNAMES = (
    TEMPLATES[name] for name in ("intents", "products", "sentence", "facts", "surnames")
)
SIZES = {"train": 600, "dev": 150}
NUM_TRIPLES = 240


def pair(random):
    """(question, question, "0" or "1"): half mean the same; the others differ in product or in what is asked."""
    (first, second), product = random.sample(range(len(INTENTS)), 2), random.choice(PRODUCTS)
    one, other = random.sample(INTENTS[first], 2)
    if random.random() < 0.5:
        return one.format(product), other.format(product), "1"
    if random.random() < 0.5:
        return one.format(product), random.choice(INTENTS[second]).format(product), "0"
    return one.format(product), other.format(random.choice([p for p in PRODUCTS if p != product])), "0"


def graded_pair(random):
    """(sentence, sentence, grade from 0 to 5)."""
    one = [random.choice(parts) for parts in SENTENCE]
    shared = random.sample(range(len(SENTENCE)), random.randint(0, len(SENTENCE)))
    other = [
        part if place in shared else random.choice([p for p in parts if p != part])
        for place, (part, parts) in enumerate(zip(one, SENTENCE))
    ]
    return "".join(one), "".join(other), str(len(shared))


def triples(random, count):
    """Cases A, B and C without a label: B shares four or five of the six facts of A, C one or two."""
    records = []
    while len(records) < count:
        facts = [random.randrange(len(row)) for row in FACTS]
        case = _case(random, facts)
        for _ in range(2):  # each A has two triples, as there are several of a document in published data
            closer, farther = (_changed(random, facts, random.randint(*range_)) for range_ in ((1, 2), (4, 5)))
            records.append({"A": case, "B": _case(random, closer), "C": _case(random, farther)})
    return records[:count]


def _changed(random, facts, count):
    changed = random.sample(range(len(FACTS)), count)
    return [
        random.choice([f for f in range(len(row)) if f != fact]) if place in changed else fact
        for place, (fact, row) in enumerate(zip(facts, FACTS))
    ]


def _case(random, facts):
    lender, borrower = random.sample(SURNAMES, 2)
    told = "，".join(random.choice(row[fact]) for fact, row in zip(facts, FACTS))
    return f"原告{lender}某。\n\n原告{lender}某诉称，被告{borrower}某{told}。请求判令被告{borrower}某偿还借款。"


def write_demo_data(folder, seed=0):
    """Write ``pairs_train.tsv``, ``pairs_dev.tsv``, ``grades_train.tsv``, ``grades_dev.tsv`` and ``triples.jsonl``.

    Args:
        folder: an existing folder.
        seed: another seed gives other texts.

    Returns:
        The paths, in this order.
    """
    folder, paths = Path(folder), []
    for kind, make in (("pairs", pair), ("grades", graded_pair)):
        for split, size in SIZES.items():
            draw = random.Random(f"{seed} {kind} {split}")
            paths.append(folder / f"{kind}_{split}.tsv")
            with atomic_writer(paths[-1]) as file:
                file.writelines("\t".join(make(draw)) + "\n" for _ in range(size))
    paths.append(folder / "triples.jsonl")
    write_json_lines(paths[-1], triples(random.Random(f"{seed} triples"), NUM_TRIPLES))
    return paths
