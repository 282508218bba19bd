"""Documents as one array of tokens, and in rows of one length: long ones are cut, several short ones share a row."""

from bisect import bisect_left, insort
from collections import defaultdict
from typing import NamedTuple

import numpy as np
from tqdm import tqdm

from paddle_rope.roformer.tokenization.word_tokenizer import jieba_cutter

NUM_SPECIAL = 2  # [CLS] and [SEP] around each piece
PADDING_SEGMENT = -1
PAD, CLS, SEP = -1, -2, -3  # values of ``source`` without a token of the stream


class TokenStream(NamedTuple):
    """The tokens of all documents, one behind the other, without special tokens."""

    ids: np.ndarray  # int32 [tokens]
    word_starts: np.ndarray  # bool [tokens], True where a word of jieba begins
    bounds: np.ndarray  # int64 [documents + 1]; document n is ids[bounds[n]:bounds[n + 1]]


def tokenize(documents, tokenizer, title, show_progress=True):
    """The :class:`TokenStream` of documents; those without a token are left out. ``title`` is of the progress bar."""
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
    """bool for each token: it begins in another word of jieba than the token before it.

    The segmentation is that of :class:`WordTokenizer`: jieba's dictionary, no hidden Markov model. Each run of white
    space and each mark is a word. ``offsets`` are the half-open characters (start, end) of the tokens, in their order.
    """
    lengths = [len(word) for word in jieba_cutter().cut(text, HMM=False)]
    word_of_character = np.repeat(np.arange(len(lengths)), lengths)
    word_of_token = word_of_character[[start for start, _ in offsets]]
    return np.diff(word_of_token, prepend=-1) != 0


class Layout(NamedTuple):
    """What some rows consist of; all arrays are int64 ``[rows, length]``."""

    source: np.ndarray  # place of each token in the TokenStream, or CLS, SEP, PAD
    positions: np.ndarray  # from 0 in each piece
    segment_ids: np.ndarray  # another number for each piece, -1 at padding

    @property
    def is_text(self) -> np.ndarray:
        """Whether there is a token of the stream, bool ``[rows, length]``."""
        return self.source >= 0


class PackedRows:
    """A :class:`TokenStream` as rows of ``length`` tokens.

    A document that is longer than a row is cut into pieces, each as long as fits before a word begins. Each piece gets
    ``[CLS]`` and ``[SEP]``. The longest piece is placed first, each in the row where it leaves the least space (best
    fit), so that there is hardly any padding; which of the pieces of one length share a row is drawn.
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
        counts = self._bounds[rows + 1] - self._bounds[rows]
        starts, ends = np.concatenate([self._pieces[self._bounds[n] : self._bounds[n + 1]] for n in rows]).T
        sizes = ends - starts + NUM_SPECIAL
        row = np.repeat(np.arange(len(rows)), counts)  # of each piece
        before = np.cumsum(sizes) - sizes  # tokens of all pieces before it
        column = before - before[np.cumsum(counts) - counts][row]

        piece = np.repeat(np.arange(len(sizes)), sizes)  # of each token, as all that follows
        position = np.arange(sizes.sum()) - before[piece]
        source = starts[piece] + position - 1
        source[position == 0] = CLS
        source[position == sizes[piece] - 1] = SEP
        place = row[piece], column[piece] + position
        layout = Layout(*(np.full((len(rows), self.length), value) for value in (PAD, 0, PADDING_SEGMENT)))
        for array, values in zip(layout, (source, position, piece)):
            array[place] = values
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
    with_room = defaultdict(list)  # room -> rows that have just this
    rooms = []  # its keys, rising
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
