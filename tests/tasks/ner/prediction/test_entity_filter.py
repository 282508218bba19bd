"""What a user wants of the entities (types, probabilities, dictionaries), and which texts to label next."""

import json
import math
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddle_rope.tasks.commands.main import main
from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.ner import NerPredictor
from paddle_rope.tasks.ner.calibration import LOWEST_THRESHOLD
from paddle_rope.tasks.ner.data.reading import read_examples
from paddle_rope.tasks.ner.examples import Entity, as_record, entities_of
from paddle_rope.tasks.ner.prediction import entity_filter as module
from paddle_rope.tasks.ner.prediction.entity_filter import HINT_LOGIT, EntityFilter, EntityRuler
from paddle_rope.tasks.ner.prediction.selection import rank, uncertainty
from tests.helpers.models import FORMATS
from tests.helpers.runs import read_json_lines

CONFIG = SimpleNamespace(types=["person", "place"], thresholds=[0.0, 1.0], temperatures=2.0, allow_overlap=True)
FLAT = SimpleNamespace(**{**vars(CONFIG), "allow_overlap": False})


def found(*spans):
    return [Entity(start, end, kind, score, 1 / (1 + math.exp(-score / 2))) for start, end, kind, score in spans]


def spans(entities):
    return [entity[:3] for entity in entities]


@given(st.lists(st.text("甲乙", min_size=1, max_size=4), max_size=5), st.text("甲乙", max_size=12))
def test_terms_are_found_wherever_they_occur(terms, text):
    places = {(at, at + len(term), "place") for term in terms for at in range(len(text)) if text.startswith(term, at)}
    assert EntityRuler([(term, "place", "hint") for term in terms]).hinted(text) == places
    forced, end = [], 0  # the first of those that overlap, and the longest of those that begin together
    for place in sorted(places, key=lambda place: (place[0], -place[1])):
        if place[0] >= end:
            forced, end = [*forced, place], place[1]
    assert spans(EntityRuler([(term, "place", "force") for term in terms]).forced(text, nested=True)) == forced


@pytest.mark.parametrize("term, text, starts", [
    ("AI", "MAIL AI, AI_x 用AI的xAI", [5, 15]),
    ("5G", "15GB 5G 5G网 2.5G", [5, 8, 14]),
    ("C++", "C++x 和C++", [0, 6]),
    (".x", "a.x .xy", [1]),
])  # fmt: skip
def test_terms_in_ascii_are_found_as_words(term, text, starts):
    found = EntityRuler([(term, "place", "hint")]).hinted(text)
    assert found == {(start, start + len(term), "place") for start in starts}


SPANS = st.tuples(st.integers(0, 7), st.integers(1, 4), st.sampled_from(["person", "place", "brand"]))


@given(st.lists(st.text("甲乙", min_size=1, max_size=3), max_size=4), st.text("甲乙", max_size=9), st.lists(SPANS))
def test_an_entity_stays_if_it_contradicts_no_forced_one(terms, text, given):
    listed = EntityRuler([(term, f"t{number}", "force") for number, term in enumerate(terms)])
    forced = spans(listed.forced(text, nested=True))

    def crosses(one, other):
        return one[0] < other[0] < one[1] < other[1]

    entities = found(*((start, start + size, kind, 9) for start, size, kind in sorted(set(given)) if kind != "brand"))
    kept = [
        one for one in spans(entities)
        if not any(one[:2] == other[:2] or crosses(one, other) or crosses(other, one) for other in forced)
    ]  # fmt: skip
    assert spans(EntityFilter(ruler=listed).kept(text, entities, CONFIG)) == sorted([*kept, *forced])


@pytest.mark.parametrize("config, expected", [
    (CONFIG, [(0, 4, "place"), (1, 3, "brand"), (1, 3, "place"), (5, 6, "place")]),
    (FLAT, [(1, 3, "brand"), (5, 6, "place")]),
], ids=["nested", "flat"])  # fmt: skip
def test_a_forced_entity_replaces_those_that_cross_it_and_keeps_nested_ones(config, expected):
    listed = EntityRuler([("乙丙", "brand", "force"), ("乙丙", "place", "force")])
    entities = found((0, 4, "place", 5), (1, 3, "person", 9), (2, 4, "person", 9), (5, 6, "place", 2))
    kept = EntityFilter(ruler=listed).kept("甲乙丙丁戊己", entities, config)
    assert spans(kept) == expected
    rounded = [entity._replace(probability=round(entity.probability, 4)) for entity in kept]
    assert entities_of(json.loads(json.dumps(as_record("甲乙丙丁戊己", kept)))) == rounded


