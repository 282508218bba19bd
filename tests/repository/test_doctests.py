"""The examples in the docstrings of paddle_rope run, and each function and class that a document names has one."""

import doctest
import importlib
import pkgutil
import re
import warnings

import pytest

import paddle_rope
from tests.repository.test_mathematics_doc import ROWS

MODULES = [
    module.name
    for module in pkgutil.walk_packages(paddle_rope.__path__, "paddle_rope.")
    if not module.name.endswith("__main__")
]
# of the API, and the functions and classes of the tables of the mathematics
OF_TABLES = {word.partition("(")[0] for row in ROWS for word in re.findall(r"`([^`]+)`", row[2])}
OF_TABLES = {name for name in OF_TABLES if re.fullmatch(r"(reference\.)?[A-Za-z]\w*", name)}
DOCUMENTED = sorted({*(f"paddle_rope.{name}" for name in paddle_rope.__all__), *OF_TABLES})


@pytest.mark.parametrize("name", MODULES)
def test_examples_give_what_they_show(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert result.failed == 0


@pytest.mark.parametrize("name", DOCUMENTED)
def test_each_name_that_a_document_names_has_an_example(name):
    module, _, name = name.rpartition(".")
    if module == "paddle_rope":
        found = [getattr(paddle_rope, name)]
    else:
        modules = [importlib.import_module(one) for one in MODULES if one.endswith(module)]
        found = [vars(one)[name] for one in modules if getattr(vars(one).get(name), "__module__", "") == one.__name__]
    assert [one for one in found if ">>>" not in (one.__doc__ or "")] == []
