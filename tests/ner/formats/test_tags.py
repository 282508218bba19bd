"""BIO, BMES and BIOES: spans of tagged characters, ill-formed tags and the errors a user can mend."""

import logging

import pytest

from tasks.ner.data.reading import Entity, Example, read_examples
from tests.ner.reading import assert_error, json_line, spans, surfaces, tagged


def test_bio_sentences_become_texts_with_half_open_spans(write):
    path = write(tagged("海/O 厦/B-LOC 门/I-LOC 与/O 金/B-LOC", "王/B-PER 明/I-PER 北/B-LOC 京/B-LOC"))
    assert read_examples(path) == [
        Example("海厦门与金", (Entity(1, 3, "LOC"), Entity(4, 5, "LOC")), f"{path}:1"),
        Example("王明北京", (Entity(0, 2, "PER"), Entity(2, 3, "LOC"), Entity(3, 4, "LOC")), f"{path}:7"),
    ]


def test_bmes_sentences_become_texts_with_half_open_spans(write):
    path = write(tagged("吴/B-NAME 重/M-NAME 阳/E-NAME ，/O 中/B-CONT 国/E-CONT", "京/S-LOC 沪/S-LOC"))
    assert read_examples(path) == [
        Example("吴重阳，中国", (Entity(0, 3, "NAME"), Entity(4, 6, "CONT")), f"{path}:1"),
        Example("京沪", (Entity(0, 1, "LOC"), Entity(1, 2, "LOC")), f"{path}:8"),
    ]


def test_scheme_is_decided_by_the_tags_of_the_whole_file(write, caplog):
    sentence = "中/B-LOC 国/B-LOC"
    assert spans(read_examples(write(tagged(sentence)))[0]) == [(0, 1, "LOC"), (1, 2, "LOC")]
    assert not caplog.records
    assert spans(read_examples(write(tagged(sentence, "京/S-LOC")))[0]) == [(0, 1, "LOC"), (1, 2, "LOC")]
    assert "2 tag sequences are not well-formed (first: B-LOC after B-LOC)" in caplog.text


@pytest.mark.parametrize("separator", [" ", "\t"])
def test_token_and_tag_are_separated_by_a_space_or_a_tab(write, separator):
    (example,) = read_examples(write(f"京{separator}B-LOC\n都{separator}I-LOC\n"))
    assert (example.text, spans(example)) == ("京都", [(0, 2, "LOC")])


@pytest.mark.parametrize("token", list(" \t\u3000\u00a0\u2028\u0085\x0b\r\x00\ufeff{𠮷👍Ａ"), ids=ascii)
def test_any_character_can_be_a_token(write, token):
    for content in (f"{token} O\n京 B-LOC\n", f"甲 O\n{token} O\n京 B-LOC\n", f"{token} B-LOC\n"):
        (example,) = read_examples(write("\ufeff" + content))
        assert example.text == content.replace(" O\n", "").replace(" B-LOC\n", "")
        assert len(example.entities) == 1 and example.entities[0].end == len(example.text)


@pytest.mark.parametrize("end", list("\r\x0b\x0c\x1c\u0085\u2028\u2029"), ids=ascii)
@pytest.mark.parametrize("content", ["卢 B-P\n海 I-P\n在 O\n", "卢\tB-P\n海\tI-P", "甲 n O\n乙 n B-P\n"])
def test_other_line_ends_after_a_tag_are_an_error(write, content, end):
    assert_error(write("甲 O\n\n" + content.replace("\n", end)), 3, ascii(end), "end each line with LF or CRLF")


def test_offsets_count_characters_of_tokens_with_several(write):
    (example,) = read_examples(write("在 O\n2008 B-DATE\n年 I-DATE\nNBA B-ORG\n"))
    assert (example.text, surfaces(example)) == ("在2008年NBA", [("2008年", "DATE"), ("NBA", "ORG")])


