"""Files of tensors: what torch and paddle write is read exactly, nothing in a pickle is run, damage is an error."""

import io
import json
import os
import pickle
import shutil
import zipfile
from pathlib import Path

import numpy as np
import paddle
import pytest
from safetensors.numpy import save_file

from paddle_rope.roformer.checkpoints.pickled_tensors import TORCH_LEGACY_MAGIC
from paddle_rope.roformer.checkpoints.tensor_files import find_weights, read_tensors
from tests.helpers.runs import Bomb
from tests.paddle_rope.roformer.conftest import refused_in_a_line

STORAGE = (  # the persistent id of a torch storage of one number, on the stack
    b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x01tQ"
)
TWO = STORAGE.replace(b"K\x01tQ", b"K\x02tQ")  # of two numbers
REBUILD = b"ctorch._utils\n_rebuild_tensor_v2\n"
NESTED = b")" + b"2\x86" * 60  # a tuple of tuples that has 2^60 ends
MILLION = b"J\x40\x42\x0f\x00"


def zipped(members, compression=zipfile.ZIP_STORED):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as written:
        for name, content in members.items():
            written.writestr(name, content)
    return file.getvalue()


def archive(pickled, storage=b"\0\0\x80?", compression=zipfile.ZIP_STORED):
    """A file of ``torch.save``."""
    return zipped({"archive/data.pkl": pickled, "archive/data/0": storage}, compression)


def legacy(pickled):
    """A file of ``torch.save`` before torch 1.6, without storages."""
    start = [pickle.dumps(part, 2) for part in (TORCH_LEGACY_MAGIC, 1001, {"little_endian": True})]
    return b"".join([*start, pickled, pickle.dumps([], 2)])


def tensor(size, strides, storage=STORAGE):
    """A pickle of one tensor on the storage of one number; ``size`` and ``strides`` are opcodes of tuples."""
    return b"\x80\x02}X\x01\x00\x00\x00a" + REBUILD + b"(" + storage + b"K\x00" + size + strides + b"\x89}tRs."


# name -> (content, or what is pickled, a word of the error): small files that would need much memory or time, or would
# change what is read; and files of something else
REFUSED = {
    "bytes.pdparams": (b"\x80\x04}\x8e\xff\xff\xff\xff\x00\x00\x00\x00.", "cut short"),
    "bytearray.pdparams": (b"\x80\x05}\x96\xff\xff\xff\xff\x00\x00\x00\x00.", "bytearray"),
    "dtype.pdparams": (b"\x80\x02}X\x01\x00\x00\x00acnumpy\ndtype\n(" + NESTED + b"tRs.", "not a plain number"),
    "key.pdparams": (b"\x80\x02}" + NESTED + b"K\x01s.", "unhashable"),
    "deep.pdparams": (b"\x80\x02N" + b"\x85" * 100_000 + b".", "holds a list"),
    "set.pdparams": (b"\x80\x04\x8f(" + NESTED + b"\x90.", "unhashable"),
    "ordered.pdparams": (b"\x80\x02ccollections\nOrderedDict\n(]](" + NESTED + b"K\x01eatR.", "cut short"),
    "stored.bin": (archive(tensor(b"K\x01\x85", b"K\x01\x85", STORAGE.replace(b"X\x01\x00\x00\x000", NESTED))), "hash"),
    "stride.bin": (archive(tensor(MILLION + b"M\xe8\x03\x86", b"K\x00K\x00\x86")), "beyond its storage"),
    "edge.bin": (archive(tensor(b"K\x02\x85", b"K\x02\x85", TWO), bytes(8)), "beyond its storage"),
    "view.bin": (archive(tensor(b"K\x02\x85", b"K\x01\x85")), "beyond its storage"),
    "inflated.bin": (archive(b"\x80\x02}." + bytes(2**26), compression=zipfile.ZIP_DEFLATED), "compressed"),
    "storage.bin": (archive(tensor(MILLION + b"\x85", b"K\x01\x85"), bytes(2**26), zipfile.ZIP_DEFLATED), "compressed"),
    # where the state {'build': 1} is put on the constructor of OrderedDict itself
    "constructor.pdparams": (b"\x80\x02ccollections\nOrderedDict\n}X\x05\x00\x00\x00buildK\x01sb.", "changes"),
    # rows of a matrix taken for elements would lead beyond its memory
    "matrix.pdparams": (tensor(b"K\x01\x85", b"K\x01\x85", b"]"), "without a storage"),
    "negative.bin": (archive(tensor(b"J\xff\xff\xff\xff\x85", b"K\x01\x85")), "impossible shape"),
    "archive.bin": (zipped({"word/document.xml": "x"}), r"not one of torch\.save"),
    "pickle.bin": ({"a": 1}, r"not written by torch\.save"),
    "text.pdparams": ({"a": "text"}, "holds under 'a' a str"),
    "list.pdparams": ({"a": [1.0]}, "holds under 'a' a list"),
    "number.pdparams": ({3: np.ones(2)}, "holds under 3 a Array"),
    "array.pdparams": ([np.ones(2)], "holds a list"),
    "objects.pdparams": ({"a": np.array([None])}, "type 'O8', which is not a plain number"),
    "complex.pdparams": ({"a": np.array([1j])}, "type 'c16'"),
    "fields.pdparams": ({"a": np.zeros(2, [("x", "f4")])}, "type 'V4'"),
    "other.onnx": (b"", r"one ends in \.safetensors, \.bin, "),
    "missing.bin": (None, r"cannot be read \(No such file"),
}


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


