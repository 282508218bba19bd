"""The examples in the docstrings of paddle_rope run, and every public function and class has one."""

import doctest
import importlib
import pkgutil
import warnings

import pytest

import paddle_rope

MODULES = [
    module.name
    for module in pkgutil.walk_packages(paddle_rope.__path__, "paddle_rope.")
    if not module.name.endswith("__main__")
]
PACKAGES = ("", ".attention", ".global_pointer", ".native", ".roformer")


@pytest.mark.parametrize("name", MODULES)
def test_examples_give_what_they_show(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS)
    assert result.failed == 0


@pytest.mark.parametrize("package", PACKAGES)
def test_each_public_name_has_an_example(package):
    module = importlib.import_module(f"paddle_rope{package}")
    public = {name: getattr(module, name) for name in getattr(module, "__all__", ())}
    without = [name for name, one in public.items() if callable(one) and ">>>" not in (one.__doc__ or "")]
    assert without == []
