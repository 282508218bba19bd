"""F1 against length and position: documents, what they are compared with, and what is said of it."""

import json
from types import SimpleNamespace

import pytest

from paddle_rope import CharTokenizer
from paddle_rope.__main__ import main
from tasks.common.errors import InputError
from tasks.experiments.benchmarks.entities import measured as entities
from tasks.experiments.benchmarks.entities.documents import (
    documents_of,
    first_texts,
    join_found,
    list_documents,
    most_frequent_type,
)
from tasks.experiments.benchmarks.entities.measured import (
    by_place,
    by_tenth,
    gigabytes_of,
    measure_entities,
    names_of,
    text_ends,
)
from tasks.experiments.benchmarks.entities.reports import as_report
from tasks.ner.data.reading import read_examples
from tasks.ner.demo import write_demo_corpus
from tasks.ner.examples import Entity, Example
from tasks.ner.model import NerConfig, NerModel
from tests.roformer.small_models import randomise


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
    """In place of the model one that knows the labels, but in long documents only up to ``limit`` characters."""
    gold = {}
    original = (entities.join_found, entities.list_documents)

    def remember(documents):
        gold.update({document.text: document.entities for document in documents})
        return documents

    class Knowing:
        limit = 10**9

        def __init__(self, folder, max_tokens=None, **options):
            self.types = most_types(folder)
            self.max_tokens = max_tokens or 64
            self.model = SimpleNamespace(config=NerConfig(types=self.types, num_attention_heads=2))
            made.append(self)

        def find(self, texts):
            return [[entity for entity in gold[text] if entity.end <= Knowing.limit] for text in texts]

    def most_types(folder):
        return json.loads((folder / "config.json").read_text(encoding="utf-8"))["types"]

    made = []
    Knowing.made = made
    remember(read_examples(demo[1]))
    monkeypatch.setattr(entities, "NerPredictor", Knowing)
    monkeypatch.setattr(entities, "join_found", lambda *given: remember_first(original[0](*given)))
    monkeypatch.setattr(entities, "list_documents", lambda *given: remember(original[1](*given)))

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
    groups = documents_of(texts, 100)
    assert [i for group in groups for i in group] == list(range(len(texts)))
    documents = join_found(texts, [text.entities for text in texts], groups)
    assert max(len(document.text) for document in documents) <= 100
    surfaces = [[one.surface(entity) for entity in one.entities] for one in (*documents, *texts)]
    assert sorted(sum(surfaces[: len(documents)], [])) == sorted(sum(surfaces[len(documents) :], []))


def test_lists_hold_nothing_but_entities_of_the_most_frequent_type():
    first = Example("王芳去北京大学", (Entity(0, 2, "person"), Entity(3, 5, "place"), Entity(3, 7, "org")), "x:1")
    second = Example("南京大学", (Entity(0, 2, "place"), Entity(0, 4, "org")), "x:2")
    assert most_frequent_type([first, second]) == "org"
    documents = list_documents([first, second], "org", 20, 90, seed=1)
    assert sum(len(document.text) for document in documents) >= 90
    for document in documents:
        names = document.text.split("、")
        assert set(names) <= {"北京大学", "南京大学"} and len(document.text) == 19
        assert [document.surface(entity) for entity in document.entities if entity.type == "org"] == names
        assert sum(entity.type == "place" for entity in document.entities) == len(names)  # what is inside of them
    assert documents == list_documents([first, second], "org", 20, 90, seed=1)
    assert documents != list_documents([first, second], "org", 20, 90, seed=2)
    with pytest.raises(InputError, match="no entity is labeled"):
        most_frequent_type([Example("北京", (), "x:1")])


def test_entities_count_in_the_tenth_in_which_they_begin():
    document = Example("一" * 20, (Entity(0, 3, "a"), Entity(1, 2, "a"), Entity(19, 20, "a")), "x:1")
    tenths = by_tenth([document], [[Entity(0, 3, "a"), Entity(18, 20, "a")]])
    assert [row["support"] for row in tenths] == [2] + [0] * 8 + [1]
    assert [row["predicted"] for row in tenths] == [1] + [0] * 8 + [1]
    assert [row["correct"] for row in tenths] == [1] + [0] * 9


def test_entities_at_the_ends_of_texts_count_apart():
    texts = ["一" * 4, "二" * 6, "三" * 5]
    assert text_ends(texts) == {0, 4, 10, 15}
    spans = (0, 2), (2, 4), (4, 10), (5, 9), (8, 11), (14, 15)
    document = Example("".join(texts), tuple(Entity(*span, "a") for span in spans), "x:1")
    found = [Entity(3, 4, "a"), Entity(5, 9, "a"), Entity(6, 7, "a")]
    within, at_ends = by_place([document], [found], [text_ends(texts)])
    assert (within["support"], within["predicted"], within["correct"]) == (2, 2, 1)
    assert (at_ends["support"], at_ends["predicted"], at_ends["correct"]) == (4, 1, 0)


