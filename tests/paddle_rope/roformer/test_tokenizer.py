"""What both tokenizers share: pairs, truncation, batches, decoding, files."""

import json

import numpy as np
import pytest

from paddle_rope import CharTokenizer, Encoding, WordTokenizer, load_tokenizer
from paddle_rope.roformer.tokenization.tokenizer import CLS, MASK, PAD, SEP, SPACE, UNK

SPECIAL = [PAD, UNK, CLS, SEP, MASK]
VOCAB = [*SPECIAL, *"中国人学习一二三四五六七八九十。", "中国", "学习", "gpu", "##s", "a", "b"]
CLASSES = pytest.mark.parametrize("cls", [CharTokenizer, WordTokenizer])


@pytest.fixture(params=[CharTokenizer, WordTokenizer])
def tokenizer(request):
    return request.param(VOCAB, do_lower_case=True)


def bare(tokenizer, text):
    return tokenizer.encode(text, add_special_tokens=False)


def test_ids_of_special_tokens(tokenizer):
    special = "pad_token_id", "unk_token_id", "cls_token_id", "sep_token_id", "mask_token_id"
    assert [getattr(tokenizer, name) for name in special] == [0, 1, 2, 3, 4]
    assert type(tokenizer)([PAD, UNK, CLS, SEP]).mask_token_id is None


def test_one_text_is_of_the_first_type(tokenizer):
    ids, offsets, token_type_ids = tokenizer.encode("一二 三")
    one, two, three = (VOCAB.index(character) for character in "一二三")
    assert ids == [2, one, two, three, 3]
    assert offsets == [(0, 0), (0, 1), (1, 2), (3, 4), (0, 0)]
    assert token_type_ids == [0, 0, 0, 0, 0]


def test_offsets_of_a_pair_are_those_of_each_text(tokenizer):
    first, second = "中国人学习 gpus", "三。 A学习"
    encoding = tokenizer.encode(first, second)
    a, b = bare(tokenizer, first), bare(tokenizer, second)
    assert encoding.ids == [2, *a.ids, 3, *b.ids, 3]
    assert encoding.offsets == [(0, 0), *a.offsets, (0, 0), *b.offsets, (0, 0)]
    assert encoding.token_type_ids == [0] * (len(a.ids) + 2) + [1] * (len(b.ids) + 1)
    assert tokenizer.encode(first, second, add_special_tokens=False) == Encoding(
        [*a.ids, *b.ids], [*a.offsets, *b.offsets], [0] * len(a.ids) + [1] * len(b.ids)
    )


def test_an_empty_second_text_is_still_a_pair(tokenizer):
    assert tokenizer.encode("一", "").ids == [2, VOCAB.index("一"), 3, 3]
    assert tokenizer.encode("", "").token_type_ids == [0, 0, 1]


@pytest.mark.parametrize("max_length", range(2, 12))
def test_one_text_is_cut_at_its_end(tokenizer, max_length):
    whole = tokenizer.encode("一二三四五六七")
    cut = tokenizer.encode("一二三四五六七", max_length=max_length)
    kept = min(7, max_length - 2)
    assert cut.ids == [*whole.ids[: kept + 1], 3]
    assert cut.offsets == [*whole.offsets[: kept + 1], (0, 0)]
    assert cut.token_type_ids == [0] * (kept + 2)


@pytest.mark.parametrize("lengths", [(0, 6), (6, 0), (6, 6), (2, 7), (7, 2), (5, 6), (1, 1)])
def test_a_pair_is_cut_token_by_token_from_the_longer_text(tokenizer, lengths):
    texts = "一二三四五六七"[: lengths[0]], "七六五四三二一"[: lengths[1]]
    for max_length in range(3, 18):
        first, second = (list(text) for text in texts)
        while len(first) + len(second) > max_length - 3:
            (first if len(first) > len(second) else second).pop()
        expected = tokenizer.encode("".join(first), "".join(second))
        assert tokenizer.encode(*texts, max_length=max_length) == expected


