"""The contract of the verbs: a mistake ends with status 2 and one line that names it, before long work, and no file is
written or changed.

In the words MODEL stands for a NER model, DATA for a labeled file, and the others for what their names say.
"""

import json
import shutil
from pathlib import Path

import pytest
import yaml

from paddle_rope.tasks.commands.main import VERBS, main
from paddle_rope.tasks.commands.serve import serve
from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.ner.demo import UNSEEN_SENTENCES
from tests.helpers.models import FORMATS, export
from tests.tasks.tiny_recipes import KEYS

# verb -> words that work. What the rows below change in them is the mistake.
WORKING = {
    "train": "CONFIG --output_dir out",
    "predict": "MODEL --input DATA --output out",
    "serve": "MODEL",
    "select": "MODEL --input DATA --count 1 --output out",
    "evaluate": "MODEL DATA --output out",
    "export": "MODEL --output out",
    "tune": "MODEL DATA",
    "inspect": "DATA --output out",
    "convert": "DATA out --to bio",
    "download": "cluener --output out",
    "demo": "ner out",
    "compare": "RUN",
    "convert-weights": "ENCODER out --to huggingface",
    "decay": "--output out",
}
OF_A_MODEL = [verb for verb, words in WORKING.items() if "MODEL" in words.split()]
INPUTS = ("CONFIG", "DATA", "RUN", "ENCODER")
FILES = [verb for verb, words in WORKING.items() if {*INPUTS} & {*words.split()}]
WITH_OUTPUT = [verb for verb, words in WORKING.items() if "out" in words.split()]
MAKE_PARENTS = ("train", "export", "convert-weights", "download", "demo", "decay")  # of the folder ``out``


@pytest.fixture
def call(refused, folders, labeled, tmp_path):
    """``call(verb, OLD=new ...)``: the line of a verb's working words, with ``new`` in place of ``OLD``."""
    (tmp_path / "config.yaml").write_text(f"recipe: ner\ntrain_file: {labeled['ner']}\n", encoding="utf-8")
    names = {"MODEL": folders["ner"], "ENCODER": folders["encoder"], "DATA": labeled["ner"]}
    names.update(CONFIG="config.yaml", RUN="run")

    def call(verb, *more, **changes):
        words = [changes.get(word, names.get(word, word)) for word in WORKING[verb].split()]
        return refused(verb, *words, *more)

    return call


def test_every_verb_is_in_the_table():
    assert {*VERBS} - {"benchmark", "experiment"} == {*WORKING}  # these two measure and train: tests/tasks/experiments


@pytest.mark.parametrize("verb", FILES)
def test_a_missing_file_is_named(call, verb):
    message = call(verb, **dict.fromkeys(INPUTS, "nope"))
    assert message.startswith("nope") and ("no such" in message or "nope/" in message or "missing" in message)


@pytest.mark.slow
@pytest.mark.parametrize("verb", OF_A_MODEL)
@pytest.mark.parametrize("mistake", ["nope", "training run", "empty", "encoder", "damaged"])
def test_a_folder_that_is_no_model_is_named(call, folders, tmp_path, verb, mistake):
    (tmp_path / "empty").mkdir()
    shutil.copytree(folders["ner"], tmp_path / "training run" / "model")
    shutil.copytree(folders["encoder"], tmp_path / "encoder")
    shutil.copytree(folders["ner"], tmp_path / "damaged")
    (tmp_path / "damaged" / "config.json").write_text("{", encoding="utf-8")
    message = call(verb, MODEL=mistake)
    assert mistake in message
    assert {"training run": "training run/model", "encoder": "is an encoder"}.get(mistake, "") in message


@pytest.mark.slow
@pytest.mark.parametrize("verb", WITH_OUTPUT)
@pytest.mark.parametrize("place", ["no/folder/out", "file/out", "taken", "/proc/out"])
def test_a_place_that_cannot_be_written_is_named(call, tmp_path, verb, place):
    (tmp_path / "file").touch()
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "decay_ones.png").write_text("old", encoding="utf-8")
    if place == "no/folder/out" and verb in MAKE_PARENTS or (verb, place) == ("download", "taken"):
        pytest.skip("such a folder is right")
    assert place in call(verb, out=place)


