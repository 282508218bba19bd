"""What the verbs refuse: one line with status 2 that names the mistake, and no file is written (refusals.yaml)."""

from pathlib import Path

import pytest
import yaml

from tests.helpers.models import FORMATS, export
from tests.tasks.tiny_recipes import KEYS

GROUPS = yaml.safe_load(Path(__file__).with_name("refusals.yaml").read_text(encoding="utf-8"))
ROWS = [
    pytest.param(group, *row, *[""][len(row) - 2 :], id=f"{group['words']} {row[0]}".strip()[:70])
    for group in GROUPS
    for row in group["rows"]
]


@pytest.fixture(scope="module")
def exported(folders, tmp_path_factory):
    return export(tmp_path_factory.mktemp("exported") / "model", FORMATS[0], folders["ner"])


@pytest.fixture(scope="module")
def configs(config_of, tmp_path_factory):
    """dict from a recipe, as ``ner.yaml``, to the configuration of its smallest run."""
    folder = tmp_path_factory.mktemp("configs")
    for recipe in KEYS:
        config = config_of(recipe, "run")
        config.pop("vocab_min_count", None)  # which a vocab_file contradicts
        (folder / f"{recipe}.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    return {f"{recipe}.yaml": folder / f"{recipe}.yaml" for recipe in KEYS}


@pytest.mark.parametrize("group, more, said, data", ROWS)
def test_a_mistake_is_one_line_and_writes_nothing(
    refused, folders, labeled, configs, request, write, group, more, said, data
):
    if "needs" in group:
        pytest.importorskip(group["needs"])
    files, words = {"data": data, **group.get("files", {})}, group["words"].split()
    first = next(iter(group.get("files", {})), None)
    if isinstance(more, dict):
        files[first] = {**files[first], **more}
    else:
        words += more.split()
    for name, content in files.items():
        write(content, name)
    names = {**configs, **{name.upper(): folder for name, folder in folders.items()}, "DATA": labeled["ner"]}
    if "EXPORTED" in words:
        names["EXPORTED"] = request.getfixturevalue("exported")
    assert said in refused(*(names.get(word, word) for word in words))
