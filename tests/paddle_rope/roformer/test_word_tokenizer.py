"""WordTokenizer: the ids of PaddleNLP's RoFormerTokenizer, with exact offsets."""

import logging
import marshal
import pickle
import random
import tempfile
import unicodedata

import jieba
import pytest

from paddle_rope import WordTokenizer
from paddle_rope.roformer.tokenization import word_tokenizer
from paddle_rope.roformer.tokenization.tokenizer import CLS, MASK, PAD, SEP, UNK

SPECIAL = [PAD, UNK, CLS, SEP, MASK]
VOCAB = [
    *[*SPECIAL, "中国", "我们", "北京", "学习", "在", "人", "大", "中", "国", "。", "[", "]", "mask", "①"],
    *["deep", "learn", "##ing", "gpu", "##1", "##0", "t", "ca", "##f", "##e", "ci", "a", "x"],
    *["ᄀ", "##ᅡ", "##ᆨ", "σ", "##ι", "##ς", "か"],
]
# What random texts are made of: every branch of the normalization, alone and beside the others.
ALPHABET = [
    *"北京大学中国的一年ABCabciİΣσςéÉñ가각がガ１２ＡＢ。，!?-_%&+#.·①②²µºØŋ〇○々豈﨑𠮷ﬁ½℃Åﾊ١٣😀[]",
    *"\u3099\u0301\u0323\u0344\u0903\u20e3\u200d\ufe0f\u1fef\u037e",  # marks, and what decomposes to ASCII symbols
    *"\x00\x01\t\n\r \u3000\xa0\u2028\u2029\x0b\x1c\x85\u200b\xad\ufeff\ue000\ufffd\u0378\ud83d\udc00",
    *["我们", "语言", "大学生", "T恤", "C++", "hello", " the ", "2024", "iPhone", "##", MASK],
]


def random_texts(number, longest):
    chosen = random.Random(2021)
    return ["".join(chosen.choices(ALPHABET, k=chosen.randrange(longest))) for _ in range(number)]


def is_mark(character):
    return unicodedata.category(character) == "Mn"


def is_removed(character):
    return character.isspace() or character == "\ufffd" or unicodedata.category(character)[0] == "C"


def normal_form(text):
    """Without what the tokenizer removes; casefold, since the lower case of a sigma depends on what is around it."""
    kept = "".join(character for character in text.lower() if not is_removed(character))
    return "".join(part for part in unicodedata.normalize("NFD", kept) if not is_mark(part)).casefold()


def tokens_and_strings(tokenizer, text):
    encoding = tokenizer.encode(text, add_special_tokens=False)
    strings = [text[start:end] for start, end in encoding.offsets]
    return list(zip([tokenizer.vocab[index] for index in encoding.ids], strings))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("do_lower_case", [True, False])
def test_ids_are_those_of_paddlenlps_roformer_tokenizer(word_vocab_file, sentences, real_sentences, do_lower_case):
    from paddlenlp.transformers import RoFormerTokenizer

    theirs = RoFormerTokenizer(str(word_vocab_file), do_lower_case=do_lower_case, use_jieba=True)
    ours = WordTokenizer.from_vocab_file(word_vocab_file, do_lower_case)
    texts = [*sentences, *random_texts(800, 12), *(real_sentences[::2] if do_lower_case else [])]
    assert len(real_sentences) in (0, 2000)
    assert [text for text in texts if ours.encode(text).ids != theirs(text)["input_ids"]] == []
    for first, second in zip(sentences[2:], sentences[4:]):
        expected = theirs(first, second)
        ids, _, token_type_ids = ours.encode(first, second)
        assert (ids, token_type_ids) == (expected["input_ids"], expected["token_type_ids"])


def test_tokens_are_normal_forms_in_order_and_leave_out_only_what_has_no_token(
    word_vocab_file, sentences, real_sentences
):
    tokenizer = WordTokenizer.from_vocab_file(word_vocab_file)
    for text in [*sentences, *random_texts(800, 12), *real_sentences[::2]]:
        ids, offsets, _ = tokenizer.encode(text, add_special_tokens=False)
        end_before, covered = 0, set()
        for index, (start, end) in zip(ids, offsets):
            assert 0 <= start < end <= len(text)
            is_syllable = "가" <= text[start] <= "힣"  # the pieces of a syllable share its place
            assert start >= end_before or is_syllable
            assert not is_removed(text[start]) and not is_removed(text[end - 1])
            token, normal = tokenizer.vocab[index].casefold(), normal_form(text[start:end])
            assert token == UNK.casefold() or token.removeprefix("##") in ([normal] if not is_syllable else normal)
            end_before = end
            covered.update(range(start, end))
        left_out = {text[position] for position in range(len(text)) if position not in covered}
        assert all(is_removed(one) or is_mark(one) or one == "\u0344" for one in left_out)