@pytest.mark.parametrize("verb", ["predict", "select", "evaluate", "inspect", "convert"])
def test_the_input_is_not_written_over(call, labeled, tmp_path, verb):
    shutil.copy(labeled["ner"], tmp_path / "data.jsonl")
    assert "data.jsonl: is " in call(verb, DATA="data.jsonl", out="./data.jsonl")


@pytest.mark.parametrize("verb, more", [
    *(("predict", ()), ("predict", ("--processes", "1"))), ("select", ()), ("evaluate", ()),
])  # fmt: skip
def test_nothing_is_written_into_the_folder_of_the_model(call, folders, tmp_path, verb, more):
    (tmp_path / "link").symlink_to(folders["ner"])
    for place in (folders["ner"] / "new", "link/sub/new"):
        assert f"{place}: is among the other files of this command" in call(verb, *more, out=place)


SIZES = [
    *((verb, "--batch_size") for verb in ("predict", "select", "evaluate", "tune", "serve")),
    *((verb, "--max_tokens") for verb in ("predict", "select", "evaluate", "tune")),
    ("predict", "--processes"), ("predict", "--threads"), ("predict", "--part_records"), ("select", "--count"),
    ("serve", "--workers"), ("serve", "--max_queue"),
    ("decay", "--head_dim"), ("decay", "--base"),
]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("verb, option, value", [
    *((verb, "--device", "abacus") for verb in ("train", "predict", "select", "evaluate", "tune")),
    *((*size, "0") for size in SIZES),
])  # fmt: skip
def test_a_device_that_is_not_there_and_a_size_of_0_are_refused(call, verb, option, value):
    message = call(verb, option, value)
    assert option in message and value in message


@pytest.mark.slow
@pytest.mark.parametrize("verb", WORKING)
def test_an_unknown_option_and_a_missing_argument_point_to_the_help(call, refused, verb):
    assert "nonsense" in call(verb, "--nonsense", "1")
    message = refused(verb)
    assert "--help" in message or "usage" in message


READ_LABELED = {
    "inspect": "DATA", "convert": "DATA out --to jsonl", "evaluate": "MODEL DATA", "tune": "MODEL DATA",
    "select": "MODEL --input DATA --labeled DATA --count 1", "benchmark": "entities MODEL --input DATA",
    "export": "MODEL --check DATA --output out --format paddle",
}  # fmt: skip


@pytest.mark.parametrize("verb", READ_LABELED)
def test_labeled_data_are_read_with_other_keys_and_without_what_is_wrong(folders, write, tmp_path, caplog, verb):
    shutil.copytree(folders["ner"], tmp_path / "model")
    marks = [{"from": 0, "to": end, "kind": "a"} for end in (2, 9999)]
    data = write(json.dumps({"body": UNSEEN_SENTENCES[0], "marks": marks}), "data.jsonl")
    names = {"MODEL": tmp_path / "model", "DATA": data, "out": tmp_path / "out"}
    words = [verb, *(str(names.get(word, word)) for word in READ_LABELED[verb].split())]
    words += ["--fields", "text=body,spans=marks,start=from,end=to,type=kind"]
    assert main(words) == 2 and not (tmp_path / "out").exists()
    assert main([*words, "--on_error", "skip"]) == 0
    assert verb == "inspect" or any("left out 1 spans outside" in message for message in caplog.messages)


# ---- what one verb refuses: refusals.yaml
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
def test_a_mistake_is_one_line_and_no_file(refused, folders, labeled, configs, request, write, group, more, said, data):
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


def test_variables_of_the_environment_are_options_of_serve(folders, monkeypatch):
    pytest.importorskip("fastapi_offline", reason="pip install 'paddle_rope[serve]'")
    seen = []
    monkeypatch.setattr("paddle_rope.tasks.serving.server.serve", seen.append)
    for name, value in {"PORT": "9000", "DEVICE": "gpu:3", "BF16": "true", "API_KEY": "key\n"}.items():
        monkeypatch.setenv(f"PADDLE_ROPE_SERVE_{name}", value)
    serve([str(folders["ner"])])
    serve([str(folders["ner"]), "--port", "1"])  # an option wins
    found = [(one.port, one.device, one.bf16, one.api_key) for one in seen]
    assert found == [(9000, "gpu:3", True, "key"), (1, "gpu:3", True, "key")]
    monkeypatch.setenv("PADDLE_ROPE_SERVE_BF16", "1")
    with pytest.raises(InputError, match="bf16 must be true or false, got '1'"):
        serve([str(folders["ner"])])
