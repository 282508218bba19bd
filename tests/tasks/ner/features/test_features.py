"""Word features: values by hand and by their definition, leave-one-out, files; models that have them."""

import numpy as np
import paddle
import pytest
from hypothesis import example as with_text
from hypothesis import given, settings
from hypothesis import strategies as st

from paddle_rope import CharTokenizer
from paddle_rope.tasks.ner.batching import NerDataset
from paddle_rope.tasks.ner.data.reading import read_examples
from paddle_rope.tasks.ner.examples import entity_types
from paddle_rope.tasks.ner.features import COLUMNS, FEATURE_KINDS, WordFeatures
from paddle_rope.tasks.ner.features.jieba_dictionary import installed_words
from paddle_rope.tasks.ner.features.word_features import Gazetteer
from paddle_rope.tasks.ner.model import NerConfig, NerModel
from tests.helpers.models import SIZES
from tests.tasks.ner.conftest import example
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
    "万天",  # a word of the dictionary, less probable than its characters
]
COMMON = "的一是在不了有和人这中大为上个国我以要他时来用们生到作地于出就分对成会可主发年动同工也能下过子说产种面"


def each_character(text):
    return [(index, index + 1) for index in range(len(text))]


@pytest.fixture(scope="module")
def examples(corpus):
    return read_examples(str(corpus.train))


@pytest.fixture(scope="module")
def features(examples):
    """Of the corpus, of entities of one and two characters, and of strange texts; with words that have vectors."""
    short = [example("的中国人", (0, 1, "place"), (1, 3, "place"), (3, 4, "person"))] * 2
    strange = [example(text, *[(0, min(3, len(text)), "place")] * bool(text)) for text in HOSTILE] * 2
    known = ["国北", "大学", "北京大学", "的", "aB3"]
    features = WordFeatures.from_examples([*examples, *short, *strange], FEATURE_KINDS, min_count=2, known_words=known)
    assert features.fixed_words == ["国北", "北京大学", "aB3"]  # the others are in the vocabulary
    return features


@pytest.mark.parametrize("min_count, bigrams", [(1, ["丙丁", "甲丙", "甲乙"]), (2, ["丙丁", "甲丙"])])
def test_rare_values_are_unknown_unless_they_are_frequent_in_more_texts(min_count, bigrams):
    few, more = [example("甲乙"), example("丙丁")], [example("甲丙")] * 3 + [example("丙丁")] * 2
    features = WordFeatures.from_examples(few, ["bigrams"], min_count=min_count, unlabeled=more, min_count_in_all=3)
    assert features.vocabularies == {"bigrams": bigrams}
    assert features.sizes == {"tables": {"bigrams": len(bigrams) + 2}, "flags": 0}
    numbers = [0, bigrams.index("甲丙") + 2, 1, 0]
    assert features("甲丙乙", [(0, 0), *each_character("甲丙乙")]).columns.tolist() == [
        [0, 0], [0, numbers[1]], [numbers[1], 1], [1, 0],
    ]  # fmt: skip


@pytest.mark.parametrize("labeled, total, bin", [(29, 100, 0), (3, 10, 1), (74, 100, 1), (3, 4, 2)])
def test_a_share_at_a_bound_belongs_to_the_bin_above(labeled, total, bin):
    assert Gazetteer({"place": {"青川": labeled}}, {"青川": total})("在青川") == [(1, 3, [bin])]


def test_entities_that_are_very_long_or_no_utf_8_are_left_out_of_the_gazetteer():
    long = "长" * 21
    gazetteer = Gazetteer.from_examples([example(f"在{long}和\ud83d处", (1, 22, "place"), (23, 24, "place"))])
    assert gazetteer.occurrences == gazetteer.entities == {}


def test_copies_of_a_training_text_do_not_give_its_labels_away():
    copies = [example("在青川", (1, 3, "place"))] * 2
    labeled_differently = [*copies, example("在青川")]
    for examples in (copies, labeled_differently, labeled_differently[::-1]):
        gazetteer = Gazetteer.from_examples(examples)
        for one in examples:
            assert all(not classes for _, _, classes in gazetteer(one.text, one))
    gazetteer = Gazetteer.from_examples([*copies, example("去青川", (1, 3, "place"))])
    assert gazetteer.entities == {"place": {"青川": 2}} and gazetteer.occurrences == {"青川": 2}


def with_hostile_texts(test):
    for text in [*HOSTILE, TEXT]:
        test = with_text(text, 3)(test)
    drawn = given(st.text(COMMON * 2 + "国北京大学aB3.+&_ ，龘", max_size=25), st.integers(1, 4))
    return settings(max_examples=60)(drawn(test))


