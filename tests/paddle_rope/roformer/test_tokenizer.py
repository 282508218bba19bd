"""What the tokenizers share: pairs, truncation, batches, decoding, files."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddle_rope import CharTokenizer, Encoding, WordPieceTokenizer, WordTokenizer, load_tokenizer
from paddle_rope.roformer.tokenization.tokenizer import CLS, PAD, SEP, SPACE, UNK
from tests.paddle_rope.roformer.conftest import SENTENCES, SPECIAL

VOCAB = [*SPECIAL, *"中国人学习一二三四五六七八九十。", "中国", "学习", "gpu", "##s", "a", "b"]
CLASSES = [CharTokenizer, WordTokenizer, WordPieceTokenizer]


@pytest.fixture(params=CLASSES, scope="module")
def tokenizer(request):
    return request.param(VOCAB, do_lower_case=True)


def test_special_tokens_are_around_a_text_and_between_texts(tokenizer):
    special = "pad_token_id", "unk_token_id", "cls_token_id", "sep_token_id", "mask_token_id"
    assert [getattr(tokenizer, name) for name in special] == [0, 1, 2, 3, 4]
    assert type(tokenizer)([PAD, UNK, CLS, SEP]).mask_token_id is None
    one, two, three = (VOCAB.index(character) for character in "一二三")
    offsets = [(0, 0), (0, 1), (1, 2), (3, 4), (0, 0)]
    assert tokenizer.encode("一二 三") == Encoding([2, one, two, three, 3], offsets, [0] * 5)
    pair = tokenizer.encode("一二 三", "二")
    assert pair == Encoding([2, one, two, three, 3, two, 3], [*offsets, (0, 1), (0, 0)], [0] * 5 + [1] * 2)
    bare = tokenizer.encode("一二 三", "二", add_special_tokens=False)
    assert bare == Encoding([one, two, three, two], [*offsets[1:4], (0, 1)], [0, 0, 0, 1])
    assert tokenizer.encode("", "") == Encoding([2, 3, 3], [(0, 0)] * 3, [0, 0, 1])


@settings(max_examples=60)
@given(lengths=st.lists(st.integers(0, 7), min_size=1, max_size=2), room=st.integers(0, 15), has_special=st.booleans())
def test_texts_are_cut_at_their_ends_token_by_token_from_the_longer(lengths, room, has_special):
    tokenizer = CharTokenizer(VOCAB)
    texts = ["一二三四五六七"[: lengths[0]], *(["七六五四三二一"[: lengths[1]]] if len(lengths) == 2 else [])]
    most = room + has_special * (len(texts) + 1)
    kept = [list(text) for text in texts]
    while sum(map(len, kept)) > room:
        (kept[0] if len(kept) == 1 or len(kept[0]) > len(kept[1]) else kept[1]).pop()
    expected = tokenizer.encode(*map("".join, kept), add_special_tokens=has_special)
    assert tokenizer.encode(*texts, max_length=most, add_special_tokens=has_special) == expected


@pytest.mark.parametrize("pairs", [None, ["四五", "", "中国人"]])
@pytest.mark.parametrize("max_length", [None, 5])
@pytest.mark.parametrize("side", ["left", "right"])
def test_rows_of_a_batch_are_the_padded_texts(tokenizer, pairs, max_length, side):
    texts = ["一", "一二三四五六", ""]
    batch = tokenizer.encode_batch(texts, pairs, max_length, padding_side=side)
    rows = [tokenizer.encode(text, pair, max_length) for text, pair in zip(texts, pairs or [None] * 3)]
    longest = max(len(row.ids) for row in rows)
    dtypes = {name: array.dtype for name, array in batch.items() if name != "offsets"}
    assert dtypes == {"input_ids": np.int64, "token_type_ids": np.int64, "attention_mask": bool}
    fillings = {"input_ids": 0, "token_type_ids": 0, "attention_mask": False, "offsets": (0, 0)}
    for index, row in enumerate(rows):
        of_row = row.ids, row.token_type_ids, [True] * len(row.ids), row.offsets
        for (name, filling), values in zip(fillings.items(), of_row):
            padding = [filling] * (longest - len(values))
            assert list(batch[name][index]) == (padding + values if side == "left" else values + padding)


def test_a_batch_is_padded_with_the_id_of_padding_and_may_be_empty():
    tokenizer = CharTokenizer([*"国人", UNK, CLS, SEP, PAD])
    assert tokenizer.encode_batch(["国", "国人"])["input_ids"].tolist() == [[3, 0, 4, 5], [3, 0, 1, 4]]
    assert tokenizer.encode_batch([])["input_ids"].shape == (0, 0)


def test_decoding_gives_the_text_back(tokenizer):
    for text in ("中国人学习。", "gpus a b中国a。b", ""):
        assert tokenizer.decode(tokenizer.encode(text).ids) == text
    ids = np.array([2, VOCAB.index("中国"), 1, VOCAB.index("##s"), 4, 3, 0])
    assert tokenizer.decode(ids) == "中国[UNK]s"
    assert tokenizer.decode(ids, skip_special_tokens=False) == "[CLS]中国[UNK]s[MASK][SEP][PAD]"
    characters = CharTokenizer.from_corpus(["GPU 3 中#国"])
    assert characters.decode(characters.encode("GPU 3中 #国GP").ids) == "GPU 3中 #国GP"
    assert WordTokenizer([*SPECIAL, SPACE, "中"]).encode("中 中").ids == [2, 6, 6, 3]  # white space has no token


# ---- files
@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize("do_lower_case", [False, True])
def test_saving_and_loading_keeps_everything(cls, do_lower_case, tmp_path):
    tokenizer = cls([*VOCAB, "A", "\u2028"], do_lower_case)
    folder = tmp_path / "deep" / "folder"
    tokenizer.save_pretrained(folder)
    written = (folder / "vocab.txt").read_bytes()
    assert written.decode("utf-8") == "".join(f"{token}\n" for token in tokenizer.vocab)
    for loaded in (cls.from_pretrained(str(folder)), load_tokenizer(folder)):
        assert (type(loaded), loaded.vocab, loaded.do_lower_case) == (cls, tokenizer.vocab, do_lower_case)
        assert [loaded.encode(text) for text in SENTENCES] == [tokenizer.encode(text) for text in SENTENCES]
    other = WordTokenizer if cls is CharTokenizer else CharTokenizer
    with pytest.raises(ValueError, match=f"holds a {cls.__name__}, not a {other.__name__}"):
        other.from_pretrained(folder)
    (folder / "vocab.txt").write_bytes(written.replace(b"\n", b"\r\n")[:-2])
    assert cls.from_vocab_file(folder / "vocab.txt").vocab == tokenizer.vocab


PLAIN = """北京大学的学生在学习自然语言处理。2024年10月3日，上海。机器学习（machine learning）是人工智能。
the GPU is 3.5 times faster: 100%! 用python3写NLP模型 GPU100和gpu200 他说：“我是中国人。”《红楼梦》第3回
邮箱 someone@example.com 网址 http://example.com/a/b C++ 和 C# x=1,y=2;z=x+y iPhone15ProMax
N L P 1234567890 abcdefghijklmnopqrstuvwxyz 龘靐齉 一二三四五六七八九十 前后有空格\t"""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name, settings, expected", [
    ("RoFormerTokenizer", {"use_jieba": True, "do_lower_case": False}, WordTokenizer),
    ("RoFormerTokenizer", {"use_jieba": False}, WordPieceTokenizer),
    *((name, {}, WordPieceTokenizer) for name in ("RoFormerv2Tokenizer", "ErnieTokenizer", "ElectraTokenizer")),
    *(("BertTokenizer", {"do_lower_case": lower}, WordPieceTokenizer) for lower in (False, True)),
])  # fmt: skip
def test_folders_that_paddlenlp_wrote_are_read(name, settings, expected, bert_vocab_file, tmp_path):
    import paddlenlp

    theirs = getattr(paddlenlp.transformers, name)(str(bert_vocab_file), **settings)
    theirs.save_pretrained(str(tmp_path))
    ours = load_tokenizer(tmp_path)
    assert (type(ours), ours.do_lower_case) == (expected, settings.get("do_lower_case", True))
    for text in PLAIN.splitlines():
        assert ours.encode(text).ids == theirs(text)["input_ids"]
    assert len({*ours.encode(PLAIN).ids} - {ours.unk_token_id}) > 70


WORDS, PIECES = ("中国", "学习"), ("##s",)


@pytest.mark.parametrize("settings, without, expected", [
    ({"tokenizer_class": "RoFormerTokenizer"}, WORDS, WordTokenizer),  # Hugging Face's has no use_jieba
    ({"tokenizer_class": "RoFormerTokenizerFast", "do_lower_case": False}, WORDS, WordTokenizer),
    ({"tokenizer_class": "BertTokenizerFast", "strip_accents": None}, (), WordPieceTokenizer),
    ({"tokenizer_class": "BertTokenizer"}, PIECES, CharTokenizer),
    *(
        (settings, *kind)
        for settings in ({"do_lower_case": False}, None)
        for kind in (((), WordTokenizer), (WORDS, WordPieceTokenizer), ((*WORDS, *PIECES), CharTokenizer))
    ),
])  # fmt: skip
def test_the_class_in_the_settings_or_else_the_vocabulary_tells_the_kind(settings, without, expected, tmp_path):
    vocab = [token for token in VOCAB if token not in without]
    (tmp_path / "vocab.txt").write_text("".join(f"{token}\n" for token in vocab), encoding="utf-8")
    if settings is not None:
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    tokenizer = load_tokenizer(tmp_path)
    assert (type(tokenizer), tokenizer.do_lower_case) == (expected, (settings or {}).get("do_lower_case", True))


DAMAGED = [
    *(("tokenizer_config.json", *case) for case in ((b"{", "is not JSON"), (b"[]", "is not a JSON object"))),
    ("tokenizer_config.json", b'{"tokenizer_class": []}', "tokenizer_class is .*; correct it to one of CharTokenizer"),
    ("tokenizer_config.json", b'{"tokenizer_class": "T5Tokenizer"}', "'T5Tokenizer'; correct it to one of"),
    ("tokenizer_config.json", b'{"tokenizer_class": "CharTokenizer"}', "do_lower_case is None"),
    *(
        ("tokenizer_config.json", b'{"tokenizer_class": "BertTokenizer", "%b": "no"}' % one.encode(), f"{one} is 'no'")
        for one in WordPieceTokenizer.OPTIONS
    ),
    *(("vocab.txt", None, "No such file"), ("vocab.txt", b"\xd6\xd0", "is not UTF-8")),
    ("vocab.txt", b"[MASK]\n", r"the vocabulary lacks \[PAD\], \[UNK\], \[CLS\], \[SEP\]"),
    ("vocab.txt", "[PAD]\n[UNK]\n[CLS]\n[SEP]\n中\n中\n".encode(), "'中' occurs more than once"),
]


@pytest.mark.parametrize("file, content, message", DAMAGED)
def test_a_missing_or_damaged_file_is_named(file, content, message, tokenizer, tmp_path):
    tokenizer.save_pretrained(tmp_path)
    (tmp_path / file).unlink() if content is None else (tmp_path / file).write_bytes(content)
    with pytest.raises(ValueError, match=f"{file}: .*{message}"):
        load_tokenizer(tmp_path)
    with pytest.raises(ValueError, match="nowhere.* no vocab.txt"):
        load_tokenizer(tmp_path / "nowhere")
