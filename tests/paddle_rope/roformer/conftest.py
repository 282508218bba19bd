"""Sentences for the tokenizers: of our own, and real ones where the data are; what is reported of checkpoints."""

import logging
import os
import random
from pathlib import Path

import pytest

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
SENTENCES = [
    "",
    " \t \u3000\n",
    "中国人民在北京学习自然语言处理。",
    "我们训练了一个语言模型，他是北京大学的大学生。",
    "一年有12个月：2024年10月3日，GPU100上跑Deep Learning！",
    "T恤和C++，AA制",
    "iPhone13和iPhone 2024 learning gpu20",
    "x_1=y-2;a.b.c#1&d%+3",
    "她说：“一个café，Ünïcödé Ñandú”",
    "cafe\u0301店 e\u0301\u0323x 北\u0301京 \u0301中 。\u0301 が か\u3099 ガ",
    "İstanbul aİb İİ中 ΣΟΦΟΣ σιΚΙΣ ΣΙ。ΚΙΣ",
    "가각 ABC가 가\u0301中",
    "ＡＢ１２，（ａ） ①② gpu① ²µº〇ŋ 二〇二一年 々 ㎡ ﬁ",
    "a\x00b\ufeff中\x07国 北\u200b京 大\xad学 \x85x\x1cy \ue000z\ufffd",
    "👨\u200d👩\u200d👧好👍\U0001f3fd❤\ufe0f葛\U000e0100城 1\ufe0f\u20e3",
    "𠮷野家 𝒳 豈﨑 \U0002f800\U0002f801㐀㐁𪜀𪜁𫝀𫝁𫠠𫠡龘靐齉",
    "第\u2028一\u2029章\u00a0\u2003完\r\n。",
    "半\ud83d个 \udc00中",
    "[MASK]是[UNK] [CLS]",
    "a" * 100 + "中" + "b" * 101 + "国" + "learning" * 30 + "，" + "é" * 99 + "x",
    "हिन्दी ภาษาไทย العربية עברית русский",
]


@pytest.fixture(scope="session")
def sentences():
    """Texts of our own with whatever can go wrong in a text."""
    return SENTENCES


@pytest.fixture(scope="session")
def real_sentences():
    """2,000 sentences of the real texts; none unless PADDLE_ROPE_DATA names their folder."""
    text, chosen, found = Path(os.environ.get("PADDLE_ROPE_DATA", "without data")), random.Random(2021), []
    for name in ("CLUECorpusSmall_bert_sampled", "chnsenticorp", "cmrc2018_wiki_paragraphs", "tech_weekly"):
        if (text / "text" / f"{name}.txt").is_file():
            lines = (text / "text" / f"{name}.txt").read_text(encoding="utf-8").splitlines()
            found += chosen.sample([line for line in lines if line.strip()], 500)
    return found


@pytest.fixture
def reported(caplog):
    """The warnings about new and unused weights so far."""
    caplog.set_level(logging.WARNING, logger="paddle_rope")
    return lambda: "\n".join(record.getMessage() for record in caplog.records)


def tokens_and_strings(tokenizer, text):
    """Each token, and the characters that it stands for."""
    encoding = tokenizer.encode(text, add_special_tokens=False)
    strings = [text[start:end] for start, end in encoding.offsets]
    return list(zip([tokenizer.vocab[index] for index in encoding.ids], strings))
