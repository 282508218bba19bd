"""Our RoFormer and linear attention, and PaddleNLP's RoFormer: sides of
:mod:`tools.benchmarks.peers`."""

import contextlib

import paddle
from paddle import nn

from paddle_rope import RoFormerModel, RotaryPositionEmbedding, linear_attention
from paddle_rope.native.adamw import AdamW
from paddle_rope.native.library import library, state_in_words
from paddle_rope.native.products import bfloat16_products, why_no_bfloat16
from paddle_rope.roformer.checkpoints.names import PADDLENLP, source_names
from paddle_rope.tasks.experiments.worker import paddle_jobs
from tools.benchmarks.peers import COMPARED, HEAD_SIZE, encoder_settings, random_ids, random_qkv


class OurSide:
    """This library on CPU: ``"native"`` with the operators in C++, ``"plain"`` without them, ``"native_bfloat16"`` with
    products in bfloat16. Raises ImportError where a library, or an instruction of the processor, is missing."""

    version = paddle.__version__
    precision = contextlib.nullcontext
    optimizer = AdamW

    def __init__(self, name):
        paddle.set_device("cpu")
        paddle.seed(0)
        reason = None
        if name == "native" and library() is None:
            reason = state_in_words()
        if name == "native_bfloat16":
            reason, self.precision = why_no_bfloat16(), bfloat16_products
        if reason is not None:
            raise ImportError(reason)

    def load(self, folder, length):
        return RoFormerModel.from_pretrained(folder)

    def hidden(self, model, ids):
        return model(ids)

    def encoder(self, folder, texts, length):
        """Jobs ``train`` (clipping to norm 1, AdamW) and ``predict`` of the encoder in a folder."""
        model, ids = self.load(folder, length), paddle.to_tensor(random_ids(texts, length))
        clip = nn.ClipGradByGlobalNorm(1.0)
        optimizer = self.optimizer(1e-4, parameters=model.parameters(), weight_decay=0.01, grad_clip=clip)
        model.eval()
        with paddle.no_grad(), self.precision():
            output = self.hidden(model, ids)
        towards = paddle.randn(output.shape)

        def loss():
            return (self.hidden(model, ids) * towards).mean()

        jobs = paddle_jobs(model, optimizer, loss, lambda: self.hidden(model, ids), self.precision)
        return jobs, output[0, :COMPARED].tolist()

    def linear(self, length):
        """The job ``attend``: linear attention of one text, forward and backward."""
        q, k, v = (paddle.to_tensor(x, stop_gradient=False) for x in random_qkv(length))
        rotary, towards = RotaryPositionEmbedding(HEAD_SIZE), paddle.randn(q.shape)

        def attend():
            heads = (x.reshape([0, 0, -1, HEAD_SIZE]) for x in (q, k, v))
            return linear_attention(*heads, rotary.cos_sin(length)).reshape([0, 0, -1])

        return {"attend": lambda: paddle.grad([attend()], [q, k, v], [towards])}, attend()[0, :COMPARED].tolist()


class ProductsSide(OurSide):
    """Only the matrix products of our encoder: the least time that its sizes allow."""

    def encoder(self, folder, texts, length):
        """Jobs ``train`` (three products for each one of the encoder, as with gradients) and ``predict``."""
        _, output = super().encoder(folder, texts, length)
        config, tokens = self.load(folder, length).config, [texts * length]
        size, inner, heads = config.hidden_size, config.intermediate_size, [texts * config.num_attention_heads, length]
        shapes = [(tokens, size, size)] * 4 + [(tokens, size, inner), (tokens, inner, size)]  # rows, inputs, outputs
        shapes += [(heads, config.head_dim, length), (heads, length, config.head_dim)]  # scores, and sums of values
        operands = [
            [paddle.randn([*rows, inputs]), paddle.randn([*rows[:-1], inputs, outputs]), paddle.randn([*rows, outputs])]
            for rows, inputs, outputs in shapes
        ]

        def multiply(with_gradients):
            for x, weight, y in operands * config.num_hidden_layers:
                paddle.matmul(x, weight)
                if with_gradients:
                    paddle.matmul(y, weight, transpose_y=True)
                    paddle.matmul(x, y, transpose_x=True)

        return {"train": lambda: multiply(True), "predict": lambda: multiply(False)}, output


class PaddleNLPSide(OurSide):
    """PaddleNLP's RoFormer as it is; linear attention is ours."""

    optimizer = paddle.optimizer.AdamW

    def __init__(self, name):
        import paddlenlp

        super().__init__(name)
        self.version = paddlenlp.__version__

    def load(self, folder, length):
        from paddlenlp.transformers import RoFormerConfig, RoFormerModel

        ours = super().load(folder, length)
        settings = {key: getattr(ours.config, key) for key in encoder_settings(1, HEAD_SIZE)}
        model = RoFormerModel(RoFormerConfig(**settings, max_position_embeddings=length))
        state, theirs = ours.state_dict(), model.state_dict()
        for name, source in source_names(ours.config, PADDLENLP["roformer"]).items():
            if name.startswith("roformer."):
                theirs[source.removeprefix("roformer.")].set_value(state[name.removeprefix("roformer.")])
        return model

    def hidden(self, model, ids):
        return model(ids)[0]
