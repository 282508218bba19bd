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
    """Sums of the ids of each text; its dropout would change them in training."""

    def __init__(self):
        super().__init__()
        self.dropout = nn.Dropout(0.5)

    def forward(self, ids):
        return self.dropout(ids.astype("float32")).sum(axis=1)


def test_batches_hold_no_more_numbers_than_the_bound_the_longest_first():
    items = [SimpleNamespace(ids=[index + 1] * length) for index, length in enumerate(LENGTHS)]
    forward, shapes = functools.partial(evaluated, Sum()), []

    def collate(items):
        ids = pad([item.ids for item in items], np.int64, least=1)
        shapes.append(ids.shape)
        return {"ids": ids}

    found = {}
    for rows, output in batched_outputs(forward, items, collate, 2, lambda length: 2 * length**2, 60):
        found.update(zip(rows, output.tolist()))
    assert found == {index: (index + 1) * length for index, length in enumerate(LENGTHS)}
    assert shapes == [(1, 50), (1, 5), (1, 5), (2, 3), (1, 1)]  # 60 numbers are one text of 5 tokens, three of 3


@pytest.mark.parametrize("was_training", [True, False])
def test_model_is_as_before_also_after_an_error(was_training):
    model = Sum()
    model.train() if was_training else model.eval()
    with pytest.raises(ZeroDivisionError), evaluation_mode(model):
        assert not model.training and not paddle.is_grad_enabled()
        raise ZeroDivisionError
    assert model.training == was_training and paddle.is_grad_enabled()
