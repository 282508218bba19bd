"""Counts of triples and kinds of errors, each beside what a reader would say."""

from types import SimpleNamespace

import pytest

from paddle_rope.tasks.ner.examples import Entity, make_example
from paddle_rope.tasks.ner.metrics import worst_examples
from paddle_rope.tasks.relations.decoding import Related, Triple, between, triples_of
from paddle_rope.tasks.relations.metrics import MEANINGS, match_triples, relation_scores

TEXT = "王明和李红在北京，王明在京"
SPANS = ((0, 2, "P"), (3, 5, "P"), (6, 8, "L"), (9, 11, "P"), (12, 13, "L"))
WANG, LI, BEIJING, AGAIN, JING = (Entity(*span) for span in SPANS)
ALL = [WANG, LI, BEIJING, AGAIN, JING]
CONFIG = SimpleNamespace(types=["P", "L"], relations=["在", "配偶", "同事", "r"], relation_temperatures=1.0)


def triple(head, tail, kind, score=1.0):
    return Triple(head[:3], tail[:3], kind, score, 0.7)


def example(*relations):
    return make_example(TEXT, ALL, "x:1", relations)


def found(*triples, entities=ALL):
    return Related(entities, [triple(*one) for one in triples])


@pytest.mark.parametrize("gold, triples, entities, kinds", [
    ([(WANG, LI, "配偶")], [(WANG, LI, "配偶")], ALL, ["correct"]),
    ([(WANG, LI, "配偶")], [(WANG, LI, "同事")], ALL, ["relation"]),
    ([(WANG, LI, "配偶")], [(LI, WANG, "配偶")], ALL, ["direction"]),
    ([(WANG, LI, "r"), (LI, WANG, "r")], [(LI, WANG, "r")], ALL, ["missed", "correct"]),
    ([(WANG, BEIJING, "在")], [(WANG, JING, "在")], ALL, ["entity"]),
    ([(WANG, BEIJING, "在")], [(AGAIN, BEIJING, "在")], ALL, ["entity"]),
    ([(WANG, BEIJING, "在")], [], ALL, ["missed"]),
    ([(WANG, BEIJING, "在")], [], [WANG], ["unfound"]),
    ([], [(WANG, BEIJING, "在")], ALL, ["spurious"]),
    ([(WANG, WANG, "r")], [(LI, LI, "r")], ALL, ["missed", "spurious"]),  # not even one entity is right
    ([(WANG, BEIJING, "在"), (WANG, JING, "在")], [(WANG, JING, "在"), (LI, JING, "在")], ALL,
     ["missed", "correct", "spurious"]),
])  # fmt: skip
def test_each_triple_has_one_kind(gold, triples, entities, kinds):
    one, of_text = example(*gold), found(*triples, entities=entities)
    matches = match_triples(one, of_text)
    assert [match.kind for match in matches] == kinds
    assert sum(match.gold is not None for match in matches) == len(gold)
    assert sum(match.predicted is not None for match in matches) == len(triples)
    counts = relation_scores(CONFIG, [one], [of_text])["errors"]
    assert counts == {kind: kinds.count(kind) for kind in ("correct", *MEANINGS)}


def test_triples_count_exactly_and_by_their_texts():
    examples = [example((WANG, BEIJING, "在"), (AGAIN, JING, "在"), (WANG, LI, "配偶")), example()]
    # the first is exact; the second has the right texts at another place; the third is wrong
    of_texts = [found((AGAIN, BEIJING, "在"), (AGAIN, JING, "在"), (LI, WANG, "配偶"), entities=[WANG, LI]), found()]
    scores = relation_scores(CONFIG, examples, of_texts)
    assert [scores[name] for name in ("support", "predicted", "correct", "f1")] == [3, 3, 1, pytest.approx(1 / 3)]
    assert [scores["per_type"][kind]["correct"] for kind in ("在", "配偶")] == [1, 0]
    assert [scores["by_text"][name] for name in ("support", "predicted", "correct")] == [3, 3, 2]
    assert scores["text_f1"] == pytest.approx(2 / 3)
    assert [scores["entities"][name] for name in ("support", "predicted", "correct")] == [10, 7, 7]
    (worst,) = worst_examples(examples, of_texts, 5, match_triples)
    assert worst["where"] == "x:1" and [error["kind"] for error in worst["errors"]] == ["direction", "entity"]
    assert worst["errors"][1]["gold"] == {"start": 0, "end": 8, "type": "在", "text": "王明 → 北京"}


def test_a_relation_is_kept_with_its_two_entities():
    triples = [triple(WANG, LI, "r"), triple(LI, BEIJING, "r")]
    assert between([WANG, LI], triples) == Related([WANG, LI], triples[:1])
    assert triples_of(example((WANG, LI, "r")))[0][:3] == triples[0][:3]