def test_all_types_of_safetensors_are_read_bfloat16_as_float32_and_others_refused(tmp_path):
    path = tmp_path / "a.safetensors"
    types = ("float64", "float32", "float16", "int64", "int32", "int16", "int8", "uint8", "bool")
    arrays = {name: np.arange(6).reshape(2, 3).astype(name) for name in types}
    arrays.update(scalar=np.array(3.5), empty=np.zeros((0, 2), np.float32))
    save_file(arrays, path)
    assert_same(read_tensors(path), arrays)
    values = np.array([[0.0, -0.0, 1.0, -2.5], [3.0e38, 1e-40, np.inf, -np.inf]], np.float32)
    bits = (values.view(np.uint32) >> 16).astype("<u2").tobytes()
    for dtype, shape in (("BF16", [2, 4]), ("U16", [2, 4]), ("U64", [2, 1])):
        header = json.dumps({"x": {"dtype": dtype, "shape": shape, "data_offsets": [0, 16]}}).encode()
        path.write_bytes(len(header).to_bytes(8, "little") + header + bits)
        if dtype != "U64":
            assert_same(read_tensors(path), {"x": (values.view(np.uint32) & 0xFFFF0000).view(np.float32)})
    with pytest.raises(ValueError, match="x as U64"):
        read_tensors(path)


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
    layer = paddle.nn.Linear(3, 2).state_dict()
    fortran, big = np.asfortranarray(arrays["float32"]), arrays["float64"].astype(">f8")
    tensors.update(bfloat16=halves.astype("bfloat16"), fortran=fortran, big=big, **layer)
    paddle.save(tensors, str(tmp_path / "a.pdparams"), protocol=protocol)
    expected = {**arrays, "bfloat16": halves.numpy(), "fortran": fortran, "big": arrays["float64"]}
    expected.update({name: value.numpy() for name, value in layer.items()})
    assert_same(read_tensors(tmp_path / "a.pdparams"), expected)


def test_the_parts_of_an_index_are_joined_and_a_bad_index_is_refused(tmp_path):
    save_file({"a": np.ones(2)}, tmp_path / "1.safetensors")
    shutil.copy(TORCH / "zip.bin", tmp_path / "2.bin")
    index = tmp_path / "model.safetensors.index.json"

    def read(**files):
        index.write_text(json.dumps({"weight_map": files}), encoding="utf-8")
        return read_tensors(index)

    tensors = read(a="1.safetensors", bool="2.bin")
    assert (tensors["a"].tolist(), tensors["bool"].tolist()) == ([1, 1], [True, False])
    assert find_weights(tmp_path) == index and find_weights(DATA) is None
    for name in ("model.safetensors", "pytorch_model.bin", "model_state.pdparams"):
        (tmp_path / name).touch()
        assert find_weights(tmp_path) == tmp_path / "model.safetensors"  # the safest first
    for files, message in (
        ({"a": "1.safetensors", "c": "2.bin"}, "index.json: is not complete: its files lack c"),
        ({"a": "../1.safetensors"}, r"'\.\./1\.safetensors', which is no file of its folder"),
        ({"a": "3.safetensors"}, r"3\.safetensors: cannot be read"),
        ({"a": index.name}, "no file of its folder"),
    ):
        with pytest.raises(ValueError, match=message):
            read(**files)


FORMATS = {"a.pdparams": bytes, "zip.bin": archive, "legacy.bin": legacy, "first.bin": bytes}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("protocol", [0, 2, 4])
def test_a_pickle_that_would_run_something_is_refused_and_runs_nothing(name, protocol, tmp_path):
    path, ran = tmp_path / name, tmp_path / "ran"
    harmful = {
        r"(posix|nt)\.system": Bomb(f"touch {ran}", function=os.system),
        r"(builtins|__builtin__)\.eval": Bomb(f"open({str(ran)!r}, 'w').close()", function=eval),
        r"(builtins|__builtin__)\.__import__": Bomb("os", function=__import__),
        r"(builtins|__builtin__)\.getattr": Bomb("a", "join", function=getattr),
        r"numpy.*\.load": Bomb(ran, function=np.load),
    }
    for named, harm in harmful.items():
        path.write_bytes(FORMATS[name](pickle.dumps({"good": 1, "evil": harm}, protocol)))
        with pytest.raises(ValueError, match=f"{path}: names '{named}', .* nothing of it was run"):
            read_tensors(path)
        assert not ran.exists()


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_holds_something_else_or_needs_much_memory_or_time_is_one_line(name, tmp_path):
    content, message = REFUSED[name]
    if content is not None:
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else pickle.dumps(content, 4))
    with refused_in_a_line(f"{name}: .*{message}"):
        read_tensors(tmp_path / name)


def test_files_like_hostile_ones_that_are_sound_are_read(tmp_path):
    for name, content, expected in (
        ("a.bin", archive(tensor(b"K\x01\x85", b"K\x01\x85")), {"a": [1.0]}),
        ("a.pdparams", b"\x80\x02}r\xff\xff\xff\xff.", {}),  # noted at a far place
        ("a.pdparams", b"\x80\x04\x95\xff\xff\xff\xff\x00\x00\x00\x00}.", {}),  # in a frame that it does not fill
    ):
        (tmp_path / name).write_bytes(content)
        assert {key: array.tolist() for key, array in read_tensors(tmp_path / name).items()} == expected
