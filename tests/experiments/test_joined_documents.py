"""Neighboring texts as one document, for the benchmark of entities against the length."""

import pytest

from tasks.experiments.benchmarks.entities.documents import group_neighbors, join
from tasks.ner.examples import Entity, Example


def surfaces(examples):
    return [(example.surface(entity), entity.type) for example in examples for entity in example.entities]


def test_joined_text_has_the_entities_of_its_parts_where_they_stand_now():
    first = Example("去北京", (Entity(1, 3, "place"),), "x:1")
    second = Example("北京大学。", (Entity(0, 2, "place"), Entity(0, 4, "org")), "x:2")
    joined = join([first, Example("", (), "x:9"), second])
    assert joined.text == "去北京北京大学。" and joined.where == "x:1"
    assert joined.entities == (Entity(1, 3, "place"), Entity(3, 5, "place"), Entity(3, 7, "org"))
    assert surfaces([joined]) == surfaces([first, second])


@pytest.mark.parametrize(
    "before, after, text",
    [("NBA", "2010年", "NBA 2010年"), ("NBA", "在", "NBA在"), ("NBA.", "A", "NBA.A"), ("é", "A", "éA")],
)
def test_only_ascii_words_are_kept_apart(before, after, text):
    joined = join([Example(before, (), "x:1"), Example(after, (Entity(0, 1, "a"),), "x:2")])
    assert joined.text == text
    assert joined.surface(joined.entities[0]) == after[0]


def test_groups_are_all_texts_in_order_and_no_longer_than_wanted_unless_one_text_is():
    examples = [Example(text, (), "x:1") for text in ("一二三", "a", "b", "四五六七八九", "十", "")]
    groups = group_neighbors(examples, lambda first: 5)
    texts = [[example.text for example in group] for group in groups]
    assert texts == [["一二三", "a"], ["b"], ["四五六七八九"], ["十", ""]]
    assert [len(join(group).text) for group in group_neighbors(examples, lambda first: 6)] == [6, 6, 1]  # "一二三a b"
