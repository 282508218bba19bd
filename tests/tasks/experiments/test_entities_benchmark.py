"""F1 against length and position: documents, what they are compared with, and what is said of it."""

import json

import pytest

from paddle_rope import CharTokenizer
from paddle_rope.__main__ import main
from tasks.experiments.benchmarks import entities
from tasks.experiments.benchmarks.entities import (
    as_report,
    by_tenth,
    first_texts,
    group_neighbors,
    join,
    join_found,
    measure_entities,
    names_of,
)
from tasks.ner.data.reading import read_examples
from tasks.ner.demo import write_demo_corpus
from tasks.ner.examples import Entity, Example
from tasks.ner.model import NerConfig, NerModel
from tests.paddle_rope.roformer.small_models import randomise


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """(folder of an untrained model, labeled file)"""
    train, dev = write_demo_corpus(tmp_path_factory.mktemp("corpus"), train_size=60, dev_size=30)
    examples = read_examples(train)
    tokenizer = CharTokenizer.from_corpus(example.text for example in examples)
    sizes = {"embedding_size": 16, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    types = sorted({entity.type for example in examples for entity in example.entities})
    model = NerModel(
        NerConfig(
            types=types, vocab_size=len(tokenizer), intermediate_size=32, head_size=8, max_tokens=64,
            thresholds=2.0, **sizes,
        )
    )  # fmt: skip
    randomise(model, 0.5)
    folder = tmp_path_factory.mktemp("models") / "run" / "model"
    folder.mkdir(parents=True)
    model.save_pretrained(str(folder))
    tokenizer.save_pretrained(str(folder))
    return folder, dev


@pytest.fixture
def knowing(demo, monkeypatch):
    """A predictor that knows the labels, but in long documents only up to ``limit`` characters."""
    gold = {}
    original = entities.join_found

    def remember(documents):
        gold.update({document.text: document.entities for document in documents})
        return documents

    class Knowing:
        limit = 10**9

        def __init__(self, folder, max_tokens=None, **options):
            self.types = most_types(folder)

        def find(self, texts):
            return [[entity for entity in gold[text] if entity.end <= Knowing.limit] for text in texts]

    def most_types(folder):
        return json.loads((folder / "config.json").read_text(encoding="utf-8"))["types"]

    remember(read_examples(demo[1]))
    monkeypatch.setattr(entities, "NerPredictor", Knowing)
    monkeypatch.setattr(entities, "join_found", lambda *given: remember_first(original(*given)))

    def remember_first(documents):  # gold comes before what is found alone
        for document in documents:
            gold.setdefault(document.text, document.entities)
        return documents

    return Knowing


def test_documents_hold_all_texts_with_their_entities(demo):
    examples = read_examples(demo[1])
    texts = first_texts(examples, 300)
    assert texts == examples[: len(texts)]
    assert sum(len(text.text) for text in texts[:-1]) < 300 <= sum(len(text.text) for text in texts)
    groups = group_neighbors(texts, 100)
    assert [i for group in groups for i in group] == list(range(len(texts)))
    documents = join_found(texts, [text.entities for text in texts], groups)
    assert max(len(document.text) for document in documents) <= 100
    surfaces = [[one.surface(entity) for entity in one.entities] for one in (*documents, *texts)]
    assert sorted(sum(surfaces[: len(documents)], [])) == sorted(sum(surfaces[len(documents) :], []))


def test_entities_count_in_the_tenth_in_which_they_begin():
    document = Example("一" * 20, (Entity(0, 3, "a"), Entity(1, 2, "a"), Entity(19, 20, "a")), "x:1")
    tenths = by_tenth([document], [[Entity(0, 3, "a"), Entity(18, 20, "a")]])
    assert [row["support"] for row in tenths] == [2] + [0] * 8 + [1]
    assert [row["predicted"] for row in tenths] == [1] + [0] * 8 + [1]
    assert [row["correct"] for row in tenths] == [1] + [0] * 9


def test_joined_text_has_the_entities_of_its_parts_where_they_stand_now():
    first = Example("去北京", (Entity(1, 3, "place"),), "x:1")
    second = Example("北京大学。", (Entity(0, 2, "place"), Entity(0, 4, "org")), "x:2")
    joined = join([first, Example("", (), "x:9"), second])
    assert joined.text == "去北京北京大学。" and joined.where == "x:1"
    assert joined.entities == (Entity(1, 3, "place"), Entity(3, 5, "place"), Entity(3, 7, "org"))


@pytest.mark.parametrize(
    "before, after, text",
    [("NBA", "2010年", "NBA 2010年"), ("NBA", "在", "NBA在"), ("NBA.", "A", "NBA.A"), ("é", "A", "éA")],
)
def test_only_ascii_words_are_kept_apart(before, after, text):
    joined = join([Example(before, (), "x:1"), Example(after, (Entity(0, 1, "a"),), "x:2")])
    assert joined.text == text
    assert joined.surface(joined.entities[0]) == after[0]


def test_groups_are_all_texts_in_order_and_no_longer_than_wanted_unless_one_text_is():
    examples = [Example(text, (), "x:1") for text in ("一二三", "a", "b", "四五六七八九", "十", "")]
    assert group_neighbors(examples, 5) == [[0, 1], [2], [3], [4, 5]]
    groups = group_neighbors(examples, 6)
    assert [len(join([examples[i] for i in group]).text) for group in groups] == [6, 6, 1]  # "一二三a b"


def test_verb_writes_table_numbers_and_picture(demo, tmp_path, capsys):
    model, data = demo
    words = ["--lengths", "50", "200", "--characters", "400", "--whole", "--device", "cpu"]
    output = tmp_path / "out"
    assert main(["benchmark", "entities", str(model), "--input", str(data), "--output", str(output), *words]) == 0
    report = capsys.readouterr().out
    assert (output / "entities.md").read_text(encoding="utf-8") == report
    measured = json.loads((output / "entities.json").read_text(encoding="utf-8"))
    cases = [(row["reading"], row["length"]) for row in measured["rows"]]
    assert cases == [(reading, length) for reading in ("default", "whole") for length in (None, 50, 200)]
    alone = [row for row in measured["rows"] if row["length"] is None]
    assert len({row["support"] for row in measured["rows"]}) == 1
    # texts that fit into the window are read whole in either way
    assert alone[0]["correct"] == alone[1]["correct"] and alone[0]["predicted"] == alone[1]["predicted"] > 0
    for row in measured["rows"]:
        if "tenths" in row:
            assert sum(tenth["correct"] for tenth in row["tenths"]) == row["correct"]
            assert sum(tenth["alone"]["correct"] for tenth in row["tenths"]) == alone[0]["correct"]
    assert f"| run | default | {alone[0]['f1']:.4f} | " in report
    assert measured["what"] in report and measured["machine"] in report


def test_what_is_lost_with_length_is_found_and_told(demo, knowing, monkeypatch):
    model, data = demo
    knowing.limit = 100
    measured = {"machine": "", **measure_entities([model], data, lengths=[80, 400], characters=10_000)}
    alone, short, long = measured["rows"]
    assert alone["f1"] == short["f1"] == 1 and alone["difference"] == short["difference"] == 0
    assert long["difference"] < -0.3
    tenths = long["tenths"]
    assert tenths[0]["f1"] == 1 and tenths[-1]["correct"] < tenths[-1]["support"]
    assert all(tenth["alone"]["f1"] == 1 for tenth in tenths)
    monkeypatch.setattr(entities, "FEWEST", 1)
    report = as_report(measured)
    points = f"{long['f1']:.4f} ({100 * long['difference']:+.1f})"
    assert f"| run | default | 1.0000 | 1.0000 (+0.0) | {points} |" in report
    assert f" {100 * (tenths[-1]['f1'] - 1):+.1f} |\n" in report.split("| run | default | 400 | +0.0 |")[1]


def test_length_that_does_not_fit_into_memory_is_left_out_with_a_note(demo, knowing, monkeypatch):
    find = knowing.find

    def find_short(self, texts):
        if max(map(len, texts)) > 150:
            raise MemoryError
        return find(self, texts)

    monkeypatch.setattr(knowing, "find", find_short)
    measured = measure_entities([demo[0]], demo[1], lengths=[100, 400], characters=900)
    assert [row["length"] for row in measured["rows"]] == [None, 100]
    assert measured["notes"] == ["run, default: documents of 400 characters do not fit into memory"]


def test_models_are_called_by_their_runs(tmp_path):
    assert names_of([tmp_path / "a/model", tmp_path / "b"]) == ["a", "b"]
    assert names_of([tmp_path / "x/a/model", tmp_path / "y/a/model"])[0] == str(tmp_path / "x/a/model")


@pytest.mark.parametrize(
    "words, message",
    [
        (["--names", "a", "b"], "--names a b: expected 1 different names, one for each model"),
        (["--lengths", "0"], "--lengths: expected a whole number, 1 or more, got 0"),
        (["--characters", "0"], "--characters: expected a whole number, 1 or more, got 0"),
    ],
)
def test_wrong_words_are_one_line_and_nothing_is_written(demo, tmp_path, capsys, words, message):
    model, data = demo
    words = [str(model), "--input", str(data), "--output", str(tmp_path / "out"), *words]
    assert main(["benchmark", "entities", *words]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