def test_lines_of_white_space_end_a_sentence_and_make_no_empty_one(write):
    path = write("\n\n甲 O\n \n\t \n\n乙 O\n  \n\n")
    assert [(example.text, example.where) for example in read_examples(path)] == [
        ("甲", f"{path}:3"),
        ("乙", f"{path}:7"),
    ]


def test_tagged_byte_order_mark_crlf_and_a_missing_last_newline_change_nothing(write):
    content = tagged("中/B-LOC 国/I-LOC", "京/B-LOC")
    expected = read_examples(write(content))
    assert len(expected) == 2
    crlf = content.replace("\n", "\r\n")
    for variant in ("\ufeff" + content, crlf, content[:-1], crlf[:-2]):
        assert read_examples(write(variant)) == expected


def test_types_may_hold_hyphens_and_any_letters(write):
    (example,) = read_examples(write(tagged("甲/B-a-b 乙/I-a-b 丙/B-人名")))
    assert spans(example) == [(0, 2, "a-b"), (2, 3, "人名")]


ILL_FORMED = [
    ("甲/O 乙/I-PER 丙/I-PER", [(1, 3, "PER")], 2, "1 tag sequence is", "I-PER after O"),
    ("甲/I-PER 乙/O", [(0, 1, "PER")], 1, "1 tag sequence is", "I-PER at the beginning of a sentence"),
    ("甲/B-PER 乙/I-LOC", [(0, 1, "PER"), (1, 2, "LOC")], 2, "1 tag sequence is", "I-LOC after B-PER"),
    ("甲/B-PER 乙/M-PER 丙/O", [(0, 2, "PER")], 3, "1 tag sequence is", "O after M-PER"),
    ("甲/O 乙/B-PER 丙/M-PER", [(1, 3, "PER")], 3, "1 tag sequence is", "M-PER at the end of a sentence"),
    ("甲/B-PER 乙/M-LOC 丙/E-LOC", [(0, 1, "PER"), (1, 3, "LOC")], 2, "1 tag sequence is", "M-LOC after B-PER"),
    ("甲/B-PER 乙/E-LOC", [(0, 1, "PER"), (1, 2, "LOC")], 2, "1 tag sequence is", "E-LOC after B-PER"),
    ("甲/O 乙/E-PER 丙/E-PER", [(1, 2, "PER"), (2, 3, "PER")], 2, "2 tag sequences are", "E-PER after O"),
    ("甲/O 乙/M-PER 丙/E-PER", [(1, 3, "PER")], 2, "1 tag sequence is", "M-PER after O"),
    ("甲/B-PER 乙/S-PER", [(0, 1, "PER"), (1, 2, "PER")], 2, "1 tag sequence is", "S-PER after B-PER"),
    ("甲/S-PER 乙/M-PER", [(0, 1, "PER"), (1, 2, "PER")], 2, "2 tag sequences are", "M-PER after S-PER"),
    ("甲/B-PER 乙/B-PER 丙/E-PER", [(0, 1, "PER"), (1, 3, "PER")], 2, "1 tag sequence is", "B-PER after B-PER"),
]


@pytest.mark.parametrize("sentence, expected, line, count, first", ILL_FORMED, ids=[row[0] for row in ILL_FORMED])
def test_ill_formed_tags_are_read_as_conlleval_does_and_reported_once(
    write, caplog, recwarn, sentence, expected, line, count, first
):
    path = write(tagged(sentence))
    assert spans(read_examples(path)[0]) == expected
    (record,) = caplog.records
    assert (record.name, record.levelno) == ("tasks.ner.formats.tags", logging.WARNING)
    message = record.getMessage()
    assert message.startswith(f"{path}:{line}: {count} not well-formed (first: {first}); read as")
    assert "\n" not in message
    assert not recwarn.list


def test_ill_formed_tags_of_a_whole_file_are_one_line_of_the_log(write, caplog):
    path = write(tagged("甲/B-PER 乙/I-PER", "丙/O 丁/I-PER", "戊/I-LOC", "己/I-LOC"))
    read_examples(path)
    (record,) = caplog.records
    assert record.getMessage().startswith(f"{path}:5: 3 tag sequences are not well-formed (first: I-PER after O)")


