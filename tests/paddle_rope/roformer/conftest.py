"""Sentences for the tokenizers: of our own, and real ones where the data are; what is reported of checkpoints."""

import contextlib
import logging
import os
import random
import tracemalloc
from pathlib import Path

import pytest

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
SENTENCES = [
    *("", " \t \u3000\n", "中国人民在北京学习自然语言处理。", "我们训练了一个语言模型，他是北京大学的大学生。"),
    "一年有12个月：2024年10月3日，GPU100上跑Deep Learning！",
    *("T恤和C++，AA制", "iPhone13和iPhone 2024 learning gpu20", "x_1=y-2;a.b.c#1&d%+3"),
    *("她说：“一个café，Ünïcödé Ñandú”", "cafe\u0301店 e\u0301\u0323x 北\u0301京 \u0301中 。\u0301 が か\u3099 ガ"),
    *("İstanbul aİb İİ中 ΣΟΦΟΣ σιΚΙΣ ΣΙ。ΚΙΣ", "가각 ABC가 가\u0301中"),
    "ＡＢ１２，（ａ） ①② gpu① ²µº〇ŋ 二〇二一年 々 ㎡ ﬁ",
    "a\x00b\ufeff中\x07国 北\u200b京 大\xad学 \x85x\x1cy \ue000z\ufffd",
    "👨\u200d👩\u200d👧好👍\U0001f3fd❤\ufe0f葛\U000e0100城 1\ufe0f\u20e3",
    "𠮷野家 𝒳 豈﨑 \U0002f800\U0002f801㐀㐁𪜀𪜁𫝀𫝁𫠠𫠡龘靐齉",
    *("第\u2028一\u2029章\u00a0\u2003完\r\n。", "半\ud83d个 \udc00中", "[MASK]是[UNK] [CLS]"),
    "a" * 100 + "中" + "b" * 101 + "国" + "learning" * 30 + "，" + "é" * 99 + "x",
    "हिन्दी ภาษาไทย العربية עברית русский",
]
REAL = "CLUECorpusSmall_bert_sampled", "chnsenticorp", "cmrc2018_wiki_paragraphs", "tech_weekly"


@pytest.fixture(scope="session")
def sentences():
    """Texts of our own with whatever can go wrong in a text; and 400 real ones if PADDLE_ROPE_DATA has them."""
    folder, chosen, found = Path(os.environ.get("PADDLE_ROPE_DATA", "without data")) / "text", random.Random(2021), []
    for path in (folder / f"{name}.txt" for name in REAL):
        if path.is_file():
            found += chosen.sample([one for one in path.read_text(encoding="utf-8").splitlines() if one.strip()], 100)
    return [*SENTENCES, *found]


@pytest.fixture
def reported(caplog):
    """What was logged about new and unused weights so far."""
    caplog.set_level(logging.INFO, logger="paddle_rope")
    return lambda: "\n".join(record.getMessage() for record in caplog.records if record.name.startswith("paddle_rope"))


def tokens_and_strings(tokenizer, text):
    """Each token, and the characters that it stands for."""
    encoding = tokenizer.encode(text, add_special_tokens=False)
    strings = [text[start:end] for start, end in encoding.offsets]
    return list(zip([tokenizer.vocab[index] for index in encoding.ids], strings))


@contextlib.contextmanager
def refused_in_a_line(match):
    """The block raises a ValueError of one line that is not long, and takes little memory."""
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=match) as raised:
            yield raised
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 200e6 and len(str(raised.value)) < 1000 and "\n" not in str(raised.value)
