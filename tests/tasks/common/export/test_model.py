"""What is said of a graph that cannot be computed."""

from types import SimpleNamespace

import numpy as np
import pytest

from tasks.common.errors import EXIT_BAD_INPUT, InputError, exit_on_input_error
from tasks.common.export.model import ExportedModel
from tasks.ner.config import NerConfig


def model_of(run):
    model = ExportedModel.__new__(ExportedModel)
    model._folder, model.graph = "x", SimpleNamespace(run=run)
    return model


def fails_with(error):
    def run(batch):
        raise error

    return run


def test_an_output_has_the_shape_of_the_configuration():
    model = model_of(lambda batch: [np.zeros([2, 3])])
    assert model.run({}, (2, 3))[0].shape == model.run({}, (None, 3))[0].shape == (2, 3)
    for shape in ((2, 4), (2,), (1, 3)):
        with pytest.raises(InputError, match=r"^x: the graph .* its output is \[2, 3\] in place of .*; copy"):
            model.run({}, shape)


@pytest.mark.parametrize("types", ["company", ["company", 1], ["company", "\ud800"]])
def test_types_are_a_list_of_names(types):
    with pytest.raises(ValueError, match="types must be a list of .* a text, got"):
        NerConfig(types=types)


@pytest.mark.parametrize("error, kind", [(RuntimeError("wrong"), InputError), (MemoryError(), MemoryError)])
def test_too_little_memory_is_no_damage(error, kind, capsys):
    with pytest.raises(kind):
        model_of(fails_with(error)).run({}, (1,))
    model = model_of(fails_with(RuntimeError("Status Message: std::bad_alloc")))
    assert exit_on_input_error(lambda argv: model.run({}, (1,)))([]) == EXIT_BAD_INPUT
    told = capsys.readouterr().err
    assert told.startswith("error: ") and "memory" in told and told.count("\n") == 1
