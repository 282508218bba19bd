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
from paddle_rope.roformer.tokenization.tokenizer import MASK, UNK
from tests.paddle_rope.roformer.conftest import SENTENCES, SPECIAL, tokens_and_strings

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
CHOSEN = random.Random(2021)
RANDOM_TEXTS = ["".join(CHOSEN.choices(ALPHABET, k=CHOSEN.randrange(12))) for _ in range(800)]


def is_mark(character):
    return unicodedata.category(character) == "Mn"


def is_removed(character):
    return character.isspace() or character == "\ufffd" or unicodedata.category(character)[0] == "C"


def normal_form(text):
    """Without what the tokenizer removes; casefold, since the lower case of a sigma depends on what is around it."""
    kept = "".join(character for character in text.lower() if not is_removed(character))
    return "".join(part for part in unicodedata.normalize("NFD", kept) if not is_mark(part)).casefold()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("do_lower_case", [True, False])
def test_ids_are_those_of_paddlenlps_roformer_tokenizer(word_vocab_file, sentences, do_lower_case):
    from paddlenlp.transformers import RoFormerTokenizer

    theirs = RoFormerTokenizer(str(word_vocab_file), do_lower_case=do_lower_case, use_jieba=True)
    ours = WordTokenizer.from_vocab_file(word_vocab_file, do_lower_case)
    texts = [*sentences, *RANDOM_TEXTS]
    assert [text for text in texts if ours.encode(text).ids != theirs(text)["input_ids"]] == []
    for first, second in zip(SENTENCES[2:], SENTENCES[4:]):
        expected, (ids, _, token_type_ids) = theirs(first, second), ours.encode(first, second)
        assert (ids, token_type_ids) == (expected["input_ids"], expected["token_type_ids"])


def test_tokens_are_normal_forms_in_order_and_leave_out_only_what_has_no_token(word_vocab_file, sentences):
    tokenizer = WordTokenizer.from_vocab_file(word_vocab_file)
    for text in [*sentences, *RANDOM_TEXTS]:
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


@pytest.mark.parametrize("text, tokens, strings", [
    ("我们在北京学习", "我们 在 北京 学习", None),
    ("人大", "人 大", None),  # a word of jieba that the vocabulary lacks
    ("Deep Learning", "deep learn ##ing", "Deep Learn ing"),
    ("GPU100", "gpu ##1 ##0 ##0", "GPU 1 0 0"),
    ("T恤", f"t {UNK}", "T 恤"),
    ("caf\u00e9", "ca ##f ##e", "ca f é"),
    ("cafe\u0301店", f"ca ##f ##e {UNK}", "ca f e\u0301 店"),
    ("caf\u0301\u200b\u0323e", "ca ##f ##e", "ca f\u0301\u200b\u0323 e"),
    ("中\u0301\u0323国", "中 国", "中\u0301\u0323 国"),
    (" \u0301中 \u0301国", "中 国", None),
    ("\u200b中\u200b国\u200b", "中国", "中\u200b国"),
    ("cİf", "ci ##f", "cİ f"),
    ("각", "ᄀ ##ᅡ ##ᆨ", "각 각 각"),
    ("ΣΙΣ ΣΙ。", "σ ##ι ##ς σ ##ι 。", "Σ Ι Σ Σ Ι 。"),
    ("が", "か", "が"),
    ("c\x00i\x00f\x00", "ci ##f", "c\x00i f"),
    ("gpu①", "gpu ①", None),  # ① is in the vocabulary: a word of its own
    ("龘①龘", f"{UNK} ① {UNK}", "龘 ① 龘"),
    ("x" * 101 + "中", f"{UNK} 中", "x" * 101 + " 中"),
    ("[MASK]", "[ mask ]", "[ MASK ]"),
], ids=ascii)  # fmt: skip
def test_what_each_token_stands_for(text, tokens, strings):
    expected = list(zip(tokens.split(), (strings or tokens).split(" ")))
    assert tokens_and_strings(WordTokenizer(VOCAB), text) == expected


def test_a_cased_vocabulary_keeps_case_and_accents():
    tokenizer = WordTokenizer([*SPECIAL, "Ab", "ab", "é", "C++"], do_lower_case=False)
    assert tokens_and_strings(tokenizer, "Ab ab é e") == [("Ab", "Ab"), ("ab", "ab"), ("é", "é"), (UNK, "e")]


def test_jiebas_own_dictionary_is_read_once_at_the_first_text_whatever_else_there_is(monkeypatch, tmp_path, capfd):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (tmp_path / "jieba.cache").write_bytes(marshal.dumps(({"我": 0, "我们": 0, "们": 0, "们在": 10**9}, 10**9)))
    monkeypatch.setattr(jieba, "dt", jieba.Tokenizer())
    monkeypatch.setattr(logging.getLogger("jieba"), "level", logging.DEBUG)
    word_tokenizer.jieba_cutter.cache_clear()
    first, second = WordTokenizer(VOCAB), WordTokenizer([*VOCAB, "们在"])
    assert word_tokenizer.jieba_cutter.cache_info().misses == 0
    for tokenizer in (first, second):
        assert tokens_and_strings(tokenizer, "我们在") == [("我们", "我们"), ("在", "在")]
    assert word_tokenizer.jieba_cutter.cache_info().misses == 1
    assert capfd.readouterr() == ("", "") and logging.getLogger("jieba").level == logging.DEBUG
    assert [path.name for path in tmp_path.iterdir()] == ["jieba.cache"] and not jieba.dt.initialized
    (tmp_path / "jieba.cache").unlink()
    jieba.dt.add_word("们在", 10**9)  # words that a program adds change nothing
    assert tokens_and_strings(second, "我们在") == [("我们", "我们"), ("在", "在")]


def test_a_tokenizer_remembers_some_chunks_and_can_be_sent_to_another_process(monkeypatch):
    expected = [WordTokenizer(VOCAB).encode(text) for text in SENTENCES]
    monkeypatch.setattr(word_tokenizer, "MAX_REMEMBERED", 4)
    tokenizer = WordTokenizer(VOCAB)
    for text, encoding in zip([*SENTENCES, *SENTENCES], [*expected, *expected]):
        assert tokenizer.encode(text) == encoding == pickle.loads(pickle.dumps(tokenizer)).encode(text)
        assert len(tokenizer._remembered) <= 4