def test_a_hint_lowers_the_threshold_of_its_span():
    chosen = EntityFilter(ruler=EntityRuler([("ab", "person", "hint")]))
    assert chosen.candidates(CONFIG) == [-2 * HINT_LOGIT, 1]  # the temperature is 2
    entities = found((0, 2, "person", -2), (3, 5, "place", -2), (2, 4, "person", -2), (5, 6, "person", 1))
    assert spans(chosen.kept("ab.ab.", entities, CONFIG)) == [(0, 2, "person"), (5, 6, "person")]
    entities = found((0, 2, "person", -2), (3, 5, "person", -0.5))  # probabilities 0.27 and 0.44
    for least in (0.4, {"person": 0.4}):  # which a hint does not lower
        chosen = EntityFilter(min_probability=least, ruler=EntityRuler([("ab", "person", "hint")]))
        assert spans(chosen.kept("ab.ab.", entities, CONFIG)) == [(3, 5, "person")]


def test_only_the_most_probable_may_be_improbable():
    for options in ({"min_probability": 0.0009}, {"min_probability": {"place": 0}, "top_k": 1}, {"min_probability": 1}):
        with pytest.raises((InputError, ValueError), match="min_probability must be"):
            EntityFilter(**options).check(CONFIG)
    EntityFilter(min_probability=1e-300, top_k=1).check(CONFIG)


@pytest.mark.parametrize("options, expected", [
    ({}, [0, 1, 2]),
    ({"types": ("place",)}, [1]),
    ({"top_k": 2}, [0, 2]),
    ({"min_probability": 0.9}, [2]),
    ({"min_probability": {"place": 0.5}}, [0, 1, 2, 3]),
], ids=str)  # fmt: skip
def test_types_probabilities_and_numbers_choose(options, expected):
    entities = found((0, 1, "person", 2), (1, 2, "place", 1.5), (2, 3, "person", 5), (3, 4, "place", 0.5))
    chosen = EntityFilter(**options)
    above = [one for one in entities if one.score > chosen.candidates(CONFIG)[one.type == "place"]]
    assert chosen.kept("abcd", above, CONFIG) == [entities[number] for number in expected]


@pytest.mark.parametrize("text, given, expected", [
    ("ab.ab.ab", [(0, 2), (3, 5)], [(0, 2), (3, 5), (6, 8)]),  # at two of three
    ("ab.ab.ab", [(0, 2)], []),  # at one of three
    ("ab.abc.ab", [(0, 2), (3, 6)], [(3, 6)]),  # not where another entity has it; of "ab", one of two is not most
    ("aa.aa.aa.aaa", [(0, 2), (3, 5), (6, 8)], [(0, 2), (3, 5), (6, 8), (9, 11)]),  # what is added overlaps nothing
])  # fmt: skip
def test_one_decision_for_a_mention(text, given, expected):
    kept = EntityFilter(consistent=True).kept(text, found(*((*span, "person", 4) for span in given)), FLAT)
    assert spans(kept) == [(*span, "person") for span in expected]


def test_files_options_and_python_agree(predictor, predict, trained, dev_texts, tmp_path):
    text = next(text for text in dev_texts if predictor([text])[0]["entities"])
    (tmp_path / "terms.tsv").write_text(f"{text[:2]}\tbrand\n{text[2:4]}\tbrand\tforce\n", encoding="utf-8")
    (tmp_path / "patterns.yaml").write_text("digits: '[0-9]+'\nlast: {force: ['.$']}\n", encoding="utf-8")
    options = {"dictionary": str(tmp_path / "terms.tsv"), "patterns": str(tmp_path / "patterns.yaml")}
    one = NerPredictor(trained.model, "cpu", **options)
    (record,) = one([text])
    forced = [entity for entity in record["entities"] if entity["score"] is None]
    assert [(entity["start"], entity["type"]) for entity in forced][:2] == [(0, "brand"), (2, "brand")]
    assert forced[-1]["type"] == "last"
    assert predict(f"{text}\n", options=[f"--{name}={value}" for name, value in options.items()]) == [record]
    assert predictor([text], entity_filter=one.entity_filter) == [record]
    # candidates below the thresholds, as a batch of several requests has them, do not count
    windows = list(one.windows(text))
    more = predictor.find_in_windows(windows, EntityFilter(min_probability=0.01).candidates(predictor.model.config))
    assert predictor.join(text, more) == predictor([text])[0]


