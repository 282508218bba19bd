"""Documents in rows of one length: cut where they are longer, several to a row where they are shorter."""

from bisect import bisect_left, insort
from typing import NamedTuple

import numpy as np

NUM_SPECIAL = 2  # [CLS] and [SEP] around each piece
PADDING_SEGMENT = -1


class Layout(NamedTuple):
    """Where the tokens of some rows come from and go to. Places count through the rows, ``row * length + column``.

    Attributes:
        shape: (rows, length).
        cls, sep: int64 ``[pieces]``, places of ``[CLS]`` and ``[SEP]``.
        source: int64 ``[tokens]``, places in the :class:`TokenStream`, special tokens left out.
        place: int64 ``[tokens]``, where each of them goes.
        firsts: int64 ``[pieces]``, index in ``source`` of the first token of each piece.
        positions: int64 ``[rows, length]``, from 0 in each piece.
        segment_ids: int64 ``[rows, length]``, another number for each piece of a row, -1 at padding.
    """

    shape: tuple
    cls: np.ndarray
    sep: np.ndarray
    source: np.ndarray
    place: np.ndarray
    firsts: np.ndarray
    positions: np.ndarray
    segment_ids: np.ndarray


class PackedRows:
    """A :class:`TokenStream` as rows of ``length`` tokens.

    A document that is longer than a row is cut into pieces, each as long as fits before a word begins. Each piece gets
    ``[CLS]`` and ``[SEP]``. The longest piece is put down first, each where it leaves the least room (best fit), so
    that nearly no place is padding; which of the pieces of one length come together is drawn.

    Args:
        stream: :class:`TokenStream`, not empty.
        length: of the rows.
        random: numpy generator.
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
        before = np.cumsum(sizes) - sizes  # tokens of all pieces before, and of those before in its row
        before_row = before[np.cumsum(counts) - counts]
        row_of_piece = np.repeat(np.arange(len(rows)), counts)
        first_places = row_of_piece * self.length + before - before_row[row_of_piece]

        position = np.arange(sizes.sum()) - np.repeat(before, sizes)  # of each token in its piece
        places = position + np.repeat(first_places, sizes)
        is_text = (position > 0) & (position < np.repeat(sizes, sizes) - 1)
        shape = (len(rows), self.length)
        positions = np.zeros(shape, dtype=np.int64)
        positions.flat[places] = position
        segment_ids = np.full(shape, PADDING_SEGMENT, dtype=np.int64)
        segment_ids.flat[places] = np.repeat(np.arange(len(sizes)), sizes)
        return Layout(
            shape,
            cls=first_places,
            sep=first_places + sizes - 1,
            source=(position + np.repeat(starts, sizes) - 1)[is_text],
            place=places[is_text],
            firsts=np.cumsum(sizes - NUM_SPECIAL) - (sizes - NUM_SPECIAL),
            positions=positions,
            segment_ids=segment_ids,
        )


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
    """Row of each piece, int64 ``[pieces]``; no row has more than ``length`` tokens.

    Args:
        sizes: int ``[pieces]``, tokens of each, at most ``length``.
        length: of a row.
        random: numpy generator.
    """
    order = random.permutation(len(sizes))
    order = order[np.argsort(-sizes[order], kind="stable")]
    rows = np.empty(len(sizes), dtype=np.int64)
    count = 0
    with_room = {}  # room -> rows that have just this
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
                del with_room[room], rooms[at]
        rows[piece] = row
        left = room - size
        if left > NUM_SPECIAL:
            if left not in with_room:
                with_room[left] = []
                insort(rooms, left)
            with_room[left].append(row)
    return rows
