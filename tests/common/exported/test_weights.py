"""Files of weights for Paddle Inference: what would ask for more than it has is refused before the engine reads it."""

import struct

import numpy as np
import paddle
import pytest

from tasks.common.errors import InputError
from tasks.common.exported.weights import check_weights
from tests.common.exported.graph_bytes import field

HEADER = struct.pack("<IQI", 0, 0, 0)


def tensor(*sizes, dtype=5, content=b"", described=None):
    description = field(1, dtype) + b"".join(field(2, size) for size in sizes)
    return HEADER + struct.pack("<i", len(description) if described is None else described) + description + content


@pytest.mark.parametrize("dtype", ["float32", "float16", "int64", "int8", "bool", "bfloat16"])
def test_what_paddle_saves_is_admitted(dtype, tmp_path):
    class Layer(paddle.nn.Layer):
        def __init__(self):
            super().__init__()
            self.register_buffer("one", paddle.ones([3, 5]).astype(dtype))
            self.register_buffer("number", paddle.to_tensor(2.0))

        def forward(self, x):
            return x + self.number * self.one.astype("float32")

    layer = paddle.jit.to_static(Layer(), input_spec=[paddle.static.InputSpec([3, 5], "float32")], full_graph=True)
    layer.eval()
    paddle.jit.save(layer, str(tmp_path / "a"))
    check_weights(tmp_path / "a.pdiparams")
    content = (tmp_path / "a.pdiparams").read_bytes()
    (tmp_path / "cut").write_bytes(content[:-1])
    with pytest.raises(InputError, match="cut: is damaged or holds no weights .it is cut short."):
        check_weights(tmp_path / "cut")


def test_tensors_of_written_headers_are_admitted(tmp_path):
    numbers = np.arange(6, dtype="float32").tobytes()
    content = tensor(2, 3, content=numbers) + tensor(content=b"1234") + tensor(0, 9)
    (tmp_path / "a").write_bytes(content)
    check_weights(tmp_path / "a")
    (tmp_path / "b").write_bytes(content + b"\0")  # the end of the last one is known
    with pytest.raises(InputError):
        check_weights(tmp_path / "b")


BROKEN = {
    "empty": (b"", "it is empty"),
    "large": (tensor(2**40, content=b"1234"), "it is cut short"),
    "negative": (tensor(2**64 - 1, content=b"1234"), "it is cut short"),
    "product": (tensor(*[2**31] * 8, content=b"1234"), "it is cut short"),
    "longer": (tensor(1, content=b"12345"), "it is cut short"),
    "version": (b"\1" + tensor(1, content=b"1234")[1:], "no tensor begins at byte 0"),
    "described": (tensor(1, content=b"1234", described=2**31 - 1), "no tensor begins at byte 0"),
    "below": (tensor(1, content=b"1234", described=-5), "no tensor begins at byte 0"),
    "dtype": (tensor(1, dtype=7, content=b"1234"), "of no known dtype"),
    "kind": (HEADER + struct.pack("<i", 3) + field(2, b"a"), "is described in another way"),
    "field": (HEADER + struct.pack("<i", 1) + b"\x08", "a number is cut short"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_does_not_add_up_is_refused_in_one_line(name, tmp_path):
    content, reason = BROKEN[name]
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=f"{name}: is damaged or holds no weights .*{reason}"):
        check_weights(tmp_path / name)