def test_without_special_tokens_max_length_counts_only_the_text(tokenizer):
    assert len(tokenizer.encode("一二三", max_length=2, add_special_tokens=False).ids) == 2
    assert tokenizer.encode("一二三", "四五", max_length=0, add_special_tokens=False) == Encoding([], [], [])


@pytest.mark.parametrize("texts, max_length, special", [(("一",), 1, 2), (("一", "二"), 2, 3), (("",), -1, 2)])
def test_max_length_without_room_for_special_tokens_is_an_error(tokenizer, texts, max_length, special):
    with pytest.raises(ValueError, match=f"max_length {max_length} does not hold the {special} special tokens"):
        tokenizer.encode(*texts, max_length=max_length)


@pytest.mark.parametrize("texts", [(None,), (["一"],), ("一", 3), (b"a",)])
def test_what_is_not_a_string_is_an_error(tokenizer, texts):
    with pytest.raises(ValueError, match="takes a string, got (NoneType|list|int|bytes)"):
        tokenizer.encode(*texts)


@pytest.mark.parametrize("pairs", [None, ["四五", "", "中国人"]])
@pytest.mark.parametrize("max_length", [None, 5])
def test_rows_of_a_batch_are_the_texts_padded_on_the_right(tokenizer, pairs, max_length):
    texts = ["一", "一二三四五六", ""]
    batch = tokenizer.encode_batch(texts, pairs, max_length)
    rows = [tokenizer.encode(text, pair, max_length) for text, pair in zip(texts, pairs or [None] * 3)]
    longest = max(len(row.ids) for row in rows)
    for name in ("input_ids", "token_type_ids", "attention_mask"):
        assert batch[name].shape == (3, longest)
    assert batch["input_ids"].dtype == batch["token_type_ids"].dtype == np.int64
    assert batch["attention_mask"].dtype == bool
    for index, (ids, offsets, token_type_ids) in enumerate(rows):
        padding = longest - len(ids)
        assert batch["input_ids"][index].tolist() == ids + [0] * padding
        assert batch["token_type_ids"][index].tolist() == token_type_ids + [0] * padding
        assert batch["attention_mask"][index].tolist() == [True] * len(ids) + [False] * padding
        assert batch["offsets"][index] == offsets + [(0, 0)] * padding


def test_rows_padded_on_the_left_end_together():
    tokenizer = CharTokenizer([*"国人", UNK, CLS, SEP, PAD])
    batch = tokenizer.encode_batch(["国", "国人国", ""], ["人", "人", "国"], padding_side="left")
    assert batch["input_ids"].tolist() == [[5, 5, 3, 0, 4, 1, 4], [3, 0, 1, 0, 4, 1, 4], [5, 5, 5, 3, 4, 0, 4]]
    assert batch["token_type_ids"].tolist() == [[0, 0, 0, 0, 0, 1, 1], [0, 0, 0, 0, 0, 1, 1], [0, 0, 0, 0, 0, 1, 1]]
    assert batch["attention_mask"].tolist() == [[False] * 2 + [True] * 5, [True] * 7, [False] * 3 + [True] * 4]
    assert batch["offsets"][0] == [(0, 0), (0, 0), (0, 0), (0, 1), (0, 0), (0, 1), (0, 0)]


def test_a_batch_of_nothing_is_empty(tokenizer):
    batch = tokenizer.encode_batch([])
    assert batch["input_ids"].shape == (0, 0) and batch["offsets"] == []


@pytest.mark.parametrize(
    "arguments, message",
    [
        (("一二",), "got one string"),
        ((["一"], "一"), "got one string"),
        ((["一", "二"], ["三"]), "2 texts but 1 pairs"),
        ((["一"], None, None, "both"), "'both'"),
    ],
)
def test_a_wrong_batch_is_an_error(tokenizer, arguments, message):
    with pytest.raises(ValueError, match=message):
        tokenizer.encode_batch(*arguments)


