"""Set-up of the process, seeds, and where real data are."""

import gc
import os
import zlib  # noqa: F401  paddle 2.6.2 exports its own zlib symbols: load the system's first
from pathlib import Path

from paddle_rope.machine import import_paddle, prepare_process

# Paddle Inference sets the threads of the whole process to one, and another number adds up in another order: with one
# from the beginning, equal runs are equal to the bit. Models of tests are no faster with more.
os.environ["OMP_NUM_THREADS"] = "1"
# Whether products are in bfloat16 must not depend on the processor and on how busy it is.
os.environ["PADDLE_ROPE_BFLOAT16"] = "0"
# What is built and kept for later belongs to the tests: with native operators in the user's own folder, all trainings
# of that user would compute with them. One folder for all runs and processes; what is in it appears there whole.
os.environ["XDG_CACHE_HOME"] = str(Path(__file__).resolve().parents[1] / ".pytest_cache" / "home")
prepare_process()
import_paddle()

import numpy as np  # noqa: E402
import paddle  # noqa: E402
import pytest  # noqa: E402
from hypothesis import settings  # noqa: E402

from paddle_rope.native.library import build  # noqa: E402

# Models compute as they do for users: with native operators where there is a compiler. PADDLE_ROPE_NATIVE=0 leaves them
# to tests/paddle_rope/native.
build()

# Hypothesis draws the same examples in every run, and in the nightly one others: --hypothesis-profile random.
settings.register_profile("random", derandomize=False, deadline=None)
settings.register_profile("same", derandomize=True, deadline=None)
settings.load_profile("same")

REPOSITORY = Path(__file__).resolve().parents[1]
# As the real one: special tokens, punctuation, digits, letters, pieces, Chinese characters; uncased.
SMALL_BERT_VOCAB = [
    *["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *"！，。：（）,.-%/+:()", *"0123456789"],
    *"abcdefghijklmnopqrstuvwxyz",
    *(f"##{character}" for character in "0123456789abcdefghijklmnopqrstuvwxyz"),
    *["20", "##24", "##ing", "learn", "deep", "python", "gpu", "nlp", "the", "ro", "##former"],
    *"一二三四五六七八九十的是了在和有人大中国上海北京学生年月日我他她们机器习自然语言处理模型训练数据",
]
# As RoFormer's: a vocabulary like BERT's with Chinese words.
SMALL_WORD_VOCAB = [
    *SMALL_BERT_VOCAB,
    *"#&_[]“”、①々豈葛",
    *["中国", "北京", "大学", "大学生", "学习", "语言", "处理", "模型", "一年", "我们", "t恤", "c++", "aa制"],
    *["caf", "か", "ᄀ", "##ᅡ", "##ᆨ", "##①", "ς", "σ", "##ς", "##σ", "ι", "##ι", "κ", "##κ", "iphone", "2024", "mask"],
]


# Files that take many seconds with few tests: begun first, so that at the end no process waits for another.
LONG = (
    "attack/test_attack.py",
    "tasks/ner/test_export.py",
    "paddle_rope/roformer/test_modeling.py",
    "tasks/common/export/test_operators.py",
    "tasks/scaling/test_run.py",
    "tasks/ner/test_resume.py",
    "tasks/ner/test_epochs.py",
    "kill/test_kill.py",
    "tools/test_benchmarks.py",
    "tasks/serving/test_models.py",
    "repository/test_install.py",
    "repository/test_site.py",
    "repository/test_readme.py",
)


def pytest_collection_modifyitems(items):
    places = {REPOSITORY / "tests" / name: place for place, name in enumerate(LONG)}
    items.sort(key=lambda item: places.get(item.path, len(LONG)))


def pytest_collection_finish():
    gc.collect()
    gc.freeze()  # what is imported stays: a collection in a test looks at what the test has made


def pytest_assertrepr_compare(op, left, right):
    """Files that differ are told by their first difference: pytest compares line by line, minutes for weights."""
    if op == "==" and isinstance(left, bytes) and isinstance(right, bytes) and max(len(left), len(right)) > 10_000:
        first = len(os.path.commonprefix([left, right]))
        return [f"{len(left):,} bytes == {len(right):,} bytes", f"they differ from byte {first:,} on"]
    return None


@pytest.fixture(autouse=True)
def seeds():
    """The same random numbers in every test, whatever ran before it."""
    paddle.seed(2021)
    np.random.seed(2021)


@pytest.fixture(scope="session")
def shared_data():
    """The folder of the real data sets, which PADDLE_ROPE_DATA names; without it the test is skipped."""
    given = os.environ.get("PADDLE_ROPE_DATA")
    if not given:
        pytest.skip("PADDLE_ROPE_DATA names no folder of the real data sets")
    return Path(given)


def _vocab_file(request, tmp_path, real, small):
    if request.param == "real":
        return request.getfixturevalue("shared_data") / real
    path = tmp_path / "small_vocab.txt"
    path.write_bytes("".join(f"{token}\n" for token in small).encode("utf-8"))
    return path


@pytest.fixture(params=["small", "real"])
def bert_vocab_file(request, tmp_path):
    """A vocabulary file in BERT's format: a small one of our own, and the real one where it is."""
    return _vocab_file(request, tmp_path, "vocab/bert_base_chinese_vocab.txt", SMALL_BERT_VOCAB)


@pytest.fixture(params=["small", "real"])
def word_vocab_file(request, tmp_path):
    """A vocabulary file in the format of RoFormer's: a small one of our own, and the real one where it is."""
    return _vocab_file(request, tmp_path, "vocab/roformer_chinese_word_vocab.txt", SMALL_WORD_VOCAB)


@pytest.fixture
def refused(tmp_path, monkeypatch, capsys):
    """``refused(*words)``: the one line of a command that ends with status 2 and writes nothing, in ``tmp_path``."""
    from paddle_rope.tasks.commands.main import main

    monkeypatch.chdir(tmp_path)

    def files():
        return {path: path.read_bytes() if path.is_file() else None for path in tmp_path.rglob("*")}

    def refused(*words):
        gc.collect()  # a run that was cut ends its progress bar only now
        before = files()
        capsys.readouterr()
        assert main([str(word) for word in words]) == 2
        error = capsys.readouterr().err
        assert error.startswith("error: ") and error.count("\n") == 1 and "Traceback" not in error, error
        assert files() == before
        return error.removeprefix("error: ").rstrip("\n")

    return refused
