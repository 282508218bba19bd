"""Encoders from a model hub of this process: what is fetched, how it goes on, and what a hostile one achieves."""

import functools
import os
import resource
import shutil
import subprocess
import sys
from unittest.mock import Mock

import huggingface_hub
import pytest

from paddle_rope.tasks.commands.main import main
from paddle_rope.tasks.common import hub
from tests.helpers.local_server import COMMIT, LocalServer, serve
from tests.tasks.ner.conftest import error_of

WEIGHTS = os.urandom(5000)
NEEDED = {
    "config.json": b'{"model_type": "roformer"}', "vocab.txt": b"[PAD]\n", "tokenizer.json": b"{}1",
    "tokenizer_config.json": b"{}22", "README.md": b"---\n", "LICENSE": b"Apache", "model.safetensors": WEIGHTS,
}  # fmt: skip
OTHERS = {
    "pytorch_model.bin": b"1", "tf_model.h5": b"2", "flax_model.msgpack": b"3", "training_args.bin": b"4",
    "modeling.py": b"5", "onnx/model.safetensors": b"6", "../config.json": b"7", "/tmp/vocab.txt": b"8",
    "..\\README.md": b"9", "config.json/../../vocab.txt": b"10",
}  # fmt: skip
NAME = "hfl/rbt3"
ABOUT = f"/api/models/{NAME}?blobs=True"


@pytest.fixture
def server(monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy", "HF_TOKEN"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    monkeypatch.setattr("time.sleep", lambda seconds: None)  # attempts follow each other at once
    monkeypatch.setattr("huggingface_hub.constants.DOWNLOAD_CHUNK_SIZE", 1000)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)
    with serve(LocalServer({})) as server:
        server.add_model(NAME, {**NEEDED, **OTHERS})
        monkeypatch.setattr("huggingface_hub.HfApi", functools.partial(huggingface_hub.HfApi, endpoint=server.url))
        yield server


def files_in(folder):
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def path_of(file):
    return f"/{NAME}/resolve/{COMMIT}/{file}"


def test_what_training_needs_arrives_and_is_kept(server, tmp_path, capsys):
    folder = tmp_path / "encoders" / NAME
    for said in (f"model.safetensors: 5000 bytes from {server.url}/{NAME}", "model.safetensors: is there already"):
        assert main(["download", NAME, "--output", str(tmp_path)]) == 0
        printed = capsys.readouterr().out
        assert said in printed and f"{folder}: commit {COMMIT}, license apache-2.0" in printed
        assert printed.endswith(f"--train_file FILE --pretrained {folder} --output_dir runs/rbt3\n")
    assert files_in(tmp_path) == {f"encoders/{NAME}/{name}": content for name, content in NEEDED.items()}
    assert sorted(server.asked) == sorted([ABOUT, ABOUT, *map(path_of, NEEDED)])  # the second time only what it is


SPLIT = "model-00001-of-00002.safetensors model-00002-of-00002.safetensors model.safetensors.index.json"


@pytest.mark.parametrize("files, chosen", [
    ("config.json pytorch_model.bin tf_model.h5", "config.json pytorch_model.bin"),
    ("model_config.json model_state.pdparams vocab.txt", "model_config.json vocab.txt model_state.pdparams"),
    (f"{SPLIT} pytorch_model.bin README.md", f"README.md {SPLIT}"),
    ("README.md config.json tf_model.h5 model.safetensors.py xmodel.safetensors", ""),
])  # fmt: skip
def test_weights_come_in_the_safest_form_alone(files, chosen):
    assert hub.needed_files(files.split()) == chosen.split()


def test_hf_endpoint_names_the_hub(server, tmp_path):
    environment = {**os.environ, "HF_ENDPOINT": f"{server.url}/", "PYTHONSAFEPATH": "1"}
    words = [sys.executable, "-m", "paddle_rope", "download", NAME, "--output", str(tmp_path)]
    done = subprocess.run(words, env=environment, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "") and len(files_in(tmp_path)) == len(NEEDED)


def test_a_download_that_breaks_or_is_interrupted_goes_on_where_it_was(server, tmp_path, monkeypatch):
    # after the description and all other files a cut that leaves two blocks, and nothing at each later attempt
    server.cuts = [*[None] * len(NEEDED), 2500, *[0] * 9]
    assert "IncompleteRead" in error_of(hub.fetch_encoder, NAME, tmp_path)
    assert "model.safetensors" not in files_in(tmp_path)
    server.cuts = []
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt, match="the same command resumes"):
        patch.setattr("huggingface_hub.hf_api.HfApi.hf_hub_download", Mock(side_effect=KeyboardInterrupt))
        hub.fetch_encoder(NAME, tmp_path)
    server.cuts = [None, 700]  # after the description a cut that leaves no further block
    hub.fetch_encoder(NAME, tmp_path)
    assert server.asked[-3:] == [ABOUT, *[(path_of("model.safetensors"), 2000)] * 2]
    assert files_in(tmp_path) == NEEDED


