"""Documents -> one array of tokens -> rows of one length -> batches. Long documents are cut, several short ones share a
row, and words are hidden as a whole. The batches of all stages depend only on the seed and their numbers, so that a
run resumes exactly."""

import functools
import itertools
from bisect import bisect_left, insort
from collections import defaultdict
from typing import NamedTuple

import numpy as np
from paddle.io import Dataset
from tqdm import tqdm

from paddle_rope.attention.arguments import cumulative_lengths
from paddle_rope.roformer.heads import IGNORED_LABEL
from paddle_rope.roformer.tokenization.word_tokenizer import jieba_cutter
from paddle_rope.tasks.pretraining.arguments import HIDDEN_SHARE

NUM_SPECIAL = 2  # [CLS] and [SEP] around each piece
PADDING_SEGMENT = -1
PAD, CLS, SEP = -1, -2, -3  # values of ``source`` where there is no token of the stream
# purposes of random generators, which are seeded with [seed, purpose, ...]
PACKING, ORDER, HIDING = range(3)
MASK_SHARE = 0.8  # of the hidden tokens becomes [MASK]
RANDOM_SHARE = 0.1  # becomes a random token; the rest stay as they are
DEV_SEED = 0  # the same tokens of the dev documents are hidden in every stage and run


class TokenStream(NamedTuple):
    """The tokens of all documents, one after the other, without special tokens."""

    ids: np.ndarray  # int32 [tokens]
    word_starts: np.ndarray  # bool [tokens], True where a word of jieba begins
    bounds: np.ndarray  # int64 [documents + 1]; document n is ids[bounds[n]:bounds[n + 1]]


def tokenize(documents, tokenizer, title, show_progress=True):
    """The :class:`TokenStream` of documents that have a token. ``title`` is the name of the progress bar."""
    ids, word_starts = [np.zeros(0, dtype=np.int32)], [np.zeros(0, dtype=bool)]
    characters = sum(map(len, documents))
    with tqdm(total=characters, desc=title, unit="char", unit_scale=True, disable=not show_progress) as bar:
        for document in documents:
            encoding = tokenizer.encode(document, add_special_tokens=False)
            if encoding.ids:
                ids.append(np.array(encoding.ids, dtype=np.int32))
                word_starts.append(starts_of_words(document, encoding.offsets))
            bar.update(len(document))
    return TokenStream(np.concatenate(ids), np.concatenate(word_starts), np.cumsum([len(part) for part in ids]))


def starts_of_words(text, offsets):
    """Whether each token begins in another word of jieba than the token before it, bool ``[tokens]``.

    The segmentation is as in :class:`WordTokenizer`: jieba's dictionary, no hidden Markov model. Each run of white
    space and each mark is a word. ``offsets`` are the half-open characters (start, end) of the tokens, in their order.
    """
    lengths = [len(word) for word in jieba_cutter().cut(text, HMM=False)]
    word_of_character = np.repeat(np.arange(len(lengths)), lengths)
    word_of_token = word_of_character[[start for start, _ in offsets]]
    return np.diff(word_of_token, prepend=-1) != 0


class Layout(NamedTuple):
    """The contents of some rows; all arrays are int64 ``[rows, length]``."""

    source: np.ndarray  # place of each token in the TokenStream, or CLS, SEP, PAD
    positions: np.ndarray  # from 0 in each piece
    segment_ids: np.ndarray  # another number for each piece, -1 at padding

    @property
    def is_text(self) -> np.ndarray:
        """Whether there is a token of the stream, bool ``[rows, length]``."""
        return self.source >= 0