def test_decoding_gives_the_text_back(tokenizer):
    for text in ("中国人学习。", "gpus a b中国a。b", ""):
        assert tokenizer.decode(tokenizer.encode(text).ids) == text
    ids = np.array([2, VOCAB.index("中国"), 1, VOCAB.index("##s"), 4, 3, 0])
    assert tokenizer.decode(ids) == "中国[UNK]s"
    assert tokenizer.decode(ids, skip_special_tokens=False) == "[CLS]中国[UNK]s[MASK][SEP][PAD]"


def test_decoding_characters_keeps_single_spaces_where_the_vocabulary_has_them():
    tokenizer = CharTokenizer.from_corpus(["GPU 3 中#国"])
    assert tokenizer.decode(tokenizer.encode("GPU 3中 #国GP").ids) == "GPU 3中 #国GP"


@CLASSES
@pytest.mark.parametrize("do_lower_case", [False, True])
def test_saving_and_loading_keeps_everything(cls, do_lower_case, tmp_path, sentences):
    tokenizer = cls([*VOCAB, "A"], do_lower_case)
    folder = tmp_path / "deep" / "folder"
    tokenizer.save_pretrained(folder)
    for loaded in (cls.from_pretrained(str(folder)), load_tokenizer(folder)):
        assert type(loaded) is cls
        assert loaded.vocab == tokenizer.vocab
        assert loaded.do_lower_case is do_lower_case
        assert [loaded.encode(text) for text in sentences] == [tokenizer.encode(text) for text in sentences]


@CLASSES
def test_saving_writes_the_bytes_that_were_read(cls, word_vocab_file, bert_vocab_file, tmp_path):
    for number, path in enumerate((word_vocab_file, bert_vocab_file)):
        cls.from_vocab_file(path).save_pretrained(tmp_path / str(number))
        assert (tmp_path / str(number) / "vocab.txt").read_bytes() == path.read_bytes()
        assert load_tokenizer(tmp_path / str(number)).do_lower_case is True


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name, settings, expected",
    [
        ("RoFormerTokenizer", {"use_jieba": True}, WordTokenizer),
        ("RoFormerTokenizer", {"use_jieba": True, "do_lower_case": False}, WordTokenizer),
        ("RoFormerTokenizer", {"use_jieba": False}, CharTokenizer),
        ("RoFormerv2Tokenizer", {}, CharTokenizer),
        ("BertTokenizer", {}, CharTokenizer),
        ("BertTokenizer", {"do_lower_case": False}, CharTokenizer),
    ],
)
def test_folders_that_paddlenlp_wrote_are_read(name, settings, expected, bert_vocab_file, tmp_path):
    import paddlenlp

    theirs = getattr(paddlenlp.transformers, name)(str(bert_vocab_file), **settings)
    theirs.save_pretrained(str(tmp_path))
    ours = load_tokenizer(tmp_path)
    assert type(ours) is expected
    assert ours.do_lower_case is settings.get("do_lower_case", True)
    for text in ("北京大学的学生在学习。", "用Python和GPU 2024", "她有12.5%"):
        assert ours.encode(text).ids == theirs(text)["input_ids"]


@pytest.mark.parametrize(
    "settings, expected",
    [
        ({"tokenizer_class": "RoFormerTokenizer"}, WordTokenizer),  # Hugging Face's has no use_jieba
        ({"tokenizer_class": "RoFormerTokenizerFast", "do_lower_case": False}, WordTokenizer),
        ({"tokenizer_class": "BertTokenizerFast", "strip_accents": None}, CharTokenizer),
    ],
)
def test_folders_that_hugging_face_wrote_are_read(settings, expected, tmp_path):
    CharTokenizer(VOCAB).save_pretrained(tmp_path)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings))
    tokenizer = load_tokenizer(tmp_path)
    assert type(tokenizer) is expected
    assert tokenizer.do_lower_case is settings.get("do_lower_case", True)


