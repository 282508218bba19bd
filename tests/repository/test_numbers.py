"""The pages show the headline numbers of docs/numbers.yaml, and nothing that contradicts them."""

import re

import pytest
import yaml

from tests.repository.test_pages import PAGES, check_command, text_of

NUMBERS = yaml.safe_load(text_of("docs/numbers.yaml"))["numbers"]
KEYS = {"name", "value", "command", "data", "machine", "seeds", "shown", "pages"}


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: number["name"])
def test_pages_show_the_number_as_it_was_measured(number):
    assert KEYS <= number.keys() <= KEYS | {"outdated"}
    assert [(page, text) for page in number["pages"] for text in number["shown"] if text not in text_of(page)] == []


@pytest.mark.parametrize("page", PAGES)
def test_no_page_shows_an_outdated_number(page):
    outdated = [pattern for number in NUMBERS for pattern in number.get("outdated", [])]
    assert [pattern for pattern in outdated if re.search(pattern, text_of(page))] == []


@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: number["name"])
def test_commands_of_the_numbers_are_accepted(number, monkeypatch):
    monkeypatch.setattr("paddle_rope.native.products.why_no_bfloat16", lambda: None)  # whatever this processor has
    words = number["command"].split()
    while "=" in words[0]:
        words.pop(0)
    check_command(words)


def test_badges_name_the_versions_of_the_package():
    project = text_of("pyproject.toml")
    minors = re.findall(r"Python :: (3\.\d+)", project)
    (first, last), *_ = re.findall(r'"paddlepaddle>=([\d.]+),<=([\d.]+)"', project)
    for page in ("README.md", "README.zh.md"):
        assert f"badge/python-{minors[0]}_to_{minors[-1]}-" in text_of(page)
        assert f"badge/paddlepaddle-{first}_to_{last}-" in text_of(page)
    assert 'license = "Apache-2.0"' in project
