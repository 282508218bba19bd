"""Sizes of encoders, and of their batches, as words of the command line."""

import re

from tasks.common.errors import InputError

VOCABULARY = 3500
HEAD_SIZE = 64


def read_size(size: str) -> list[int]:
    """[layers, hidden size, texts, length] of a word such as ``4x256,32x40``.

    Raises:
        InputError: it is no such word, a number is 0, or the hidden size is no multiple of ``HEAD_SIZE``.
    """
    match = re.fullmatch(r"(\d+)x(\d+),(\d+)x(\d+)", size)
    if not match or 0 in (found := [int(number) for number in match.groups()]) or found[1] % HEAD_SIZE:
        raise InputError(
            f"--sizes {size}: give layers x hidden size, texts x length such as 4x256,32x40, the hidden size a "
            f"multiple of {HEAD_SIZE}"
        )
    return found


def layers_and_hidden(size: str) -> tuple[int, int]:
    """``"12x768"`` -> (12, 768).

    Raises:
        InputError: it is not of that form, or the hidden size is not a multiple of 64.
    """
    match = re.fullmatch(r"([1-9]\d*)x([1-9]\d*)", size)
    if not match or int(match[2]) % HEAD_SIZE:
        raise InputError(f"{size}: give layers x hidden size such as 12x768, the hidden size a multiple of {HEAD_SIZE}")
    return int(match[1]), int(match[2])


def encoder_settings(layers: int, hidden: int) -> dict:
    """Configuration of an encoder, by the names that Hugging Face, PaddleNLP and this library share."""
    return {
        "vocab_size": VOCABULARY,
        "embedding_size": hidden,
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": hidden // HEAD_SIZE,
        "intermediate_size": 4 * hidden,
        "type_vocab_size": 2,
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1,
        "attention_probs_dropout_prob": 0.1,
        "layer_norm_eps": 1e-12,
        "pad_token_id": 0,
    }
