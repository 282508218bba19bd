"""Training texts that are cut into pieces."""

import random

import pytest

from paddle_rope.roformer import CharTokenizer
from tasks.ner.batching import NerDataset, cut_labeled
from tasks.ner.examples import Entity, TokenizedText
from tests.tasks.ner.conftest import example


def tokenized(characters, *spans):
    """A text of a token a character; spans are half-open characters."""
    ids = [2, *range(10, 10 + len(characters)), 3]
    offsets = [(0, 0), *((place, place + 1) for place in range(len(characters))), (0, 0)]
    return TokenizedText(ids, offsets, [(kind, start + 1, end) for kind, start, end in spans])


@pytest.mark.parametrize("length, longest", [(20, 8), (9, 9), (7, 15), (30, 3), (1, 2)])
def test_every_entity_that_fits_lies_whole_in_a_piece_and_no_character_is_left_out(length, longest):
    lost_of_all, chance = 0, random.Random(1)
    for _ in range(150):
        size = chance.randint(1, 120)
        characters = "".join(chance.choice("甲乙丙丁戊己。") for _ in range(size))
        starts = [chance.randrange(size) for _ in range(chance.randint(0, 40))]
        spans = {(chance.randint(0, 1), at, min(size, at + chance.randint(1, longest))) for at in starts}
        text = tokenized(characters, *sorted(spans))
        pieces, lost = cut_labeled(text, length, characters)
        whole = set()
        for piece in pieces:
            assert piece.size <= length and (piece.ids[0], piece.ids[-1]) == (2, 3)
            begin = piece.offsets[1][0]
            assert piece.ids[1:-1] == text.ids[1 + begin : 1 + begin + piece.size]
            assert all(1 <= first <= last < len(piece.ids) - 1 for _, first, last in piece.spans)
            whole |= {(kind, first + begin, last + begin) for kind, first, last in piece.spans}
        assert {token for piece in pieces for token in piece.ids} == set(text.ids)
        assert whole | set(lost) == set(text.spans) and whole.isdisjoint(lost)
        assert set(lost) == {span for span in text.spans if span[2] - span[1] + 1 > length} - whole
        lost_of_all += len(lost)
    assert (lost_of_all > 0) == (longest > length)


def test_pieces_end_at_sentences_or_where_they_break_no_entity():
    characters = "甲甲甲甲。乙乙乙。丙丙丙丙丙丙丙丙丙"
    assert [piece.size for piece in cut_labeled(tokenized(characters), 8, characters)[0]] == [5, 8, 5]
    text = tokenized("甲" * 20, (0, 6, 14))
    pieces, lost = cut_labeled(text, 10, "甲" * 20)
    assert [(piece.size, piece.spans) for piece in pieces] == [(6, []), (10, [(0, 1, 8)]), (4, [])] and lost == []
    assert cut_labeled(text, 20, "甲" * 20) == ([text], [])


def test_a_dataset_cuts_longer_texts_and_names_what_is_lost():
    examples = [example("北京大学。" * 4, (5, 9, "org"), (0, 20, "place")), example("北京"), example("大学。" * 5)]
    dataset = NerDataset(examples, CharTokenizer.from_corpus(["北京大学。"]), ["org", "place"], max_characters=10)
    assert dataset.cut == (4, 2) and len(dataset) == 5 and sum(len(text.spans) for text in dataset) == 1
    assert dataset.lost == [(examples[0], Entity(0, 20, "place"))]
