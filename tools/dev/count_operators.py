"""Counts the operators that a training step calls on a GPU, without one: the forms of a GPU are computed on the CPU.

python tools/dev/count_operators.py            operators of a step, forward and backward, at 128 and 1,024 tokens
python tools/dev/count_operators.py linear     each operator of one model, most frequent first
"""

import os
import sys
from unittest import mock

os.environ["PADDLE_ROPE_NATIVE"] = "0"  # a GPU has no native operators

from paddle_rope.machine import import_paddle, prepare_process

prepare_process()
import_paddle()
import paddle  # noqa: E402
from paddle.base import core  # noqa: E402

import paddle_rope  # noqa: E402
from paddle_rope.roformer import RoFormerConfig, RoFormerModel  # noqa: E402

SIZES = {"vocab_size": 100, "hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4,
         "intermediate_size": 128}  # fmt: skip
LINEAR = {"attention": "linear"}
MODELS = {
    "softmax": {},
    "linear": LINEAR,
    "all": {**LINEAR, "normalizer": "none", "decay": [0.5, 0.8, 0.95, 1.0], "convolutions": True, "output_gate": True},
    "window": {"attention": "window"},
}
LENGTHS = (128, 1024)
DEVICE = paddle.get_device


def _device_of_caller():
    """A GPU for the modules of this package, the CPU for Paddle itself."""
    caller = sys._getframe(1).f_globals.get("__name__", "")
    return "gpu:0" if caller.startswith("paddle_rope") else DEVICE()


def operators_of(name, length):
    """{operator: calls} of one training step."""
    paddle.seed(0)
    model = RoFormerModel(RoFormerConfig(**SIZES, **MODELS[name]))
    ids, mask = paddle.randint(1, 100, [2, length]), paddle.ones([2, length], "int64")
    with (
        mock.patch("paddle.get_device", _device_of_caller),
        mock.patch("paddle.device.cuda.get_device_capability", lambda *_: (8, 0)),
    ):
        for _ in range(2):  # the first step makes tables
            core.clear_low_precision_op_list()
            paddle.set_flags({"FLAGS_low_precision_op_list": 1})
            model(ids, mask).sum().backward()
            paddle.set_flags({"FLAGS_low_precision_op_list": 0})
            model.clear_gradients()
    return {name: sum(map(int, counts.split(","))) for name, counts in core.get_low_precision_op_list().items()}


def main(names):
    if names:
        for name in names:
            for length in LENGTHS:
                found = operators_of(name, length)
                print(name, length, sum(found.values()))
                print("  ", ", ".join(f"{op} {n}" for op, n in sorted(found.items(), key=lambda item: -item[1])))
        return
    print(f"paddlepaddle {paddle.__version__}, paddle_rope {paddle_rope.__version__}")
    for name in MODELS:
        print(name, *(sum(operators_of(name, length).values()) for length in LENGTHS))


if __name__ == "__main__":
    main(sys.argv[1:])
