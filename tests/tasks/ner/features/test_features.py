"""Word features: values by hand and by their definition, leave-one-out, files."""

import numpy as np
import pytest
from hypothesis import example as with_text
from hypothesis import given, settings
from hypothesis import strategies as st

from paddle_rope import CharTokenizer
from tasks.ner.batching import NerDataset
from tasks.ner.data.reading import read_examples
from tasks.ner.examples import Entity, Example
from tasks.ner.features import FEATURE_KINDS, WordFeatures
from tasks.ner.features.jieba_dictionary import installed_words
from tasks.ner.features.word_features import Gazetteer
from tests.tasks.ner.features.plain_features import plain_columns, plain_flags, same, segmentation

TEXT = "他在北京大学学习"  # jieba: 他/r 在/p 北京大学/nt 学习/v
HOSTILE = [
    "",
    " \t \u3000\n",
    "半\ud83d个 \udc00中\n\r\n国",
    "cafe\u0301店 👨\u200d👩\u200d👧好\u3000北\u0301京",
    "[CLS]。。\x00a\x85b 北\u2028京",
    "iPhone13和C++，12.5%的AA制😀大学",
    "𠮷野家 豈﨑 龘靐齉",
    "的" * 50 + "中" * 50,
]
COMMON = "的一是在不了有和人这中大为上个国我以要他时来用们生到作地于出就分对成会可主发年动同工也能下过子说产种面"
DRAWN = settings(max_examples=60, deadline=None, derandomize=True)


def each_character(text):
    return [(index, index + 1) for index in range(len(text))]


def example(text, *entities):
    """An example of (string, type), each at its first place."""
    spans = [Entity(text.index(string), text.index(string) + len(string), kind) for string, kind in entities]
    return Example(text, tuple(sorted(spans)), "x:1")


@pytest.fixture(scope="module")
def examples(corpus):
    return read_examples(str(corpus.train))


@pytest.fixture(scope="module")
def features(examples):
    """Of the corpus, and of entities of one and two characters."""
    short = [example("的中国人", ("的", "place"), ("中国", "place"), ("人", "person"))] * 2
    return WordFeatures.from_examples([*examples, *short], FEATURE_KINDS, min_count=2)


@pytest.mark.parametrize("min_count, bigrams", [(1, ["丙丁", "甲丙", "甲乙"]), (2, ["丙丁", "甲丙"])])
def test_rare_values_are_unknown_unless_they_are_frequent_in_more_texts(min_count, bigrams):
    few, more = [example("甲乙"), example("丙丁")], [example("甲丙")] * 3 + [example("丙丁")] * 2
    features = WordFeatures.from_examples(few, ["bigrams"], min_count=min_count, more=more, more_min_count=3)
    assert features.vocabularies == {"bigrams": bigrams}
    assert features.sizes == {"tables": {"bigrams": len(bigrams) + 2}, "flags": 0}
    numbers = [0, bigrams.index("甲丙") + 2, 1, 0]
    assert features("甲丙乙", [(0, 0), *each_character("甲丙乙")]).columns.tolist() == [
        [0, 0], [0, numbers[1]], [numbers[1], 1], [1, 0],
    ]  # fmt: skip


# ---- gazetteer


def found_entities(gazetteer, text, own=None):
    """(string, type, bin) of what the gazetteer knows in a text."""
    features = WordFeatures(["gazetteer"], {}, gazetteer)
    flags = features(text, each_character(text), own).flags.reshape(len(text), len(gazetteer.types), 3, 3)
    begins, ends = ([tuple(place) for place in np.argwhere(flags[..., part])] for part in (0, 2))
    return {
        (text[start : end + 1], gazetteer.types[kind], bin)
        for start, kind, bin in begins
        for end, *same_class in ends
        if same_class == [kind, bin] and text[start : end + 1] in gazetteer.occurrences
    }


@pytest.mark.parametrize("labeled, total, bin", [(29, 100, 0), (3, 10, 1), (74, 100, 1), (3, 4, 2)])
def test_a_share_at_a_bound_belongs_to_the_bin_above(labeled, total, bin):
    gazetteer = Gazetteer({"place": {"青川": labeled}}, {"青川": total})
    assert found_entities(gazetteer, "青川") == {("青川", "place", bin)}


