"""Files of tensors: their mutants, and the targets safetensors, both formats of torch.save, paddle.save, and indices of
several files."""

import io
import json
import pickle
import pickletools
import struct
import zipfile
from pathlib import Path

import numpy as np

from paddle_rope.roformer.checkpoints.tensor_files import TensorFileError, read_tensors
from tests.attack.mutators import OF_BYTES, OF_JSON, OF_LINES, change_yaml, mutate, mutator
from tests.attack.watchdog import SilentLossError, Target, json_bytes, target_of_folder

DATA = Path(__file__).resolve().parents[1] / "paddle_rope" / "roformer" / "data" / "torch_files"
INDEX = "model.safetensors.index.json"
ARRAYS = {
    "a.weight": np.arange(12, dtype=np.float32).reshape(3, 4),
    "b": np.arange(5, dtype=np.float16),
    "c": np.ones(()),
}
# What a hostile pickle may hold: names that run something, sizes that take memory, recursion.
OPCODES = (
    *(b"cos\nsystem\n", b"cbuiltins\neval\n", b"cnumpy\nempty\n", b"cpaddle\nload\n", b"cbuiltins\nbytearray\n"),
    *(b"cbuiltins\nbytes\n", b"ccollections\nOrderedDict\n", b"cnumpy\ndtype\n", b"L9999999999999999999L\n"),
    *(b"cnumpy.core.multiarray\n_reconstruct\n", b"X\x02\x00\x00\x00os", b"K\x00", b"K\xff", b"h\x00", b"q\xff"),
    *(bytes((one,)) for one in b"\x93Rb\x81\x92o()]}tldeusa012\x85\x86\x87\x94NQ.\x88\x8f"),
    *(b"J\xff\xff\xff\x7f", b"J\x00\x00\x00\x80", b"r\xff\xff\xff\x7f", b"B\xff\xff\xff\x7f", b"T\xff\xff\xff\x7f"),
    *(b"\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x80\x00", b"I1\n", b"F1e400\n", b"p4000000000\n", b"P0\n"),
    *(b"\x8e\xff\xff\xff\xff\x00\x00\x00\x00", b"\x8d\xff\xff\xff\xff\x01\x00\x00\x00", b"\x80\x05", b"\x80\xff"),
    *(b"\x96\xff\xff\xff\xff\x00\x00\x00\x00", b"\x95\xff\xff\xff\xff\x00\x00\x00\x00", b"\x82\x01"),
)


def change_pickle(content, rng):
    """One operation of a pickle dropped, doubled, moved, replaced, or one put in; what follows the pickle stays."""
    try:
        positions = [position for _, _, position in pickletools.genops(content)]
    except Exception:  # a mutant of a mutant
        return mutate(content, rng, OF_BYTES)
    end = content.index(b".", positions[-1]) + 1
    operations = [content[one:other] for one, other in zip(positions, [*positions[1:], end])]
    place, one = rng.randrange(len(operations)), rng.choice(OPCODES)
    before = operations[place]
    choices = (
        [],
        [before, before],
        [one * rng.choice((1, 1, 1, 3, 2000)), before],
        [one],
        [rng.choice(operations)],
        [mutate(before, rng, OF_BYTES)],
    )
    operations[place : place + 1] = rng.choice(choices)
    return b"".join(operations) + content[end:]


def change_zip(content, rng):
    """A zip archive written anew with a member changed, dropped, doubled, renamed, deflated or made large."""
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = [(info.filename, archive.read(info), zipfile.ZIP_STORED) for info in archive.infolist()]
        place = rng.randrange(len(members))
    except Exception:  # a mutant of a mutant
        return mutate(content, rng, OF_BYTES)
    name, data, how = members[place]
    kind = rng.randrange(7)
    if kind == 0:
        members.pop(place)
    elif kind == 1:
        members.append(members[place])
    elif kind == 2:
        names = (name + "x", "../" + name, rng.choice(members)[0], "data.pkl", "archive/byteorder", "x" * 300)
        members[place] = (rng.choice(names), data, how)
    elif kind == 3:
        members[place] = (name, data + bytes(rng.choice((1, 1000, 1000, 1000, 100_000_000))), zipfile.ZIP_DEFLATED)
    else:
        changed = change_pickle(data, rng) if name.endswith(".pkl") else mutate(data, rng, OF_BYTES)
        members[place] = (name, changed, how)
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        for name, data, how in members:
            archive.writestr(zipfile.ZipInfo(name), data, how, 1)
    return mutate(written.getvalue(), rng, OF_BYTES) if rng.random() < 0.2 else written.getvalue()


