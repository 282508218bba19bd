"""CharTokenizer: exact offsets, BERT's pieces, vocabulary of a corpus."""

import unicodedata

import pytest

from paddle_rope import CharTokenizer
from paddle_rope.roformer.tokenization.tokenizer import CLS, MASK, PAD, SEP, SPACE, UNK

SPECIAL = [PAD, UNK, CLS, SEP, MASK]
FAMILY = "👨\u200d👩\u200d👧"
THUMB = "👍\U0001f3fd"
HEART = "❤\ufe0f"
KEYCAP = "1\ufe0f\u20e3"
# text, what each token stands for where the vocabulary has no pieces
CUT = [
    ("", []),
    ("北京大学", list("北京大学")),
    ("在GPU上跑3.5小时", list("在GPU上跑3.5小时")),
    ("iPhone13手机", list("iPhone13手机")),
    (" \t\n", [" \t\n"]),
    ("\u3000第一\u00a0\u2003章\r\n完 ", ["\u3000", "第", "一", "\u00a0\u2003", "章", "\r\n", "完", " "]),
    (f"一家{FAMILY}好", ["一", "家", FAMILY, "好"]),
    (f"{THUMB}{THUMB}赞{HEART}", [THUMB, THUMB, "赞", HEART]),
    (f"按{KEYCAP}键", ["按", KEYCAP, "键"]),
    ("cafe\u0301店", ["c", "a", "f", "e\u0301", "店"]),
    ("e\u0301\u0323x", ["e\u0301\u0323", "x"]),
    ("か\u3099", ["か", "\u3099"]),
    ("\u0301中", ["\u0301", "中"]),
    ("中\u200d 国", ["中\u200d", " ", "国"]),
    ("ＡＢ１２，", list("ＡＢ１２，")),
    ("𠮷野家𝒳", list("𠮷野家𝒳")),
    ("葛\U000e0100城", ["葛\U000e0100", "城"]),
    ("[MASK]是[UNK]", list("[MASK]是[UNK]")),
    ("a\x00b\ufeff中", ["a", "\x00", "b", "\ufeff", "中"]),
]


def pieces_of(text, encoding):
    return [text[start:end] for start, end in encoding.offsets]


def corpus_tokenizer(**settings):
    return CharTokenizer.from_corpus([text for text, _ in CUT], **settings)


@pytest.mark.parametrize("text, units", CUT, ids=ascii)
def test_offsets_are_exact_and_cover_the_text(text, units):
    encoding = corpus_tokenizer().encode(text, add_special_tokens=False)
    assert pieces_of(text, encoding) == units
    assert "".join(pieces_of(text, encoding)) == text
    assert len(encoding.ids) == len(encoding.offsets)
    ends = [0, *(end for _, end in encoding.offsets)]
    assert [start for start, _ in encoding.offsets] == ends[:-1]


@pytest.mark.parametrize("text, units", CUT, ids=ascii)
def test_ids_are_those_of_the_units(text, units):
    tokenizer = corpus_tokenizer()
    expected = [tokenizer.token_to_id[SPACE if unit.isspace() else unit] for unit in units]
    assert tokenizer.encode(text, add_special_tokens=False).ids == expected
    assert tokenizer.unk_token_id not in expected


@pytest.mark.parametrize("text", [text for text, _ in CUT], ids=ascii)
def test_special_tokens_are_around_the_text_and_stand_for_no_character(text):
    tokenizer = corpus_tokenizer()
    bare = tokenizer.encode(text, add_special_tokens=False)
    ids, offsets, _ = tokenizer.encode(text)
    assert ids == [tokenizer.token_to_id[CLS], *bare.ids, tokenizer.token_to_id[SEP]]
    assert offsets == [(0, 0), *bare.offsets, (0, 0)]


@pytest.mark.parametrize("text, units", CUT, ids=ascii)
def test_with_a_bert_vocabulary_offsets_cover_all_but_white_space(text, units, bert_vocab_file):
    encoding = CharTokenizer.from_vocab_file(bert_vocab_file).encode(text, add_special_tokens=False)
    assert "".join(pieces_of(text, encoding)) == "".join(text.split())
    ends = [end for _, end in encoding.offsets]
    assert all(start >= end for (start, _), end in zip(encoding.offsets[1:], ends))
    assert all(start < end for start, end in encoding.offsets)


