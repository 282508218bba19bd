"""Reading each format: its own forms, what is skipped, and errors with their line."""

import json
import os

import pytest

from tasks.ner.data.reading import Entity, Example, read_examples, read_labeled
from tasks.ner.formats.brat import NAME as BRAT
from tests.ner.reading import contents, error_of


@pytest.fixture
def write(write):
    """The name has no suffix: brat knows its files by theirs."""
    return lambda content, name="sample": write(content, name)


def lines(*records):
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records)


# ---- tags


def test_named_scheme_is_checked(write):
    path = write("甲 B-P\n乙 E-P\n")
    assert contents(read_examples(path, "bioes")) == contents(read_examples(path, "bmes"))
    message = error_of(read_examples, path, "bio")
    assert message.startswith(f"{path}:2: tag 'E-P' is none of BIO (O, B-X, I-X); name another format")


def test_paddlenlp_sentences_are_recognized_with_tokens_of_several_characters(write):
    path = write("在\x022008\x02年\x02NBA\tO\x02B-DATE\x02I-DATE\x02B-ORG\n\n单\tO\n")
    read, format = read_labeled(path)
    assert format == "bio_sentences"
    assert read == [
        Example("在2008年NBA", (Entity(1, 6, "DATE"), Entity(6, 9, "ORG")), f"{path}:1"),
        Example("单", (), f"{path}:3"),
    ]


def test_header_of_paddlenlps_files_is_skipped(write):
    path = write("text_a\tlabel\n厦\x02门\tB-LOC\x02I-LOC\n")
    assert read_labeled(path) == ([Example("厦门", (Entity(0, 2, "LOC"),), f"{path}:2")], "bio_sentences")
    path = write("厦\x02门\tB-LOC\x02I-LOC\ntext_a\tlabel\n")
    assert error_of(read_examples, path).startswith(f"{path}:2: unknown tag 'label'")


def test_white_space_after_a_tag_is_no_matter(write):
    assert contents(read_examples(write("中 B-LOC \n国 I-LOC\t\n \n甲 O\n"))) == [
        ("中国", (Entity(0, 2, "LOC"),)),
        ("甲", ()),
    ]


def test_doccano_relations_are_skipped_and_said_to_be(write, caplog):
    record = {"text": "甲", "entities": [{"id": 1, "label": "a", "start_offset": 0, "end_offset": 1}], "relations": []}
    path = write(lines(record, {**record, "relations": [{"id": 1, "from_id": 1, "to_id": 1, "type": "r"}]}))
    assert len(read_examples(path)) == 2
    (message,) = caplog.records
    assert message.getMessage() == f"{path}:2: skipped the doccano relations of 1 texts"


@pytest.mark.parametrize(
    "line, reason",
    [
        ("甲\x02乙\tO", "2 tokens and 1 tags"),
        ("甲\x02乙O\x02O", "no tab"),
        ("甲\x02\tO\x02O", "an empty token"),
        ("甲\x02乙\tO\x02X", "unknown tag 'X'"),
    ],
)
def test_broken_sentence_is_an_error_with_its_line(write, line, reason):
    path = write(f"甲\x02乙\tO\x02O\n{line}\n")
    message = error_of(read_examples, path, "bio_sentences")
    assert message.startswith(f"{path}:2: {reason}")


def test_ill_formed_sentences_are_reported_at_their_line(write, caplog):
    path = write("甲\x02乙\tO\x02O\n甲\x02乙\tO\x02I-P\n")
    assert contents(read_examples(path))[1] == ("甲乙", (Entity(1, 2, "P"),))
    (record,) = caplog.records
    assert record.getMessage().startswith(f"{path}:2: 1 tag sequence is not well-formed (first: I-P after O)")


# ---- doccano


def test_doccano_keys_and_other_keys(write):
    expected = [("王明在北京", (Entity(0, 2, "PER"), Entity(3, 5, "LOC")))]
    spans = [[3, 5, "LOC"], [0, 2, "PER"], [0, 2, "PER"]]
    for key in ("label", "labels"):
        path = write(lines({"id": 3, "text": "王明在北京", key: spans, "Comments": []}))
        assert contents(read_examples(path)) == expected
    entities = [{"id": 9, "start_offset": start, "end_offset": end, "label": type_} for start, end, type_ in spans]
    record = {"text": "王明在北京", "entities": entities, "relations": [{"id": 1, "from_id": 9, "to_id": 9}]}
    assert contents(read_examples(write(lines(record)))) == expected


