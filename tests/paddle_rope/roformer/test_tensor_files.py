"""Files of tensors: what torch and paddle write is read exactly, nothing in a pickle is run, damage is an error."""

import json
import os
import pickle
import shutil
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import paddle
import pytest
from safetensors.numpy import load_file, save_file

from paddle_rope.roformer.checkpoints.pickled_tensors import PADDLE_SPLIT, TORCH_LEGACY_MAGIC, bfloat16_to_float32
from paddle_rope.roformer.checkpoints.tensor_files import find_weights, read_tensors

DATA = Path(__file__).parent / "data"
TORCH = DATA / "torch_files"


def assert_same(tensors, expected):
    assert set(tensors) == set(expected)
    for name, array in expected.items():
        assert tensors[name].dtype == array.dtype, name
        np.testing.assert_array_equal(tensors[name], array, err_msg=name)


@pytest.mark.parametrize("name", ["zip.bin", "legacy.bin"])
def test_views_types_and_parameters_of_torch_are_read_exactly(name):
    with np.load(TORCH / "expected.npz") as expected:
        assert_same(read_tensors(TORCH / name), dict(expected))


@pytest.mark.parametrize("folder", ["hf_tiny", "hf_tiny_rotary_value"])
def test_both_files_of_hugging_face_hold_the_same(folder):
    tensors = read_tensors(DATA / folder / "model.safetensors")
    assert_same(tensors, load_file(DATA / folder / "model.safetensors"))
    pickled = read_tensors(DATA / folder / "pytorch_model.bin")
    assert set(pickled) - set(tensors) == {"cls.predictions.decoder.weight", "cls.predictions.decoder.bias"}
    np.testing.assert_array_equal(
        pickled["cls.predictions.decoder.weight"], tensors["roformer.embeddings.word_embeddings.weight"]
    )
    assert_same({name: pickled[name] for name in tensors}, tensors)


def test_bfloat16_is_the_upper_half_of_float32():
    values = np.array([0.0, -0.0, 1.0, -2.5, 3.0e38, 1e-40, np.inf, -np.inf], np.float32)
    bits = (values.view(np.uint32) >> 16).astype(np.uint16)
    read = bfloat16_to_float32(bits)
    np.testing.assert_array_equal(read.view(np.uint32), values.view(np.uint32) & 0xFFFF0000)
    assert np.isnan(bfloat16_to_float32(np.array([0x7FC0], np.uint16))).all()


def test_all_types_of_safetensors_are_read(tmp_path):
    types = ("float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "bool")
    arrays = {name: np.arange(6).reshape(2, 3).astype(name) for name in types}
    arrays["scalar"] = np.array(3.5)
    arrays["empty"] = np.zeros((0, 2), np.float32)
    save_file(arrays, tmp_path / "a.safetensors")
    assert_same(read_tensors(tmp_path / "a.safetensors"), arrays)


def test_bfloat16_of_safetensors_is_read(tmp_path):
    header = json.dumps({"x": {"dtype": "BF16", "shape": [2, 1], "data_offsets": [0, 4]}}).encode()
    (tmp_path / "a.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + b"\x80\x3f\x00\xc0")
    assert_same(read_tensors(tmp_path / "a.safetensors"), {"x": np.array([[1.0], [-2.0]], np.float32)})


@pytest.mark.parametrize("protocol", [2, 3, 4])
def test_what_paddle_saves_is_read_exactly(protocol, tmp_path):
    arrays = {
        "float32": np.random.standard_normal((3, 2)).astype("float32"),
        "float64": np.random.standard_normal((2, 3)),
        "int64": np.arange(4),
        "empty": np.zeros((0, 2), np.float32),
        "scalar": np.float32(2.5).reshape(()),
    }
    tensors = {name: paddle.to_tensor(array) for name, array in arrays.items()}
    halves = paddle.to_tensor([1.0, -2.0, 0.5])
    tensors["bfloat16"] = halves.astype("bfloat16")
    tensors["fortran"] = np.asfortranarray(arrays["float32"])
    paddle.save(tensors, str(tmp_path / "a.pdparams"), protocol=protocol)
    expected = {**arrays, "bfloat16": halves.numpy(), "fortran": arrays["float32"]}
    assert_same(read_tensors(tmp_path / "a.pdparams"), expected)


def test_the_state_of_a_layer_is_read(tmp_path):
    layer = paddle.nn.Linear(3, 2)
    paddle.save(layer.state_dict(), str(tmp_path / "a.pdparams"))
    assert_same(
        read_tensors(tmp_path / "a.pdparams"), {name: value.numpy() for name, value in layer.state_dict().items()}
    )


def test_large_tensors_that_paddle_splits_are_joined(tmp_path):
    # as protocols 2 and 3 store tensors of more than 2^30 bytes
    array = np.arange(12, dtype=np.float32)
    stored = {
        "b": array[:2],
        "a@@.0": array[:8],
        "a@@.1": array[8:],
        PADDLE_SPLIT: {"a": {"OriginShape": (3, 4), "slices": ["a@@.0", "a@@.1"]}},
    }
    (tmp_path / "a.pdparams").write_bytes(pickle.dumps(stored, protocol=2))
    assert_same(read_tensors(tmp_path / "a.pdparams"), {"a": array.reshape(3, 4), "b": array[:2]})


def test_the_parts_of_an_index_are_joined(tmp_path):
    save_file({"a": np.ones(2)}, tmp_path / "1.safetensors")
    shutil.copy(TORCH / "zip.bin", tmp_path / "2.bin")
    index = tmp_path / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"a": "1.safetensors", "bool": "2.bin"}}), encoding="utf-8")
    assert find_weights(tmp_path) == index
    tensors = read_tensors(index)
    assert tensors["bool"].tolist() == [True, False]
    assert tensors["a"].tolist() == [1, 1]
    index.write_text(json.dumps({"weight_map": {"a": "1.safetensors", "c": "2.bin"}}), encoding="utf-8")
    with pytest.raises(ValueError, match="index.json: is not complete: its files lack c"):
        read_tensors(index)
    index.write_text(json.dumps({"weight_map": {"a": "../1.safetensors"}}), encoding="utf-8")
    with pytest.raises(ValueError, match=r"'\.\./1\.safetensors', which is no file of its folder"):
        read_tensors(index)
    index.write_text(json.dumps({"weight_map": {"a": "3.safetensors"}}), encoding="utf-8")
    with pytest.raises(ValueError, match=r"3\.safetensors: cannot be read"):
        read_tensors(index)


