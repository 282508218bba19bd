"""What the READMEs show works as they show it."""

import re
from itertools import zip_longest
from pathlib import Path

import pytest
import yaml

from tasks.ner.arguments import NerArguments
from tasks.recipes import get_recipe

REPOSITORY = Path(__file__).resolve().parents[1]
READMES = ["README.md", "README.zh.md"]
NER_PAGES = ["docs/ner.md", "docs/ner.zh.md"]
PAGES = [*READMES, *NER_PAGES, "docs/classification.md", "docs/attention.md"]


def blocks(name, language):
    return re.findall(rf"```{language}\n(.*?)```", (REPOSITORY / name).read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("name", READMES)
def test_python_example_of_the_layers_runs_and_gives_the_shapes_it_says(name):
    names = {}
    exec(blocks(name, "python")[0], names)
    assert names["q"].shape == [1, 12, 5000, 64]
    assert names["logits"].shape == [1, 10, 40, 40]
    assert len(names["spans"]) == 1


@pytest.mark.parametrize("name", READMES)
def test_python_example_of_generation_runs(name):
    names = {}
    exec(next(block for block in blocks(name, "python") if "generate(" in block), names)
    assert len(names["texts"]) == 2 and all(isinstance(text, str) for text in names["texts"])
    assert names["mask"].tolist()[0][:2] == [False, True]


@pytest.mark.parametrize("name", PAGES)
def test_commands_name_files_that_exist(name):
    paths = re.findall(r"\b(?:tools|configs)/[\w/]+\.\w+", "\n".join(blocks(name, "bash")))
    assert len(paths) >= 6
    assert [path for path in paths if not (REPOSITORY / path).is_file()] == []


@pytest.mark.parametrize("name", NER_PAGES)
def test_table_of_keys_gives_the_defaults(name):
    lines = (REPOSITORY / name).read_text(encoding="utf-8").splitlines()
    given = {}
    for cells in (line.strip("| ").split(" | ") for line in lines if line.startswith("| `")):
        keys, defaults = re.findall(r"`(\w+)`", cells[0]), re.split(r"[,、] ?", cells[1].replace("`", ""))
        given.update(zip_longest(keys, defaults[: len(keys)]))
    settings = get_recipe("ner").resolve({"train_file": "a", "dev_file": "b", "output_dir": "run", "device": "cpu"})
    config = settings.config
    shown = {key: yaml.safe_load(value) for key, value in given.items() if key in config and value}
    shown.pop("device")  # in words
    assert set(vars(NerArguments())) <= set(given)
    assert {key: float(value) if key == "learning_rate" else value for key, value in shown.items()} == {
        key: config[key] for key in shown
    }


@pytest.mark.parametrize("name", PAGES)
def test_links_to_files_of_the_repository_lead_somewhere(name):
    links = re.findall(r"\]\((?!https?:)([^)#]+)\)", (REPOSITORY / name).read_text(encoding="utf-8"))
    folder = (REPOSITORY / name).parent
    assert links and [link for link in links if not (folder / link).exists()] == []


@pytest.mark.parametrize("pages", [READMES, NER_PAGES])
def test_both_languages_have_the_same_sections_and_tables(pages):
    english, chinese = ((REPOSITORY / name).read_text(encoding="utf-8") for name in pages)
    for pattern in (r"^#+ ", r"^\|", r"^```\w"):
        assert len(re.findall(pattern, english, re.MULTILINE)) == len(re.findall(pattern, chinese, re.MULTILINE))
