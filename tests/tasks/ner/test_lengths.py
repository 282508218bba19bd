"""The lengths of training: what is stored of them, how texts are read and entities bounded, and how texts are cut."""

import random
from types import SimpleNamespace

import pytest

from paddle_rope import CharTokenizer
from paddle_rope.tasks.ner import NerPredictor
from paddle_rope.tasks.ner.batching import LONGER_THAN_A_WINDOW, NerDataset, cut_labeled
from paddle_rope.tasks.ner.data.reading import read_examples, write_examples
from paddle_rope.tasks.ner.examples import Entity, make_example
from paddle_rope.tasks.ner.lengths import training_lengths, window_settings
from tests.helpers.models import like
from tests.tasks.ner.conftest import example, tokenized


def spans_of(*spans):
    """Spans of tokens, as a text between special tokens has them, of (type, start, end)."""
    return [(kind, start + 1, end, 1.0) for kind, start, end in spans]


@pytest.mark.parametrize("lengths, window", [
    ([7], 7),  # one document
    ([600] * 20 + [50] * 1_980, 600),
    ([50] * 1_981 + [600] * 19, 50),
    ([50] * 290 + [600] * 10, 600),  # 1 % would be 3
    ([50] * 291 + [600] * 9, 50),
    ([50] * 18 + [600] * 2, 600),
    ([50] * 19 + [600], 50),
    ([0, 0], 1),
    ([80] * 990 + [100], 100),  # not much longer
    ([80] * 990 + [101], 80),
])  # fmt: skip
def test_the_window_is_a_length_that_enough_training_texts_reach(lengths, window):
    texts = [tokenized(range(length)) for length in lengths]
    assert training_lengths(texts) == (window, max(1, *lengths, 0), 1)
    with_entities = [tokenized(range(9), spans_of((0, 0, 4), (1, 2, 3))), tokenized(range(5))]
    assert training_lengths(with_entities) == (9, 9, 4)  # tokens


@pytest.mark.parametrize("lengths, options, reading", [
    ({"window_tokens": None}, {}, (512, 128, None)),  # a model of before the lengths were stored
    ({"longest_entity": 40}, {}, (100, 40, 80)),
    ({"longest_entity": 17}, {}, (100, 25, 34)),
    ({"longest_entity": 90}, {}, (100, 50, 180)),
    ({"longest_entity": 40}, {"max_tokens": 4096, "overlap": 7, "max_entity_tokens": 9}, (4096, 7, 9)),
    ({"longest_entity": 40}, {"max_entity_tokens": 0}, (100, 40, None)),
], ids=str)  # fmt: skip
def test_texts_are_read_as_in_training_unless_options_differ(lengths, options, reading):
    config = SimpleNamespace(**{"max_characters": 512, "window_tokens": 100, "longest_entity": None, **lengths})
    assert window_settings(config, **options) == reading


def test_training_reads_long_dev_texts_in_windows_and_cuts_long_ones_on_demand(train_few, corpus, tmp_path):
    text, entities = "", []
    for one in read_examples(corpus.dev):
        entities += [Entity(len(text) + start, len(text) + end, kind) for start, end, kind, *_ in one.entities]
        text += one.text
    write_examples([make_example(text, entities, "long:1")], tmp_path / "dev.jsonl", "jsonl")
    options = {"num_train_epochs": 2, "max_characters": 20, "cut_long_texts": True}
    run = train_few(tmp_path / "run", dev_file=tmp_path / "dev.jsonl", **options)
    stored = run.model_config
    assert 1 < stored["longest_entity"] < stored["window_tokens"] <= stored["longest_text"] <= 20
    assert run.predictions == like(NerPredictor(run.model, "cpu")([text]))


@pytest.mark.parametrize("length, longest", [(20, 8), (9, 9), (7, 15), (30, 3), (1, 2)])
def test_every_entity_that_fits_lies_whole_in_a_piece_and_no_character_is_left_out(length, longest):
    lost_of_all, chance = 0, random.Random(1)
    for _ in range(150):
        size = chance.randint(1, 120)
        characters = "".join(chance.choice("甲乙丙丁戊己。") for _ in range(size))
        starts = [chance.randrange(size) for _ in range(chance.randint(0, 40))]
        spans = {(chance.randint(0, 1), at, min(size, at + chance.randint(1, longest))) for at in starts}
        text = tokenized(range(10, 10 + size), spans_of(*sorted(spans)))
        pieces, lost, _ = cut_labeled(text, length, characters)
        whole = set()
        for piece in pieces:
            assert piece.size <= length and (piece.ids[0], piece.ids[-1]) == (2, 3)
            begin = piece.offsets[1][0]
            assert piece.ids[1:-1] == text.ids[1 + begin : 1 + begin + piece.size]
            assert all(1 <= first <= last < len(piece.ids) - 1 for _, first, last, _ in piece.spans)
            whole |= {(kind, first + begin, last + begin, 1.0) for kind, first, last, _ in piece.spans}
        assert {token for piece in pieces for token in piece.ids} == set(text.ids)
        assert whole | set(lost) == set(text.spans) and whole.isdisjoint(lost)
        assert set(lost) == {span for span in text.spans if span[2] - span[1] + 1 > length} - whole
        lost_of_all += len(lost)
    assert (lost_of_all > 0) == (longest > length)


def test_pieces_end_at_sentences_or_where_they_break_no_entity():
    characters = "甲甲甲甲。乙乙乙。丙丙丙丙丙丙丙丙丙"
    assert [piece.size for piece in cut_labeled(tokenized(range(18)), 8, characters)[0]] == [5, 8, 5]
    text = tokenized(range(20), spans_of((0, 6, 14)))
    pieces, lost, _ = cut_labeled(text, 10, "甲" * 20)
    assert [(piece.size, piece.spans) for piece in pieces] == [(6, []), (10, [(0, 1, 8, 1.0)]), (4, [])] and lost == []
    assert cut_labeled(text, 20, "甲" * 20) == ([text], [], set())
    text = tokenized(range(20), spans_of((0, 4, 10)))
    assert [piece.size for piece in cut_labeled(text, 10, "甲" * 20)[0]] == [10, 10]


def test_a_dataset_cuts_longer_texts_and_names_what_is_lost():
    examples = [example("北京大学。" * 4, (5, 9, "org"), (0, 20, "place")), example("北京"), example("大学。" * 5)]
    dataset = NerDataset(examples, CharTokenizer.from_corpus(["北京大学。"]), ["org", "place"], max_characters=10)
    assert dataset.cut == (4, 2) and len(dataset) == 5 and sum(len(text.spans) for text in dataset) == 1
    assert dataset.faults == {LONGER_THAN_A_WINDOW: [(examples[0], Entity(0, 20, "place"))]}
