"""Reading named entity data of any format: files, and texts to predict."""

import hashlib
import subprocess
import sys

import pytest

from tasks.ner.data.reading import read_examples, read_texts
from tasks.ner.demo import ENTITY_TYPES, UNSEEN_SENTENCES, read_demo_corpus, write_demo_corpus
from tests.conftest import REPOSITORY
from tests.helpers.runs import read_json_lines
from tests.tasks.ner.conftest import error_of

JSON = '{"text": "甲"}\n'


def test_readers_load_the_standard_library_only():
    program = "import sys; before = set(sys.modules); import tasks.ner.data.reading; print(*set(sys.modules) - before)"
    done = subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert loaded <= {*sys.stdlib_module_names, "tasks", "paddle_rope", "_distutils_hack"}


@pytest.mark.parametrize(
    "name, place",
    [
        ("missing.txt", "missing.txt: no such file"),
        ("", "check the path"),
        ("a\x00b", "check the path"),
        (".", ".: is a directory"),
        ("data/ner/weibo/weiboNER_2nd_conll.train", "paddle-rope download weibo downloads it"),
        ("x y/ner/cluener/dev.json", "paddle-rope download cluener --output 'x y' downloads it"),
        ("cluener", "paddle-rope download cluener downloads it"),
    ],
)
def test_what_is_no_file_is_named_with_the_remedy(tmp_path, monkeypatch, name, place):
    monkeypatch.chdir(tmp_path)
    assert place in error_of(read_examples, name)
    if "download" not in place:
        assert place in error_of(read_texts, name)
    assert "download" not in error_of(read_examples, "data/ner/cluener/mine.json")


@pytest.mark.parametrize("content", ["", "\n", " \n\t\r\n", "\ufeff", "\ufeff\n"])
def test_a_labeled_file_without_content_is_an_error(write, content):
    path = write(content)
    assert "empty" in error_of(read_examples, path).removeprefix(f"{path}:1: ")


# ---- texts to predict


@pytest.mark.parametrize(
    "content, expected",
    [
        (
            " 甲 乙\t\n\n\u3000\n𠮷\u2028👍\n  \n",
            [(" 甲 乙\t", 1), ("", 2), ("\u3000", 3), ("𠮷\u2028👍", 4), ("  ", 5)],
        ),
        ("甲\n\n", [("甲", 1), ("", 2)]),
        ("\n甲", [("", 1), ("甲", 2)]),
        ("甲\r\n\r\n乙\r\n", [("甲", 1), ("", 2), ("乙", 3)]),
        ("甲\r\r\n", [("甲\r", 1)]),
        *((f"{line}\n{JSON}", [(line, 1), (JSON[:-1], 2)]) for line in ("{", "{甲}", '"text"', "[1]", "[呵呵]", "[]")),
        (f'\ufeff\n{JSON}\n{{"text": "", "id": 1}}\n{{"text": "丙\\n"}}', [("甲", 2), ("", 4), ("丙\n", 5)]),
        ('{"txt": "甲"}\n' + JSON, 'sample.txt:1: there is no "text"'),
        ('{"text": "甲"\n' + JSON, "sample.txt:1: broken JSON"),
        *(
            (f"{JSON}\n{line}\n", "sample.txt:3: ")
            for line in ("乙", '{"text": 1}', '{"id": 1}', '{"text": "乙"', '{"text": "\\ud800"}')
        ),
        ("", "sample.txt:1: the input is empty"),
    ],
)
def test_texts_are_lines_or_the_texts_of_json_lines_with_their_place(write, content, expected):
    path = write(content)
    if isinstance(expected, str):
        assert f"{path.parent}/{expected}" in error_of(read_texts, path)
    else:
        assert read_texts(path) == [(text, f"{path}:{line}") for text, line in expected]


# ---- the demo corpus


def test_the_demo_corpus_stays_what_published_scores_were_measured_on(tmp_path):
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in write_demo_corpus(tmp_path / "new")]
    assert digests == [
        "16b64f07fffe9756695ff13c9057e656f4ce8664108fadc6c32629b658a930e8",
        "12175789daf749927775dd62fb250fed28053d23d874d9e49c835c8728b6e5e5",
    ]
    train, dev = read_demo_corpus()
    assert {kind for example in train + dev for kind in example["label"]} == set(ENTITY_TYPES)
    assert not {example["text"] for example in train + dev} & set(UNSEEN_SENTENCES)
    write_demo_corpus(tmp_path, train_size=40, dev_size=0)
    assert read_json_lines(tmp_path / "train.jsonl") == train[:40]
