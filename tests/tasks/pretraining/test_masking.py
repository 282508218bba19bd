import numpy as np
import pytest

from paddle_rope.roformer import CharTokenizer, WordTokenizer
from paddle_rope.roformer.heads import IGNORED_LABEL
from paddle_rope.roformer.tokenization.word_tokenizer import jieba_cutter
from tasks.pretraining.batches import WholeWordMasking
from tasks.pretraining.packing import starts_of_words, tokenize

TEXT = "北京大学的学生2024年学习Python 语言处理，\n我们不喜欢蛤蟆镜。"


@pytest.fixture
def tokens(request, word_vocab_file):
    if request.param == "char":
        return CharTokenizer.from_corpus([TEXT])
    return WordTokenizer.from_vocab_file(word_vocab_file)


@pytest.mark.parametrize("tokens", ["char", "word"], indirect=True)
def test_words_begin_where_jieba_cuts(tokens):
    encoding = tokens.encode(TEXT, add_special_tokens=False)
    starts = starts_of_words(TEXT, encoding.offsets)
    cuts = np.cumsum([0, *(len(word) for word in jieba_cutter().cut(TEXT, HMM=False))])
    word_of = np.searchsorted(cuts, [start for start, _ in encoding.offsets], side="right")
    assert starts[0]
    assert [bool(start) for start in starts[1:]] == [a != b for a, b in zip(word_of, word_of[1:])]
    assert not starts.all() or tokens.__class__ is WordTokenizer
    # the words of both are the same, however many tokens they have
    words = [TEXT[encoding.offsets[at][0] :] for at in np.flatnonzero(starts)]
    assert any(word.startswith("Python") for word in words) and any(word.startswith("蛤") for word in words)


def test_stream_holds_the_documents_one_behind_the_other():
    texts = ["北京大学", "  ", "我们学习，", ""]
    tokenizer = CharTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"北京大学我们习，"])
    stream = tokenize(texts, tokenizer, "", show_progress=False)
    assert stream.bounds.tolist() == [0, 4, 9]  # without [SPACE] a blank text has no token
    assert tokenizer.decode(stream.ids) == "北京大学我们学习，"
    assert stream.word_starts[[0, 4]].all()
    assert (stream.ids.dtype, stream.word_starts.dtype, stream.bounds.dtype) == (np.int32, bool, np.int64)


def test_no_text_at_all_is_an_empty_stream():
    stream = tokenize([], CharTokenizer.from_corpus(["一"]), "", show_progress=False)
    assert len(stream.ids) == len(stream.word_starts) == 0 and stream.bounds.tolist() == [0]


# ---- hiding

COUNT = 60_000


@pytest.fixture(scope="module")
def masking():
    return WholeWordMasking(CharTokenizer(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"一二三四五六七八九十"]))


@pytest.fixture(scope="module")
def hidden(masking):
    """Many tokens in words of 1 to 4, and what becomes of them."""
    random = np.random.default_rng(3)
    ids = random.integers(5, 15, COUNT).astype(np.int32)
    starts = np.zeros(COUNT, dtype=bool)
    places = np.cumsum([0, *random.integers(1, 5, COUNT)])
    starts[places[places < COUNT]] = True
    return ids, starts, *masking.hide(ids, starts, np.random.default_rng(5))


def test_fifteen_in_a_hundred_words_are_hidden_as_a_whole_long_ones_as_often_as_short_ones(hidden):
    ids, starts, _, labels = hidden
    is_hidden = labels != IGNORED_LABEL
    assert is_hidden.mean() == pytest.approx(0.15, abs=0.005)
    assert np.array_equal(labels[is_hidden], ids[is_hidden])
    words = np.cumsum(starts) - 1
    share = np.bincount(words, weights=is_hidden) / np.bincount(words)
    assert set(share.tolist()) == {0.0, 1.0}
    for size in (1, 2, 3, 4):
        assert share[np.bincount(words) == size].mean() == pytest.approx(0.15, abs=0.02)


def test_hidden_tokens_become_mask_another_or_stay(hidden, masking):
    ids, _, inputs, labels = hidden
    is_hidden = labels != IGNORED_LABEL
    assert np.array_equal(inputs[~is_hidden], ids[~is_hidden])
    now, before = inputs[is_hidden], labels[is_hidden]
    assert np.mean(now == masking.mask_token_id) == pytest.approx(0.8, abs=0.02)
    # a random token is the same by chance once in ten
    assert np.mean(now == before) == pytest.approx(0.1 + 0.1 / 10, abs=0.02)
    changed = now[(now != masking.mask_token_id) & (now != before)]
    assert set(changed.tolist()) == set(range(5, 15))


@pytest.mark.parametrize("size", [1, 2, 5])
def test_even_the_shortest_text_has_something_to_predict(masking, size):
    starts = np.arange(size) == 0
    _, labels = masking.hide(np.full(size, 7, dtype=np.int32), starts, np.random.default_rng(0))
    assert (labels == 7).all()


def test_what_is_hidden_depends_on_the_generator_alone(masking, hidden):
    ids, starts, inputs, labels = hidden
    again = masking.hide(ids, starts, np.random.default_rng(5))
    assert np.array_equal(again, [inputs, labels])
    other = masking.hide(ids, starts, np.random.default_rng(6))
    assert not np.array_equal(other[1], labels)