def test_every_token_is_the_normal_form_of_its_characters(bert_vocab_file, sentences, real_sentences):
    tokenizer = CharTokenizer.from_vocab_file(bert_vocab_file)
    for text in [*sentences, *real_sentences]:
        ids, offsets, _ = tokenizer.encode(text, add_special_tokens=False)
        for index, (start, end) in zip(ids, offsets):
            normal = unicodedata.normalize("NFKC", text[start:end]).lower()
            token = tokenizer.vocab[index]
            assert token in (normal, f"##{normal}", text[start:end].lower(), UNK)
        assert "".join(text[start:end] for start, end in offsets) == "".join(text.split())


def test_ascii_words_are_cut_into_the_longest_pieces():
    vocab = [*SPECIAL, "un", "##aff", "##able", "##a", "una", "20", "##2", "##24", "中", "x"]
    tokenizer = CharTokenizer(vocab, do_lower_case=True)
    text = "中Unaffable 2024x中"
    encoding = tokenizer.encode(text, add_special_tokens=False)
    # "una" is taken first and leaves "ffable", which nothing covers: the whole word is unknown
    assert [vocab[index] for index in encoding.ids] == ["中", UNK, UNK, "中"]
    tokenizer = CharTokenizer([token for token in vocab if token != "una"] + ["##x"], do_lower_case=True)
    encoding = tokenizer.encode(text, add_special_tokens=False)
    tokens = ["中", "un", "##aff", "##able", "20", "##24", "##x", "中"]
    assert [tokenizer.vocab[index] for index in encoding.ids] == tokens
    assert pieces_of(text, encoding) == ["中", "Un", "aff", "able", "20", "24", "x", "中"]
    assert encoding.offsets[4] == (11, 13)


PLAIN_SENTENCES = [
    "北京大学的学生在学习自然语言处理。",
    "我们训练了一个模型，数据是中国人的语言。",
    "2024年10月3日，上海。",
    "她在北京有3个学生，他有12个。",
    "机器学习（machine learning）是人工智能的一部分。",
    "Deep Learning with Python and GPU",
    "the GPU is 3.5 times faster: 100%!",
    "RoFormer 和 GlobalPointer",
    "用python3写NLP模型",
    "GPU100和gpu200",
    "他说：“我是中国人。”",
    "一二三四五六七八九十",
    "A股和B股都上涨了0.5%",
    "电话：010-62751234",
    "邮箱 someone@example.com 网址 http://example.com/a/b",
    "C++ 和 C# 语言",
    "“双十一”销售额达2684亿元",
    "《红楼梦》第3回",
    "阿里巴巴、腾讯、百度（BAT）",
    "iPhone15ProMax",
    "x=1,y=2;z=x+y",
    "第1章\t绪论",
    "  前后有空格  ",
    "换行\n之后",
    "COVID19疫苗",
    "nlp",
    "N L P",
    "1234567890",
    "abcdefghijklmnopqrstuvwxyz",
    "龘靐齉",
    "北京-上海高铁G1次",
    "a.b.c",
    "T恤",
    "（一）总则",
    "5G+AI",
    "",
]


@pytest.mark.filterwarnings("ignore")
def test_ids_of_plain_texts_are_those_of_paddlenlps_bert_tokenizer(bert_vocab_file):
    from paddlenlp.transformers import BertTokenizer

    theirs = BertTokenizer(vocab_file=str(bert_vocab_file), do_lower_case=True)
    ours = CharTokenizer.from_vocab_file(bert_vocab_file)
    assert len(ours) == theirs.vocab_size
    ids = {text: ours.encode(text).ids for text in PLAIN_SENTENCES}
    assert ids == {text: theirs(text)["input_ids"] for text in PLAIN_SENTENCES}
    known = [index for row in ids.values() for index in row if index != ours.unk_token_id]
    assert len(set(known)) > 80