def change_safetensors(content, rng):
    """The header of safetensors changed as JSON, with its true length or another."""
    if len(content) < 8:
        return mutate(content, rng, OF_BYTES)
    size = min(struct.unpack("<Q", content[:8])[0], len(content))
    header, data = content[8 : 8 + size], content[8 + size :]
    header = mutate(header, rng, OF_JSON if rng.random() < 0.8 else OF_BYTES)
    length = len(header) if rng.random() < 0.9 else rng.choice((0, 1, 2**31, 2**32, 2**63, 2**64 - 1, len(header) + 1))
    return struct.pack("<Q", length) + header + data


CHECKSUMS = "SHA256SUMS"
BY_ENDING = {
    ".json": (*OF_BYTES[:3], *OF_LINES[:2], *OF_JSON * 3),
    ".yaml": (*OF_BYTES, *OF_LINES, *[change_yaml] * 20),
    ".safetensors": (change_safetensors, change_safetensors, change_safetensors, *OF_BYTES),
}


def change_files(*names, weights=()):
    """A mutator of the files ``names``; those in ``weights`` are large and changed less often. Checksums of what it has
    changed are written anew by the reader, as a forger does."""

    def change(case, rng):
        known = [name for name in names if name in case]
        name = rng.choice(known * 4 + [name for name in weights if name in case])
        changed = {**case, name: mutate(case[name], rng, BY_ENDING.get(Path(name).suffix, (*OF_BYTES, *OF_LINES)))}
        return {**changed, CHECKSUMS: b""} if CHECKSUMS in case and name != CHECKSUMS else changed

    return change


def read_file(folder: Path) -> None:
    """The file of tensors in ``folder``; of safetensors the names and shapes are compared with the header."""
    path = folder / (INDEX if len(list(folder.iterdir())) > 1 else next(folder.iterdir()).name)
    tensors = read_tensors(path)
    for name, array in tensors.items():
        if not isinstance(name, str) or not isinstance(array, np.ndarray) or array.dtype.hasobject:
            raise SilentLossError(f"{name!r} is {type(array).__name__}")
        array.sum(dtype=np.float64) if array.size < 1000 else None  # its memory is there
    if path.suffix == ".safetensors":
        content = path.read_bytes()
        header = json.loads(content[8 : 8 + struct.unpack("<Q", content[:8])[0]])
        header.pop("__metadata__", None)
        if {name: of["shape"] for name, of in header.items()} != {name: list(of.shape) for name, of in tensors.items()}:
            raise SilentLossError("names or shapes are not those of the header")


def _safetensors(**arrays):
    from safetensors.numpy import save

    return save(arrays)


def _paddle_pickles():
    arrays = {
        "a.weight": ("linear_0.w_0", ARRAYS["a.weight"]),
        "StructuredToParameterName@@": {"a.weight": "linear_0.w_0"},
    }
    names = {**ARRAYS, "d": ARRAYS["a.weight"].T, "e": np.array([True, False])}
    return [pickle.dumps(arrays, 2), pickle.dumps(names, 4), pickle.dumps(names, 2)]


def _index():
    index = {"metadata": {"total_size": 100}, "weight_map": {"a.weight": "one.safetensors", "b": "two.safetensors"}}
    parts = {file: _safetensors(**{name: ARRAYS[name]}) for name, file in index["weight_map"].items()}
    return {**parts, INDEX: json_bytes(index)}


def _target(name, file, contents, *mutators):
    return Target(name, lambda: [{file: one} for one in contents()], mutator(*mutators), read_file, (TensorFileError,))


TARGETS = [
    _target("safetensors", "m.safetensors", lambda: [_safetensors(**ARRAYS)], *OF_BYTES, *[change_safetensors] * 36),
    _target("torch_zip", "m.bin", lambda: [(DATA / "zip.bin").read_bytes()], *OF_BYTES, *[change_zip] * 81),
    _target("torch_pickle", "m.bin", lambda: [(DATA / "legacy.bin").read_bytes()], *OF_BYTES, *[change_pickle] * 36),
    _target("paddle_pickle", "m.pdparams", _paddle_pickles, *OF_BYTES, *[change_pickle] * 36),
    target_of_folder("index", _index, change_files(INDEX), read_file, TensorFileError),
]
