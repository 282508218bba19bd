"""The form of a file by its content, and records in each form."""

import pytest

from tasks.common.errors import InputError
from tasks.common.texts.forms import Form, form_of, records

FORMS = {
    Form.PLAIN: [
        "今天天气\n很好", "{甲}", "{", "[]\n甲", "[呵呵] 今天", "[1]", '["甲" 他说]', "text，label", "text, 你好！",
        "word,甲\n", '"id,text,label', "text,\rlabel", "文本\t1\n", "文本\tO\n", "血型 O\n血型 B-1",
        "血型 O\n血型 A\n血型 O\n",
    ],
    Form.JSON_LINES: ['{"text": "甲"}', '\n  {\n"text": "甲"', "{}"],
    Form.JSON_LIST: [
        '[{"text": "甲"}]', '[\n\n  {"text": "甲"}', '["甲", "乙"]', '[["甲", {"entities": []}]]', "[ ]\n",
    ],
    Form.TABLE: [
        "text,label\n", ",text\n0,甲", "text\n甲", '"id","Text"\n', "文本\t标签\n", "word,pos,tag\n",
        "sentence1\tsentence2\tlabel",
    ],
    Form.TAGGED: [
        "中 B-LOC\n国 I-LOC\n\n，\tO\n", "EU NNP B-NP B-ORG\nrejects VBZ B-VP O\nit PRP B-NP O",
        "中\x02国\tB-LOC\x02I-LOC\n",
    ],
}  # fmt: skip


@pytest.mark.parametrize("form, content", [(form, content) for form in FORMS for content in FORMS[form]])
def test_the_first_lines_decide(form, content):
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
    ],
)
def test_records_are_the_same_in_every_form(content, places):
    assert of(content) == [(f"x:{places[0]}", {"text": "甲"}), (f"x:{places[1]}", {"text": "乙"})]


def test_a_text_and_an_object_in_a_list_are_one_record():
    assert of('[["甲", {"entities": [[0, 1, "a"]]}]]') == [("x:1", {"text": "甲", "entities": [[0, 1, "a"]]})]
    for content, said in (('[["甲", {"text": "乙"}]]', "JSON .* is not an object"), ("content,\n甲,", "broken JSON")):
        with pytest.raises(InputError, match=f"x:1: {said}"):  # of the second the last column has no name
            of(content)
