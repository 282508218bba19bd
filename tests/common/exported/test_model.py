"""What is said of a graph that cannot be computed."""

from types import SimpleNamespace

import numpy as np
import pytest

from tasks.common.errors import InputError
from tasks.common.exported.model import ExportedModel


def model_of(run):
    model = ExportedModel.__new__(ExportedModel)
    model._folder, model.graph = "x", SimpleNamespace(run=run)
    return model


def test_an_output_has_the_shape_of_the_configuration():
    model = model_of(lambda batch: [np.zeros([2, 3])])
    assert model.run({}, (2, 3))[0].shape == model.run({}, (None, 3))[0].shape == (2, 3)
    for shape in ((2, 4), (2,), (1, 3)):
        with pytest.raises(InputError, match=r"^x: the graph .* its output is \[2, 3\] in place of .*; copy"):
            model.run({}, shape)


@pytest.mark.parametrize("error, kind", [(RuntimeError("wrong"), InputError), (MemoryError(), MemoryError)])
def test_too_little_memory_is_no_damage(error, kind):
    def run(batch):
        raise error

    with pytest.raises(kind):
        model_of(run).run({}, (1,))
