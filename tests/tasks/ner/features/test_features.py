"""Word features: values by hand, leave-one-out, hostile texts, files, batches and windows."""

import logging
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from paddle_rope import CharTokenizer
from tasks.ner.batching import NerDataset, SpanCollator, TokenizedText
from tasks.ner.data.reading import read_examples
from tasks.ner.examples import Entity, Example
from tasks.ner.features import COLUMNS, FEATURE_KINDS, WordFeatures
from tasks.ner.features.chinese_words import TAG_CLASSES, tag_class
from tasks.ner.features.flags import SpanFlags
from tasks.ner.features.gazetteer import Gazetteer, StringFinder
from tasks.ner.features.jieba_dictionary import installed_words
from tasks.ner.features.pairs import pairs_of
from tasks.ner.features.token_features import token_places
from tasks.ner.prediction.windows import cut_text
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


def each_character(text):
    return [(index, index + 1) for index in range(len(text))]


def example(text, *entities):
    """An example of (string, type), each at its first place."""
    return Example(
        text, tuple(sorted(Entity(text.index(s), text.index(s) + len(s), kind) for s, kind in entities)), "x:1"
    )


def segment(text):
    return installed_words()(text).segmentation


def values_of(text, offsets, kind):
    """For each column of a kind the values of the tokens, None where there is none."""
    features = WordFeatures.from_examples([example(text)], [kind], min_count=1)
    values = [None, "unknown", *features.vocabularies[kind]]
    columns = features(text, offsets).columns
    assert columns.shape == (len(offsets), COLUMNS[kind]) and columns.dtype == np.int32
    return [[values[number] for number in column] for column in columns.T]


def span_flags(spans, classes, offsets):
    flags = SpanFlags(classes)
    size = max(end for _, end in offsets)
    packed = flags(spans, size, token_places(offsets, size))
    return np.unpackbits(packed, axis=1, count=flags.num_flags)


# ---- by hand


def test_place_in_the_word_and_part_of_speech_of_each_character():
    (places,) = values_of(TEXT, each_character(TEXT), "segmentation")
    assert places == ["S-r", "S-p", "B-nt", "M-nt", "M-nt", "E-nt", "B-v", "E-v"]


def test_bigrams_left_and_right():
    assert values_of("甲乙丙", each_character("甲乙丙"), "bigrams") == [
        [None, "甲乙", "乙丙"],
        ["甲乙", "乙丙", None],
    ]


def test_covering_word_and_longest_words_that_begin_and_end():
    # in the dictionary: 北京, 北京大学, 大学, 学学, 学学习, 学习
    covering, begin, end = values_of(TEXT, each_character(TEXT), "words")
    assert covering == ["他", "在", *["北京大学"] * 4, "学习", "学习"]
    assert begin == [None, None, "北京大学", None, "大学", "学学习", "学习", None]
    assert end == [None, None, None, "北京", None, "北京大学", "学学", "学学习"]


def test_token_of_several_characters_has_the_beginning_of_its_first_and_the_end_of_its_last():
    offsets = [(0, 0), (0, 1), (1, 2), (2, 4), (4, 6), (6, 8), (2, 6), (0, 0)]
    (places,) = values_of(TEXT, offsets, "segmentation")
    assert places == [None, "S-r", "S-p", "B-nt", "E-nt", "S-v", "S-nt", None]
    left, right = values_of(TEXT, offsets, "bigrams")
    assert left == [None, None, "他在", "在北", "京大", "学学", "在北", None]
    assert right == [None, "他在", "在北", "京大", "学学", None, "学学", None]
    _, begin, end = values_of(TEXT, offsets, "words")
    assert begin[3:7] == ["北京大学", "大学", "学习", "北京大学"]
    assert end[3:7] == ["北京", "北京大学", "学学习", "北京大学"]


def test_flags_say_which_spans_a_token_begins_is_inside_of_and_ends():
    flags = span_flags([(0, 4, 0), (1, 2, 1), (2, 4, 1)], 2, each_character("甲乙丙丁")).reshape(4, 2, 3)
    assert flags[:, 0].tolist() == [[1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1]]
    assert flags[:, 1].tolist() == [[0, 0, 0], [1, 0, 1], [1, 0, 0], [0, 0, 1]]
    of_tokens = span_flags([(0, 4, 0)], 1, [(0, 0), (0, 2), (1, 3), (2, 4), (0, 4)])
    assert of_tokens.tolist() == [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1]]


