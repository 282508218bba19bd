"""Our RoFormer and linear attention, and PaddleNLP's RoFormer: sides of :mod:`tasks.experiments.benchmarks.peers`."""

from __future__ import annotations

import contextlib

import paddle
from paddle import nn

from paddle_rope import RoFormerConfig, RoFormerModel, RotaryPositionEmbedding, linear_attention
from paddle_rope.native.adamw import AdamW
from paddle_rope.native.library import library, state_in_words
from paddle_rope.native.products import bfloat16_products, why_no_bfloat16
from paddle_rope.roformer.checkpoints.names import PADDLENLP, weights_of
from tasks.experiments.benchmarks.measuring import paddle_jobs
from tasks.experiments.benchmarks.peers import HEAD_SIZE, encoder_settings


def open_side(name: str) -> OurSide:
    """The side of a name; raises ImportError where a library, or an instruction of the processor, is missing."""
    paddle.set_device("cpu")
    paddle.seed(0)
    return PaddleNLPSide() if "paddlenlp" in name else OurSide(name)


class OurSide:
    """This library on CPU: ``"native"`` with the operators in C++, ``"plain"`` without, ``"native_bfloat16"`` with
    products in bfloat16."""

    version = paddle.__version__
    precision = contextlib.nullcontext
    optimizer = AdamW

    def __init__(self, name):
        reason = None
        if name == "native" and library() is None:
            reason = state_in_words()
        if name == "native_bfloat16":
            reason, self.precision = why_no_bfloat16(), bfloat16_products
        if reason is not None:
            raise ImportError(reason)

    def new_encoder(self, settings, length):
        return RoFormerModel(RoFormerConfig(**settings))

    def hidden(self, model, ids):
        return model(ids)

    def encoder(self, layers, hidden, texts, length):
        """``train`` (clipping to norm 1, AdamW) and ``predict`` on random tokens without padding, dropout 0.1."""
        settings = encoder_settings(layers, hidden)
        model = self.new_encoder(settings, length)
        clip = nn.ClipGradByGlobalNorm(1.0)
        optimizer = self.optimizer(1e-4, parameters=model.parameters(), weight_decay=0.01, grad_clip=clip)
        ids = paddle.randint(1, settings["vocab_size"], [texts, length])
        towards = paddle.randn([texts, length, hidden])

        def loss():
            return (self.hidden(model, ids) * towards).mean()

        return paddle_jobs(model, optimizer, loss, lambda: self.hidden(model, ids), self.precision)

    def linear(self, heads, length):
        """``attend``: linear attention of one text, forward and backward."""
        qkv = [paddle.randn([1, length, heads * HEAD_SIZE]) for _ in range(3)]
        for tensor in qkv:
            tensor.stop_gradient = False
        rotary, towards = RotaryPositionEmbedding(HEAD_SIZE), paddle.randn(qkv[0].shape)
        return {"attend": lambda: paddle.grad([_linear_attention(*qkv, rotary)], qkv, [towards])}

    def load_encoder(self, folder, length):
        return RoFormerModel.from_pretrained(folder)

    def outputs(self, folder, ids, linear):
        """Numbers to compare with the other sides': an encoder with the weights of a folder, and linear attention."""
        model = self.load_encoder(folder, len(ids[0]))
        model.eval()
        q, k, v = paddle.to_tensor(linear, dtype="float32")
        with paddle.no_grad(), self.precision():
            attended = _linear_attention(q, k, v, RotaryPositionEmbedding(HEAD_SIZE))
            return {"encoder": self.hidden(model, paddle.to_tensor(ids)).tolist(), "linear": attended.tolist()}


class PaddleNLPSide(OurSide):
    """PaddleNLP's RoFormer as it is; linear attention is ours."""

    optimizer = paddle.optimizer.AdamW

    def __init__(self):
        import paddlenlp

        self.version = paddlenlp.__version__

    def new_encoder(self, settings, length):
        from paddlenlp.transformers import RoFormerConfig as TheirConfig
        from paddlenlp.transformers import RoFormerModel as TheirModel

        return TheirModel(TheirConfig(**settings, max_position_embeddings=length))

    def hidden(self, model, ids):
        return model(ids)[0]

    def load_encoder(self, folder, length):
        ours = RoFormerModel.from_pretrained(folder)
        settings = {key: getattr(ours.config, key) for key in encoder_settings(1, HEAD_SIZE)}
        model = self.new_encoder(settings, length)
        state, theirs = ours.state_dict(), model.state_dict()
        for weight in weights_of(ours.config, PADDLENLP):
            name = weight.source.removeprefix(PADDLENLP.prefix)
            theirs[name].set_value(state[weight.name.removeprefix("roformer.")])
        return model


def _linear_attention(q, k, v, rotary):
    """Of ``[batch, seq, hidden]``, the heads side by side."""
    q, k, v = (x.reshape([0, 0, -1, HEAD_SIZE]) for x in (q, k, v))
    return linear_attention(q, k, v, rotary.cos_sin(q.shape[1])).reshape([0, 0, -1])
