"""What is said of a graph that cannot be computed."""

from types import SimpleNamespace

import numpy as np
import pytest

from tasks.common.errors import InputError
from tasks.common.export.model import ExportedModel
from tasks.ner.arguments import NerConfig


def run_graph(shape, error=None):
    """What is made of a graph whose output is of the shape 2, 3, or which fails with an error."""

    def run(batch):
        if error is not None:
            raise error
        return [np.zeros([2, 3])]

    model = ExportedModel.__new__(ExportedModel)
    model._folder, model.graph = "x", SimpleNamespace(run=run)
    return model.run({}, shape)[0]


def test_an_output_has_the_shape_of_the_configuration():
    assert run_graph((2, 3)).shape == run_graph((None, 3)).shape == (2, 3)
    for shape in ((2, 4), (2,), (1, 3)):
        with pytest.raises(InputError, match=r"^x: the graph .* its output is \[2, 3\] in place of .*; copy"):
            run_graph(shape)


@pytest.mark.parametrize("types", ["company", ["company", 1], ["company", "\ud800"]])
def test_types_are_a_list_of_names(types):
    with pytest.raises(ValueError, match="types must be a list of .* a text, got"):
        NerConfig(types=types)


@pytest.mark.parametrize(
    "error, kind",
    [
        (RuntimeError("wrong"), InputError),
        *((error, type(error)) for error in (MemoryError(), RuntimeError("Status Message: std::bad_alloc"))),
    ],
)
def test_too_little_memory_is_no_damage(error, kind):
    with pytest.raises(kind):
        run_graph((1,), error)
