"""The installed package: the command from any folder, the shipped files, a ``tasks`` of the user's own."""

import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from paddle_rope.tasks.commands.main import VERBS, main
from tests.conftest import REPOSITORY
from tests.helpers.models import FORMATS, export, needs_onnx
from tests.tasks.commands.conftest import LABELED, MODELS, write_models


@pytest.fixture(scope="module")
def sources(tmp_path_factory):
    """A folder like the repository: building writes into it."""
    folder = tmp_path_factory.mktemp("sources")
    names = ("paddle_rope", "tasks", "configs", "pyproject.toml", "setup.py", "README.md", "LICENSE")
    for path in map(REPOSITORY.joinpath, names):
        (folder / path.name).symlink_to(path)
    return folder


def pip(*words, **variables):
    environment = {**os.environ, **variables}
    words = [sys.executable, "-m", "pip", "--quiet", *words]
    done = subprocess.run(words, env=environment, capture_output=True, text=True)
    if "connection broken" in done.stderr and "CI" not in os.environ:
        pytest.skip("pip reaches no package index")
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="module")
def wheel(sources, tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    of_workflow = {"GITHUB_SERVER_URL": "https://a.b", "GITHUB_REPOSITORY": "c/d", "GITHUB_SHA": "e"}
    pip("wheel", "--no-deps", "--no-build-isolation", "--no-index", "--wheel-dir", folder, sources, **of_workflow)
    (built,) = folder.iterdir()
    return built


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The folder that ``pip install --target`` fills; the dependencies are those of this interpreter."""
    site = tmp_path_factory.mktemp("installed")
    pip("install", "--no-deps", "--no-index", "--no-compile", "--target", site, wheel)
    return site


def call(*words, cwd, **variables):
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | variables
    return subprocess.run(words, cwd=cwd, env=environment, capture_output=True, text=True, timeout=120)


@pytest.fixture
def run(installed, tmp_path):
    """Run in an empty folder with the installed package; what it prints."""

    def run(*words, cwd=tmp_path, **variables):
        done = call(*words, cwd=cwd, **{"PYTHONPATH": str(installed), **variables})
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


def test_the_quickstart_takes_a_folder_relative_to_its_caller(tmp_path):
    (tmp_path / "taken").mkdir()
    words = ["bash", REPOSITORY / "tools/quickstart.sh", "taken"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and done.stderr.startswith(f"error: {tmp_path}/taken exists already")


def test_command_and_module_work_outside_the_repository(run, installed):
    shown = run(sys.executable, "-m", "paddle_rope", "--help")
    assert "train a model" in shown
    assert run(sys.executable, installed / "bin" / "paddle-rope") == shown
    assert run(sys.executable, "-m", "paddle_rope", "--version").startswith("paddle-rope ")
    for task, said in (("ner", "2400 sentences"), ("matching", "triples.jsonl: ")):  # their data are there
        assert said in run(sys.executable, "-m", "paddle_rope", "demo", task, f"corpus_{task}")
    code = "import sys; from paddle_rope.tasks.ner.page.html import write_html; write_html(sys.stdout, [], [], 'no')"
    shown = run(sys.executable, "-c", code)
    assert "Entities of no" in shown and "box-decoration-break" in shown


def test_shipped_configurations_are_found_from_any_folder_unless_the_user_has_some(run, tmp_path):
    code = (
        "from paddle_rope.tasks.common.run_config import read_run_config; import json; "
        "print(json.dumps(read_run_config('configs/classification/demo.yaml', ['--dev_file', 'configs/none.jsonl'])))"
    )
    config = json.loads(run(sys.executable, "-c", code))
    data = Path(config["train_file"])
    assert data.is_absolute() and data.read_bytes() == (REPOSITORY / "configs/classification/demo.jsonl").read_bytes()
    assert config["dev_file"] == "configs/none.jsonl"
    (tmp_path / "configs/classification").mkdir(parents=True)
    own = "seed: 7\ntrain_file: configs/classification/demo.yaml\n"
    (tmp_path / "configs/classification/demo.yaml").write_text(own)
    config = json.loads(run(sys.executable, "-c", code))
    assert config == {"seed": 7, "train_file": "configs/classification/demo.yaml", "dev_file": "configs/none.jsonl"}


def test_every_shipped_file_is_installed(installed):
    shipped = [path.relative_to(REPOSITORY / "configs") for path in (REPOSITORY / "configs").rglob("*.*")]
    assert len(shipped) > 20
    assert [path for path in shipped if not (installed / "paddle_rope/tasks/configs" / path).is_file()] == []
    of_library = (*REPOSITORY.glob("paddle_rope/roformer/encoders/*/*"), *REPOSITORY.glob("paddle_rope/native/csrc/*"))
    assert len(of_library) > 10
    of_tasks = [Path("paddle_rope") / path.relative_to(REPOSITORY) for path in (REPOSITORY / "tasks").rglob("*.yaml")]
    data = [*of_tasks, *(path.relative_to(REPOSITORY) for path in of_library)]
    assert [path for path in data if not (installed / path).is_file()] == []
    names = {path.name for path in installed.iterdir() if path.suffix != ".dist-info"}
    assert names == {"paddle_rope", "bin"}, "a wheel takes one name"


def test_a_release_shows_absolute_links_and_every_license(installed):
    (metadata,) = installed.glob("paddle_rope-*.dist-info/METADATA")
    text = metadata.read_text(encoding="utf-8")
    assert "Project-URL: Source, https://a.b/c/d/\n" in text and "(https://a.b/c/d/blob/e/LICENSE)" in text
    assert "(https://a.b/c/d/raw/e/docs/figures/quickstart.svg)" in text
    assert re.findall(r"\]\((?!https?:|#).*", text) == []
    licenses = {str(path.parent.relative_to(metadata.parent)) for path in metadata.parent.rglob("LICENSE")}
    assert licenses == {"licenses", "licenses/paddle_rope/roformer/encoders/small"}


@pytest.mark.parametrize("file", ["tasks.py", "tasks/__init__.py"])
def test_tasks_of_the_user_do_no_harm(run, installed, tmp_path, file):
    foreign = tmp_path / "foreign"
    (foreign / file).parent.mkdir(parents=True)
    (foreign / file).write_text("raise SystemExit('foreign')\n")
    first = os.pathsep.join([str(foreign), str(installed)])
    words = "convert", "--help"
    assert "formats:" in run(sys.executable, "-m", "paddle_rope", *words, cwd=foreign)
    assert "formats:" in run(sys.executable, installed / "bin/paddle-rope", *words, PYTHONPATH=first)


@pytest.mark.slow
def test_editable_installation_runs_the_code_of_the_repository(sources, tmp_path):
    venv.create(tmp_path / "venv")
    python, site = tmp_path / "venv/bin/python", sysconfig.get_path("purelib")
    paths = os.pathsep.join([os.environ.get("PYTHONPATH", ""), site])  # what builds, and the dependencies
    words = ["--no-deps", "--no-build-isolation", "--no-index", "-e", sources]
    pip("--python", python, "install", *words, PYTHONPATH=paths)
    code = "from paddle_rope.tasks.common.run_config import shipped; print(shipped('configs/ner/demo.yaml'))"
    for words in ([tmp_path / "venv/bin/paddle-rope", "convert", "--help"], [python, "-c", code]):
        done = call(*words, cwd=tmp_path, PYTHONPATH=site)
        assert (done.returncode, done.stderr) == (0, "")
    assert Path(done.stdout.strip()) == REPOSITORY / "configs/ner/demo.yaml"


# ---- the wheel alone, without Paddle and what else training needs
@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Untrained models, what is exported from one, labeled data and a finished run, by the names of the words below."""
    home = tmp_path_factory.mktemp("models")
    folders = {name.upper(): folder for name, folder in write_models(home, MODELS).items()}
    (home / "data.jsonl").write_text(json.dumps(LABELED["ner"][0]) + "\n", encoding="utf-8")
    (home / "run").mkdir()
    (home / "run/config.yaml").write_text(f"recipe: ner\ntrain_file: {home / 'data.jsonl'}\noutput_dir: out\n")
    (home / "run/metrics.json").write_text('{"parameters": 7}')
    paths = {"DATA": home / "data.jsonl", "RUN": home / "run", "CONFIG": home / "run/config.yaml"}
    return {**folders, **paths, **{format.upper(): export(home / format, format, home / "ner") for format in FORMATS}}


@pytest.fixture(scope="module")
def bare(wheel, tmp_path_factory):
    """The command in an environment of the wheel and its dependencies, which pip takes from the index."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder)
    pip("--python", folder / "bin/python", "install", "--no-compile", wheel)
    return folder / "bin/paddle-rope"


NEEDED = {  # extra -> words that need it
    "cpu": [
        *("train CONFIG", "train configs/ner/own_data.yaml --train_file DATA --output_dir out", "train --resume RUN"),
        *("tune NER DATA", "export NER --output out", "evaluate NER DATA", "evaluate PADDLE DATA"),
        *("decay --output out", "benchmark length configs/experiments/speed.yaml"),
        *("experiment configs/experiments/demo.yaml", "predict NER --input DATA --output out"),
        *("predict NER --input DATA --output out --processes 1", "predict MATCHING --input DATA"),
        *("select NER --input DATA --count 1", "convert-weights ENCODER out --to huggingface"),
    ],
    "onnx": ["predict ONNX --input DATA"] if "onnx" in FORMATS else [],
    "ray": ["predict NER --input DATA --output out --ray"],
    "serve": ["serve NER"],
}


@pytest.mark.slow
@pytest.mark.parametrize("extra", NEEDED)
def test_what_is_not_installed_is_named_with_its_extra(bare, models, tmp_path, extra):
    for words in NEEDED[extra]:
        done = call(bare, *(models.get(word, word) for word in words.split()), cwd=tmp_path)
        assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1), f"{words}: {done.stderr}"
        assert done.stderr.startswith("error: ") and f"pip install 'paddle_rope[{extra}]'" in done.stderr, words
        assert not (tmp_path / "out").exists(), words


ENOUGH = (
    *("inspect DATA --output found", "convert DATA out --to bio", "demo ner corpus", "compare RUN RUN"),
    "download --help",
)


def test_every_verb_is_tried_with_the_wheel_alone():
    assert {words.split()[0] for words in (*ENOUGH, *itertools.chain(*NEEDED.values()))} == set(VERBS)


@pytest.mark.slow
def test_data_and_finished_runs_are_read_without_paddle(bare, models, tmp_path):
    for words in ENOUGH:
        done = call(bare, *(models.get(word, word) for word in words.split()), cwd=tmp_path)
        assert (done.returncode, done.stderr) == (0, ""), words
    assert json.loads((tmp_path / "found").read_text(encoding="utf-8"))["splits"]["train"]["texts"] == 1


@pytest.mark.slow
@needs_onnx
def test_an_onnx_model_is_evaluated_as_with_paddle(bare, wheel, models, tmp_path, capsys):
    python = shutil.copytree(bare.parents[1], tmp_path / "environment", symlinks=True) / "bin/python"
    pip("--python", python, "install", "--no-compile", f"{wheel}[onnx]")
    for recipe in LABELED:
        folder, data = tmp_path / recipe, tmp_path / f"{recipe}.jsonl"
        export(folder, "onnx", models[recipe.upper()])
        data.write_text("".join(json.dumps(record) + "\n" for record in LABELED[recipe]), encoding="utf-8")
        capsys.readouterr()
        assert main(["evaluate", str(folder), str(data), "--output", str(tmp_path / "expected")]) == 0
        done = call(python, "-m", "paddle_rope", "evaluate", folder, data, "--output", "found", cwd=tmp_path)
        assert (done.returncode, done.stdout) == (0, capsys.readouterr().out), done.stderr
        assert (tmp_path / "found").read_bytes() == (tmp_path / "expected").read_bytes()