def test_well_formed_tags_log_nothing(write, caplog):
    read_examples(write(tagged("甲/B-PER 乙/I-PER 丙/B-PER 丁/O")))
    read_examples(write(tagged("甲/B-PER 乙/M-PER 丙/E-PER 丁/S-PER 戊/B-PER 己/E-PER 庚/O")))
    assert not caplog.records


@pytest.mark.parametrize(
    "tag", ["X-PER", "B", "B-", "b-PER", "o", "I", "BPER", "B_PER", "-PER", "O-PER", "0", "E-\u3000"]
)
def test_unknown_tag_is_an_error_with_the_tags_that_are_allowed(write, tag):
    assert_error(write(f"甲 O\n乙 {tag}\n"), 2, f"unknown tag {tag!r}", "O, B-X, I-X", "O, B-X, M-X, E-X, S-X")


@pytest.mark.parametrize("line", ["乙", "O", " O", "B-PER", "乙 ", "\u3000", "{"])
def test_line_with_one_field_only_is_an_error(write, line):
    assert_error(write(f"甲 O\n{line}\n"), 2, "no ", "write one character, one space or tab and its tag")


@pytest.mark.parametrize("line", ["乙 NN O", "乙\t\tO", "乙  O", " 乙 O", "   O"])
def test_line_with_further_columns_is_an_error(write, line):
    assert_error(write(f"甲 O\n{line}\n"), 2, "more than two columns", "keep one character and its tag")


CONLL = (
    "-DOCSTART- -X- -X- O\n\nEU NNP B-NP B-ORG\nrejects VBZ B-VP O\nGerman JJ B-NP B-MISC\ncall NN I-NP O\n. . O O\n"
)


@pytest.mark.parametrize("separator", [" ", "\t"])
def test_of_more_columns_the_first_is_the_token_and_the_last_the_tag(write, separator):
    (example,) = read_examples(write(CONLL.replace(" ", separator)))
    assert (example.text, surfaces(example)) == ("EU rejects German call.", [("EU", "ORG"), ("German", "MISC")])
    assert example.where.endswith(":3")


def test_the_only_column_of_tags_is_the_tag(write):
    (example,) = read_examples(write("在 O p 1\n京 B-LOC ns 2\n"))
    assert (example.text, spans(example)) == ("在京", [(1, 2, "LOC")])


def test_comments_before_a_sentence_are_none_of_its_lines(write):
    content = "# id 7 domain=zh\n中 _ _ B-LOC\n国 _ _ I-LOC\n\n# id 8\n# _ _ O\n"
    assert [one.text for one in read_examples(write(content))] == ["中国", "#"]


def test_lines_with_other_numbers_of_columns_are_an_error(write):
    assert_error(
        write("New York B-LOC\nis O\n"), 2, "2 columns in 'is O', and 3 in the lines before", "as many columns"
    )


def test_words_stay_apart_and_letters_together(write):
    content = "N B-ORG\nB I-ORG\nA I-ORG\n2008 O\n年 O\niPhone B-X\n6 I-X\ns O\n"
    (example,) = read_examples(write(content))
    assert (example.text, surfaces(example)) == ("NBA 2008年iPhone 6s", [("NBA", "ORG"), ("iPhone 6", "X")])


def test_places_in_words_of_weibo_are_taken_off_and_said_to_be(write, caplog):
    path = write("科0\tO\n技1\tO\n全0\tO\n\n北0\tB-GPE.NAM\n京1\tI-GPE.NAM\n20\tO\n")
    first, second = read_examples(path)
    assert (first.text, second.text, surfaces(second)) == ("科技全", "北京2", [("北京", "GPE.NAM")])
    (record,) = caplog.records
    assert record.getMessage().startswith(f"{path}:1: ") and "'科0'" in record.getMessage()


