"""Whole-word masking, and the batches of a run of several stages, which follow from the seed and their numbers alone,
so that a run resumes exactly."""

import functools
import itertools

import numpy as np
from paddle.io import Dataset

from paddle_rope.attention.arguments import cumulative_lengths
from paddle_rope.roformer.heads import IGNORED_LABEL
from tasks.pretraining.arguments import HIDDEN_SHARE
from tasks.pretraining.packing import CLS, PADDING_SEGMENT, SEP, PackedRows

# purposes of random numbers, which follow the seed
PACKING, ORDER, HIDING = range(3)
MASK_SHARE = 0.8  # of the hidden tokens: become [MASK]
RANDOM_SHARE = 0.1  # become another token; the rest stay as they are
DEV_SEED = 0  # the same tokens of the dev documents are hidden in every stage and run


class WholeWordMasking:
    """Hides each word with the same probability; 80 % of its tokens become ``[MASK]``, 10 % a random token, 10 % stay.

    The shares are BERT's (arXiv 1810.04805, appendix A.1). Words are hidden as a whole as in BERT-wwm (arXiv
    1906.08101), which also draws the replacement for each token of a word.
    """

    def __init__(self, tokenizer):
        special = {getattr(tokenizer, f"{name}_token_id") for name in ("pad", "unk", "cls", "sep", "mask")}
        self.mask_token_id = tokenizer.mask_token_id
        self.random_ids = np.array([index for index in range(len(tokenizer)) if index not in special])

    def hide(self, ids, word_starts, random, share=HIDDEN_SHARE):
        """(inputs, labels), int64 ``[tokens]``: the tokens with ``share`` of the words hidden, on average; the hidden
        tokens, -100 at the others. ``ids`` have no special tokens, and ``word_starts`` are True where a word begins."""
        words = np.cumsum(word_starts) - 1
        is_hidden_word = random.random(words[-1] + 1) < share
        if not is_hidden_word.any():  # without a hidden token there is no loss
            is_hidden_word[random.integers(len(is_hidden_word))] = True
        hidden = np.flatnonzero(is_hidden_word[words])
        labels = np.full(len(ids), IGNORED_LABEL, dtype=np.int64)
        labels[hidden] = ids[hidden]
        inputs = ids.astype(np.int64)
        draws = random.random(len(hidden))
        inputs[hidden[draws < MASK_SHARE]] = self.mask_token_id
        replaced = hidden[(draws >= MASK_SHARE) & (draws < MASK_SHARE + RANDOM_SHARE)]
        inputs[replaced] = random.choice(self.random_ids, len(replaced))
        return inputs, labels


class StageBatches(Dataset):
    """All batches of a run, in the order of training; an item is one whole batch.

    Within a stage, each pass through the rows has another random order. Hidden words are drawn for each batch: their
    share falls evenly from ``first_share`` to 15 %. ``batches_per_step`` are processes times accumulated gradients.
    """

    def __init__(self, stream, stages, tokenizer, masking, seed, batches_per_step=1, first_share=HIDDEN_SHARE):
        self.stream, self.stages, self.tokenizer, self.masking = stream, stages, tokenizer, masking
        self.seed, self.batches_per_step, self.first_share = seed, batches_per_step, first_share
        self.ends = list(itertools.accumulate(stage.steps for stage in stages))  # the last step of each stage
        lengths = sorted({stage.max_tokens for stage in stages})
        self.rows = {n: PackedRows(stream, n, np.random.default_rng([seed, PACKING, n])) for n in lengths}
        self._order = functools.lru_cache(maxsize=2)(self._draw_order)

    def __len__(self):
        return self.ends[-1] * self.batches_per_step

    def __getitem__(self, index):
        number = int(np.searchsorted(self.ends, index // self.batches_per_step, side="right"))
        stage = self.stages[number]
        rows = self.rows[stage.max_tokens]
        first_batch = (self.ends[number] - stage.steps) * self.batches_per_step
        # the row at each place of the endless order of the stage
        passes, places = np.divmod((index - first_batch) * stage.batch_size + np.arange(stage.batch_size), len(rows))
        chosen = np.array([self._order(number, n, len(rows))[place] for n, place in zip(passes.tolist(), places)])

        layout = rows.lay_out(chosen)
        source = layout.source[layout.is_text]
        # a word may have been cut at the beginning of a piece
        word_starts = self.stream.word_starts[source] | (layout.positions[layout.is_text] == 1)
        random = np.random.default_rng([self.seed, HIDING, index])
        share = self.first_share + (HIDDEN_SHARE - self.first_share) * index / max(1, len(self) - 1)
        inputs, labels = self.masking.hide(self.stream.ids[source], word_starts, random, share)
        return fill(layout, inputs, labels, self.tokenizer)

    def _draw_order(self, stage, number_of_pass, rows):
        return np.random.default_rng([self.seed, ORDER, stage, number_of_pass]).permutation(rows)


class DevBatches:
    """The batches of the dev documents in rows of the length and batch size of a ``stage``. All stages predict the same
    hidden tokens. The arguments are as of :class:`StageBatches`."""

    def __init__(self, stream, stage, tokenizer, masking):
        self.batch_size = stage.batch_size
        self.tokenizer = tokenizer
        self.inputs, self.labels = masking.hide(stream.ids, stream.word_starts, np.random.default_rng(DEV_SEED))
        self.rows = PackedRows(stream, stage.max_tokens, np.random.default_rng(DEV_SEED))

    def __len__(self):
        return -(-len(self.rows) // self.batch_size)

    def __iter__(self):
        for first in range(0, len(self.rows), self.batch_size):
            layout = self.rows.lay_out(np.arange(first, min(first + self.batch_size, len(self.rows))))
            source = layout.source[layout.is_text]
            yield fill(layout, self.inputs[source], self.labels[source], self.tokenizer)


def fill(layout, inputs, labels, tokenizer):
    """A batch from a layout of rows, and the ``inputs`` and ``labels`` int64 ``[tokens]`` of its text: dict of arrays
    ``[rows, length]``: ``input_ids``, ``labels`` (-100 where nothing is to be predicted), ``positions`` and
    ``segment_ids`` int64; ``token_mask`` bool, False at padding. ``labeled`` and ``cu_seqlens`` are as the model takes
    them."""
    input_ids = np.full_like(layout.source, tokenizer.pad_token_id)
    input_ids[layout.source == CLS] = tokenizer.cls_token_id
    input_ids[layout.source == SEP] = tokenizer.sep_token_id
    input_ids[layout.is_text] = inputs
    all_labels = np.full_like(layout.source, IGNORED_LABEL)
    all_labels[layout.is_text] = labels
    return {
        "input_ids": input_ids,
        "labels": all_labels,
        "positions": layout.positions,
        "segment_ids": layout.segment_ids,
        "token_mask": layout.segment_ids != PADDING_SEGMENT,
        "labeled": np.flatnonzero(all_labels != IGNORED_LABEL),
        "cu_seqlens": cumulative_lengths(layout.segment_ids),
    }
