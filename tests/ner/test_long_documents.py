"""One document of 100,000 characters, as a whole: linear attention and a band; and a thousand types."""

import json

import numpy as np
import paddle
import pytest

from tasks.ner.batching import SpanCollator, TokenizedText
from tasks.ner.data import read_examples, write_examples
from tasks.ner.examples import Entity, make_example
from tasks.ner.prediction import NerPredictor

LENGTH = 100_000


@pytest.fixture(scope="module")
def document(corpus):
    """The sentences of the corpus again and again, as one text."""
    examples = read_examples(corpus.train)
    text, entities, number = "", [], 0
    while len(text) + 60 < LENGTH:
        example = examples[number % len(examples)]
        entities += [Entity(len(text) + e.start, len(text) + e.end, e.type) for e in example.entities]
        text += example.text
        number += 1
    return make_example(text + "。" * (LENGTH - len(text)), entities, "document:1")


def test_one_document_is_trained_on_and_predicted_whole(train, document, corpus, tmp_path):
    write_examples([document], tmp_path / "train.jsonl", "cluener")
    write_examples(read_examples(corpus.dev)[:2], tmp_path / "dev.jsonl", "cluener")
    run = train(
        tmp_path / "run", train_file=tmp_path / "train.jsonl", dev_file=tmp_path / "dev.jsonl", attention="linear",
        max_length=LENGTH, max_span_length=16, num_train_epochs=1, recompute="true", hidden_size=16,
        intermediate_size=16, head_size=8,
    )  # fmt: skip
    assert run.model_config["max_length"] == LENGTH
    predictor = NerPredictor(run.model, "cpu")
    batch = SpanCollator(0, with_labels=False)([tokenized(predictor.tokenizer, document.text)])
    with paddle.no_grad():
        logits = predictor.model(**{name: paddle.to_tensor(array) for name, array in batch.items()}).numpy()
    assert logits.shape == (1, len(predictor.types), LENGTH + 2, 16)
    bound = float(np.partition(logits.ravel(), -300)[-300])
    (found,) = predictor.find([document.text], thresholds=bound)
    assert len(found) > 200
    for start, end, kind, score in found:  # the special token comes first
        assert score == pytest.approx(logits[0, predictor.types.index(kind), start + 1, end - start - 1], abs=1e-4)


def tokenized(tokenizer, text):
    encoding = tokenizer.encode(text)
    return TokenizedText(encoding.ids, encoding.offsets, spans=[])


def test_a_thousand_types_train_predict_and_are_scored(train, evaluate, predict, tmp_path, capsys):
    types = [f"type {number:03}" for number in range(1000)]
    lines = [
        {"text": f"甲乙丙丁戊{number}己庚", "label": {kind: {"乙丙": [[1, 2]]}, types[number // 2]: {"甲": [[0, 0]]}}}
        for number, kind in enumerate(types)
    ]
    path = tmp_path / "data.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    few = tmp_path / "few.jsonl"
    few.write_text("".join(json.dumps(line) + "\n" for line in lines[::50]), encoding="utf-8")
    run = train(tmp_path / "run", train_file=path, dev_file=few, num_train_epochs=1, per_device_train_batch_size=50)
    assert run.model_config["types"] == types
    assert len(predict("甲乙丙\n", run.model)) == 1
    capsys.readouterr()
    scores = evaluate(few, run.model)
    assert len(scores["per_type"]) == 1000 and scores["support"] > 30
    assert len(capsys.readouterr().out.splitlines()) < 300