class Runs:
    """Pickles as a call."""

    def __init__(self, function, *arguments):
        self.call = function, arguments

    def __reduce__(self):
        return self.call


def torch_zip(path, pickled):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickled)


def torch_legacy(path, pickled):
    start = [pickle.dumps(part, 2) for part in (TORCH_LEGACY_MAGIC, 1001, {"little_endian": True})]
    path.write_bytes(b"".join([*start, pickled, pickle.dumps([], 2)]))


FORMATS = {
    "a.pdparams": lambda path, pickled: path.write_bytes(pickled),
    "zip.bin": torch_zip,
    "legacy.bin": torch_legacy,
    "first.bin": lambda path, pickled: path.write_bytes(pickled),  # in place of the magic number
}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("protocol", [0, 2, 4])
@pytest.mark.parametrize("call", ["system", "eval", "import", "getattr", "numpy"])
def test_a_pickle_that_would_run_something_is_refused_and_runs_nothing(name, protocol, call, tmp_path):
    ran = tmp_path / "ran"
    code = f"open({str(ran)!r}, 'w').close()"
    harm, named = {
        "system": (Runs(os.system, f"touch {ran}"), r"(posix|nt)\.system"),
        "eval": (Runs(eval, code), r"(builtins|__builtin__)\.eval"),
        "import": (Runs(__import__, "os"), r"(builtins|__builtin__)\.__import__"),
        "getattr": (Runs(getattr, "a", "join"), r"(builtins|__builtin__)\.getattr"),
        "numpy": (Runs(np.load, str(ran)), r"numpy.*\.load"),
    }[call]
    path = tmp_path / name
    FORMATS[name](path, pickle.dumps({"good": 1, "evil": harm}, protocol))
    with pytest.raises(ValueError, match=f"asks for '{named}', which tensors are not made of; nothing") as raised:
        read_tensors(path)
    assert str(path) in str(raised.value)
    assert not ran.exists()


@pytest.mark.parametrize(
    "content, message",
    [
        ({"a": "text"}, "holds under 'a' a str instead of a tensor"),
        ({"a": [1.0]}, "holds under 'a' a list instead of a tensor"),
        ({3: np.ones(2)}, "holds under 3 a Array"),
        ([np.ones(2)], "holds a list instead of a dictionary of tensors"),
        ({"a": np.array([None])}, "holds an array of type 'O8', which is not a plain number"),
        ({"a": np.array(["x"])}, "holds an array of type 'U1', which is not a plain number"),
        ({"a": np.array([1j])}, "holds an array of type 'c16', which is not a plain number"),
        ({"a": np.zeros(2, [("x", "f4")])}, "holds an array of type 'V4', which is not a plain number"),
    ],
    ids=str,
)
def test_pickles_of_something_else_are_errors_that_say_what_it_is(content, message, tmp_path):
    path = tmp_path / "a.pdparams"
    path.write_bytes(pickle.dumps(content, 4))
    with pytest.raises(ValueError, match=message):
        read_tensors(path)


