"""Messages in the language of the user: the terminal is Chinese where the locale is, what programs read never."""

import json
import pickle
import threading

import pytest

from tasks.commands.main import main
from tasks.common import language
from tasks.common.errors import InputError
from tasks.common.language import Message, tr

MISSING = "{name}: no such file; check the path"


@pytest.fixture(autouse=True)
def language_of_the_tests(monkeypatch):
    """Whatever language a test speaks, those after it speak that of the environment."""
    monkeypatch.setenv("LANGUAGE", "en")
    yield
    language.use("en")


@pytest.fixture
def chinese():
    language.use("zh")


def test_message_is_its_english_text():
    assert Message("{a} of {b!r:.3}", a=1, b="long") == "1 of 'lo"
    assert Message('write {"a": 1}') == 'write {"a": 1}' and Message('write {{"{a}": 1}}', a=2) == 'write {"2": 1}'
    assert tr(MISSING, name="x") == "x: no such file; check the path" and tr("x {y}") == "x {y}" and tr("") == ""


def test_message_is_said_in_chinese_with_the_messages_in_it(chinese):
    assert tr(MISSING, name="a.txt") == "a.txt: 没有这个文件；请检查路径"
    inner = Message("there is no text in it")
    assert "里面没有文本" in tr("{name}:1: {what}; {format}", name="x", what=inner, format="f")
    assert tr("{error}; move {path} away, or give another --output", error=InputError(MISSING, name="a"), path="p") == (
        "a: 没有这个文件；请检查路径；请移走 p，或给出另一个 --output"
    )
    assert tr("") == "" and tr(3) == "3" and tr("nobody translates this") == "nobody translates this"


def test_values_of_users_are_never_translated(chinese):
    assert tr(MISSING, name="texts").startswith("texts: ")
    assert tr(MISSING, name=Message("texts")).startswith("文本: ")


def test_error_is_english_for_programs_and_chinese_for_people(chinese):
    error = InputError(MISSING, name="a\n\x1b.txt")
    assert str(error) == "a\\n\\x1b.txt: no such file; check the path"
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == str(error) and tr(copy) == tr(error) and "没有这个文件" in tr(copy)
    locked = Message("{path}: cannot be read ({reason}); {remedy}", path="a", reason=threading.Lock(), remedy="b")
    assert str(pickle.loads(pickle.dumps(locked))) == str(locked) and tr(pickle.loads(pickle.dumps(locked))) == tr(
        locked
    )
    assert str(InputError("100 % of {x}")) == tr(InputError("100 % of {x}")) == "100 % of {x}"
    assert str(InputError(Message(MISSING, name="b"))).startswith("b: no such")


@pytest.mark.parametrize(
    "variables, expected",
    [
        ({}, "en"),
        ({"LANG": "C.UTF-8"}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh_TW.UTF-8"}, "zh"),
        ({"LANG": "de_DE.UTF-8"}, "en"),
        ({"LANG": "zh_CN.UTF-8", "LC_ALL": "C"}, "en"),
        ({"LANG": "zh_CN.UTF-8", "LC_MESSAGES": "en_US.UTF-8"}, "en"),
        ({"LANG": "C", "LC_MESSAGES": "zh_CN.GB18030"}, "zh"),
        ({"LANG": "en_US.UTF-8", "LANGUAGE": "zh"}, "zh"),
        ({"LANG": "zh_CN.UTF-8", "LANGUAGE": "en:zh"}, "en"),
        ({"LANGUAGE": "fr:zh:en"}, "zh"),
        ({"LANG": "zh_CN.UTF-8", "LANGUAGE": ""}, "zh"),
    ],
)
def test_language_of_the_environment(monkeypatch, variables, expected):
    for name in language.VARIABLES:
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert language.of_environment() == expected


@pytest.mark.parametrize(
    "words",
    [["--language", "zh", "inspect", "no.json"], ["inspect", "--language=zh", "no.json"]],
    ids=["first", "among"],
)
def test_option_of_any_verb_chooses_the_language(words, capsys):
    assert main(words) == 2
    assert capsys.readouterr().err == "error: no.json: 没有这个文件；请检查路径\n"


def test_option_takes_precedence_over_the_locale_and_lasts_for_the_command(monkeypatch, capsys):
    monkeypatch.setenv("LANGUAGE", "zh_CN:en")
    assert main(["inspect"]) == 2 and "缺少参数" in capsys.readouterr().err  # argparse's own
    assert main(["inspect", "no.json", "--language", "en"]) == 2 and "no such file" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--language"], ["inspect", "--language", "fr"], ["--language="]])
def test_other_languages_are_refused(words, capsys):
    assert main(words) == 2
    assert capsys.readouterr().err.startswith("error: --language") and language.of_environment() == "en"


def test_words_after_two_hyphens_are_left_alone(capsys):
    assert main(["inspect", "--", "--language", "zh"]) == 2
    assert "no such file" in capsys.readouterr().err


def test_help_is_chinese_with_the_same_options(capsys):
    def shown(*words):
        with pytest.raises(SystemExit):
            main(["predict", "ner", "--help", *words])
        return capsys.readouterr().out

    english, chinese = shown(), shown("--language", "zh")
    assert chinese.startswith("用法：paddle-rope predict ner ") and "找出文本中的实体" in chinese
    for option in ("--input", "--max_tokens", "--part_records", '{"text": ..., "entities": ['):
        assert option in english and option in chinese
    assert max(map(_columns, chinese.splitlines())) <= 120


def test_help_of_the_command_tells_how_to_switch(capsys):
    for words in ([], ["--language", "zh"]):
        with pytest.raises(SystemExit):
            main(words)
        assert "--language zh" in capsys.readouterr().out


def _columns(line):
    return sum(2 if character > "\u2e80" else 1 for character in line)


def test_files_that_programs_read_are_the_same_in_both_languages(tmp_path, capsys):
    data = tmp_path / "data.jsonl"
    rows = [{"text": "叶老桂在北京", "label": {"name": {"叶老桂": [[0, 2]]}}}] * 2 + [{"text": "京城", "label": {}}]
    data.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    found = {}
    for name in language.LANGUAGES:
        output = tmp_path / f"{name}.json"
        assert main(["inspect", str(data), "--output", str(output), "--language", name]) == 0
        found[name] = output.read_bytes(), capsys.readouterr().out
    assert found["en"][0] == found["zh"][0]
    assert "duplicates" not in found["zh"][1] and "发现的问题" in found["zh"][1] and "findings" in found["en"][1]