class PackedRows:
    """A :class:`TokenStream` as rows of ``length`` tokens.

    A document that is longer than a row is cut where words begin, into pieces that are as long as fits. Each piece gets
    ``[CLS]`` and ``[SEP]``. Pieces are placed from the longest to the shortest, each in the row where it leaves the
    least space (best fit), so there is hardly any padding; pieces of equal length are placed in random order.
    """

    def __init__(self, stream, length, random):
        self.length = length
        pieces = cut_documents(stream, length - NUM_SPECIAL)
        rows = pack(pieces[:, 1] - pieces[:, 0] + NUM_SPECIAL, length, random)
        order = np.argsort(rows, kind="stable")
        self._pieces = pieces[order]
        self._bounds = np.searchsorted(rows[order], np.arange(rows.max() + 2))

    def __len__(self):
        return len(self._bounds) - 1

    def lay_out(self, rows):
        """The :class:`Layout` of the rows with these numbers."""
        layout = Layout(*(np.full((len(rows), self.length), value) for value in (PAD, 0, PADDING_SEGMENT)))
        number = itertools.count()
        for row, (first, last) in enumerate(zip(self._bounds[rows], self._bounds[rows + 1])):
            column = 0
            for start, end in self._pieces[first:last].tolist():
                size = end - start + NUM_SPECIAL
                place = row, slice(column, column + size)
                layout.source[place] = [CLS, *range(start, end), SEP]
                layout.positions[place] = np.arange(size)
                layout.segment_ids[place] = next(number)
                column += size
        return layout


def cut_documents(stream, room):
    """Pieces of at most ``room`` tokens: int64 ``[pieces, 2]``, half-open places in the stream."""
    word_places = np.flatnonzero(stream.word_starts)
    pieces = []
    for start, end in zip(stream.bounds[:-1].tolist(), stream.bounds[1:].tolist()):
        while end - start > room:
            cut = word_places[np.searchsorted(word_places, start + room, side="right") - 1]
            if cut <= start:  # a word that is longer than the row
                cut = start + room
            pieces.append((start, cut))
            start = cut
        pieces.append((start, end))
    return np.array(pieces, dtype=np.int64)


def pack(sizes, length, random):
    """Row of each piece of ``sizes`` tokens, int64 ``[pieces]``; no row has more than ``length`` tokens."""
    order = random.permutation(len(sizes))
    order = order[np.argsort(-sizes[order], kind="stable")]
    rows = np.empty(len(sizes), dtype=np.int64)
    count = 0
    with_room = defaultdict(list)  # room -> rows with exactly this room
    rooms = []  # its keys in ascending order
    for piece in order:
        size = int(sizes[piece])
        at = bisect_left(rooms, size)
        if at == len(rooms):
            row, room, count = count, length, count + 1
        else:
            room = rooms[at]
            row = with_room[room].pop()
            if not with_room[room]:
                del rooms[at]
        rows[piece] = row
        left = room - size
        if left > NUM_SPECIAL:
            if not with_room[left]:
                insort(rooms, left)
            with_room[left].append(row)
    return rows


# ---- hidden words, and batches


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
        """(inputs, labels), int64 ``[tokens]``: the tokens with ``share`` of the words hidden on average, and the
        hidden tokens, -100 elsewhere. ``ids`` have no special tokens; ``word_starts`` are True where a word begins."""
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
    share falls evenly from ``first_share`` to 15 %. ``batches_per_step`` is processes times accumulated gradients.
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
        # the rows at these places of the stage's endless order
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
    """The batches of the dev documents, with the row length and batch size of a ``stage``. All stages predict the same
    hidden tokens. Arguments are as in :class:`StageBatches`."""

    def __init__(self, stream, stage, tokenizer, masking):
        self.batch_size = stage.batch_size
        self.tokenizer = tokenizer
        self.inputs, self.labels = masking.hide(stream.ids, stream.word_starts, np.random.default_rng(DEV_SEED))
        self.rows = PackedRows(stream, stage.max_tokens, np.random.default_rng(DEV_SEED))

    def __iter__(self):
        for first in range(0, len(self.rows), self.batch_size):
            layout = self.rows.lay_out(np.arange(first, min(first + self.batch_size, len(self.rows))))
            source = layout.source[layout.is_text]
            yield fill(layout, self.inputs[source], self.labels[source], self.tokenizer)


def fill(layout, inputs, labels, tokenizer):
    """A batch from a layout of rows, and the ``inputs`` and ``labels`` int64 ``[tokens]`` of its text: dict of arrays
    ``[rows, length]``: ``input_ids``, ``labels`` (-100 where nothing is to be predicted), ``positions`` and
    ``segment_ids`` (-1 at padding) int64. ``labeled`` and ``cu_seqlens`` are as the model takes them."""
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
        "labeled": np.flatnonzero(all_labels != IGNORED_LABEL),
        "cu_seqlens": cumulative_lengths(layout.segment_ids),
    }
