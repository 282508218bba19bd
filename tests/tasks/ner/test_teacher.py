"""A model that learns from what another one predicts."""

import numpy as np
import paddle
import pytest

from tasks.common.errors import InputError
from tasks.ner.batching import SpanCollator
from tasks.ner.data.splits import read_teacher
from tests.tasks.ner.test_model import batch_of, ner_model, random_texts


def labeled(probability, length=9):
    (text,) = random_texts(length)
    return text._replace(spans=[(1, 1, length - 2, probability)])


def test_labels_are_drawn_with_their_probabilities():
    model, text = ner_model(), labeled(0.3)
    batch = batch_of([text], with_labels=True)
    with_label, without = (
        float(model(**{**batch, "probabilities": paddle.full([1, 1], probability)})) for probability in (1.0, 0.0)
    )
    assert float(model(**batch_of([labeled(1.0)._replace(ids=text.ids)], with_labels=True))) == with_label
    np.random.seed(0)
    losses = [float(model(**batch)) for _ in range(200)]
    assert {*losses} == {with_label, without}
    assert 40 <= losses.count(with_label) <= 80
    assert "probabilities" not in SpanCollator(0)([labeled(1.0), *random_texts(5)])


def test_probabilities_are_read_and_checked(write):
    text = "张三在北京"

    def taught(*entities):
        path = write([{"text": text, "entities": entities}], "found.jsonl")
        return read_teacher(type("Keys", (), {"teacher_files": [str(path)]}))

    first, second = {"start": 0, "end": 2, "type": "person"}, {"start": 3, "end": 5, "type": "place"}
    (example,) = taught({**first, "score": -1.2, "probability": 0.25}, second)
    assert [(*entity[:3], entity.probability) for entity in example.entities] == [
        (0, 2, "person", 0.25),
        (3, 5, "place", None),
    ]
    for wrong in (1.5, -0.1, "0.5", True):
        with pytest.raises(InputError, match="found.jsonl:1: the probability .* is not a number from 0 to 1"):
            taught({**first, "probability": wrong})


def test_a_student_learns_the_texts_of_its_teacher(train_few, trained, corpus, predict, write, tmp_path):
    texts = "\n".join(record["text"] for record in corpus.dev_records)
    found = predict(texts, trained.model, ["--min_probability", "0.05"])
    options = {"train_texts": 8, "dev_file": "", "dev_fraction": 0, "test_file": corpus.dev, "num_train_epochs": 16}
    alone = train_few(tmp_path / "alone", **options)
    student = train_few(tmp_path / "student", **options, teacher_files=write(found, "taught.jsonl"))
    assert student.metrics["test"]["f1"] > alone.metrics["test"]["f1"] + 0.2
