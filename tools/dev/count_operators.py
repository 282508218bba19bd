"""Counts the operators that a training step calls on a GPU, without one: the forms of a GPU are computed on the CPU.

Paddle records all of them but the gradients of operators. With the build for GPUs, which also imports where there is
none, each operator and its gradient is looked up in Paddle's registry for the dtypes of mixed precision, O1 and O2.

python tools/dev/count_operators.py            operators of a step at 128 and 1,024 tokens
python tools/dev/count_operators.py linear     each operator of one model, most frequent first
"""

import os
import re
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
DTYPES = {"float": "float32", "float16": "float16", "bfloat16": "bfloat16"}  # by their names in the registry
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


def without_kernel(operators):
    """Yield the operators, and gradients of operators, that have no kernel for a GPU in one of ``DTYPES``."""
    registry = core._get_all_register_op_kernels("phi")
    for name in sorted({*operators, *({f"{one}_grad" for one in operators} & registry.keys())}):
        kernels = [kernel for kernel in registry.get(name, []) if "Place(gpu" in kernel]
        found = {re.search(r"data_type\[(?:\w*::)*(\w+)", kernel)[1] for kernel in kernels}
        if lacks := [DTYPES[one] for one in DTYPES if one not in found]:
            yield f"{name}: {', '.join(lacks)}"


def main(names):
    print(f"paddlepaddle {paddle.__version__}, paddle_rope {paddle_rope.__version__}")
    operators = set()
    for name in names or MODELS:
        counts = [operators_of(name, length) for length in LENGTHS]
        operators.update(*counts)
        print(name, *(sum(found.values()) for found in counts))
        for found in counts if names else ():
            print("  ", ", ".join(f"{op} {n}" for op, n in sorted(found.items(), key=lambda item: -item[1])))
    if paddle.is_compiled_with_cuda():
        lacking = list(without_kernel(operators))
        print(f"{len(operators)} operators; without a kernel for a GPU:", "; ".join(lacking) or "none")


if __name__ == "__main__":
    main(sys.argv[1:])
