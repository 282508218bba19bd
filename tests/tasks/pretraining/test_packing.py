import numpy as np
import pytest

from tasks.pretraining.packing import CLS, PAD, PADDING_SEGMENT, SEP, PackedRows, TokenStream, cut_documents, pack

LENGTHS = (8, 33, 64, 400, 5000)


def make_stream(document_sizes, word_size=1):
    """Tokens 0, 1, 2, ... in words of one size."""
    bounds = np.cumsum([0, *document_sizes])
    starts = np.arange(bounds[-1]) % word_size == 0
    starts[bounds[:-1]] = True
    return TokenStream(np.arange(bounds[-1], dtype=np.int32), starts, bounds)


# ---- cutting


@pytest.mark.parametrize("room", [1, 6, 31, 62, 398])
def test_pieces_are_the_documents_cut_before_words(sample, room):
    stream = sample.stream
    pieces = cut_documents(stream, room)
    assert pieces[0, 0] == 0 and pieces[-1, 1] == len(stream.ids)
    assert np.array_equal(pieces[1:, 0], pieces[:-1, 1])
    sizes = pieces[:, 1] - pieces[:, 0]
    assert sizes.min() > 0 and sizes.max() <= room
    assert set(stream.bounds.tolist()) <= {0, *pieces[:, 1].tolist()}
    longest_word = np.diff([*np.flatnonzero(stream.word_starts), len(stream.ids)]).max()
    if longest_word <= room:
        assert stream.word_starts[pieces[:, 0]].all()


def test_piece_is_as_long_as_fits_before_a_word():
    assert cut_documents(make_stream([20], word_size=4), 10).tolist() == [[0, 8], [8, 16], [16, 20]]


def test_word_longer_than_a_row_is_cut():
    assert cut_documents(make_stream([3, 25], word_size=100), 10).tolist() == [[0, 3], [3, 13], [13, 23], [23, 28]]


# ---- packing


def test_rows_are_full_but_for_a_hundredth_and_never_overfull(sample):
    random = np.random.default_rng(1)
    sizes = random.integers(3, 129, 3000)
    rows = pack(sizes, 128, random)
    filled = np.bincount(rows, weights=sizes)
    assert filled.max() <= 128 and filled.min() > 0
    assert sizes.sum() / (128 * len(filled)) > 0.99


def test_pieces_of_one_length_come_together_as_drawn():
    sizes = np.repeat([10, 30], 20)
    first, again, other = (pack(sizes, 40, np.random.default_rng(seed)) for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)
    assert np.array_equal(np.bincount(first), np.full(20, 2))


# ---- laying out


@pytest.mark.parametrize("length", LENGTHS)
def test_rows_hold_every_token_once_in_pieces_of_one_document_between_special_tokens(sample, length):
    stream = sample.stream
    rows = PackedRows(stream, length, np.random.default_rng(0))
    seen = []
    for part in np.array_split(np.random.default_rng(0).permutation(len(rows)), max(1, len(rows) // 5)):
        layout = rows.lay_out(part)
        assert {array.shape for array in layout} == {(len(part), length)}
        assert np.array_equal(layout.source == PAD, layout.segment_ids == PADDING_SEGMENT)
        seen.append(layout.source[layout.is_text])
        for row, segments, positions in zip(*layout[::2], layout.positions):
            numbers = segments[segments != PADDING_SEGMENT]
            assert (segments[len(numbers) :] == PADDING_SEGMENT).all()  # padding is at the end
            assert (np.diff(numbers) >= 0).all() and len(numbers) > 0  # side by side
            for number in np.unique(numbers):
                inside = segments == number
                assert positions[inside].tolist() == list(range(inside.sum()))
                cls, *text, sep = row[inside].tolist()
                assert (cls, sep) == (CLS, SEP) and text == list(range(text[0], text[0] + len(text)))
                first, last = np.searchsorted(stream.bounds, [text[0], text[-1]], side="right")
                assert first == last
    assert np.array_equal(np.sort(np.concatenate(seen)), np.arange(len(stream.ids)))