def test_dictionary_flags_hold_class_length_and_place_of_all_words_through_a_character():
    features = WordFeatures.from_examples([example(TEXT)], ["dictionary"])
    flags = features(TEXT, each_character(TEXT)).flags.reshape(len(TEXT), len(TAG_CLASSES), 3, 3)
    set_flags = {(at, TAG_CLASSES[tag], size + 2, "BIE"[place]) for at, tag, size, place in np.argwhere(flags)}
    assert set_flags == {
        (2, "ns", 2, "B"), (3, "ns", 2, "E"),  # 北京
        (2, "nt", 4, "B"), (3, "nt", 4, "I"), (4, "nt", 4, "I"), (5, "nt", 4, "E"),  # 北京大学
        (4, "n", 2, "B"), (5, "n", 2, "E"),  # 大学
        (5, "n", 2, "B"), (6, "n", 2, "E"),  # 学学
        (5, "n", 3, "B"), (6, "n", 3, "I"), (7, "n", 3, "E"),  # 学学习
        (6, "v", 2, "B"), (7, "v", 2, "E"),  # 学习
    }  # fmt: skip


def test_parts_of_speech_fall_into_classes():
    tags = {"nrt": "nr", "ns": "ns", "ng": "n", "vn": "v", "ad": "a", "b": "a", "l": "i", "q": "m", "eng": "x", "": "x"}
    assert {tag: TAG_CLASSES[tag_class(tag)] for tag in tags} == tags


def finder_of(strings):
    find = StringFinder(strings)
    return lambda text: sorted(find(text, pairs_of(text)))


def test_strings_are_found_wherever_they_stand():
    finder = finder_of({"甲乙丙": 2, "乙": 1, "丙丁": 5})
    assert finder("甲乙丙丁甲乙") == [(0, 3, 2), (1, 2, 1), (2, 4, 5), (5, 6, 1)]
    finder = finder_of({"甲乙丙": 2, "丙丁": 5})
    assert finder("甲乙甲乙丙丁") == [(2, 5, 2), (4, 6, 5)]
    assert finder("甲") == finder("") == []


def test_values_that_are_rarer_than_min_count_are_unknown():
    features = WordFeatures.from_examples([example("甲乙甲乙丙")] * 2, ["bigrams"], min_count=3)
    assert features.vocabularies == {"bigrams": ["甲乙"]} and features.sizes == {"tables": {"bigrams": 3}, "flags": 0}
    columns = features("甲乙丙", [(0, 0), (0, 1), (1, 2), (2, 3), (0, 0)]).columns
    assert columns.tolist() == [[0, 0], [0, 2], [2, 1], [1, 0], [0, 0]]


# ---- gazetteer


def test_more_texts_add_the_values_that_are_frequent_in_all():
    more = [example("甲丙")] * 3 + [example("丙丁")] * 2
    of_few = [example("甲乙"), example("丙丁")]
    features = WordFeatures.from_examples(of_few, ["bigrams"], min_count=1, more=more, more_min_count=3)
    assert features.vocabularies["bigrams"] == ["丙丁", "甲丙", "甲乙"]
    features = WordFeatures.from_examples(of_few, ["bigrams"], min_count=2, more=more, more_min_count=3)
    assert features.vocabularies["bigrams"] == ["丙丁", "甲丙"]


