"""Texts with whatever BERT's tokenizer treats in its own way, and a vocabulary, made from numbers alone like the models
in encoders.py; the characters are those that the old Unicode tables of Hugging Face's tokenizers know."""

import random

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
# Settings of a tokenizer -> texts
SETTINGS = {
    "uncased": {"do_lower_case": True},
    "cased": {"do_lower_case": False},
    "cased without accents": {"do_lower_case": False, "strip_accents": True},
    "uncased with accents": {"do_lower_case": True, "strip_accents": False, "tokenize_chinese_chars": False},
}
TEXTS_OF_EACH = 500
CHINESE, LETTERS, DIGITS = "中国人民在北京学习自然语言豈﨑\U0002f800㐀𠮷〇", "abcdefghijklmnopqrstuvwxyz", "0123456789"
PARTS = [
    *CHINESE, *DIGITS, *("learn", "ing", "GPU", "iPhone", "Deep", "a", "B", "x", "learning" * 13),
    *"ＡＢ１２ａ（）：，￥",
    *("café", "cafe\u0301", "Ünïcödé", "Ñandú", "e\u0301\u0323", "ΣΟΦΟΣ", "İstanbul", "ﬁ", "ß", "ǅ"),
    *("北\u0301", "\u0301", "か\u3099", "ガ", "각", "가", "हिन्दी", "ภาษาไทย", "العربية", "עברית", "Й", "ё"),
    *("👨\u200d👩\u200d👧", "👍\U0001f3fd", "❤\ufe0f", "1\ufe0f\u20e3", "葛\U000e0100", "😀"),
    *".,!?;:-_/\\'\"()[]{}<>@#$%^&*+=|~`", *"。，、；：？！…—·《》「」【】“”", *"①²µº½°€£§©→≠±×√∞㎡々",
    *(" ", "  ", "\t", "\n", "\r\n", "\u3000", "\u00a0", "\u2003", "\u2028", "\u200b", "\ufeff", "\x00", "\x1c"),
    *("\x85", "\u00ad", "\u2060", "\ue000", "\ufffd", "\U0001f9ff", "##", "[", "]"),
]  # fmt: skip


def vocabulary():
    """Tokens for most of the parts, whole or in pieces."""
    whole = [*CHINESE[:12], *LETTERS, *LETTERS.upper()[:20], *DIGITS[:8],
             *".,!()#%-_。，“”…①²€→＋ａ１：éöñßσςςиיअกᄀ😀👍",
             "learn", "GPU", "gpu", "iphone", "deep", "20", "cafe", "café", "中国", "か", "ガ", "℃"]  # fmt: skip
    pieces = [*LETTERS, *LETTERS.upper(), *DIGITS[:9], *"中国人éöσоё한", "ing", "learn", "24", "phone", "ᅡ", "\u0301"]
    return list(dict.fromkeys([*SPECIAL, *whole, *(f"##{piece}" for piece in pieces)]))


def texts(name):
    """The texts of one of :data:`SETTINGS`."""
    drawn = random.Random(name)
    return ["".join(drawn.choice(PARTS) for _ in range(drawn.randrange(1, 14))) for _ in range(TEXTS_OF_EACH)]
