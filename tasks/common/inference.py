"""Padded batches of texts of similar length, and models in evaluation mode. Imports paddle only for paddle models."""

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from tqdm import tqdm

Batch = dict[str, np.ndarray]
MOST_NUMBERS = 1 << 26  # of the largest tensor of a batch


def pad(rows, dtype, value=0, least=0):
    """Array ``[rows, seq, ...]`` of a dtype; ``seq`` is the length of the longest row, at least ``least``, and shorter
    rows are padded with ``value``."""
    rows = [np.asarray(row, dtype=dtype) for row in rows]
    padded = np.full((len(rows), max(least, *map(len, rows)), *rows[0].shape[1:]), value, dtype=dtype)
    for to, row in zip(padded, rows):
        to[: len(row)] = row
    return padded


def pad_tokens(ids, pad_token_id):
    """dict of ``input_ids`` int64 and ``attention_mask`` bool ``[batch, seq]``, from the list of ids of each text."""
    mask = pad([np.ones(len(row)) for row in ids], bool)
    return {"input_ids": pad(ids, np.int64, pad_token_id), "attention_mask": mask}


class Tokens(NamedTuple):
    """The tokens of a text, or of several texts as one sequence; token types if the model tells the texts apart."""

    ids: Sequence[int] | np.ndarray
    token_type_ids: Sequence[int] | np.ndarray | None = None


def pad_texts(texts: Sequence[Tokens], pad_token_id: int) -> Batch:
    """dict of arrays ``[batch, seq]``: ``input_ids`` int64, ``attention_mask`` bool, and ``token_type_ids`` int64 if
    the texts have them."""
    batch = pad_tokens([text.ids for text in texts], pad_token_id)
    if texts[0].token_type_ids is not None:
        batch["token_type_ids"] = pad([text.token_type_ids for text in texts], np.int64)
    return batch


def pad_items(items: Sequence[tuple[Sequence[Tokens], float]], pad_token_id: int, dtype: Any) -> Batch:
    """A training batch from pairs (texts, label): :func:`pad_texts` of the first texts of all items, then the second
    ones, and so on; and ``labels`` ``[batch]`` of the ``dtype``."""
    texts = [text for part in zip(*(of_item for of_item, _ in items)) for text in part]
    return {**pad_texts(texts, pad_token_id), "labels": np.array([label for _, label in items], dtype=dtype)}


@contextlib.contextmanager
def evaluation_mode(model: Any) -> Iterator[None]:
    """Run the block with a ``paddle.nn.Layer`` in evaluation mode, without dropout and gradients."""
    import paddle

    was_training = model.training
    model.eval()
    try:
        with paddle.no_grad():
            yield
    finally:
        if was_training:
            model.train()


def evaluated(model: Any, batch: Batch, call: Callable[..., Any] | None = None) -> Any:
    """Output of a ``paddle.nn.Layer``, or of a ``call``, for a batch of arrays, in evaluation mode and in the context
    that its attribute ``precision`` makes, if it has one (``predict_in_bfloat16``)."""
    import paddle

    with evaluation_mode(model), getattr(model, "precision", contextlib.nullcontext)():
        return (call or model)(**{name: paddle.to_tensor(array) for name, array in batch.items()})


def batched_outputs(
    forward: Callable[[Batch], Any],  # called with each batch
    items: Sequence[Any],  # tokenized texts, each with ``ids``
    collate: Callable[[list], Batch],  # makes a batch of a list of items
    batch_size: int,
    numbers_of: Callable[[int], int],  # numbers in the largest tensor for an item, by its tokens
    most_numbers: int = MOST_NUMBERS,  # limit for that tensor in a batch, to bound memory; larger items go alone
    show_progress: bool = False,
) -> Iterator[tuple[list[int], Any]]:
    """Yield (indices of a batch's items, output for them) for tokenized texts in batches of similar length, the longest
    first."""
    order = np.argsort([len(item.ids) for item in items], kind="stable")[::-1].tolist()
    # the bar stays if it is the only one, and disappears if it belongs to a chunk of a stream
    with tqdm(total=len(items), unit="text", disable=not show_progress, leave=None, delay=1) as progress:
        while order:
            size = most_numbers // max(1, numbers_of(len(items[order[0]].ids)))
            size = max(1, min(batch_size, size))
            rows, order = order[:size], order[size:]
            yield rows, forward(collate([items[row] for row in rows]))
            progress.update(len(rows))


def encoder_outputs(model: Any, texts: Sequence[Tokens], batch_size: int, show_progress: bool = False) -> np.ndarray:
    """The output of a model for texts, float32 ``[texts, *config.output_shape]``. A model with a method ``output``,
    such as an exported one, computes it by this; other arguments as in :func:`batched_outputs`."""
    config = model.config
    collate = functools.partial(pad_texts, pad_token_id=config.pad_token_id)

    def numbers_of(length):
        scores = config.num_attention_heads * length * length if "softmax" in config.attention else 0
        return max(scores, config.intermediate_size * length)

    found = np.zeros([len(texts), *config.output_shape], dtype=np.float32)
    forward = getattr(model, "output", lambda batch: evaluated(model, batch).numpy())
    batches = batched_outputs(forward, texts, collate, batch_size, numbers_of, show_progress=show_progress)
    for rows, output in batches:
        found[rows] = output
    return found