@pytest.mark.parametrize("form", ["label", "entities"])
def test_doccano_lines_are_counted_with_the_blank_ones(write, caplog, form):
    entity = {"id": 1, "label": "a", "start_offset": 0, "end_offset": 1}
    record = {"text": "甲", form: [entity if form == "entities" else [0, 1, "a"]], "relations": [{"id": 1}]}
    path = write("\n" + lines(record) + "\n\n" + lines(record))
    assert [example.where for example in read_examples(path)] == [f"{path}:2", f"{path}:5"]
    expected = [f"{path}:2: skipped the doccano relations of 2 texts"] if form == "entities" else []
    assert [message.getMessage() for message in caplog.records] == expected


def test_record_without_entities_does_not_decide_the_format(write):
    later = {"text": "甲", "entities": [{"start_offset": 0, "end_offset": 1, "label": "t"}]}
    assert read_labeled(write(lines({"text": "乙", "entities": []}, later)))[1] == "doccano_entities"
    later = {"text": "甲", "entities": [{"start": 0, "end": 1, "type": "t", "score": 1.5}]}
    examples, format = read_labeled(write(lines({"text": "", "entities": []}, later)))
    assert (format, contents(examples)) == ("jsonl", [("", ()), ("甲", (Entity(0, 1, "t"),))])


@pytest.mark.parametrize(
    "label, reason",
    [
        ({}, "is {}, not a list"),
        ([[0, 1]], "[0, 1] is not [start, end, type]"),
        ([[0, 1, 2]], "the entity type 2 is not a string"),
        ([[0, 1, " "]], "the entity type ' ' is empty"),
        ([[0, 1.0, "t"]], "the offsets 0 and 1.0 are not integers"),
        ([[False, True, "t"]], "are not integers"),
        ([[0, 3, "t"]], "span [0, 3] is not in the text of 2 characters"),
        ([[1, 1, "t"]], "span [1, 1] is not in"),
        ([[-1, 1, "t"]], "span [-1, 1] is not in"),
    ],
)
def test_broken_doccano_label_is_an_error_with_its_line(write, label, reason):
    path = write(lines({"text": "甲乙", "label": []}, {"text": "甲乙", "label": label}))
    message = error_of(read_examples, path)
    assert message.startswith(f"{path}:2: ") and reason in message


@pytest.mark.parametrize(
    "entities, reason",
    [
        ("x", "\"entities\" is 'x', not a list"),
        ([3], '"entities" is [3], not a list of objects'),
        ([{"start_offset": 0, "end_offset": 1}], 'has no "label"'),
        ([{"start_offset": 0, "end_offset": 9, "label": "t"}], "span [0, 9] is not in the text"),
    ],
)
def test_broken_doccano_entity_is_an_error_with_its_line(write, entities, reason):
    path = write(lines({"text": "甲乙", "entities": entities}))
    message = error_of(read_examples, path, "doccano_entities")
    assert message.startswith(f"{path}:1: ") and reason in message


@pytest.mark.parametrize("format", ["cluener", "doccano", "doccano_entities", "jsonl"])
def test_unlabeled_json_is_an_error_of_every_json_lines_format(write, format):
    path = write(lines({"text": "甲"}))
    assert "the file is unlabeled; give labeled data" in error_of(read_examples, path, format)


# ---- predictions


def test_predictions_are_read_and_their_surface_is_checked(write):
    entity = {"start": 0, "end": 2, "type": "t", "text": "甲乙", "score": 7.25}
    assert contents(read_examples(write(lines({"text": "甲乙丙", "entities": [entity]})))) == [
        ("甲乙丙", (Entity(0, 2, "t"),))
    ]
    message = error_of(read_examples, write(lines({"text": "甲乙丙", "entities": [{**entity, "end": 3}]})))
    assert "span [0, 3] holds '甲乙丙', but the entity says '甲乙'" in message


# ---- CMeEE


def cmeee(text, *spans):
    entities = [dict(zip(("start_idx", "end_idx", "type", "entity"), span)) for span in spans]
    return {"text": text, "entities": entities}


@pytest.mark.parametrize("indent", [None, 2])
def test_cmeee_end_is_decided_by_the_surface(write, indent):
    first = cmeee("房室结消融和起搏器", (0, 4, "pro", "房室结消融"), (6, 9, "equ", "起搏器"))
    records = [first, cmeee("甲", (0, 0, "t", "甲"))]
    path = write(json.dumps(records, ensure_ascii=False, indent=indent))
    examples, format = read_labeled(path)
    assert format == "cmeee"
    assert contents(examples) == [
        ("房室结消融和起搏器", (Entity(0, 5, "pro"), Entity(6, 9, "equ"))),
        ("甲", (Entity(0, 1, "t"),)),
    ]


