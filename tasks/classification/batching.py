"""Examples -> tokens -> padded batches."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tasks.common.errors import InputError
from tasks.common.inference import pad_tokens


class TokenizedText(NamedTuple):
    """A text as tokens, and the number of its class."""

    ids: list
    label: int | None = None


def tokenize(text, tokenizer, max_characters):
    """Token ids of the first ``max_characters`` characters of a document."""
    return tokenizer.encode(text[:max_characters])[0]


class ClassificationDataset(list):
    """The :class:`TokenizedText` of each of ``examples``, :class:`tasks.classification.data.Example`.

    Args:
        classes: names of the classes, numbered in this order.
        max_characters: characters of each text that are read, from its beginning.

    Attributes:
        cut, cut_characters: number of texts that are longer than this, and of their characters that are not read.
        lengths: tokens of each text.

    Raises:
        InputError: an example has a class that is not in ``classes``.
    """

    def __init__(self, examples, tokenizer, classes, max_characters):
        self.examples = examples
        self.max_characters = max_characters
        number = {name: index for index, name in enumerate(classes)}
        for example in examples:
            if example.label not in number:
                raise InputError(
                    f"{example.where}: label {example.label!r} is unknown to the model, which knows "
                    f"{', '.join(classes)}; correct the label, or train a model on data that has it"
                )
            self.append(TokenizedText(tokenize(example.text, tokenizer, max_characters), number[example.label]))
        self.lengths = [len(text.ids) for text in self]
        beyond = [len(example.text) - max_characters for example in examples if len(example.text) > max_characters]
        self.cut, self.cut_characters = len(beyond), sum(beyond)


def pad_texts(texts, pad_token_id):
    """The batch of a list of :class:`TokenizedText`: dict of arrays ``input_ids`` int64 and ``attention_mask`` bool
    ``[batch, seq]``, and ``labels`` int64 ``[batch]`` of texts that have them."""
    batch = pad_tokens([text.ids for text in texts], pad_token_id)
    if texts[0].label is not None:
        batch["labels"] = np.array([text.label for text in texts], dtype=np.int64)
    return batch
