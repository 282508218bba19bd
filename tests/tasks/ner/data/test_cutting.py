"""Training texts that are cut into pieces."""

import random

import pytest

from paddle_rope.roformer import CharTokenizer
from tasks.common.errors import InputError
from tasks.ner.batching import NerDataset, cut_labeled, refuse_longer
from tasks.ner.examples import Entity, TokenizedText, make_example


def tokenized(characters, spans):
    """A text of a token a character; spans are half-open characters."""
    ids = [2, *range(10, 10 + len(characters)), 3]
    offsets = [(0, 0), *((place, place + 1) for place in range(len(characters))), (0, 0)]
    return TokenizedText(ids, offsets, [(kind, start + 1, end) for kind, start, end in spans])


def random_text(seed, longest):
    random_ = random.Random(seed)
    size = random_.randint(1, 120)
    characters = "".join(random_.choice("甲乙丙丁戊己。") for _ in range(size))
    spans = set()
    for _ in range(random_.randint(0, 40)):
        start = random_.randrange(size)
        spans.add((random_.randint(0, 1), start, min(size, start + random_.randint(1, longest))))
    return tokenized(characters, sorted(spans)), characters


@pytest.mark.parametrize("length, longest", [(20, 8), (9, 9), (7, 15), (30, 3), (1, 2)])
def test_every_entity_that_fits_lies_whole_in_a_piece_and_no_character_is_left_out(length, longest):
    lost_of_all = 0
    for seed in range(150):
        text, characters = random_text(seed, longest)
        pieces, lost = cut_labeled(text, length, characters)
        whole = set()
        for piece in pieces:
            assert len(piece.ids) - 2 <= length and (piece.ids[0], piece.ids[-1]) == (2, 3)
            begin = piece.offsets[1][0]
            assert piece.ids[1:-1] == text.ids[1 + begin : 1 + begin + len(piece.ids) - 2]
            assert all(1 <= first <= last < len(piece.ids) - 1 for _, first, last in piece.spans)
            whole |= {(kind, first + begin, last + begin) for kind, first, last in piece.spans}
        assert {token for piece in pieces for token in piece.ids} == set(text.ids)
        assert whole | set(lost) == set(text.spans)
        assert set(lost) == {span for span in text.spans if span[2] - span[1] + 1 > length} - whole
        assert whole.isdisjoint(lost)
        lost_of_all += len(lost)
    assert (lost_of_all > 0) == (longest > length)


def test_no_piece_has_a_part_of_an_entity_unless_entities_overlap_too_far():
    text = tokenized("甲" * 6 + "乙" * 8 + "丙" * 6, [(0, 6, 14)])
    pieces, lost = cut_labeled(text, 10, "甲" * 6 + "乙" * 8 + "丙" * 6)
    assert [len(piece.ids) - 2 for piece in pieces] == [6, 10, 4] and lost == []
    assert [piece.spans for piece in pieces] == [[], [(0, 1, 8)], []]


def test_pieces_end_at_sentences_where_they_can():
    characters = "甲甲甲甲。乙乙乙。丙丙丙丙丙丙丙丙丙"
    pieces, _ = cut_labeled(tokenized(characters, []), 8, characters)
    assert [len(piece.ids) - 2 for piece in pieces] == [5, 8, 5]


def test_text_that_fits_is_left_as_it_is():
    text = tokenized("甲乙丙", [(0, 0, 2)])
    assert cut_labeled(text, 3, "甲乙丙") == ([text], [])


@pytest.fixture
def examples():
    return [
        make_example("北京大学。" * 4, [Entity(5, 9, "org"), Entity(0, 20, "place")], "x:1"),
        make_example("北京", [], "x:2"),
        make_example("大学。" * 5, [], "x:3"),
    ]


def test_dataset_cuts_longer_texts_and_names_what_is_lost(examples):
    tokenizer = CharTokenizer.from_corpus(["北京大学。"])
    dataset = NerDataset(examples, tokenizer, ["org", "place"], max_characters=10)
    assert dataset.cut == (4, 2) and len(dataset) == 5
    assert dataset.lost == [(examples[0], Entity(0, 20, "place"))]
    assert sum(len(text.spans) for text in dataset) == 1


def test_longer_texts_are_named_once_with_the_longest_and_the_remedy(examples):
    message = (
        r"^x:1: 2 of 3 training texts have more characters than max_characters 10, this one the most, 20; give "
        r"--cut_long_texts true to cut them into windows, or --max_characters 20 or more"
    )
    with pytest.raises(InputError, match=message):
        refuse_longer(examples, 10)
