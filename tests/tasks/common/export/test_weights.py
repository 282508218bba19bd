"""Weights of Paddle's graphs: files of whole tensors pass, and no engine reads others."""

import contextlib
import struct

import pytest

from paddle_rope.tasks.common.export.operators import message_class
from paddle_rope.tasks.common.export.weights import check_weights


def tensor(sizes, content=b"", dtype=5, version=0):
    description = message_class(".pdiparams")(dtype=[dtype], sizes=sizes).SerializeToString()
    return struct.pack("<IQIi", version, 0, 0, len(description)) + description + content


WHOLE = tensor([2, 3], bytes(24)) + tensor([], bytes(8), dtype=3)
BROKEN = {
    "no tensor begins at byte 0": (b"\0" * 20, b"\0" * 7, tensor([1], bytes(4), version=1)),
    "no tensor begins at byte 50": (tensor([2, 3], bytes(24)) + b"\0",),
    "the tensor at byte 0 needs more bytes": (tensor([2, 3], bytes(23)), tensor([1 << 40, 1 << 40])),
    "the tensor at byte 0 has no dtype": (tensor([1], bytes(4), dtype=19), tensor([-1], bytes(4))),
}


def test_only_whole_tensors_pass(tmp_path):
    passed = []
    for size in range(len(WHOLE) + 1):
        (tmp_path / "a").write_bytes(WHOLE[:size])
        with contextlib.suppress(ValueError):
            check_weights(tmp_path / "a")
            passed.append(size)
    assert passed == [0, 50, len(WHOLE)]


@pytest.mark.parametrize("message", BROKEN)
def test_what_is_no_whole_tensor_is_refused(message, tmp_path):
    for content in BROKEN[message]:
        (tmp_path / "a").write_bytes(content)
        with pytest.raises(ValueError, match=message):
            check_weights(tmp_path / "a")