def test_the_bert_vocabulary_is_read_in_the_order_of_its_lines(bert_vocab_file):
    tokenizer = CharTokenizer.from_vocab_file(bert_vocab_file)
    lines = bert_vocab_file.read_bytes().decode("utf-8").split("\n")  # splitlines() would split the real file's U+2028
    assert len(tokenizer) == len(lines) - 1
    for token in (*SPECIAL, "京", "##a", "9"):
        assert tokenizer.token_to_id[token] == lines.index(token)
    assert tokenizer.pad_token_id == 0


def test_the_vocabulary_of_a_corpus_is_ordered_by_count_then_character():
    tokenizer = CharTokenizer.from_corpus(["国中中", "中b aab", "国 c"])
    assert tokenizer.vocab == [*SPECIAL, SPACE, "中", "a", "b", "国", "c"]
    assert tokenizer.pad_token_id == 0


@pytest.mark.parametrize("min_count, kept", [(1, list("中ab国c")), (2, list("中ab国")), (3, ["中"]), (4, [])])
def test_rare_characters_are_left_out_and_unknown(min_count, kept):
    tokenizer = CharTokenizer.from_corpus(["国中中", "中b aab", "国 c"], min_count=min_count)
    assert tokenizer.vocab == [*SPECIAL, SPACE, *kept]
    known = [index != tokenizer.unk_token_id for index in tokenizer.encode("中ab国c", add_special_tokens=False).ids]
    assert known == [character in kept for character in "中ab国c"]


def test_the_vocabulary_of_a_corpus_does_not_depend_on_its_order():
    texts = [text for text, _ in CUT]
    assert CharTokenizer.from_corpus(texts).vocab == CharTokenizer.from_corpus(texts[::-1]).vocab


def test_the_vocabulary_of_no_corpus_has_the_special_tokens():
    tokenizer = CharTokenizer.from_corpus([])
    assert tokenizer.encode("中 a").ids == [tokenizer.token_to_id[token] for token in (CLS, UNK, SPACE, UNK, SEP)]


@pytest.mark.parametrize(
    "character, found", [("Ａ", "A"), ("１", "1"), ("，", ","), ("①", "1"), ("ﬀ", UNK), ("é", UNK), ("𠮷", UNK)]
)
def test_a_character_is_looked_up_as_it_is_then_in_its_nfkc_form(character, found):
    tokenizer = CharTokenizer([*SPECIAL, "A", "1", ",", "e", "f"])
    (index,) = tokenizer.encode(character, add_special_tokens=False).ids
    assert tokenizer.vocab[index] == found
    if len(character) == 1:
        exact = CharTokenizer([*SPECIAL, "A", "1", ",", character])
        assert exact.encode(character, add_special_tokens=False).ids == [exact.token_to_id[character]]


@pytest.mark.parametrize("character", ["A", "a", "Ａ", "𝐀", "Ⓐ", "ᴬ"])
def test_lower_case_is_looked_up_in_every_form_of_a_letter(character):
    tokenizer = CharTokenizer([*SPECIAL, "a"], do_lower_case=True)
    assert tokenizer.encode(character, add_special_tokens=False) == ([5], [(0, 1)], [0])


def test_case_is_kept_unless_lower_case_is_wanted():
    vocab = [*SPECIAL, "a", "A"]
    assert CharTokenizer(vocab).encode("aA", add_special_tokens=False).ids == [5, 6]
    assert CharTokenizer(vocab, do_lower_case=True).encode("aA", add_special_tokens=False).ids == [5, 5]


def test_lower_case_that_is_longer_does_not_move_the_offsets():
    text = "aİb中"
    encoding = CharTokenizer([*SPECIAL, "a", "b", "中"], do_lower_case=True).encode(text, add_special_tokens=False)
    assert pieces_of(text, encoding) == list(text)
    assert encoding.ids == [5, 1, 6, 7]


@pytest.mark.parametrize("do_lower_case", [False, True])
def test_saving_and_loading_keeps_everything(tmp_path, do_lower_case):
    tokenizer = CharTokenizer(corpus_tokenizer().vocab, do_lower_case)
    folder = tmp_path / "deep" / "folder"
    tokenizer.save_pretrained(folder)
    loaded = CharTokenizer.from_pretrained(folder)
    assert loaded.vocab == tokenizer.vocab
    assert loaded.do_lower_case is do_lower_case
    for text, _ in CUT:
        assert loaded.encode(text) == tokenizer.encode(text)