def test_a_pickle_cannot_change_what_it_is_given(tmp_path):
    # {'a': OrderedDict} where the state {'build': ...} is put on the constructor itself
    changing = b"\x80\x02ccollections\nOrderedDict\n}X\x08\x00\x00\x00stand_inK\x01sb."
    (tmp_path / "a.pdparams").write_bytes(changing)
    with pytest.raises(ValueError, match="changes what it was given"):
        read_tensors(tmp_path / "a.pdparams")


def test_a_tensor_on_something_else_than_a_storage_is_refused(tmp_path, monkeypatch):
    # rows of a matrix taken for elements would lead beyond its memory
    def rebuild():
        pass

    rebuild.__module__, rebuild.__qualname__ = "torch._utils", "_rebuild_tensor_v2"
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "torch", SimpleNamespace())
        patch.setitem(sys.modules, "torch._utils", SimpleNamespace(_rebuild_tensor_v2=rebuild))
        harm = Runs(rebuild, np.zeros((2, 1000)), 1, (1999,), (1,), False)
        (tmp_path / "a.pdparams").write_bytes(pickle.dumps({"a": harm}, 2))
    with pytest.raises(ValueError, match="holds a tensor without a storage"):
        read_tensors(tmp_path / "a.pdparams")


def test_a_tensor_beyond_its_storage_is_refused(tmp_path):
    with zipfile.ZipFile(TORCH / "zip.bin") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    pickled = members["zip/data.pkl"]
    size = b"K\x06K\x05\x86"  # (6, 5) of the first tensor
    assert pickled.count(size) >= 1
    members["zip/data.pkl"] = pickled.replace(size, b"K\x07K\x05\x86", 1)
    with zipfile.ZipFile(tmp_path / "a.bin", "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    with pytest.raises(ValueError, match="holds a tensor that reaches beyond its storage"):
        read_tensors(tmp_path / "a.bin")


@pytest.mark.parametrize(
    "source", [TORCH / "zip.bin", TORCH / "legacy.bin", DATA / "hf_tiny_classifier/model.safetensors", "paddle"]
)
def test_files_cut_short_or_changed_are_errors_that_name_the_file(source, tmp_path):
    if source == "paddle":
        source = tmp_path / "whole.pdparams"
        paddle.save({"a": paddle.ones([50]), "b": paddle.ones([3])}, str(source))
    content = source.read_bytes()
    path = tmp_path / f"cut{source.suffix}"
    for length in range(0, len(content), max(1, len(content) // 40)):
        path.write_bytes(content[:length])
        with pytest.raises(ValueError, match=f"{path}: .*again"):
            read_tensors(path)
    for place in np.random.randint(0, min(len(content), 3000), 200):
        changed = bytearray(content)
        changed[place] ^= np.random.randint(1, 256)
        path.write_bytes(changed)
        try:
            read_tensors(path)  # a number of a tensor may have changed, which no reader can know
        except ValueError as error:
            assert str(path) in str(error)


def test_files_of_another_kind_are_errors(tmp_path):
    with pytest.raises(ValueError, match=r"a\.onnx: not a file of tensors; one ends in \.safetensors, \.bin, "):
        read_tensors(tmp_path / "a.onnx")
    with pytest.raises(ValueError, match=r"a\.bin: cannot be read \(No such file"):
        read_tensors(tmp_path / "a.bin")
    with zipfile.ZipFile(tmp_path / "a.bin", "w") as archive:
        archive.writestr("word/document.xml", "x")
    with pytest.raises(ValueError, match=r"a\.bin: is a zip archive, but not one of torch\.save"):
        read_tensors(tmp_path / "a.bin")
    (tmp_path / "a.bin").write_bytes(pickle.dumps({"a": 1}))
    with pytest.raises(ValueError, match=r"a\.bin: was not written by torch\.save"):
        read_tensors(tmp_path / "a.bin")


def test_a_folder_is_searched_for_the_safest_file_first(tmp_path):
    assert find_weights(tmp_path) is None
    for name in ("model_state.pdparams", "pytorch_model.bin.index.json", "pytorch_model.bin", "model.safetensors"):
        (tmp_path / name).touch()
        assert find_weights(tmp_path) == tmp_path / name