@pytest.mark.parametrize(
    "text, expected",
    [
        ("我们在北京学习", [("我们", "我们"), ("在", "在"), ("北京", "北京"), ("学习", "学习")]),
        ("人大", [("人", "人"), ("大", "大")]),  # a word of jieba that the vocabulary lacks
        ("Deep Learning", [("deep", "Deep"), ("learn", "Learn"), ("##ing", "ing")]),
        ("GPU100", [("gpu", "GPU"), ("##1", "1"), ("##0", "0"), ("##0", "0")]),
        ("T恤", [("t", "T"), (UNK, "恤")]),
        ("caf\u00e9", [("ca", "ca"), ("##f", "f"), ("##e", "é")]),
        ("cafe\u0301店", [("ca", "ca"), ("##f", "f"), ("##e", "e\u0301"), (UNK, "店")]),
        ("caf\u0301\u200b\u0323e", [("ca", "ca"), ("##f", "f\u0301\u200b\u0323"), ("##e", "e")]),
        ("中\u0301\u0323国", [("中", "中\u0301\u0323"), ("国", "国")]),
        (" \u0301中 \u0301国", [("中", "中"), ("国", "国")]),
        ("\u200b中\u200b国\u200b", [("中国", "中\u200b国")]),
        ("cİf", [("ci", "cİ"), ("##f", "f")]),
        ("각", [("ᄀ", "각"), ("##ᅡ", "각"), ("##ᆨ", "각")]),
        ("ΣΙΣ ΣΙ。", [("σ", "Σ"), ("##ι", "Ι"), ("##ς", "Σ"), ("σ", "Σ"), ("##ι", "Ι"), ("。", "。")]),
        ("が", [("か", "が")]),
        ("c\x00i\x00f\x00", [("ci", "c\x00i"), ("##f", "f")]),
        ("gpu①", [("gpu", "gpu"), ("①", "①")]),  # ① is in the vocabulary: a word of its own
        ("龘①龘", [(UNK, "龘"), ("①", "①"), (UNK, "龘")]),
        ("x" * 101 + "中", [(UNK, "x" * 101), ("中", "中")]),
        ("[MASK]", [("[", "["), ("mask", "MASK"), ("]", "]")]),
    ],
    ids=ascii,
)
def test_what_each_token_stands_for(text, expected):
    assert tokens_and_strings(WordTokenizer(VOCAB), text) == expected


def test_real_texts_are_mostly_words_and_hardly_unknown(word_vocab_file, real_sentences):
    tokenizer = WordTokenizer.from_vocab_file(word_vocab_file)
    texts = real_sentences if len(tokenizer) == 50000 else ["我们在北京学习语言模型"]
    tokens = [pair for text in texts for pair in tokens_and_strings(tokenizer, text)]
    in_words = sum(len(string) for _, string in tokens if len(string) > 1)
    assert in_words > 0.4 * sum(map(len, texts))
    assert sum(token == UNK for token, _ in tokens) < 0.01 * len(tokens)


def test_a_cased_vocabulary_keeps_case_and_accents():
    tokenizer = WordTokenizer([*SPECIAL, "Ab", "ab", "é", "C++"], do_lower_case=False)
    assert tokens_and_strings(tokenizer, "Ab ab é e") == [("Ab", "Ab"), ("ab", "ab"), ("é", "é"), (UNK, "e")]


def test_jieba_is_read_once_at_the_first_text_without_messages(capfd):
    word_tokenizer.jieba_cutter.cache_clear()
    logger = logging.getLogger("jieba")
    level = logger.level
    logger.setLevel(logging.DEBUG)
    first, second = WordTokenizer(VOCAB), WordTokenizer(VOCAB)
    assert word_tokenizer.jieba_cutter.cache_info().misses == 0
    first.encode("中国")
    second.encode("中国")
    assert word_tokenizer.jieba_cutter.cache_info().misses == 1
    assert capfd.readouterr() == ("", "")
    assert logger.level == logging.DEBUG
    logger.setLevel(level)


def test_jiebas_dictionary_is_that_of_the_package_whatever_is_in_the_temporary_folder(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    foreign = marshal.dumps(({"我": 0, "我们": 0, "们": 0, "们在": 10**9}, 10**9))
    (tmp_path / "jieba.cache").write_bytes(foreign)
    word_tokenizer.jieba_cutter.cache_clear()
    cutter = word_tokenizer.jieba_cutter()
    assert list(cutter.cut("我们在学习", HMM=False)) == ["我们", "在", "学习"]
    (tmp_path / "jieba.cache").unlink()
    word_tokenizer.jieba_cutter.cache_clear()
    word_tokenizer.jieba_cutter()
    assert list(tmp_path.iterdir()) == []


def test_words_that_a_program_adds_to_jieba_change_nothing(monkeypatch):
    tokenizer = WordTokenizer([*VOCAB, "学习在大"])
    before = tokens_and_strings(tokenizer, "我们学习在大")
    monkeypatch.setattr(jieba, "dt", jieba.Tokenizer())
    tokenizer.encode("我们学习")
    assert not jieba.dt.initialized
    jieba.dt.add_word("学习在大")
    assert jieba.dt.lcut("我们学习在大") == ["我们", "学习在大"]
    assert (
        tokens_and_strings(tokenizer, "我们学习在大")
        == before
        == [("我们", "我们"), ("学习", "学习"), ("在", "在"), ("大", "大")]
    )


def test_what_is_remembered_does_not_change_ids_and_is_bounded(monkeypatch, sentences):
    expected = [WordTokenizer(VOCAB).encode(text) for text in sentences]
    monkeypatch.setattr(word_tokenizer, "MAX_REMEMBERED", 4)
    tokenizer = WordTokenizer(VOCAB)
    for text, encoding in zip([*sentences, *sentences], [*expected, *expected]):
        assert tokenizer.encode(text) == encoding
        assert len(tokenizer._remembered) <= 4


def test_a_used_tokenizer_can_be_sent_to_another_process(sentences):
    tokenizer = WordTokenizer(VOCAB)
    expected = [tokenizer.encode(text) for text in sentences]
    assert [pickle.loads(pickle.dumps(tokenizer)).encode(text) for text in sentences] == expected
