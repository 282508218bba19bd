"""Models in evaluation mode, in batches of like length."""

import functools
from types import SimpleNamespace

import numpy as np
import paddle
import pytest
from paddle import nn

from tasks.common.inference import batched_outputs, evaluated, evaluation_mode

LENGTHS = [3, 50, 5, 5, 2, 0]


class Sum(nn.Layer):
    """Sums of the ids of each text; knows how it was called."""

    def __init__(self):
        super().__init__()
        self.dropout = nn.Dropout(0.5)
        self.shapes = []

    def forward(self, ids):
        assert not self.training
        self.shapes.append(ids.shape)
        return self.dropout(ids.astype("float32")).sum(axis=1)


def collate(items):
    ids = np.zeros([len(items), max(1, *(len(item.ids) for item in items))], dtype=np.int64)
    for row, item in zip(ids, items):
        row[: len(item.ids)] = item.ids
    return {"ids": ids}


def run(model, batch_size=3, most_numbers=100):
    items = [SimpleNamespace(ids=[index + 1] * length) for index, length in enumerate(LENGTHS)]
    forward = functools.partial(evaluated, model)
    return list(batched_outputs(forward, items, collate, batch_size, lambda length: 2 * length**2, most_numbers))


def test_batches_never_hold_more_numbers_than_the_bound_and_every_text_is_seen_once():
    batches = [rows for rows, _ in run(Sum())]
    assert sorted(index for rows in batches for index in rows) == list(range(6))
    assert all(len(rows) <= 3 for rows in batches)
    assert all(len(rows) == 1 or len(rows) * 2 * max(LENGTHS[i] for i in rows) ** 2 <= 100 for rows in batches)


def test_outputs_belong_to_their_texts_longest_first():
    model = Sum()
    found = {row: value for rows, output in run(model) for row, value in zip(rows, output.tolist())}
    assert found == {index: (index + 1) * length for index, length in enumerate(LENGTHS)}
    assert [shape[1] for shape in model.shapes] == sorted((shape[1] for shape in model.shapes), reverse=True)


@pytest.mark.parametrize("was_training", [True, False])
def test_model_is_as_before_also_after_an_error(was_training):
    model = Sum()
    model.train() if was_training else model.eval()
    with pytest.raises(ZeroDivisionError), evaluation_mode(model):
        assert not model.training and not paddle.is_grad_enabled()
        raise ZeroDivisionError
    assert model.training == was_training and paddle.is_grad_enabled()