@pytest.mark.parametrize(
    "labels", [(("王明", "person"),), (("王明", "place"),), (("青", "place"), ("王明在", "person")), ()]
)
def test_a_training_text_does_not_find_its_own_labels_but_a_dev_text_does(labels):
    others = [example("青川的王明", ("青川", "place"), ("王明", "person")), example("王明走了")]
    own = example("王明在青川", *labels)
    gazetteer = Gazetteer.from_examples([own, *others])
    assert found_entities(gazetteer, own.text, own) == {("王明", "person", 1), ("青川", "place", 2)}
    assert {(string, kind) for string, kind, _ in found_entities(gazetteer, own.text)} >= set(labels)


def test_entities_that_are_very_long_or_no_utf_8_are_left_out_of_the_gazetteer():
    long = "长" * 21
    gazetteer = Gazetteer.from_examples([example(f"在{long}和\ud83d处", (long, "place"), ("\ud83d", "place"))])
    assert gazetteer.occurrences == gazetteer.entities == {}


# ---- by definition


def with_hostile_texts(test):
    for text in [*HOSTILE, TEXT]:
        test = with_text(text, 3)(test)
    return DRAWN(given(st.text(COMMON + "国北京大学aB3.+&_ ，", max_size=25), st.integers(1, 4))(test))


@with_hostile_texts
def test_features_are_as_defined(features, text, length):
    overlapping = [(start, min(start + length, len(text))) for start in range(len(text))]
    for offsets in ([(0, 0), *each_character(text), (0, 0)], overlapping):
        found = features(text, offsets)
        assert np.array_equal(found.columns, plain_columns(features, text, offsets).reshape(-1, 6))
        assert np.array_equal(found.flags, plain_flags(features, text, offsets))


def test_features_of_training_texts_are_as_defined_also_once_saved(features, examples, tmp_path, caplog):
    features.save_pretrained(tmp_path)
    loaded = WordFeatures.from_pretrained(tmp_path)
    assert (loaded.sizes, loaded.kinds) == (features.sizes, features.kinds) and not caplog.records
    for one in examples[:30]:
        offsets = each_character(one.text)
        found = features(one.text, offsets, one)
        assert np.array_equal(found.columns, plain_columns(features, one.text, offsets))
        assert np.array_equal(found.flags, plain_flags(features, one.text, offsets, one))
        assert same(loaded(one.text, offsets, one), found)
    path = tmp_path / "features.json"
    path.write_text(path.read_text(encoding="utf-8").replace('"jieba": "', '"jieba": "9.'), encoding="utf-8")
    WordFeatures.from_pretrained(tmp_path)
    assert "made with jieba 9." in caplog.text


def test_vocabularies_of_hostile_texts_can_be_saved(tmp_path):
    training = [Example(text, (Entity(0, min(3, len(text)), "t"),) if text else (), "x:1") for text in HOSTILE]
    features = WordFeatures.from_examples(training, FEATURE_KINDS, min_count=1)
    features.save_pretrained(tmp_path)
    loaded = WordFeatures.from_pretrained(tmp_path)
    for text in HOSTILE:
        offsets = [(0, 0), *each_character(text), (0, 0)]
        assert same(loaded(text, offsets), features(text, offsets))


@DRAWN
@given(st.text(COMMON * 2 + "aB3.+&_ ，龘", min_size=2, max_size=16))
def test_unknown_words_are_those_of_jieba(text):
    assert installed_words()(text).segmentation == segmentation(text)


# ---- jieba


def test_the_dataset_of_training_examples_is_seen_leave_one_out(features, examples):
    tokenizer = CharTokenizer.from_corpus(one.text for one in examples)
    types = sorted({entity.type for one in examples for entity in one.entities})
    seen, unseen = (NerDataset(examples[:9], tokenizer, types, 99, None, features, made) for made in (True, False))
    pairs = [(a.features, b.features) for a, b in zip(seen.texts, unseen.texts)]
    assert all(np.array_equal(a.columns, b.columns) for a, b in pairs)
    assert any(not np.array_equal(a.flags, b.flags) for a, b in pairs)