def test_cmeee_records_have_their_lines(write):
    path = write('[\n {"text": "甲",\n  "entities": []},\n\n {"text": "乙", "entities": []}\n]\n')
    assert [one.where for one in read_examples(path)] == [f"{path}:2", f"{path}:5"]


@pytest.mark.parametrize(
    "span, reason",
    [
        ((0, 1, "t", "乙丙"), "holds '甲乙' with the end included and '甲' without"),
        ((0, 1, "t", "乙丙"), "entity '乙丙' is not at [0, 1] of its text of 3 characters"),
        ((0, 3, "t", "甲乙"), "is not at [0, 3]"),
        ((-1, 1, "t", "甲乙"), "is not at [-1, 1]"),
        ((-3, -2, "t", "甲乙"), "is not at [-3, -2]"),
        ((0, -1, "t", ""), "is not at [0, -1]"),
        ((2, 3, "t", "丙丁"), "is not at [2, 3]"),
        (("0", 1, "t", "甲乙"), "offsets or a surface of another kind"),
        ((0, 1, "t"), 'has no "entity"'),
    ],
)
def test_cmeee_span_that_fits_neither_way_is_an_error_that_shows_both(write, span, reason):
    path = write("[\n" + json.dumps(cmeee("甲乙丙", span), ensure_ascii=False) + "]")
    message = error_of(read_examples, path)
    assert message.startswith(f"{path}:2: ") and reason in message


@pytest.mark.parametrize(
    "content, line, reason",
    [
        ('[\n{"text": "甲", "entities": []},\n]', 3, "broken JSON"),
        ('[\n{"text": "甲", "entities": []}\n{}]', 3, "neither ',' nor ']' after an object"),
        ('[\n{"text": "甲", "entities": []}\n', 3, "neither ',' nor ']'"),
        ('[{"text": "甲", "entities": []}]\n[]', 2, "more text after the list"),
        ('[{"text": "甲",\n "entities": [],}]', 2, "broken JSON"),
        ("[3]", 1, "JSON 3 is not an object"),
        ("[ ]", 1, "there is no text in it; give labeled data"),
        ('[{"text": "甲", "text": "乙", "entities": []}]', 1, "key 'text' is repeated"),
        ('[{"text": "甲"}]', 1, 'no "entities", the file is unlabeled'),
        ('[{"text": "", "entities": []}]', 1, '"text" is empty'),
    ],
)
def test_broken_cmeee_list_is_an_error_with_its_line(write, content, line, reason):
    path = write(content)
    message = error_of(read_examples, path)
    assert message.startswith(f"{path}:{line}: ") and reason in message


# ---- brat


@pytest.fixture
def document(write):
    """Write x.txt and x.ann into a folder and return it."""

    def document(text, annotation, name="x"):
        write(text, f"docs/{name}.txt")
        return write(annotation, f"docs/{name}.ann").parent

    return document


def test_brat_documents_are_read_in_order_with_line_breaks_as_characters(document):
    document("第一行\n第二行", "T1\tORG 2 5\t行 第\nT2\tLOC 0 1\t第\n", "b")
    folder = document("甲\r\n乙", "T3\tt 3 4\t乙\n\n", "a.b")
    expected = [("甲\r\n乙", (Entity(3, 4, "t"),)), ("第一行\n第二行", (Entity(0, 1, "LOC"), Entity(2, 5, "ORG")))]
    assert contents(read_examples(folder)) == expected
    assert [one.where for one in read_examples(folder)] == [f"{folder}/a.b.txt:1", f"{folder}/b.txt:1"]
    for name in ("b.ann", "b.txt"):
        assert read_labeled(folder / name) == ([read_examples(folder)[1]], "brat")


def test_each_character_of_a_line_break_is_a_blank_in_a_brat_surface(document):
    folder = document("甲\r\n乙\r丙", "T1\tt 0 4\t甲  乙\nT2\tt 3 6\t乙 丙\n")
    assert contents(read_examples(folder)) == [("甲\r\n乙\r丙", (Entity(0, 4, "t"), Entity(3, 6, "t")))]


def test_brat_relations_events_attributes_and_notes_are_skipped_and_counted_once(document, caplog):
    others = "R1\tr Arg1:T1 Arg2:T1\nE1\tT1 x:T1\nA1\tx T1\nM1\tx T1\n*\teq T1 T1\nN1\tRef T1 w:1\tx\n#1\tNote T1\tx\n"
    document("甲", others, "b")
    folder = document("甲", "T1\tt 0 1\t甲\n" + others, "a")
    assert contents(read_examples(folder)) == [("甲", (Entity(0, 1, "t"),)), ("甲", ())]
    (record,) = caplog.records
    assert record.getMessage() == f"{folder}/a.ann:2: skipped 14 brat annotations that are no entities"


