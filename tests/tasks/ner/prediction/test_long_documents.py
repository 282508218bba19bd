"""One document of 100,000 characters, as a whole: linear attention and a band."""

import re

import numpy as np
import paddle
import pytest

from tasks.ner.batching import SpanCollator, TokenizedText
from tasks.ner.data.reading import read_examples, write_examples
from tasks.ner.examples import Entity, make_example
from tasks.ner.prediction.predictor import NerPredictor

LENGTH = 100_000


@pytest.fixture(scope="module")
def document(corpus):
    """The sentences of the corpus again and again, as one text."""
    # without letters and digits, runs of which are one token, each character is a token
    no_character = re.compile("[A-Za-z0-9\uff10-\uff19 .\ufe0f-]")
    examples = [one for one in read_examples(corpus.train) if not no_character.search(one.text)]
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
        max_characters=LENGTH, max_span_length=16, num_train_epochs=1, recompute="true", hidden_size=16,
        intermediate_size=16, head_size=8,
    )  # fmt: skip
    assert run.model_config["max_tokens"] == LENGTH
    predictor = NerPredictor(run.model, "cpu")
    predictor.model.eval()
    batch = SpanCollator(0, with_labels=False)([tokenized(predictor.tokenizer, document.text)])
    with paddle.no_grad():
        logits = predictor.model(**{name: paddle.to_tensor(array) for name, array in batch.items()}).numpy()
    assert logits.shape == (1, len(predictor.types), LENGTH + 2, 16)
    bound = float(np.partition(logits.ravel(), -300)[-300])
    (found,) = predictor.find([document.text], thresholds=bound)
    assert len(found) > 200
    for start, end, kind, score, _ in found:  # the special token comes first
        assert score == pytest.approx(logits[0, predictor.types.index(kind), start + 1, end - start - 1], abs=1e-4)


def tokenized(tokenizer, text):
    encoding = tokenizer.encode(text)
    return TokenizedText(encoding.ids, encoding.offsets, spans=[])
