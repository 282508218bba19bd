"""An embedded demo corpus for Chinese NER with nested entities, generated from our own templates and word lists.

Format: the CLUENER format, one JSON object a line, UTF-8; offsets count characters and the END IS INCLUSIVE::

    {"text": "在青川市医院。", "label": {"place": {"青川市": [[1, 3]]}, "organization": {"青川市医院": [[1, 5]]}}}

A surface that occurs several times has several spans; a sentence without entities has an empty ``label``.

Types: person, place, organization, product, time, position (job title). Annotation rules:

1. Outer and inner: each entity is annotated wherever it occurs, also inside another entity. Persons, places, products
   and parent organizations inside an organization are annotated, and places inside a product or facility name
   (青川香米 and 青川火车站 hold the place 青川). Times and positions hold nothing.
2. A place is one administrative unit with its suffix (青川市白岭区 is two places), its short name (青川), a road, a
   scenic spot or a facility. A house number is no part of a place. 青川 inside 青川市 or 青川路 is not annotated.
3. An organization is the longest name including its department (青川大学图书馆, with the parent 青川大学 inside). A
   short form (睿达科技 in 睿达科技有限公司) or a brand (睿达) inside a name is not annotated, nor is a generic noun
   (公司, 医院) in the text.
4. A product is brand + category, brand + model code, brand + category + model code, or place + specialty.
5. A time is a point in time, a day or a dated period, the longest run (3月5日上午9点半 is one time); durations and
   numbers are not. A position is the whole title (副总经理, not 总经理 inside); other roles (患者, 原告) are not.

Train and dev differ in: the template strings; given names, place stems and brand stems (see ``lexicon.py``), hence the
full surfaces of person, place, organization and product, and no such dev surface occurs anywhere in a train sentence.
They share: surnames, suffixes, category nouns, titles, times, model codes and filler words.
"""

import random
import re
from pathlib import Path

from tasks.common.files import write_json_lines
from tasks.ner.demo.lexicon import LEXICON, OPEN_CLASSES, TEMPLATES
from tasks.ner.demo.names import NameMaker, Phrase, join

ENTITY_TYPES = ("person", "place", "organization", "product", "time", "position")
DISJOINT_TYPES = ("person", "place", "organization", "product")
TRAIN_FILE = "train.jsonl"
DEV_FILE = "dev.jsonl"
PLAIN_SHARE = 0.05
MIN_LENGTH, MAX_LENGTH = 10, 60
MAX_FAILURES_IN_A_ROW = 2000

# Sentences in neither part, with reserved names. The first and the third hold nested entities: 雁潭市 in the hospital;
# 槐浦 in 槐浦大学 in 槐浦大学附属医院.
UNSEEN_SENTENCES = (
    "去年10月，雁潭市第二人民医院的护士长陆雨桐在碧洲县举办了健康讲座。",
    "我上周六在鹤湾火车站附近买了一台蓝拓平板电脑S9，拍照很清楚。",
    "槐浦大学附属医院与卓翔科技有限公司签约，由孟子航担任项目经理。",
)

SLOT = re.compile(r"\{(\w+)(#\d+)?\}")


def _watched_words() -> dict:
    """Each lexicon item with the types of entity that it may occur in; single given names go with a surname."""
    givens, stems, brands = (
        OPEN_CLASSES["train"][name] + OPEN_CLASSES["dev"][name] for name in ("givens", "stems", "brands")
    )
    words = dict.fromkeys(stems, {"place"})
    words.update(dict.fromkeys(brands, {"organization", "product"}))
    words.update({title: {"position"} for titles in LEXICON["titles"].values() for title in titles})
    times = (group for name, group in LEXICON["times"].items() if name != "hour_minutes")
    words.update({time: {"time"} for group in times for time in group})
    surnames = (*LEXICON["surnames"], *LEXICON["compound_surnames"])
    names = [given for given in givens if len(given) == 2]
    names += [surname + single for surname in surnames for single in LEXICON["single_givens"]]
    words.update(dict.fromkeys(names, {"person"}))
    return words


