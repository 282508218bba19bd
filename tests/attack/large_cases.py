"""Findings too large for a file: what a few lines write. name of the target -> {name: function -> case}"""

import bz2
import io
import json
import pickle
import struct
import zipfile
import zlib


def _text(content):
    return {"mutant": content.encode("utf-8")}


def _repeated_keys():
    """An object with 30,000 keys of which two are equal: once looked for in quadratic time."""
    keys = [*range(30_000), 29_999]
    return _text('{"text": "ab", "label": {' + ", ".join(f'"{key}": {{}}' for key in keys) + "}}\n")


def _long_surface():
    """One long surface with many spans: each was once written out for a message that nobody sees."""
    surface = "长" * 20_000
    return _text(json.dumps({"text": surface, "label": {"x": {surface: [[0, 19_999]] * 20_000}}}) + "\n")


def _many_records():
    return _text("[" + '{"text": "a", "entities": []},\n' * 30_000 + '{"text": "a", "entities": []}]')


def _bomb():
    """An archive of torch.save whose data.pkl is 1.5 GB of zeros."""
    compression, compress = zipfile.ZIP_BZIP2, bz2.BZ2Compressor()
    size, zeros = 1500, bytes(1 << 20)
    checksum = 0
    for _ in range(size):
        checksum = zlib.crc32(zeros, checksum)
    data = b"".join([*(compress.compress(zeros) for _ in range(size)), compress.flush()])
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        info = zipfile.ZipInfo("archive/data.pkl")
        archive.writestr(info, data)
        info.compress_type, info.file_size, info.CRC = compression, size << 20, checksum
    content = bytearray(written.getvalue())
    struct.pack_into("<HxxxxIII", content, 8, compression, checksum, len(data), size << 20)
    return {"m.bin": bytes(content)}


def _of_one_element():
    """A tensor of stride 0: 4 GB from one number."""
    operations = (
        b"\x80\x02}X\x01\x00\x00\x00actorch._utils\n_rebuild_tensor_v2\n((X\x07\x00\x00\x00storagectorch\nFloatStorage\n"
        b"X\x01\x00\x00\x000X\x03\x00\x00\x00cpuK\x01tQK\x00J\x00\x00\x00\x40\x85K\x00\x85\x89ccollections\nOrderedDict\n)RtRs."
    )
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w") as archive:
        archive.writestr("archive/data.pkl", operations)
        archive.writestr("archive/data/0", struct.pack("<f", 1.0))
    return {"m.bin": written.getvalue()}


def _memo():
    """A pickle that puts something at place 200,000,000 of its memo."""
    return {"m.pdparams": b"\x80\x02}r" + struct.pack("<I", 200_000_000) + b"."}


def _announced():
    """A few bytes that announce a bytearray of 4 GB."""
    return {"m.pdparams": b"\x80\x05\x96" + struct.pack("<Q", 4 << 30) + b"."}


def _deep_dtype():
    """A structure of types in types."""
    return {"m.pdparams": pickle.dumps({"a": 1}, 2)[:-1] + b"\x85" * 100_000 + b"."}


def _configuration(**keys):
    return lambda: {"config.json": json.dumps({**_SMALL, **keys}).encode()}


_SMALL = {
    "model_type": "paddle_rope_ner", "types": ["name", "company"], "vocab_size": 20, "hidden_size": 16,
    "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32, "head_size": 8, "max_tokens": 64,
}  # fmt: skip
CASES = {
    "cluener": {"repeated keys": _repeated_keys, "a long surface": _long_surface},
    "jsonl": {"repeated keys": _repeated_keys},
    "stream": {"repeated keys": _repeated_keys},
    "cmeee": {"many records": _many_records},
    "torch_zip": {"a compressed bomb": _bomb, "a tensor of stride 0": _of_one_element},
    "paddle_pickle": {"a far place of the memo": _memo, "an announced size": _announced, "nested tuples": _deep_dtype},
    "model": {
        "many layers": _configuration(num_hidden_layers=10**8),
        "many types": _configuration(types=["x"] * 100_000),
        "a wide layer": _configuration(intermediate_size=10**9),
        "dropout is not a number": _configuration(hidden_dropout_prob=float("nan")),
    },
}