def test_verb_writes_table_numbers_and_picture(demo, tmp_path, capsys):
    model, data = demo
    words = ["--lengths", "50", "200", "--characters", "400", "--whole", "--lists", "--device", "cpu", "--memory", "1"]
    output = tmp_path / "out"
    assert main(["benchmark", "entities", str(model), "--input", str(data), "--output", str(output), *words]) == 0
    report = capsys.readouterr().out
    assert (output / "entities.md").read_text(encoding="utf-8") == report
    assert (output / "entities.png").read_bytes().startswith(b"\x89PNG")
    measured = json.loads((output / "entities.json").read_text(encoding="utf-8"))
    cases = [(row["reading"], row["documents"], row["length"]) for row in measured["rows"]]
    assert cases == [
        (reading, *case)
        for reading in ("default", "whole")
        for case in (("texts", None), ("texts", 50), ("texts", 200), ("lists", 50), ("lists", 200))
    ]
    alone = [row for row in measured["rows"] if row["length"] is None]
    assert {row["support"] for row in measured["rows"] if row["documents"] == "texts"} == {measured["entities"]}
    # texts that fit into the window are read whole in either way
    assert alone[0]["correct"] == alone[1]["correct"] and alone[0]["predicted"] == alone[1]["predicted"] > 0
    for row in measured["rows"]:
        if "tenths" in row:
            assert sum(tenth["correct"] for tenth in row["tenths"]) == row["correct"]
            assert sum(tenth["alone"]["correct"] for tenth in row["tenths"]) == alone[0]["correct"]
            assert sum(place["correct"] for place in row["places"].values()) == row["correct"]
            assert sum(place["alone"]["correct"] for place in row["places"].values()) == alone[0]["correct"]
    assert f"| run | default | texts | {alone[0]['f1']:.4f} | " in report
    assert "characters, the longest" in report and measured["machine"] in report


def test_what_is_lost_with_length_is_found_and_told(demo, knowing):
    model, data = demo
    knowing.limit = 100
    measured = {"machine": "", **measure_entities([model], data, lengths=[80, 400], characters=10_000, memory=1)}
    alone, short, long = measured["rows"]
    assert alone["f1"] == short["f1"] == 1 and alone["difference"] == short["difference"] == 0
    assert long["difference"] < -0.3
    tenths = long["tenths"]
    assert tenths[0]["f1"] == 1 and tenths[-1]["correct"] < tenths[-1]["support"]
    assert all(tenth["alone"]["f1"] == 1 for tenth in tenths)
    report = as_report(measured)
    assert f"run, default, texts of 400 characters: {100 * long['difference']:+.1f} points" in report
    assert "texts of 80 characters" not in report
    within = long["places"]["within"]
    assert within["alone"]["f1"] == 1 > within["f1"] + 0.3
    assert f"| {100 * (within['f1'] - 1):+.1f} ({within['support']:,}) |" in report
    knowing.limit = 10**9
    measured = {"machine": "", **measure_entities([model], data, lengths=[80], characters=10_000, memory=1)}
    assert "Nothing is more than one point under." in as_report(measured)


def test_length_that_does_not_fit_into_memory_is_left_out_with_a_note(demo, knowing):
    model, data = demo
    types = knowing(model).types
    config = NerConfig(types=types, num_attention_heads=2)
    memory = gigabytes_of(config, 150)
    measured = measure_entities([model], data, lengths=[100, 400], characters=900, whole=True, memory=memory)
    kept = [(row["reading"], row["length"]) for row in measured["rows"]]
    assert kept == [("default", None), ("default", 100), ("default", 400), ("whole", None), ("whole", 100)]
    (note,) = measured["notes"]
    assert note.startswith("run, whole: texts of 400 characters are left out, ") and "GB foreseen" in note


def test_memory_is_that_of_the_larger_of_weights_and_scores():
    sizes = {"types": ["a"] * 10, "num_hidden_layers": 2, "num_attention_heads": 4}
    whole = gigabytes_of(NerConfig(**sizes), 10_000)
    assert whole == gigabytes_of(NerConfig(attention="linear", **sizes), 10_000) > 10
    banded = NerConfig(max_span_length=32, **sizes)
    assert whole > gigabytes_of(banded, 10_000) > 5
    assert gigabytes_of(NerConfig(attention="linear", max_span_length=32, **sizes), 10_000) < 0.1


def test_models_are_called_by_their_runs(tmp_path):
    assert names_of([tmp_path / "a/model", tmp_path / "b"]) == ["a", "b"]
    assert names_of([tmp_path / "x/a/model", tmp_path / "y/a/model"])[0] == str(tmp_path / "x/a/model")


@pytest.mark.parametrize(
    "words, message",
    [
        (["--names", "a", "b"], "--names a b: give a name of its own to each of 1 models"),
        (["--lengths", "0"], "--lengths 0: must be at least 1"),
        (["--characters", "0"], "--characters 0: must be at least 1"),
    ],
)
def test_wrong_words_are_one_line_and_nothing_is_written(demo, tmp_path, capsys, words, message):
    model, data = demo
    words = [str(model), "--input", str(data), "--output", str(tmp_path / "out"), *words]
    assert main(["benchmark", "entities", *words]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
