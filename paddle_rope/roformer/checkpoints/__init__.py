"""Names are loaded when they are first asked for: the settings of a folder are read without Paddle and PaddleNLP."""

from typing import TYPE_CHECKING

from paddle_rope.imports import lazy_names

if TYPE_CHECKING:  # the same names for type checkers
    from paddle_rope.roformer.checkpoints.huggingface import write_huggingface
    from paddle_rope.roformer.checkpoints.loading import load_pretrained
    from paddle_rope.roformer.checkpoints.reading import read_checkpoint, read_tensorflow
    from paddle_rope.roformer.checkpoints.tensor_files import read_tensors

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "huggingface": "write_huggingface",
        "loading": "load_pretrained",
        "reading": "read_checkpoint read_tensorflow",
        "tensor_files": "read_tensors",
    },
)
