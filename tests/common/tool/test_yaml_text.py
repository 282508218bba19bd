"""YAML that is short and stands for much, or is nested deep, ends in one line."""

from pathlib import Path

import pytest
import yaml

from tasks.common.errors import InputError
from tasks.common.tool.run_config import read_run_config
from tasks.common.tool.yaml_text import load_yaml

CONFIGS = sorted((Path(__file__).resolve().parents[3] / "configs").rglob("*.yaml"))
TEN = range(1, 11)
HOSTILE = {
    "lists": (
        "a0: &a0 [x, x]\n" + "".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in TEN),
        ":6: broken YAML .more than 100,000 values, with aliases written out",
    ),
    "merged": (
        "a0: &a0 {x: 1}\n" + "".join(f"a{n}: &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 9)}]}}\n" for n in TEN),
        ":6: broken YAML .more than 100,000 values, with aliases written out",
    ),
    "itself": ("a: &a [*a]\n", ":1: broken YAML .a value that holds itself"),
    "deep": ("a: " + "[" * 3000, "broken YAML .nested more than 50 deep"),
    "closed": ("a: " + "[" * 60 + "]" * 60, ":1: broken YAML .nested more than 50 deep"),
    "blocks": ("- " * 3000 + "x", "broken YAML .nested more than 50 deep"),
    "long": ("a: " + "x" * 1_000_001, "broken YAML .more than 1,000,000 characters"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_text_that_stands_for_much_is_one_line(name, tmp_path):
    text, message = HOSTILE[name]
    (tmp_path / "a.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message) as raised:
        read_run_config(tmp_path / "a.yaml")
    assert len(str(raised.value)) < 300 + len(str(tmp_path)) and "\n" not in str(raised.value)


@pytest.mark.parametrize("path", CONFIGS, ids=lambda path: path.stem)
def test_configurations_of_the_project_are_read_as_before(path):
    text = path.read_text(encoding="utf-8")
    assert load_yaml(text) == yaml.safe_load(text) is not None


def test_aliases_and_merges_are_read():
    assert load_yaml("a: &a {x: 1}\nb: {<<: *a, y: 2}\nc: [*a, *a]") == {
        "a": {"x": 1},
        "b": {"x": 1, "y": 2},
        "c": [{"x": 1}, {"x": 1}],
    }
    assert load_yaml("") is None
