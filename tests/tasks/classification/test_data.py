"""Texts with classes: their names, splits, batches and scores."""

import pytest

from paddle_rope.roformer import CharTokenizer
from tasks.classification.arguments import ClassificationArguments, ClassificationConfig
from tasks.classification.data import Example, class_names, read_splits
from tasks.classification.evaluation import classification_scores, print_data_report
from tasks.classification.prediction import ClassificationDataset, pad_texts
from tasks.common.errors import InputError

LONG = "9" * 5000  # digits that Python does not read as a number


@pytest.mark.parametrize(
    "labels, classes",
    [
        (["10", "9", "10"], ["9", "10"]),
        (["10", "9", "x"], ["10", "9", "x"]),
        ([LONG, "12", f"0{LONG[1:]}", "7", "007"], ["007", "7", "12", f"0{LONG[1:]}", LONG]),
    ],
)
def test_classes_are_sorted_by_number_where_all_are_numbers(labels, classes):
    assert class_names(Example("", label, "") for label in labels) == classes


@pytest.mark.parametrize("content, said", [("a\tx\nb\tx\n", "all texts"), ("x\ta\nx\tb\ny\tc\n", "text<TAB>label")])
def test_labels_that_tell_nothing_are_refused(write, content, said):
    with pytest.raises(InputError, match=said):
        read_splits(ClassificationArguments(train_file=write(content)))


def test_text_is_read_from_its_beginning_and_padded_at_its_end(capsys):
    examples = [Example("甲乙丙丁", "x", "f:1"), Example("甲", "y", "f:2"), Example("丁丙乙", "y", "f:3")]
    tokenizer = CharTokenizer.from_corpus(["甲乙丙丁"], 1)
    dataset = ClassificationDataset(examples, tokenizer, ["x", "y"], max_characters=2)
    assert [text.ids for text in dataset] == [tokenizer.encode(text)[0] for text in ("甲乙", "甲", "丁丙")]
    assert (dataset.cut, dataset.cut_characters, dataset.lengths) == (2, 3, [4, 3, 4])
    batch = pad_texts(dataset, tokenizer.pad_token_id)
    assert batch["attention_mask"].tolist() == [[True] * 4, [True] * 3 + [False], [True] * 4]
    assert batch["input_ids"][1, 3] == tokenizer.pad_token_id and batch["labels"].tolist() == [0, 1, 1]
    print_data_report({"train": dataset})
    assert "2 texts are cut to --max_characters 2" in capsys.readouterr().out


@pytest.mark.parametrize("options", [
    {"classes": "ab"}, {"classes": [1]}, {"classes": ["a"]}, {"max_characters": 0}, {"max_characters": "512"},
    {"pooling": "max"},
], ids=str)  # fmt: skip
def test_configuration_that_cannot_be_is_refused(options):
    with pytest.raises(ValueError, match=next(iter(options))):
        ClassificationConfig(**{"classes": ["a", "b"], **options})


# ---- scores

GOLD, FOUND = ["a", "a", "a", "b", "b", "c", "c"], ["a", "a", "b", "b", "c", "b", "b"]


def test_scores_are_those_counted_by_hand():
    scores = classification_scores(GOLD, FOUND, ["a", "b", "c", "d"])
    f1 = [2 * 2 / (3 + 2), 2 * 1 / (2 + 4), 0.0]
    assert [scores["per_class"][name]["f1"] for name in "abc"] == pytest.approx(f1)
    assert scores["per_class"]["a"] == {
        "precision": 1.0, "recall": pytest.approx(2 / 3), "f1": pytest.approx(0.8), "support": 3, "predicted": 2,
        "correct": 2,
    }  # fmt: skip
    assert (scores["accuracy"], scores["texts"]) == (pytest.approx(3 / 7), 7)
    assert scores["macro_f1"] == pytest.approx(sum(f1) / 3)  # without d, which is nowhere
    assert classification_scores(["a", "a"], ["a", "b"], ["a", "b"])["macro_f1"] == pytest.approx((2 / 3 + 0) / 2)
    assert [tuple(row.values()) for row in scores["confusions"]] == [("c", "b", 2), ("a", "b", 1), ("b", "c", 1)]