def spans_of(gazetteer, text, own=None):
    return {
        (text[start:end], gazetteer.types[number // 3], number % 3)
        for start, end, numbers in gazetteer(text, pairs_of(text), own)
        for number in numbers
    }


def test_gazetteer_gives_type_and_bin_of_the_share_of_occurrences():
    examples = [
        example("去青川", ("青川", "place")),
        example("青川队", ("青川队", "team")),
        example("青川人", ("青川", "place")),
        example("白水", ("白水", "place")),
        *[example("白水白水")] * 2,
    ]
    gazetteer = Gazetteer.from_examples(examples)
    assert gazetteer.occurrences == {"青川": 3, "青川队": 1, "白水": 5}
    # 青川 2 of 3, 青川队 1 of 1, 白水 1 of 5
    assert spans_of(gazetteer, "青川队在白水") == {("青川", "place", 1), ("青川队", "team", 2), ("白水", "place", 0)}


@pytest.mark.parametrize("labeled, total, bin", [(29, 100, 0), (3, 10, 1), (74, 100, 1), (3, 4, 2)])
def test_a_share_at_a_bound_belongs_to_the_bin_above(labeled, total, bin):
    gazetteer = Gazetteer({"place": {"青川": labeled}}, {"青川": total})
    assert spans_of(gazetteer, "青川") == {("青川", "place", bin)}


def test_a_training_text_does_not_find_its_own_labels_but_a_dev_text_does():
    training = [example("王明在青川", ("王明", "person"), ("青川", "place")), example("去青川", ("青川", "place"))]
    features = WordFeatures.from_examples(training, ["gazetteer"])
    offsets = each_character(training[0].text)
    as_training, as_dev = (features(training[0].text, offsets, own) for own in (training[0], None))
    assert np.flatnonzero(as_dev.flags.any(axis=1)).tolist() == [0, 1, 3, 4]
    assert np.flatnonzero(as_training.flags.any(axis=1)).tolist() == [3, 4]  # the other text has 青川


def test_features_of_a_training_text_do_not_depend_on_its_labels():
    others = [example("青川的王明", ("青川", "place"), ("王明", "person")), example("王明走了")]
    versions = [(("王明", "person"),), (("王明", "place"),), (("青", "place"), ("王明在", "person")), ()]
    seen = []
    for labels in versions:
        own = example("王明在青川", *labels)
        gazetteer = Gazetteer.from_examples([own, *others])
        seen.append(spans_of(gazetteer, own.text, own))
    assert seen == [{("王明", "person", 1), ("青川", "place", 2)}] * 4


def test_entities_that_are_very_long_or_no_utf_8_are_left_out_of_the_gazetteer():
    long = "长" * 21
    gazetteer = Gazetteer.from_examples([example(f"在{long}和\ud83d处", (long, "place"), ("\ud83d", "place"))])
    assert gazetteer.occurrences == {} and gazetteer(long, pairs_of(long)) == []


# ---- hostile texts


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_words_are_found_at_their_place_in_any_text(text):
    words = segment(text)
    assert [start for start, _, _ in words] == [0, *(end for _, end, _ in words)][: len(words)]
    assert sum(end - start for start, end, _ in words) == len(text)


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_any_text_has_features_that_can_be_saved(text, tmp_path):
    training = [Example(text, (Entity(0, min(3, len(text)), "t"),) if text else (), "x:1"), example(TEXT)]
    features = WordFeatures.from_examples(training, FEATURE_KINDS, min_count=1)
    offsets = [(0, 0), *each_character(text), (0, 0)]
    found = features(text, offsets)
    assert found.columns.shape == (len(text) + 2, 6) and found.flags.shape == (len(text) + 2, features.sizes["flags"])
    assert not found.columns[[0, -1]].any() and not found.flags[[0, -1]].any()
    assert found.columns.max() < max(features.sizes["tables"].values()) and found.columns.min() >= 0
    features.save_pretrained(tmp_path)
    assert same(WordFeatures.from_pretrained(tmp_path)(text, offsets), found)


# ---- against the plain form


@pytest.mark.parametrize("text", [*HOSTILE, TEXT], ids=ascii)
def test_features_are_those_of_the_plain_form(text, features):
    for offsets in ([(0, 0), *each_character(text), (0, 0)], [(at, min(at + 3, len(text))) for at in range(len(text))]):
        found = features(text, offsets)
        assert np.array_equal(found.columns, plain_columns(features, text, offsets).reshape(-1, 6))
        assert np.array_equal(found.flags, plain_flags(features, text, offsets))


def test_features_of_a_corpus_are_those_of_the_plain_form(features, examples):
    for one in examples[:30]:
        offsets = each_character(one.text)
        found = features(one.text, offsets, one)
        assert np.array_equal(found.columns, plain_columns(features, one.text, offsets))
        assert np.array_equal(found.flags, plain_flags(features, one.text, offsets, one))


def test_unknown_words_are_those_of_jieba():
    rng = np.random.default_rng(0)
    common = [*"的一是在不了有和人这中大为上个国我以要他时来用们生到作地于出就分对成会可主发年动同工也能下过子说产种面"]
    mixed = [*common * 2, *"aB3.+&_ ，"]
    for number in range(150):
        text = "".join(rng.choice(mixed, 2 + number % 14)) + ("龘" if number % 50 == 0 else "")
        assert segment(text) == segmentation(text), text


# ---- jieba


def test_neither_jieba_nor_paddle_is_imported():
    program = """
import sys
from tasks.ner.examples import Example
from tasks.ner.features import FEATURE_KINDS, WordFeatures
features = WordFeatures.from_examples([Example("他在", (), "x:1")], FEATURE_KINDS)
assert features("他在", [(0, 1)]).columns.shape == (1, 6)
assert not {"jieba", "pkg_resources", "paddle", "paddlenlp"} & set(sys.modules)
"""
    repository = Path(__file__).resolve().parents[4]
    done = subprocess.run([sys.executable, "-c", program], cwd=repository, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_words_that_a_program_adds_to_jieba_change_nothing(monkeypatch):
    import jieba

    before = segment(TEXT)
    jieba.initialize()
    # del_word would leave the sum of frequencies changed, and with it what jieba finds in other tests
    monkeypatch.setattr(jieba.dt, "FREQ", dict(jieba.dt.FREQ))
    monkeypatch.setattr(jieba.dt, "total", jieba.dt.total)
    jieba.add_word("大学学习", freq=10**7)
    assert "大学学习" in jieba.lcut(TEXT) and segment(TEXT) == before


# ---- files


@pytest.fixture(scope="module")
def examples(corpus):
    return read_examples(str(corpus.train))


@pytest.fixture(scope="module")
def features(examples):
    return WordFeatures.from_examples(examples, FEATURE_KINDS, min_count=2)


def test_saving_and_loading_gives_equal_features(features, examples, tmp_path):
    features.save_pretrained(tmp_path)
    loaded = WordFeatures.from_pretrained(tmp_path)
    assert loaded.sizes == features.sizes and loaded.kinds == features.kinds
    for one in examples[:20]:
        offsets = each_character(one.text)
        assert same(loaded(one.text, offsets), features(one.text, offsets))
        assert same(loaded(one.text, offsets, one), features(one.text, offsets, one))


def test_another_jieba_than_that_of_the_file_is_a_warning(features, tmp_path, caplog):
    features.save_pretrained(tmp_path)
    with caplog.at_level(logging.WARNING):
        WordFeatures.from_pretrained(tmp_path)
        assert caplog.text == ""
        path = tmp_path / "features.json"
        path.write_text(path.read_text(encoding="utf-8").replace('"jieba": "', '"jieba": "9.'), encoding="utf-8")
        WordFeatures.from_pretrained(tmp_path)
    assert "made with jieba 9." in caplog.text


def test_unknown_kind_is_an_error_that_lists_the_kinds():
    with pytest.raises(ValueError, match="some of segmentation, bigrams, words, dictionary, gazetteer, got 'bigram'"):
        WordFeatures.from_examples([], ["words", "bigram"])


# ---- batches and windows


def test_windows_have_the_features_that_the_whole_text_has(features, examples):
    text = "".join(one.text for one in examples[:5])
    offsets = [(0, 0), *each_character(text), (0, 0)]
    whole = features(text, offsets)
    windows = cut_text(TokenizedText(list(range(len(offsets))), offsets, [], whole), 20, 5)
    assert len(windows) > 3
    for window in windows:
        rows = [0, *window.text.ids[1:-1], len(offsets) - 1]
        assert same(window.text.features, whole.of_tokens(rows))
        assert np.array_equal(window.text.features.flags, whole.flags[rows])


def test_batch_pads_features_with_zeros(features):
    texts = [
        TokenizedText([1] * len(text), each_character(text), [], features(text, each_character(text)))
        for text in (TEXT, "去北京")
    ]
    batch = SpanCollator(0)(texts)
    assert batch["columns"].dtype == np.int64 and batch["flags"].dtype == bool
    for row, text in enumerate(texts):
        size = len(text.ids)
        assert np.array_equal(batch["columns"][row, :size], text.features.columns)
        assert np.array_equal(batch["flags"][row, :size], text.features.flags)
        assert not batch["columns"][row, size:].any() and not batch["flags"][row, size:].any()


def test_dataset_of_the_training_examples_is_seen_leave_one_out(features, examples):
    tokenizer = CharTokenizer.from_corpus(one.text for one in examples)
    types = sorted({entity.type for one in examples for entity in one.entities})
    seen, unseen = (NerDataset(examples[:9], tokenizer, types, 99, None, features, made) for made in (True, False))
    pairs = [(a.features, b.features) for a, b in zip(seen.texts, unseen.texts)]
    assert all(np.array_equal(a.columns, b.columns) for a, b in pairs)
    assert any(not np.array_equal(a.flags, b.flags) for a, b in pairs)
    plain = NerDataset(examples[:1], tokenizer, types, 99)
    assert SpanCollator(0, with_labels=False)(plain.texts).keys() == {"input_ids", "attention_mask", "token_mask"}