def test_places_in_words_are_taken_off_where_nearly_all_tokens_have_them(write, caplog):
    words = "科0 O\n技1 O\n" * 200
    path = write(words + "e\u03010 O\n☀\ufe0f0 B-X\n天1 I-X\n12 I-X\n" + words + "人 O\n天0 O\n")
    (example,) = read_examples(path)
    assert (example.text, surfaces(example)) == (
        "科技" * 200 + "e\u0301☀\ufe0f天1" + "科技" * 200 + "人天",
        [("☀\ufe0f天1", "X")],
    )
    (record,) = caplog.records
    assert "803 of 806 tokens" in record.getMessage()


@pytest.mark.parametrize("others", [1, 9])
def test_places_in_words_that_some_tokens_lack_stay_with_a_warning(write, caplog, others):
    path = write("人 O\n" * others + "科0 O\n技1 O\n")
    assert read_examples(path)[0].text == "人" * others + "科0技1"
    (record,) = caplog.records
    assert record.levelname == "WARNING" and f"{path}:{others + 1}: 2 of {others + 2} tokens" in record.getMessage()


def test_blanks_with_a_place_are_tokens_too(write):
    path = write("新0\tO\n 1\tO\n浪2\tO\n\u30000\tO\n京0\tB-LOC\n")
    (example,) = read_examples(path)
    assert (example.text, spans(example)) == ("新 浪\u3000京", [(4, 5, "LOC")])


@pytest.mark.parametrize(
    "content, text",
    [
        ("科0 O\n技2 O\n", "科0技2"),  # no place after the other
        ("科0 O\n技0 O\n", "科0技0"),  # no word of two
        ("科1 O\n技2 O\n", "科1技2"),
    ],
)
def test_tokens_with_other_numbers_stay(write, caplog, content, text):
    assert read_examples(write(content))[0].text == text
    assert not caplog.records


def test_a_table_has_columns_of_token_and_tag(write):
    content = 'Sentence #,Word,POS,Tag\nS1,北京,NR,B-LOC\n,的,DEG,O\nS2,"10,000",CD,O\n'
    path = write(content)
    assert [(one.text, spans(one), one.where) for one in read_examples(path)] == [
        ("北京的", [(0, 2, "LOC")], f"{path}:2"),
        ("10,000", [], f"{path}:4"),
    ]
    assert [one.text for one in read_examples(write("char\tlabel\n甲\tO\n\n乙\tO\n"))] == ["甲", "乙"]
    assert_error(write("word,tag\n甲,O\n乙,\n"), 3, "a row without a tag", "give each token one")
    assert_error(write("word,tag\n甲,O\n乙,X\n"), 3, "unknown tag 'X'", "allowed are")


def test_mixing_i_and_m_is_an_error_at_the_first_offending_line(write):
    content = "甲 B-PER\n乙 I-PER\n丙 O\n丁 M-PER\n戊 M-PER\n"
    path = write(content)
    assert_error(path, 4, "'M-PER'", f"'I-PER' in {path}:2", "write all tags as BIO (O, B-X, I-X), ")
    content = "甲 M-PER\n\n乙 S-LOC\n丁 I-LOC\n"
    path = write(content)
    assert_error(path, 4, "'I-LOC'", f"'M-PER' in {path}:1", "as BMES (O, B-X, M-X, E-X, S-X)")


def test_bioes_sentences_become_texts_with_half_open_spans(write, caplog):
    path = write(tagged("吴/B-NAME 重/I-NAME 阳/E-NAME ，/O 中/B-CONT 国/E-CONT", "京/S-LOC 沪/S-LOC"))
    assert [spans(example) for example in read_examples(path)] == [
        [(0, 3, "NAME"), (4, 6, "CONT")],
        [(0, 1, "LOC"), (1, 2, "LOC")],
    ]
    assert not caplog.records


def test_json_line_in_a_tagged_file_is_an_error(write):
    assert_error(write("甲 O\n\n" + json_line("乙", {})), 3, "unknown tag", "allowed are")


def test_plain_text_is_no_labeled_data(write):
    assert_error(write("浙商银行企业信贷部\n"), 1, "no tag", "such as '中 B-LOC'")
