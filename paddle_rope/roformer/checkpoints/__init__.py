from paddle_rope.roformer.checkpoints.huggingface import write_huggingface
from paddle_rope.roformer.checkpoints.loading import load_pretrained
from paddle_rope.roformer.checkpoints.reading import read_checkpoint, read_tensorflow
from paddle_rope.roformer.checkpoints.tensor_files import read_tensors

__all__ = ["load_pretrained", "read_checkpoint", "read_tensorflow", "read_tensors", "write_huggingface"]