@with_hostile_texts
def test_words_and_features_are_as_defined(features, text, length):
    assert installed_words()(text).segmentation == segmentation(text)
    overlapping = [(start, min(start + length, len(text))) for start in range(len(text))]
    for offsets in ([(0, 0), *each_character(text), (0, 0)], overlapping):
        found = features(text, offsets)
        assert np.array_equal(found.columns, plain_columns(features, text, offsets).reshape(-1, 6))
        assert np.array_equal(found.flags, plain_flags(features, text, offsets))


def test_a_dataset_has_the_features_as_defined_of_training_texts_also_once_saved(features, examples, tmp_path, caplog):
    features.save_pretrained(tmp_path)
    loaded = WordFeatures.from_pretrained(tmp_path)
    assert (loaded.sizes, loaded.kinds) == (features.sizes, features.kinds) and not caplog.records
    tokenizer, types = CharTokenizer.from_corpus(one.text for one in examples), entity_types(examples)
    for own in ({one.text: one for one in examples}, None):
        dataset = NerDataset(examples[:30], tokenizer, types, 99, None, loaded, own)
        for one, text in zip(examples, dataset):
            assert np.array_equal(text.features.columns, plain_columns(features, one.text, text.offsets))
            expected = plain_flags(features, one.text, text.offsets, one if own else None)
            assert np.array_equal(text.features.flags, expected)
    path = tmp_path / "features.json"
    path.write_text(path.read_text(encoding="utf-8").replace('"jieba": "', '"jieba": "9.'), encoding="utf-8")
    WordFeatures.from_pretrained(tmp_path)
    assert "made with jieba 9." in caplog.text


OPTIONS = {**SIZES, "vocab_size": 40, "types": ["a", "b"], "unk_token_id": 1}
OPTIONS |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
ALL = {"tables": {"segmentation": 50, "bigrams": 400, "words": 300}, "flags": 90}


def random_batch(batch=4, seq=50, columns=6, flags=90):
    return {
        "input_ids": paddle.to_tensor(np.random.randint(4, 40, (batch, seq))),
        "attention_mask": paddle.ones([batch, seq], dtype="bool"),
        "token_mask": paddle.to_tensor(np.arange(seq)[None].repeat(batch, 0) > 0),
        "columns": paddle.to_tensor(np.random.randint(0, 50, (batch, seq, columns))),
        "flags": paddle.to_tensor(np.random.random((batch, seq, flags)) < 0.1),
    }


@pytest.mark.parametrize("sizes", [ALL, {"tables": {"bigrams": 60}, "flags": 0}, {"tables": {}, "flags": 9}], ids=str)
def test_every_parameter_of_the_features_gets_a_gradient(sizes):
    model = NerModel(NerConfig(features=sizes, **OPTIONS))
    shapes = {"columns": sum(COLUMNS[kind] for kind in sizes["tables"]), "flags": sizes["flags"]}
    batch = {name: value for name, value in random_batch(**shapes).items() if shapes.get(name) != 0}
    model(**batch).sum().backward()
    for name, parameter in model.feature_embedding.named_parameters():
        assert parameter.grad is not None and np.abs(parameter.grad.numpy()).sum() > 0, name
    batch.popitem()  # flags, or columns
    with pytest.raises(ValueError, match="columns and flags"):
        model(**batch)


def seen_by(model, batch):
    """(token ids, columns) that reach the embeddings."""
    seen = []
    layers = (model.roformer.token_embedding, model.feature_embedding)
    hooks = [layer.register_forward_pre_hook(lambda _, given: seen.append(given[0].numpy())) for layer in layers]
    model(**batch)
    for hook in hooks:
        hook.remove()
    columns, ids = seen
    return ids, columns


def test_dropouts_hide_tokens_and_values_at_their_rate_in_training_only():
    model = NerModel(NerConfig(features=ALL, character_dropout=0.1, feature_dropout=0.3, **OPTIONS))
    batch = random_batch(batch=20, seq=200)
    given_ids, given_columns = batch["input_ids"].numpy(), batch["columns"].numpy()
    model.eval()
    ids, columns = seen_by(model, batch)
    assert np.array_equal(ids, given_ids) and np.array_equal(columns, given_columns)
    model.train()
    ids, columns = seen_by(model, batch)
    hidden, covered = ids != given_ids, batch["token_mask"].numpy()
    assert (ids[hidden] == 1).all() and not hidden[~covered].any()
    assert abs(hidden[covered].mean() - 0.1) < 0.02
    changed = columns != given_columns
    assert (columns[changed] == 1).all() and not changed[given_columns == 0].any()
    assert abs(changed[given_columns > 1].mean() - 0.3) < 0.02
    again = seen_by(model, batch)
    assert not np.array_equal(again[0], ids) and not np.array_equal(again[1], columns)
    paddle.seed(7)
    first = seen_by(model, batch)
    paddle.seed(7)
    assert same(first, seen_by(model, batch))