def test_a_pattern_without_end_is_named(monkeypatch):
    monkeypatch.setattr(module, "PATTERN_SECONDS", 0.1)
    listed = EntityRuler(patterns=[("[0-9]+", "number", "force"), ("(x+x+)+y", "item", "force")])
    with pytest.raises(InputError, match=r"pattern '\(x\+x\+\)\+y' takes too long in a text of 60 characters; write "):
        listed.forced("x" * 60, nested=True)
    assert spans(listed.forced("1xxy", nested=True)) == [(0, 1, "number"), (1, 4, "item")]
    monkeypatch.setattr(module, "time_limit", None)  # which takes the timer of the process
    assert listed.hinted("1xxy") == set()


@pytest.mark.parametrize("probabilities", [[], [0.0], [1.0], [0.3], [0.9999], [0.2, 0.6, 0.95]])
def test_uncertainty_is_the_joint_entropy_of_the_spans(probabilities):
    joint = np.ones(1)
    for probability in probabilities:
        joint = np.concatenate([joint * probability, joint * (1 - probability)])
    joint = joint[joint > 0]
    candidates = [Entity(0, 1, "t", 0.0, probability) for probability in probabilities]
    assert uncertainty(candidates) == pytest.approx(-(joint * np.log(joint)).sum(), rel=1e-9)


TEXTS = ["王明去年在青川市工作。", "天气很好，适合出门。", "王明去年在青川市工作！", "  ", "", "新开的书店在哪里？"]


@pytest.mark.parametrize("texts, uncertainties, count, known, expected", [
    (TEXTS, [3.0, 1.0, 4.0, 9.0, 9.0, 2.0], 6, [], [2, 5, 1]),  # neither empty texts nor near duplicates
    (TEXTS, [3.0, 1.0, 4.0, 9.0, 9.0, 2.0], 6, ["王明去年在 青川市工作"], [5, 1]),
    (["一二三四五六", "一二三 四五\n六", "完"], [1.0] * 3, 3, [], [0, 2]),  # white space does not count
])  # fmt: skip
def test_the_most_uncertain_distinct_texts_come_first(texts, uncertainties, count, known, expected):
    assert rank(texts, uncertainties, count, known) == expected


@given(st.lists(st.text("ab1", max_size=7), max_size=20))
def test_no_near_duplicate_is_missed(texts):
    chosen, sets = [], [{text[at : at + 2] for at in range(len(text) - 1)} or {text} for text in texts]
    for index, pairs in enumerate(sets):
        if texts[index] and not any(len(pairs & sets[one]) >= 0.8 * len(pairs | sets[one]) for one in chosen):
            chosen.append(index)
    assert rank(texts, [0.0] * len(texts), len(texts)) == chosen


@pytest.fixture
def select(trained, tmp_path, write):
    """Select from texts: ``select(texts, count, *words)`` -> path of what is written."""

    def select(texts, count, *words, model=trained.model):
        given, output = write("".join(f"{text}\n" for text in texts), "given.txt"), tmp_path / "selected"
        words = [model, "--input", given, "--output", output, "--count", count, "--device", "cpu", *words]
        assert main(["select", *map(str, words)]) == 0
        return output

    return select


@pytest.mark.parametrize("format", ["trained", FORMATS[0]])
def test_the_texts_of_highest_entropy_come_with_entities(select, dev_texts, predictor, trained, exported, format):
    records = read_json_lines(select(dev_texts, 8, model=(trained if format == "trained" else exported(format)).model))
    entropies = dict(zip(dev_texts, map(uncertainty, predictor.find(dev_texts, thresholds=LOWEST_THRESHOLD))))
    assert [record["text"] for record in records] == sorted(entropies, key=entropies.get, reverse=True)[:8]
    for record, expected in zip(records, predictor([record["text"] for record in records])):
        assert record["uncertainty"] == pytest.approx(entropies[record["text"]], abs=1e-3)
        assert [e["text"] for e in record["entities"]] == [e["text"] for e in expected["entities"]]


def test_labeled_texts_and_repeated_ones_are_not_selected_and_formats_hold_the_same(select, dev_texts, corpus, capsys):
    assert len(read_json_lines(select([*dev_texts[:3], dev_texts[0], ""], 10))) == 3
    assert capsys.readouterr().err.startswith("selected 3 of 5 texts, fewer than 10")
    assert read_json_lines(select(dev_texts, 10, "--labeled", corpus.dev)) == []
    texts = [record["text"] for record in read_json_lines(select(dev_texts, 4))]
    tasks = json.loads(select(dev_texts, 4, "--format", "labelstudio").read_text(encoding="utf-8"))
    assert [task["data"]["text"] for task in tasks] == texts
    assert [example.text for example in read_examples(select(dev_texts, 4, "--format", "doccano"))] == texts
