"""From the spans of tokens that a model finds to entities in characters."""

from types import SimpleNamespace

import pytest

from tasks.ner.batching import TokenizedText
from tasks.ner.prediction.finding import predict_entities
from tasks.ner.spans import scores_of_text


def test_an_entity_reaches_from_its_first_token_to_the_end_of_its_last():
    # tokens of several characters, with blanks between them
    text = TokenizedText([2, 5, 6, 7, 3], [(0, 0), (0, 2), (3, 6), (8, 9), (0, 0)], [])
    model = SimpleNamespace(
        config=SimpleNamespace(types=["a"], pad_token_id=0, temperatures=1.0),
        scores_of_text=lambda length: length,
        find_spans=lambda batch, thresholds: [[(1, 2, 0, 1.0), (1, 3, 0, 2.0), (2, 4, 0, 3.0)]],
    )
    (found,) = predict_entities(model, [text], 1)
    assert [entity[:2] for entity in found] == [(0, 2), (0, 6), (3, 9)]


@pytest.mark.parametrize("max_span_length, scores", [(None, 300), (4, 120)])
def test_a_text_has_a_score_for_each_span_that_the_model_looks_at(max_span_length, scores):
    config = SimpleNamespace(types=["a", "b", "c"], max_span_length=max_span_length)
    assert scores_of_text(config, 10) == scores
