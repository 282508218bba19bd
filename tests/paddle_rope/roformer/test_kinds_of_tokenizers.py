"""CharTokenizer: exact offsets, BERT's pieces, vocabulary of a corpus. WordTokenizer: the ids of PaddleNLP's
RoFormerTokenizer. WordPieceTokenizer: ids and offsets of Hugging Face's."""

import json
import logging
import marshal
import pickle
import random
import tempfile
import unicodedata
from pathlib import Path

import jieba
import numpy as np
import pytest
import yaml

from paddle_rope import CharTokenizer, WordPieceTokenizer, WordTokenizer, load_tokenizer
from paddle_rope.roformer.tokenization import word_tokenizer
from paddle_rope.roformer.tokenization.tokenizer import MASK, SPACE, UNK
from tests.paddle_rope.roformer import encoders
from tests.paddle_rope.roformer.conftest import SENTENCES, SPECIAL, tokens_and_strings

# ---- characters
FAMILY, THUMB, HEART, KEYCAP = "👨\u200d👩\u200d👧", "👍\U0001f3fd", "❤\ufe0f", "1\ufe0f\u20e3"
# what each token stands for where the vocabulary has no pieces
CUT = [
    *([], list("在GPU上跑3.5小时"), [" \t\n"], list("ＡＢ１２，"), list("𠮷野家𝒳"), list("[MASK]是[UNK]")),
    ["\u3000", "第", "一", "\u00a0\u2003", "章", "\r\n", "完", " "],
    *(["一", "家", FAMILY, "好"], [THUMB, THUMB, "赞", HEART], ["按", KEYCAP, "键"], ["葛\U000e0100", "城"]),
    *(["c", "a", "f", "e\u0301", "店"], ["e\u0301\u0323", "x"], ["か", "\u3099"], ["\u0301", "中"]),
    ["中\u200d", " ", "国"],
]


@pytest.mark.parametrize("units", CUT, ids=ascii)
def test_tokens_of_a_character_vocabulary_cover_the_text(units):
    tokenizer = CharTokenizer.from_corpus(map("".join, CUT))
    expected = [(SPACE if unit.isspace() else unit, unit) for unit in units]
    assert tokens_and_strings(tokenizer, "".join(units)) == expected


def test_every_token_is_the_normal_form_of_its_characters(bert_vocab_file, sentences):
    tokenizer = CharTokenizer.from_vocab_file(bert_vocab_file)
    for text in [*sentences, *map("".join, CUT)]:
        ids, offsets, _ = tokenizer.encode(text, add_special_tokens=False)
        for index, (start, end) in zip(ids, offsets):
            normal = unicodedata.normalize("NFKC", text[start:end]).lower()
            assert tokenizer.vocab[index] in (normal, f"##{normal}", text[start:end].lower(), UNK)
        assert "".join(text[start:end] for start, end in offsets) == "".join(text.split())
        assert offsets == sorted(offsets) and all(start < end for start, end in offsets)


@pytest.mark.parametrize("min_count, kept", [(1, "中ab国c"), (2, "中ab国"), (3, "中"), (4, "")])
def test_a_vocabulary_of_a_corpus_is_ordered_by_count_then_character(min_count, kept):
    texts = ["国中中", "中b aab", "国 c"]
    tokenizer = CharTokenizer.from_corpus(texts, min_count=min_count)
    assert tokenizer.vocab == [*SPECIAL, SPACE, *kept] == CharTokenizer.from_corpus(texts[::-1], min_count).vocab


@pytest.mark.parametrize("do_lower_case, text, tokens", [
    (False, "Ａ１，①ﬀé𠮷", ["A", "1", ",", "1", UNK, UNK, UNK]),  # as it is, then in its NFKC form
    (False, "aA", ["a", "A"]),
    (True, "aAＡ𝐀Ⓐᴬ", ["a"] * 6),  # every form of a letter
    (True, "aİ中", ["a", UNK, "中"]),  # the lower case of İ has two characters
])  # fmt: skip
def test_a_character_is_looked_up_as_it_is_and_in_other_forms(do_lower_case, text, tokens):
    vocab = [*SPECIAL, *"aA1,ef中"]
    assert tokens_and_strings(CharTokenizer(vocab, do_lower_case), text) == list(zip(tokens, text))
    if not do_lower_case:
        assert tokens_and_strings(CharTokenizer([*vocab, *set(text) - set(vocab)]), text) == list(zip(text, text))


# ---- words
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
WORDS = yaml.safe_load(Path(__file__).with_name("cases.yaml").read_text(encoding="utf-8"))["words"]
CHOSEN = random.Random(2021)
RANDOM_TEXTS = ["".join(CHOSEN.choices(ALPHABET, k=CHOSEN.randrange(12))) for _ in range(400)]


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


@pytest.mark.parametrize("case", [*WORDS, ["x" * 101 + "中", f"{UNK} 中", "x" * 101 + " 中"]], ids=ascii)
def test_what_each_token_stands_for(case):
    text, tokens, *strings = case
    expected = list(zip(tokens.split(), (strings or [tokens])[0].split(" ")))
    assert tokens_and_strings(WordTokenizer(VOCAB), text) == expected


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


# ---- pieces
EXPECTED = np.load(Path(__file__).parent / "data/wordpiece.npz")


@pytest.mark.parametrize("name", encoders.SETTINGS)
def test_ids_and_offsets_are_those_of_hugging_face(name, tmp_path):
    vocab = encoders.vocabulary()
    (tmp_path / "vocab.txt").write_text("".join(f"{token}\n" for token in vocab), encoding="utf-8")
    settings = {"tokenizer_class": "BertTokenizer", **encoders.SETTINGS[name]}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    tokenizer, rows = load_tokenizer(tmp_path), EXPECTED[name]
    assert type(tokenizer) is WordPieceTokenizer
    tokenizer.save_pretrained(tmp_path / "saved")
    for one in (tokenizer, load_tokenizer(tmp_path / "saved")):
        for number, text in enumerate(encoders.texts(name)):
            encoding, expected = one.encode(text, add_special_tokens=False), rows[rows[:, 0] == number]
            assert encoding.ids == expected[:, 1].tolist(), text
            assert encoding.offsets == list(map(tuple, expected[:, 2:].tolist())), text
    assert np.mean(rows[:, 1] == tokenizer.unk_token_id) < 0.7 and len({*rows[:, 1].tolist()}) > 80
