"""What a user wants of the entities: types, probabilities, a number, one decision for a mention, dictionaries."""

import json
import math
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.common.errors import InputError
from tasks.ner import NerPredictor
from tasks.ner.examples import Entity, as_record, entities_of
from tasks.ner.prediction.wanted import HINT_LOGIT, Listed, Wanted, read_patterns, read_terms

CONFIG = SimpleNamespace(types=["person", "place"], thresholds=[0.0, 1.0], temperatures=2.0, allow_overlap=True)
FLAT = SimpleNamespace(**{**vars(CONFIG), "allow_overlap": False})


def found(*spans):
    return [Entity(start, end, kind, score, 1 / (1 + math.exp(-score / 2))) for start, end, kind, score in spans]


def spans(entities):
    return [entity[:3] for entity in entities]


@given(st.lists(st.text("ab", min_size=1, max_size=4), max_size=5), st.text("ab", max_size=12))
def test_terms_are_found_wherever_they_occur(terms, text):
    places = {(at, at + len(term), "place") for term in terms for at in range(len(text)) if text.startswith(term, at)}
    assert Listed([(term, "place", "hint") for term in terms]).hinted(text) == places
    forced, end = [], 0  # the first of those that overlap, and the longest of those that begin together
    for place in sorted(places, key=lambda place: (place[0], -place[1])):
        if place[0] >= end:
            forced, end = [*forced, place], place[1]
    assert spans(sum(Listed([(term, "place", "force") for term in terms]).forced(text, nested=True), [])) == forced


@pytest.mark.parametrize(
    "config, expected",
    [
        (CONFIG, [(0, 4, "place"), (1, 3, "brand"), (1, 3, "place"), (5, 6, "place")]),
        (FLAT, [(1, 3, "brand"), (5, 6, "place")]),
    ],
    ids=["nested", "flat"],
)
def test_a_forced_entity_replaces_those_that_cross_it_and_keeps_those_that_are_nested(config, expected):
    listed = Listed([("bc", "brand", "force"), ("bc", "place", "force")])
    entities = found((0, 4, "place", 5), (1, 3, "person", 9), (2, 4, "person", 9), (5, 6, "place", 2))
    kept = Wanted(listed=listed).kept("abcdef", entities, config)
    assert spans(kept) == expected
    assert entities_of(json.loads(json.dumps(as_record("abcdef", kept)))) == [
        entity._replace(probability=round(entity.probability, 4)) for entity in kept
    ]


def test_a_hint_lowers_the_threshold_of_its_span():
    wanted = Wanted(listed=Listed([("ab", "person", "hint")]))
    assert wanted.candidates(CONFIG) == [-2 * HINT_LOGIT, 1 - 2 * HINT_LOGIT]  # the temperature is 2
    entities = found((0, 2, "person", -2), (3, 5, "place", -2), (2, 4, "person", -2), (5, 6, "person", 1))
    assert spans(wanted.kept("ab.ab.", entities, CONFIG)) == [(0, 2, "person"), (5, 6, "person")]


@pytest.mark.parametrize(
    "wanted, expected",
    [
        ({}, [0, 1, 2]),
        ({"types": ("place",)}, [1]),
        ({"top_k": 2}, [0, 2]),
        ({"min_probability": 0.9}, [2]),
        ({"min_probability": {"place": 0.5}}, [0, 1, 2, 3]),
    ],
    ids=str,
)
def test_types_probabilities_and_numbers_choose(wanted, expected):
    entities = found((0, 1, "person", 2), (1, 2, "place", 1.5), (2, 3, "person", 5), (3, 4, "place", 0.5))
    wanted = Wanted(**wanted)
    above = [one for one in entities if one.score > wanted.candidates(CONFIG)[one.type == "place"]]
    assert wanted.kept("abcd", above, CONFIG) == [entities[number] for number in expected]


@pytest.mark.parametrize(
    "text, given, expected",
    [
        ("ab.ab.ab", [(0, 2), (3, 5)], [(0, 2), (3, 5), (6, 8)]),  # at two of three
        ("ab.ab.ab", [(0, 2)], []),  # at one of three
        ("ab.abc.ab", [(0, 2), (3, 6)], [(3, 6)]),  # not where another entity has it; of "ab", one of two is not most
        ("ab.ab.", [(0, 2), (3, 5)], [(0, 2), (3, 5)]),
    ],
)
def test_one_decision_for_a_mention(text, given, expected):
    kept = Wanted(consistent=True).kept(text, found(*((*span, "person", 4) for span in given)), CONFIG)
    assert spans(kept) == [(*span, "person") for span in expected]


FILES = [  # function, content, part of the error
    (read_terms, "浙商银行\n", ":1:"),
    (read_terms, "a\tperson\n\nb\tperson\tmaybe\n", ":3:"),
    (read_terms, "a\tperson\tforce\tmore\n", ":1:"),
    (read_terms, "\tperson\n", ":1:"),
    (read_patterns, "- a\n", "types"),
    (read_patterns, "a: [", "YAML"),
    (read_patterns, "date: '('\n", "date"),
    (read_patterns, "date: {maybe: a}\n", "maybe"),
    (read_patterns, "date: 3\n", "date"),
]


@pytest.mark.parametrize("read, content, part", FILES, ids=range(len(FILES)))
def test_wrong_files_are_refused(read, content, part, tmp_path):
    (tmp_path / "list").write_text(content, encoding="utf-8")
    with pytest.raises(InputError, match=part):
        read(tmp_path / "list")


WRONG = [{"types": ["nothing"]}, {"top_k": 0}, {"min_probability": 1.5}, {"min_probability": {"nothing": 0.5}},
         {"dictionary": "hints.tsv"}]  # fmt: skip


@pytest.mark.parametrize("options", WRONG, ids=str)
def test_what_a_model_cannot_give_is_refused(options, trained, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hints.tsv").write_text("a\tnothing\thint\n", encoding="utf-8")
    with pytest.raises(InputError):
        NerPredictor(trained.model, "cpu", wanted=options)


def test_files_options_and_python_agree(predictor, predict, trained, dev_texts, tmp_path):
    text = next(text for text in dev_texts if predictor([text])[0]["entities"])
    (tmp_path / "terms.tsv").write_text(f"{text[:2]}\tbrand\n{text[2:4]}\tbrand\tforce\n", encoding="utf-8")
    (tmp_path / "patterns.yaml").write_text("digits: '[0-9]+'\nlast: {force: ['.$']}\n", encoding="utf-8")
    options = {"dictionary": str(tmp_path / "terms.tsv"), "patterns": str(tmp_path / "patterns.yaml")}
    one = NerPredictor(trained.model, "cpu", wanted=options)
    (record,) = one([text])
    forced = [entity for entity in record["entities"] if entity["score"] is None]
    assert [(entity["start"], entity["type"]) for entity in forced][:2] == [(0, "brand"), (2, "brand")]
    assert forced[-1]["type"] == "last"
    assert predict(f"{text}\n", options=[f"--{name}={value}" for name, value in options.items()]) == [record]
    assert predictor([text], wanted=one.wanted) == [record]
    windows = list(one.windows(text))
    assert one.join(text, one.find_in_windows(windows)) == record
    assert predictor.join(text, predictor.find_in_windows(windows, [one.wanted])) == predictor([text])[0]
