"""Hugging Face's RoFormer, and linear attention as usual in PyTorch. Does not import Paddle."""

import contextlib
import functools
import os

import torch
import torch.nn.functional as F
import transformers
from transformers import RoFormerModel

from tools.benchmarks.peers import COMPARED, HEAD_SIZE, random_ids, random_qkv


class TorchSide:
    """PyTorch on CPU, in float32 or (``"huggingface_bfloat16"``) under autocast; methods as in
    :class:`tools.benchmarks.paddle_sides.OurSide`."""

    version = f"{transformers.__version__}, PyTorch {torch.__version__.partition('+')[0]}"

    def __init__(self, name):
        self.precision = contextlib.nullcontext
        if name == "huggingface_bfloat16":
            self.precision = functools.partial(torch.autocast, "cpu", dtype=torch.bfloat16)
        torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
        torch.manual_seed(0)

    def encoder(self, folder, texts, length):
        model, ids = RoFormerModel.from_pretrained(folder), torch.from_numpy(random_ids(texts, length))
        optimizer = torch.optim.AdamW(model.parameters(), 1e-4, weight_decay=0.01)

        def predict():
            model.eval()
            with torch.inference_mode(), self.precision():
                return model(ids)[0]

        output = predict()
        towards = torch.randn(output.shape)

        def train():
            model.train()
            with self.precision():
                loss = (model(ids)[0] * towards).mean()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad()

        return {"train": train, "predict": predict}, output[0, :COMPARED].tolist()

    def linear(self, length):
        qkv = [torch.from_numpy(x).requires_grad_() for x in random_qkv(length)]
        rotation, towards = _rotation(length), torch.randn(qkv[0].shape)

        def attend():
            _linear_attention(*qkv, rotation).backward(towards)
            for tensor in qkv:
                tensor.grad = None

        return {"attend": attend}, _linear_attention(*qkv, rotation)[0, :COMPARED].tolist()


def _linear_attention(q, k, v, rotation):
    """elu + 1, RoPE in the numerator; ``[batch, seq, hidden]``, heads side by side."""
    q, k, v = (x.unflatten(-1, (-1, HEAD_SIZE)).transpose(1, 2) for x in (q, k, v))
    q, k = F.elu(q) + 1, F.elu(k) + 1
    numerator = _rotated(q, *rotation) @ (_rotated(k, *rotation).transpose(-1, -2) @ v)
    denominator = q @ k.sum(dim=2).unsqueeze(-1)
    return (numerator / denominator).transpose(1, 2).flatten(2)


def _rotation(length):
    theta = 10000.0 ** (-torch.arange(0, HEAD_SIZE, 2, dtype=torch.float64) / HEAD_SIZE)
    phases = torch.arange(length)[:, None] * theta
    return phases.cos().float(), phases.sin().float()


def _rotated(x, cosine, sine):
    a, b = x[..., 0::2], x[..., 1::2]
    return torch.stack([a * cosine - b * sine, a * sine + b * cosine], dim=-1).flatten(-2)
