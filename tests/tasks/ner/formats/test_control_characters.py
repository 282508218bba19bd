"""Types with characters that nobody sees: each format holds them, or says in a line that it cannot."""

import io
import json

import pytest

from tasks.common.errors import InputError
from tasks.ner.data.inspection import inspect
from tasks.ner.data.reading import read_examples, write_examples
from tasks.ner.examples import Entity, make_example
from tasks.ner.formats import TEXT_FORMATS
from tasks.ner.formats.label_studio import labeling_configuration
from tasks.ner.page.html import write_html
from tasks.ner.prediction.output_formats import PredictionWriter
from tasks.ner.reports.inspection import print_inspection
from tasks.ner.reports.printed import print_scores
from tests.tasks.ner.reading import contents

TYPES = ["\x1b[31m", "\x00", "\x07", "a\rb", "a\nb", "a\tb", "\x7f", "\x9b2J", "a\u2028b", "\u202ea", "a\x02b", "a b"]
FORMATS = [*TEXT_FORMATS, "brat"]


@pytest.mark.parametrize("kind", TYPES, ids=repr)
@pytest.mark.parametrize("format", FORMATS)
def test_a_format_holds_the_type_or_refuses_it_in_a_line(tmp_path, format, kind):
    example = make_example("王明在", [Entity(0, 2, kind)], "memory:1")
    separators = (
        "" if TEXT_FORMATS.get(format, TEXT_FORMATS["bio"]).sample.startswith(("{", "[")) else "\n\t\r \x02\u2028"
    )
    separators = {"brat": "\n\t\r \u2028", "tokens": "\n\t\r \x02\u2028"}.get(format, separators)
    if set(kind) & set(separators):
        with pytest.raises(InputError, match="memory:1: the entity type .*(white space|cannot be part of a tag)"):
            write_examples([example], tmp_path / "data", format)
        return
    write_examples([example], tmp_path / "data", format)
    assert contents(read_examples(tmp_path / "data", format)) == contents([example])


@pytest.mark.parametrize("kind", TYPES, ids=repr)
def test_pages_and_predictions_hold_the_type(kind):
    found = {"start": 0, "end": 2, "type": kind, "text": "王明", "score": 1.0, "probability": 0.75}
    page, lines = io.StringIO(), io.StringIO()
    write_html(page, [{"text": "王明在", "entities": [found]}], [kind], "\udcff\x1b")
    page.getvalue().encode("utf-8")
    assert "Entities of \\udcff\\x1b" in page.getvalue() and "\x1b" not in page.getvalue()
    with PredictionWriter(lines, "labelstudio", "model \udcff") as writer:
        writer.write([{"text": "王明在", "entities": [found]}], ["x:1"])
    (task,) = json.loads(lines.getvalue().encode("utf-8"))
    assert task["predictions"][0]["result"][0]["value"]["labels"] == [kind]


@pytest.mark.parametrize("kind", TYPES[:10], ids=repr)
def test_tables_show_the_type_in_a_line(capsys, kind):
    row = {"precision": 1.0, "recall": 1.0, "f1": 1.0, "support": 1, "predicted": 1, "correct": 1}
    print_scores("dev", {"per_type": {kind: row}, **row})
    example = make_example("王明在", [Entity(0, 2, kind)], "\x1b[2J:1")
    result = inspect({"train": [example], "dev": [example]})
    for split in result["splits"].values():
        split.update(file="\x1b[5m", format="bio")
    print_inspection(result)
    printed = capsys.readouterr().out
    assert repr(kind)[1:-1] in printed
    assert not set("\x1b\x00\x07\r\x7f\x9b\u2028\u202e\t") & set(printed)


@pytest.mark.parametrize("kind", ["\x1b", "a\x00"])
def test_xml_refuses_what_it_cannot_hold(kind):
    with pytest.raises(InputError, match="characters that XML cannot hold; rename it"):
        labeling_configuration(["name", kind])
