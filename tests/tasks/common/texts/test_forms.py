"""The form of a file by its content, and records in each form."""

import pytest

from tasks.common.errors import InputError
from tasks.common.texts.forms import Form, form_of, records


@pytest.mark.parametrize(
    "content, form",
    [
        ("今天天气\n很好", Form.PLAIN),
        ('{"text": "甲"}', Form.JSON_LINES),
        ('\n  {\n"text": "甲"', Form.JSON_LINES),
        ("{}", Form.JSON_LINES),
        ("{甲}", Form.PLAIN),
        ("{", Form.PLAIN),
        ('[{"text": "甲"}]', Form.JSON_LIST),
        ('[\n\n  {"text": "甲"}', Form.JSON_LIST),
        ('["甲", "乙"]', Form.JSON_LIST),
        ('[["甲", {"entities": []}]]', Form.JSON_LIST),
        ("[ ]\n", Form.JSON_LIST),
        ("[]\n甲", Form.PLAIN),
        ("[呵呵] 今天", Form.PLAIN),
        ("[1]", Form.PLAIN),
        ('["甲" 他说]', Form.PLAIN),
        ("text,label\n", Form.TABLE),
        (",text\n0,甲", Form.TABLE),
        ("text\n甲", Form.TABLE),
        ('"id","Text"\n', Form.TABLE),
        ("文本\t标签\n", Form.TABLE),
        ("word,pos,tag\n", Form.TABLE),
        ("sentence1\tsentence2\tlabel", Form.TABLE),
        ("text，label", Form.PLAIN),
        ("text, 你好！", Form.PLAIN),
        ("word,甲\n", Form.PLAIN),
        ("文本\t1\n", Form.PLAIN),
        ("文本\tO\n", Form.PLAIN),
        ("中 B-LOC\n国 I-LOC\n\n，\tO\n", Form.TAGGED),
        ("EU NNP B-NP B-ORG\nrejects VBZ B-VP O\nit PRP B-NP O", Form.TAGGED),
        ("血型 O\n血型 B-1", Form.PLAIN),  # two lines may be texts
        ("血型 O\n血型 A\n血型 O\n", Form.PLAIN),
        ("中\x02国\tB-LOC\x02I-LOC\n", Form.TAGGED),
    ],
)
def test_the_first_lines_decide(content, form):
    assert form_of(content.split("\n")) is form


def of(content):
    return list(records(content.split("\n"), "x"))


@pytest.mark.parametrize(
    "content, places",
    [
        ('{"text": "甲"}\n\n{"text": "乙"}\n', (1, 3)),
        ('[{"text": "甲"},\n {"text": "乙"}]', (1, 2)),
        ('["甲",\n\n"乙"]', (1, 3)),
        ("text\n甲\n\n乙\n", (2, 4)),
        ("content,\n甲,\n乙,", None),
    ],
)
def test_records_are_the_same_in_every_form(content, places):
    if places is None:
        with pytest.raises(InputError, match="x:1: broken JSON"):  # the last column has no name
            of(content)
        return
    assert of(content) == [(f"x:{places[0]}", {"text": "甲"}), (f"x:{places[1]}", {"text": "乙"})]


def test_a_text_and_an_object_in_a_list_are_one_record():
    assert of('[["甲", {"entities": [[0, 1, "a"]]}]]') == [("x:1", {"text": "甲", "entities": [[0, 1, "a"]]})]
    with pytest.raises(InputError, match="x:1: JSON .* is not an object"):
        of('[["甲", {"text": "乙"}]]')
