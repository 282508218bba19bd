"""Small BERT, ELECTRA and ERNIE of Hugging Face with random weights, and texts with whatever BERT's tokenizer treats in
its own way, made from numbers alone: data/README.md names the script that has computed what they should say. The
characters are those that old Unicode tables know."""

import json
import random
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

SIZES = {
    "vocab_size": 40,
    "hidden_size": 52,  # heads of 26, as in ERNIE 3.0 nano
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 30,
    "type_vocab_size": 2,
    "max_position_embeddings": 512,
    "layer_norm_eps": 1e-3,  # large, so that another one would be seen
    "hidden_act": "gelu",
}
# Class that was saved -> its settings
CASES = {
    "BertForMaskedLM": {"hidden_act": "gelu_new"},
    "BertForSequenceClassification": {"num_labels": 3, "embedding_size": 20},  # the second is of no use
    "ElectraModel": {"embedding_size": 20},  # the discriminator without its head
    "ElectraForMaskedLM": {"embedding_size": 52},
    "ElectraForSequenceClassification": {"embedding_size": 20, "num_labels": 3},
    "ErnieForMaskedLM": {
        "hidden_act": "relu", "type_vocab_size": 4, "max_position_embeddings": 2048, "use_task_id": True,
        "task_type_vocab_size": 3,
    },
}  # fmt: skip
LENGTHS = 600, 512, 37, 1
CLASSIFIER = {"classifier.dense": (52, 52), "classifier.out_proj": (3, 52)}


def settings_of(name):
    """The config.json of a case; a text has at most ``max_position_embeddings`` tokens."""
    kind = name.partition("For")[0].removesuffix("Model").lower()
    return {"model_type": kind, "architectures": [name], **SIZES, **CASES[name]}


def inputs_of(name):
    """Random ids and token types ``[batch, seq]`` of the case, and its attention mask, which hides padding."""
    settings, random = settings_of(name), np.random.RandomState(7)
    lengths = [length for length in LENGTHS if length <= settings["max_position_embeddings"]]
    mask = np.arange(lengths[0]) < np.array(lengths)[:, np.newaxis]
    ids = random.randint(1, settings["vocab_size"], mask.shape)
    return np.where(mask, ids, 0), random.randint(0, settings["type_vocab_size"], mask.shape), mask


def weights_of(name):
    """The weights of a case by Hugging Face's names, float32."""
    settings = settings_of(name)
    hidden, inner = settings["hidden_size"], settings["intermediate_size"]
    is_electra = settings["model_type"] == "electra"
    width = settings["embedding_size"] if is_electra else hidden
    tables = {"word": "vocab_size", "position": "max_position_embeddings", "token_type": "type_vocab_size"}
    if "use_task_id" in settings:
        tables["task_type"] = "task_type_vocab_size"
    shapes = {f"embeddings.{table}_embeddings.weight": (settings[rows], width) for table, rows in tables.items()}
    linear, norms = {}, {"embeddings.LayerNorm": width}
    if width != hidden:
        linear["embeddings_project"] = (hidden, width)
    for layer in range(settings["num_hidden_layers"]):
        block = f"encoder.layer.{layer}"
        linear |= {f"{block}.attention.self.{one}": (hidden, hidden) for one in ("query", "key", "value")}
        linear |= {f"{block}.attention.output.dense": (hidden, hidden)}
        linear |= {f"{block}.intermediate.dense": (inner, hidden), f"{block}.output.dense": (hidden, inner)}
        norms |= {f"{block}.attention.output.LayerNorm": hidden, f"{block}.output.LayerNorm": hidden}
    if not is_electra:
        linear["pooler.dense"] = (hidden, hidden)
    prefix = "" if name.endswith("Model") else f"{settings['model_type']}."
    shapes, linear, norms = ({prefix + one: size for one, size in part.items()} for part in (shapes, linear, norms))
    if name.endswith("MaskedLM"):
        of_head = "generator_predictions" if is_electra else "cls.predictions.transform"
        linear[f"{of_head}.dense"], norms[f"{of_head}.LayerNorm"] = (width, hidden), width
        shapes["generator_lm_head.bias" if is_electra else "cls.predictions.bias"] = (settings["vocab_size"],)
    if name.endswith("SequenceClassification"):
        linear |= CLASSIFIER if is_electra else {"classifier": (3, hidden)}
    for one, size in linear.items():
        shapes |= {f"{one}.weight": size, f"{one}.bias": size[:1]}
    for one, size in norms.items():
        shapes |= {f"{one}.weight": (size,), f"{one}.bias": (size,)}
    random = np.random.RandomState(2021)
    centers = {one: float(one.endswith("LayerNorm.weight")) for one in shapes}
    drawn = {one: centers[one] + 0.3 * random.standard_normal(shapes[one]) for one in sorted(shapes)}
    return {one: array.astype(np.float32) for one, array in drawn.items()}


def write(name, folder, weights=None, **changes):
    """Write a case as a folder of Hugging Face, with other ``weights`` or settings."""
    Path(folder).mkdir(exist_ok=True)
    settings = json.dumps({**settings_of(name), **changes})
    (Path(folder) / "config.json").write_text(settings, encoding="utf-8")
    save_file(weights_of(name) if weights is None else weights, Path(folder) / "model.safetensors", {"format": "pt"})


def chosen(mask):
    """A few tokens of each text, as bool ``[batch, seq]``: one in 40, and the last."""
    last = np.arange(mask.shape[1]) == mask.sum(axis=1, keepdims=True) - 1
    return mask & (last | (np.arange(mask.shape[1]) % 40 == 0))


# ---- texts
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
