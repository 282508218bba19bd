"""CharTokenizer: exact offsets, BERT's pieces, vocabulary of a corpus."""

import unicodedata

import pytest

from paddle_rope import CharTokenizer
from paddle_rope.roformer.tokenization.tokenizer import SPACE, UNK
from tests.paddle_rope.roformer.conftest import SPECIAL, tokens_and_strings

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