_WATCHED = _watched_words()
_WATCHED_LENGTHS = sorted({len(word) for word in _WATCHED})


def has_stray_word(phrase: Phrase) -> bool:
    """Whether a lexicon item occurs by accident, e.g. 院长 in 医院长期: outside every entity that may hold it."""
    for length in _WATCHED_LENGTHS:
        for start in range(len(phrase.text) - length + 1):
            kinds = _WATCHED.get(phrase.text[start : start + length])
            if kinds and not any(s <= start and start + length - 1 <= e and k in kinds for s, e, k in phrase.spans):
                return True
    return False


def fill_template(template: str, names: NameMaker) -> Phrase:
    """Fill the slots of a template; ``{slot#1}`` is filled once."""
    parts, kept, position = [], {}, 0
    for match in SLOT.finditer(template):
        slot, label = match.groups()
        filling = kept.get(match.group()) or names.fill(slot)
        if filling in parts and not label:
            filling = names.fill(slot)  # one more try for a different word
        if label:
            kept[match.group()] = filling
        parts += [template[position : match.start()], filling]
        position = match.end()
    return join(*parts, template[position:])


def to_example(phrase: Phrase) -> dict:
    """``{"text": ..., "label": {type: {surface: [[start, end], ...]}}}``, end inclusive."""
    label = {}
    spans = sorted(set(phrase.spans), key=lambda span: (ENTITY_TYPES.index(span[2]), span[0], -span[1]))
    for start, end, kind in spans:
        label.setdefault(kind, {}).setdefault(phrase.text[start : end + 1], []).append([start, end])
    return {"text": phrase.text, "label": label}


def _generate(part, seed, size, accept=lambda phrase: True) -> list[dict]:
    rng = random.Random(f"{part} {seed}")
    names = NameMaker(part, rng)
    entity_templates, plain_templates = TEMPLATES[part], TEMPLATES[f"{part}_plain"]
    plain_count = round(size * PLAIN_SHARE)
    kinds = [plain_templates] * plain_count + [entity_templates] * (size - plain_count)
    rng.shuffle(kinds)
    examples, seen, failures, queues = [], set(), 0, {}
    while len(examples) < size:
        options = kinds[len(examples)]
        queue = queues.setdefault(id(options), [])
        if not queue:  # each template once a round, so that each is used about as often
            queue.extend(rng.sample(options, len(options)))
        phrase = fill_template(queue.pop(), names)
        fits = MIN_LENGTH <= len(phrase.text) <= MAX_LENGTH and phrase.text not in seen
        if not fits or has_stray_word(phrase) or not accept(phrase):
            failures += 1
            if failures > MAX_FAILURES_IN_A_ROW:
                raise ValueError(f"cannot make {size} different sentences; ask for fewer")
            continue
        failures = 0
        seen.add(phrase.text)
        examples.append(to_example(phrase))
    return examples


def generate_demo_corpus(seed: int = 0, train_size: int = 2400, dev_size: int = 400) -> tuple[list[dict], list[dict]]:
    """The examples of ``(train, dev)``, the same for the same arguments."""
    train = _generate("train", seed, train_size)
    train_text = "\n".join(example["text"] for example in train)

    def is_new(phrase):
        surfaces = (phrase.text[start : end + 1] for start, end, kind in phrase.spans if kind in DISJOINT_TYPES)
        return f"\n{phrase.text}\n" not in f"\n{train_text}\n" and not any(s in train_text for s in surfaces)

    return train, _generate("dev", seed, dev_size, is_new)


def write_demo_corpus(folder, seed: int = 0, train_size: int = 2400, dev_size: int = 400) -> tuple[Path, Path]:
    """Write ``train.jsonl`` and ``dev.jsonl`` into ``folder`` (made if missing); return their paths."""
    folder = Path(folder)
    examples = generate_demo_corpus(seed, train_size, dev_size)
    folder.mkdir(parents=True, exist_ok=True)
    paths = (folder / TRAIN_FILE, folder / DEV_FILE)
    for path, part in zip(paths, examples):
        write_json_lines(path, part)
    return paths