@pytest.mark.parametrize("settings", [None, "{}", '{"do_lower_case": false}'])
def test_where_nothing_is_said_words_in_the_vocabulary_tell(settings, tmp_path):
    characters = [token for token in VOCAB if token not in ("中国", "学习")]
    for vocab, expected in (characters, CharTokenizer), (VOCAB, WordTokenizer):
        expected(vocab).save_pretrained(tmp_path)
        (tmp_path / "tokenizer_config.json").unlink()
        if settings is not None:
            (tmp_path / "tokenizer_config.json").write_text(settings)
        tokenizer = load_tokenizer(tmp_path)
        assert type(tokenizer) is expected
        assert tokenizer.do_lower_case is (settings != '{"do_lower_case": false}')


@pytest.mark.parametrize(
    "file, content, message",
    [
        ("tokenizer_config.json", b"{", "tokenizer_config.json: is not JSON"),
        ("tokenizer_config.json", b"\xd6\xd0", "tokenizer_config.json: is not JSON"),
        ("tokenizer_config.json", b"[]", "tokenizer_config.json: is not a JSON object"),
        ("tokenizer_config.json", b'{"tokenizer_class": []}', "tokenizer_class is .*, not one of CharTokenizer"),
        ("tokenizer_config.json", b'{"tokenizer_class": "T5Tokenizer"}', "'T5Tokenizer', not one of CharTokenizer"),
        ("tokenizer_config.json", b'{"tokenizer_class": "CharTokenizer"}', "do_lower_case is None; make it true"),
        ("vocab.txt", None, "vocab.txt: no such file"),
        ("vocab.txt", b"\xd6\xd0", "vocab.txt: is not UTF-8"),
        ("vocab.txt", b"[PAD]\n[UNK]\n[CLS]\n", r"vocab.txt: the vocabulary lacks \[SEP\]"),
    ],
)
def test_a_missing_or_damaged_file_is_named(file, content, message, tokenizer, tmp_path):
    tokenizer.save_pretrained(tmp_path)
    if content is None:
        (tmp_path / file).unlink()
    else:
        (tmp_path / file).write_bytes(content)
    with pytest.raises(ValueError, match=message):
        load_tokenizer(tmp_path)


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(ValueError, match="nowhere.*has no vocab.txt; give a folder with the files of a tokenizer"):
        load_tokenizer(tmp_path / "nowhere")


def test_a_folder_of_the_other_kind_is_an_error(tmp_path):
    WordTokenizer(VOCAB).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="holds a WordTokenizer, not a CharTokenizer; read it with load_tokenizer"):
        CharTokenizer.from_pretrained(tmp_path)


@CLASSES
def test_a_vocab_file_may_have_windows_line_ends_and_no_last_line_end(cls, tmp_path):
    path = tmp_path / "vocab.txt"
    path.write_bytes("\r\n".join([*SPECIAL, "中", "\u2028", "国"]).encode("utf-8"))
    assert cls.from_vocab_file(path).vocab == [*SPECIAL, "中", "\u2028", "国"]


@CLASSES
def test_a_token_that_occurs_twice_is_an_error(cls):
    with pytest.raises(ValueError, match="'中' occurs more than once"):
        cls([*SPECIAL, "中", "国", "中"])


@CLASSES
@pytest.mark.parametrize("missing", [PAD, UNK, CLS, SEP])
def test_a_missing_special_token_is_an_error(cls, missing):
    with pytest.raises(ValueError, match=missing.strip("[]")):
        cls([token for token in SPECIAL if token != missing])


def test_white_space_is_a_token_only_of_a_character_vocabulary_that_has_it():
    vocab = [*SPECIAL, SPACE, "中"]
    assert bare(CharTokenizer(vocab), "中 中").ids == [6, 5, 6]
    assert bare(WordTokenizer(vocab), "中 中").ids == [6, 6]