@pytest.mark.parametrize(
    "line, reason",
    [
        ("T1\tt 0 1;2 3\t甲 乙", "span 0 1;2 3 holds '甲 丙', but the annotation says '甲 乙'"),
        ("T1\tt 0 2;1 3\t甲乙 乙丙", "the pieces of 't 0 2;1 3' are not one after the other"),
        ("T1\tt 0 1;2\t甲 丙", "is not a type and two offsets"),
        ("T1\tt 0 1;2 9\t甲 丙", "span 2 9 is not in the text"),
        ("T1\tt 0 2\t甲", "span 0 2 holds '甲乙', but the annotation says '甲'"),
        ("T1\tt 0 9\t甲", "span 0 9 is not in the text of 3 characters"),
        ("T1\tt 1 1\t", "span 1 1 is not in the text"),
        (f"T1\tt 0 {'9' * 5000}\t甲", "is not a type and two offsets"),
        ("T1\tt 0\t甲", "'t 0' is not a type and two offsets"),
        ("T1\tt -1 1\t甲", "is not a type and two offsets"),
        ("T1\tt ² 3\t甲", "is not a type and two offsets"),
        ("T1\tt 0 1", "2 columns instead of three"),
        ("T1 t 0 1 甲", "1 columns instead of three"),
        ("X1\tt 0 1\t甲", "unknown annotation"),
    ],
)
def test_broken_brat_annotation_is_an_error_with_its_line(document, line, reason):
    folder = document("甲乙丙", f"T9\tt 0 1\t甲\n{line}\n")
    message = error_of(read_examples, folder)
    assert message.startswith(f"{folder}/x.ann:2: ") and reason in message


def test_brat_entity_in_pieces_is_one_where_only_white_space_parts_them(document, caplog):
    text = "北京\n 大学与\n\n清华"
    folder = document(text, "T1\tORG 0 2;4 6\t北京 大学\nT2\tORG 4 6;6 7;9 11\t大学 与 清华\n")
    assert contents(read_examples(folder)) == [(text, (Entity(0, 6, "ORG"), Entity(4, 11, "ORG")))]
    assert not caplog.records


def test_brat_entities_with_gaps_are_left_out_and_told_at_once(document, caplog):
    document("甲乙丙", "T1\tt 0 1;2 3\t甲 丙\nT2\tt 0 1\t甲\n" + "T3\tt 0 1;2 3\t甲 丙\n" * 3, "a")
    gap = "甲" + " " * 10**4 + "乙"  # too long for a line break
    folder = document(gap, f"T1\tt 0 1;{len(gap) - 1} {len(gap)}\t甲 乙\n", "b")
    assert [one.entities for one in read_examples(folder)] == [(Entity(0, 1, "t"),), ()]
    (record,) = caplog.records
    message = record.getMessage()
    assert message.startswith(f"skipped 5 brat entities with gaps, which no span can hold ({folder}/a.ann:1, ")
    assert f"{folder}/a.ann:4, ...): to keep them, mark each" in message


def test_brat_needs_both_files_of_a_document(document, tmp_path, write):
    folder = document("甲", "")
    (folder / "y.txt").write_text("乙", encoding="utf-8")
    assert error_of(read_examples, folder).startswith(f"{folder}/y.ann: no such file beside y.txt; brat needs both; a")
    (folder / "y.txt").rename(folder / "z.ann")
    assert error_of(read_examples, folder).startswith(f"{folder}/z.txt: no such file beside z.ann")
    assert "neither a folder nor" in error_of(read_examples, write("甲 O\n"), BRAT)
    assert "no such file" in error_of(read_examples, tmp_path / "none.ann")


def test_text_file_without_annotation_beside_it_is_not_brat(write):
    assert read_labeled(write("甲 O\n", "plain.txt"))[1] == "bio"


@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="no file here that can be opened and not read")
def test_unreadable_brat_text_is_an_error(document):
    folder = document("甲", "")
    (folder / "x.txt").unlink()
    (folder / "x.txt").symlink_to("/proc/self/mem")
    assert error_of(read_examples, folder).startswith(f"{folder}/x.txt: cannot be read (")


@pytest.mark.parametrize("depth", range(900, 1100, 20))
@pytest.mark.parametrize("label", ["[", '{"a": '])
def test_data_nested_deep_are_an_error_with_their_line(write, depth, label):
    nested = label * depth + "1" + {"[": "]", "{": "}"}[label[0]] * depth
    for record in (f'{{"text": "甲", "label": {nested}}}', f'[{{"text": "甲", "entities": {nested}}}]'):
        path = write(record)
        assert error_of(read_examples, path).startswith(f"{path}:1: ")