GATED, CONFIG = {"X-Error-Code": "GatedRepo"}, path_of("config.json")
NO_MODEL = b'{"id": "x", "siblings": [{"rfilename": "README.md"}]}'
LIES = [  # (path, what is served there, headers), a part of the line
    (ABOUT, 404, {}, "cannot be downloaded (HTTP 404); check the name; "),
    (ABOUT, 401, GATED, "cannot be downloaded (HTTP 401); check the name; if it is private or gated, "),
    (CONFIG, 403, GATED, "cannot be downloaded (HTTP 403); check the name; if it is private or gated, "),
    (CONFIG, 500, {}, "cannot be downloaded (HTTP 500); check the network, "),
    (ABOUT, b"<html>", {}, "cannot be downloaded (Expecting value: "),
    (ABOUT, b'{"id": "x"}', {}, "its answers do not fit together (TypeError: "),
    (ABOUT, NO_MODEL, {}, "has no weights that can be read here, but README.md"),
    (path_of("model.safetensors"), WEIGHTS[::-1], {}, "model.safetensors has another checksum than published; "),
    (CONFIG, b"{}", {}, "config.json has another checksum than published; run again"),
    (CONFIG, b"{}" * 9999, {"X-Linked-Size": 2}, "its answers do not fit together (OSError: Consistency check failed"),
    (CONFIG, b"{}", {"ETag": '"/../../../../../evil"'}, "cannot be written (No such file or directory)"),
]  # fmt: skip


@pytest.mark.parametrize("path, content, headers, said", LIES, ids=[said[:60] for *_, said in LIES])
def test_what_cannot_be_had_is_one_line_and_leaves_nothing_wrong(server, tmp_path, path, content, headers, said):
    true = server.files[path], server.headers.get(path, {})
    server.files[path], server.headers[path] = content, {**true[1], **headers}
    message = error_of(hub.fetch_encoder, NAME, tmp_path / "new")
    assert said in message and message.startswith((f"{server.url}/{NAME}: ", f"{tmp_path / 'new'}: ")), message
    assert {*os.listdir(tmp_path)} <= {"new"}
    there = {name: content for name, content in files_in(tmp_path / "new").items() if not name.startswith(hub.PART)}
    assert there.items() <= NEEDED.items()
    server.files[path], server.headers[path] = true
    hub.fetch_encoder(NAME, tmp_path / "new")
    assert files_in(tmp_path / "new") == NEEDED


def test_a_folder_with_other_content_is_kept_and_an_unreadable_model_refused(server, tmp_path):
    hub.fetch_encoder(NAME, tmp_path)
    (tmp_path / "vocab.txt").write_bytes(b"other")
    message = error_of(hub.fetch_encoder, NAME, tmp_path)
    assert f"{tmp_path}/vocab.txt: is not that of {server.url}/{NAME}; move " in message and "--output" in message
    assert (tmp_path / "vocab.txt").read_bytes() == b"other"
    server.add_model("hfl/rbt4", {"pytorch_model.bin": b"1", "config.json": b"{"})
    (tmp_path / "rbt4").mkdir()
    shutil.copy(tmp_path / "model.safetensors", tmp_path / "rbt4")  # would be read before the .bin
    assert "rbt4/model.safetensors: is not that of " in error_of(hub.fetch_encoder, "hfl/rbt4", tmp_path / "rbt4")
    (tmp_path / "rbt4" / "model.safetensors").unlink()
    for _ in range(2):
        assert "rbt4/config.json: is not JSON" in error_of(hub.fetch_encoder, "hfl/rbt4", tmp_path / "rbt4")
    assert not any(path.endswith(".bin") for path in server.asked)


def test_a_wrong_name_and_no_network_are_one_line(server, refused, monkeypatch):
    for name in ("../rbt3", "/rbt3", "hfl/", "hfl/rbt3/..", "hfl/rb t3"):
        assert f"'{name}'" in refused("download", name)
    assert "no such data set; take one of cluener" in refused("download", "rbt3") and not server.asked
    nowhere = functools.partial(huggingface_hub.hf_api.HfApi, endpoint="http://127.0.0.1:9")
    monkeypatch.setattr("huggingface_hub.HfApi", nowhere)
    assert "9/hfl/rbt3: cannot be downloaded ([Errno 111] Connection refused); check" in refused("download", NAME)


def test_a_full_disk_and_a_missing_package_are_one_line(server, tmp_path, monkeypatch):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    server.add_model(NAME, {**NEEDED, "model.safetensors": bytes(3 << 20)})
    resource.setrlimit(resource.RLIMIT_FSIZE, (2 << 20, hard))
    try:
        message = error_of(hub.fetch_encoder, NAME, tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert f"{tmp_path}: cannot be written (File too large); make room, or give another --output; the same " in message
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    assert "huggingface_hub is not installed; pip" in error_of(hub.fetch_encoder, NAME, tmp_path)
