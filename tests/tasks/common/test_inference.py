"""Models in evaluation mode, in batches of like length."""

import functools
from types import SimpleNamespace

import numpy as np
import paddle
import pytest
from paddle import nn

from tasks.common.inference import batched_outputs, evaluated, evaluation_mode, pad

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
    return {"ids": pad([item.ids for item in items], np.int64, least=1)}


def run(model):
    items = [SimpleNamespace(ids=[index + 1] * length) for index, length in enumerate(LENGTHS)]
    return list(batched_outputs(functools.partial(evaluated, model), items, collate, 3, lambda n: 2 * n**2, 100))


def test_batches_hold_no_more_numbers_than_the_bound_the_longest_first():
    model = Sum()
    batches = run(model)
    for rows, _ in batches:
        assert len(rows) == 1 or len(rows) <= 3 and len(rows) * 2 * max(LENGTHS[i] for i in rows) ** 2 <= 100
    assert sorted(index for rows, _ in batches for index in rows) == list(range(6))
    found = {row: value for rows, output in batches for row, value in zip(rows, output.tolist())}
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
