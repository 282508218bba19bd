"""Neighboring texts as one."""

import pytest

from tasks.ner.data.joining import group_neighbors, join, join_share_of
from tasks.ner.data.reading import read_examples
from tasks.ner.demo import write_demo_corpus
from tasks.ner.examples import Entity, Example


@pytest.fixture(scope="module")
def examples(tmp_path_factory):
    train, _ = write_demo_corpus(tmp_path_factory.mktemp("corpus"), train_size=400, dev_size=5)
    return read_examples(train)


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


@pytest.mark.parametrize("share", [0.3, 1])
def test_share_of_the_texts_stands_in_joined_ones_of_all_lengths(examples, share):
    longest = max(len(example.text) for example in examples)
    made = join_share_of(examples, share, 200, seed=3)
    assert surfaces(made) == surfaces(examples)
    assert "".join(example.text for example in made) == "".join(example.text for example in examples)
    alone = {example.text for example in examples}
    joined = [len(example.text) for example in made if example.text not in alone]
    whole = [example for example in made if example.text in alone]
    assert len(examples) - len(whole) == pytest.approx(share * len(examples), rel=0.15)
    assert max(joined) <= 200 and max(joined) > 160
    assert sum(length < 100 for length in joined) >= 0.2 * len(joined)
    assert min(joined) < 2 * longest


def test_texts_longer_than_the_joined_ones_stay_as_they_are(examples):
    assert join_share_of(examples, 1, 1, seed=0) == examples


def test_seed_chooses_the_texts(examples):
    first, same, other = (join_share_of(examples, 0.5, 100, seed) for seed in (1, 1, 2))
    assert first == same != other
