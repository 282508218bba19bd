"""The lengths of training: what is stored of them, and how texts are read and entities bounded by them."""

import json
import random
from types import SimpleNamespace

import evaluate_ner
import predict_ner
import pytest

from paddle_rope import CharTokenizer
from tasks.ner import NerPredictor
from tasks.ner.data.reading import read_examples, write_examples
from tasks.ner.examples import Entity, make_example
from tasks.ner.lengths import entity_bound, reading_of, training_lengths, window_length
from tasks.ner.metrics import score_predictions
from tasks.ner.tokenized_text import TokenizedText


@pytest.mark.parametrize(
    "lengths, expected",
    [
        ([7], 7),  # one document
        ([2000] * 300, 2000),
        ([50] * 9_900 + [600] * 100, 600),
        ([50] * 9_901 + [600] * 99, 50),
        ([50] * 290 + [600] * 10, 600),  # 1 % would be 3
        ([50] * 291 + [600] * 9, 50),
        ([50] * 18 + [600] * 2, 600),
        ([50] * 19 + [600], 50),
        ([0, 0], 1),
        ([80] * 990 + [100], 100),  # not much longer
        ([80] * 990 + [101], 80),
    ],
)
def test_the_window_is_a_length_that_enough_training_texts_reach(lengths, expected):
    random.Random(0).shuffle(lengths)
    assert window_length(lengths) == expected


def test_lengths_count_tokens_without_special_ones():
    texts = [TokenizedText([2, *range(size), 3], [], spans) for size, spans in ((9, [(0, 1, 4), (1, 3, 3)]), (5, []))]
    assert training_lengths(texts) == (9, 9, 4)
    assert training_lengths(texts[1:]) == (5, 5, 1)


def test_spans_may_be_twice_as_long_as_in_training_and_never_less_than_32_tokens():
    assert [entity_bound(longest) for longest in (None, 1, 16, 17, 100)] == [None, 32, 32, 34, 200]


def config(**lengths):
    return SimpleNamespace(
        **{"max_tokens": 512, "window_tokens": None, "longest_text": None, "longest_entity": None, **lengths}
    )


def test_texts_are_read_as_training_has_it_unless_said_otherwise():
    assert reading_of(config()) == (512, 128, None)  # of before
    known = config(window_tokens=100, longest_text=150, longest_entity=40)
    assert reading_of(known) == (100, 40, 80)
    assert reading_of(config(window_tokens=100, longest_entity=3)) == (100, 25, 32)
    assert reading_of(config(window_tokens=100, longest_entity=90)) == (100, 50, 180)
    assert reading_of(known, max_tokens=4096, overlap=7, max_entity_tokens=9) == (4096, 7, 9)
    assert reading_of(known, max_entity_tokens=0) == (100, 40, None)


def test_training_stores_its_lengths_in_tokens(trained, corpus):
    examples = read_examples(corpus.train)
    encode = CharTokenizer.from_pretrained(trained.model).encode
    lengths = sorted(len(encode(example.text).ids) - 2 for example in examples)
    stored = trained.model_config
    assert (stored["window_tokens"], stored["longest_text"]) == (lengths[-10], lengths[-1])  # 150 texts
    assert stored["longest_entity"] == max(e.end - e.start for example in examples for e in example.entities)
    assert stored["window_tokens"] < stored["longest_text"] < stored["max_tokens"] == 64


@pytest.fixture(scope="module")
def long_text(corpus):
    """All dev texts as one."""
    text, entities = "", []
    for example in read_examples(corpus.dev):
        entities += [Entity(len(text) + start, len(text) + end, kind) for start, end, kind, *_ in example.entities]
        text += example.text
    return make_example(text, entities, "long:1")


def test_a_long_text_loses_little_in_windows_and_more_when_read_whole(trained, corpus, long_text, capsys):
    apart = read_examples(corpus.dev)
    assert len(long_text.text) > 15 * trained.model_config["longest_text"]

    def f1(examples, **options):
        predictor = NerPredictor(trained.model, "cpu", **options)
        found = predictor.find([example.text for example in examples])
        return score_predictions(examples, found, predictor.types)["f1"]

    alone, windows, whole = f1(apart), f1([long_text]), f1([long_text], max_tokens=5000, max_entity_tokens=0)
    assert windows > alone - 0.05
    assert whole < windows - 0.02


def test_a_text_read_whole_that_is_longer_than_any_of_training_is_noted_once(trained, long_text, capsys):
    predictor = NerPredictor(trained.model, "cpu", max_tokens=5000)
    longest = trained.model_config["longest_text"]
    predictor.find(["王明在。" * (longest // 4)])
    assert capsys.readouterr().err == ""
    predictor.find(["好", long_text.text])
    note = capsys.readouterr().err
    assert note.startswith("note: text 2: ") and "tokens are read at once, and no training text had more " in note
    assert note.count("\n") == 1 and f"or give {longest} or less" in note
    predictor.find([long_text.text])
    NerPredictor(trained.model, "cpu").find([long_text.text])
    assert capsys.readouterr().err == ""


def test_the_tools_say_how_longer_texts_are_read(trained, long_text, tmp_path, capsys):
    write_examples([long_text], tmp_path / "long.jsonl", "jsonl")
    reading = reading_of(SimpleNamespace(**trained.model_config))
    words = [str(trained.model), "--device", "cpu"]
    assert evaluate_ner.main([*words, str(tmp_path / "long.jsonl")]) == 0
    said = f"read in windows of {reading.max_tokens} tokens, {reading.overlap + 1} of them shared with the next"
    assert f"1 of the texts are longer than {reading.max_tokens} tokens: {said}" in capsys.readouterr().out
    given, output = ["--input", str(tmp_path / "long.jsonl")], ["--output", str(tmp_path / "found.jsonl")]
    assert predict_ner.main([*words, *given, *output]) == 0
    assert f"note: longer texts are {said} (--max_tokens)\n" in capsys.readouterr().err
    assert predict_ner.main([*words, *given, *output, "--max_entity_tokens", "2"]) == 0
    entities = json.loads((tmp_path / "found.jsonl").read_text(encoding="utf-8"))["entities"]
    assert entities and all(len(entity["text"]) <= 2 for entity in entities)


def test_training_reads_long_dev_texts_in_windows_and_cuts_long_training_texts_on_demand(
    train, few_texts, long_text, each_epoch_is_better, tmp_path, capsys
):
    write_examples([long_text], tmp_path / "dev.jsonl", "jsonl")
    run = train(
        *[tmp_path / "run"], train_file=few_texts.train, dev_file=tmp_path / "dev.jsonl", num_train_epochs=2,
        max_characters=20, cut_long_texts="true",
    )  # fmt: skip
    printed = capsys.readouterr().out
    assert "of them are longer than max_characters: they are cut into" in printed and "; no entity is lost" in printed
    assert f"texts of more than {run.model_config['window_tokens']} are read in windows" in printed
    assert run.model_config["longest_text"] <= 20
    (line,) = (run.folder / "predictions_dev.jsonl").read_text(encoding="utf-8").splitlines()
    found = [(entity["start"], entity["end"], entity["type"]) for entity in json.loads(line)["entities"]]
    assert found == [entity[:3] for entity in NerPredictor(run.model, "cpu").find([long_text.text])[0]]
