"""A bidirectional gated delta rule in the place of linear attention (Gated DeltaNet, arXiv 2412.06464, in two scans).

    python -m tasks.experiments.gated_delta_rule recall|order|cluener MODEL SEED

MODEL is delta-none, delta-numerator or delta-both: what RoPE turns; or all or softmax, which attend as before. RoPE in
the numerator alone turns what is written to and read from the output's state, but not what corrects the values: the
state of the correction plays the part of the denominator. Results: docs/results/attention.md.
"""

import json
import sys
import time

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import nn

from paddle_rope.attention.arguments import by_head, rotate
from paddle_rope.attention.multi_head import MultiHeadAttention
from paddle_rope.roformer import RoFormerConfig, RoFormerModel, modeling

CHUNK = 64
ALL = {"attention": "linear", "normalizer": "none", "convolutions": True, "output_gate": True}


def gated_delta_rule(q, k, v, beta, log_alpha, rotated_q, rotated_k, chunk=CHUNK):
    """The causal rule by chunks: S_t = alpha_t S_{t-1} + k_t u_t, u_t = beta_t (v_t - alpha_t k_t S_{t-1}), where the
    output reads a second state that has the rotated keys. ``[batch, heads, seq, dim]``; the rates ``[batch, heads,
    seq]``."""
    outputs, written, read = [], None, None
    for begin in range(0, q.shape[2], chunk):
        part = slice(begin, begin + chunk)
        keys, queries, rotated = (x[:, :, part] for x in (k, rotated_q, rotated_k))
        rate = beta[:, :, part].unsqueeze(-1)
        size = keys.shape[2]
        faded = paddle.cumsum(log_alpha[:, :, part], axis=-1)
        seen = paddle.tril(paddle.ones([size, size], dtype=q.dtype))
        between = faded.unsqueeze(-1) - faded.unsqueeze(-2)
        weights = paddle.exp(paddle.where(seen.astype("bool"), between, paddle.full_like(between, -1e9)))
        since_begin = paddle.exp(faded).unsqueeze(-1)
        corrections = rate * weights * paddle.matmul(keys, keys, transpose_y=True) * paddle.tril(seen, -1)
        values = v[:, :, part]
        if written is not None:
            values = values - since_begin * paddle.matmul(keys, written)
        updates = paddle.linalg.triangular_solve(
            corrections + paddle.eye(size, dtype=q.dtype), rate * values, upper=False
        )
        output = paddle.matmul(weights * paddle.matmul(queries, rotated, transpose_y=True), updates)
        if read is not None:
            output = output + since_begin * paddle.matmul(queries, read)
        outputs.append(output)
        until_end = paddle.exp(faded[..., -1:] - faded).unsqueeze(-1)
        whole = paddle.exp(faded[..., -1:]).unsqueeze(-1)
        new = [paddle.matmul(x * until_end, updates, transpose_x=True) for x in (keys, rotated)]
        written, read = new if written is None else (whole * written + new[0], whole * read + new[1])
    return paddle.concat(outputs, axis=2)


def by_steps(q, k, v, beta, log_alpha, rotated_q, rotated_k):
    """The same, token by token in float64: the reference."""
    output = np.zeros_like(v)
    for row in np.ndindex(*q.shape[:2]):
        written, read = np.zeros((2, q.shape[-1], v.shape[-1]))
        for t in range(q.shape[2]):
            at = (*row, t)
            written, read = (np.exp(log_alpha[at]) * state for state in (written, read))
            update = beta[at] * (v[at] - k[at] @ written)
            written, read = written + np.outer(k[at], update), read + np.outer(rotated_k[at], update)
            output[at] = rotated_q[at] @ read
    return output


class GatedDeltaAttention(MultiHeadAttention):
    """Scans from both ends, each with its own rates; unit keys and queries, an output norm, convolutions, a gate."""

    rope_on = "numerator"

    def __init__(self, hidden_size, num_heads, *arguments, **options):
        super().__init__(hidden_size, num_heads, *arguments, **options)
        self.rates = nn.Linear(hidden_size, 4 * num_heads)

    def forward(self, hidden, rope=None, key_mask=None, segment_ids=None, score_bias=None, cu_seqlens=None):
        query, key, value = self._project(hidden)
        value = F.silu(self.value_convolution(value, key_mask, segment_ids))
        q, k, v = self._heads(query, key, value)
        q, k = (F.normalize(F.silu(x), axis=-1) for x in (q, k))
        rotated = (q, k) if self.rope_on == "none" else (rotate(q, rope), rotate(k, rope))
        if self.rope_on == "both":
            q, k = rotated
        inputs = [by_head(x) for x in (q, k, v)]
        rotated = [by_head(x) for x in rotated]
        rates = self.rates(hidden).reshape([*hidden.shape[:2], 4, self.num_heads]).transpose([2, 0, 3, 1])
        mask = 1.0 if key_mask is None else key_mask.astype(rates.dtype).unsqueeze(1)
        output = 0
        for way in (0, 1):
            rule = [*inputs, F.sigmoid(rates[2 * way]) * mask, F.log_sigmoid(rates[2 * way + 1] + 2.0) * mask, *rotated]
            if way:
                output = output + gated_delta_rule(*(x.flip(axis=[2]) for x in rule)).flip(axis=[2])
            else:
                output = gated_delta_rule(*rule)
        output = by_head(output / paddle.sqrt(output.square().mean(axis=-1, keepdim=True) + 1e-6))
        return self._merge(output, self.output_convolution(value, key_mask, segment_ids), hidden)


def prepare(model):
    """The options of an encoder; all encoders made from now on have the attention of ``model``."""
    if model.startswith("delta-"):
        GatedDeltaAttention.rope_on = model.removeprefix("delta-")
        modeling.MultiHeadAttention = GatedDeltaAttention
        return ALL
    return {"softmax": {"attention": "softmax"}, "all": {**ALL, "decay": "0.5,0.8,0.95,1"}}[model]


def cluener(model, seed):
    """F1 on a held-out tenth of CLUENER's training file, of which 3,000 texts are taken; no word features."""
    from tasks.recipes import get_recipe

    config = {
        "num_hidden_layers": 4, "intermediate_size": 512 if model == "softmax" else 384, "hidden_act": "relu",
        "hidden_dropout_prob": 0.1, "embedding_dropout_prob": 0.3, "character_dropout": 0.1, "ema_decay": 0.994,
        "train_file": "data/ner/cluener/train.json", "train_texts": 3000, "dev_fraction": 0.1, "dev_split": "random",
        "max_characters": 64, "num_train_epochs": 6, "seed": seed, "output_dir": f"runs/delta/{model}-{seed}",
    }  # fmt: skip
    return get_recipe("ner").train({**config, **prepare(model)})["dev"]["f1"]


def _learn(model, seed, batch, classes, vocabulary, layers, size, steps, heads=2):
    """The accuracy of an encoder that learned ``batch(generator)`` -> ids, where to answer, answers."""
    paddle.seed(seed)
    options = prepare(model)
    if "decay" in options:
        options = {**options, "decay": [0.9, 1.0]}
    config = RoFormerConfig(
        vocab_size=vocabulary, hidden_size=size, num_hidden_layers=layers, num_attention_heads=heads,
        intermediate_size=2 * size, hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0, **options,
    )  # fmt: skip
    encoder, head = RoFormerModel(config), nn.Linear(size, classes)
    rate = paddle.optimizer.lr.PolynomialDecay(3e-3, steps, 0.0)
    rate = paddle.optimizer.lr.LinearWarmup(rate, 100, 0.0, 3e-3)
    parameters = [*encoder.parameters(), *head.parameters()]
    clip = nn.ClipGradByGlobalNorm(1.0)
    optimizer = paddle.optimizer.AdamW(rate, parameters=parameters, weight_decay=0.01, grad_clip=clip)
    generator = np.random.default_rng(seed)

    def answer(ids, places):
        return head(paddle.take_along_axis(encoder(paddle.to_tensor(ids)), paddle.to_tensor(places[..., None]), 1))

    for _ in range(steps):
        ids, places, answers = batch(generator)
        F.cross_entropy(answer(ids, places), paddle.to_tensor(answers[..., None])).backward()
        optimizer.step()
        optimizer.clear_grad()
        rate.step()
    encoder.eval()
    generator = np.random.default_rng(10_000)
    with paddle.no_grad():
        tried = [batch(generator) for _ in range(20)]
        return float(np.mean([answer(ids, places).numpy().argmax(-1) == answers for ids, places, answers in tried]))


def recall(model, seed, pairs=48, queries=8, keys=128, values=128):
    """48 pairs of a key and a value, then 8 of the keys: which value? (multi-query associative recall, 2312.04927)"""

    def batch(generator, texts=32):
        of_text = np.argsort(generator.random((texts, keys)))[:, :pairs]
        of_key = generator.integers(0, values, (texts, pairs))
        asked = np.argsort(generator.random((texts, pairs)))[:, :queries]
        told = np.stack([2 + of_text, 2 + keys + of_key], -1).reshape(texts, -1)
        question = np.stack([2 + np.take_along_axis(of_text, asked, 1), np.ones_like(asked)], -1).reshape(texts, -1)
        places = np.tile(2 * pairs + 1 + 2 * np.arange(queries), (texts, 1))
        return np.concatenate([told, question], 1), places, np.take_along_axis(of_key, asked, 1)

    return _learn(model, seed, batch, values, 2 + keys + values, layers=2, size=64, steps=1500)


def order(model, seed, length=128, apart=32):
    """Two markers at least 32 tokens apart, among noise: does the first marker come first?"""

    def batch(generator, texts=32):
        ids = generator.integers(4, 20, (texts, length))
        first = generator.integers(1, length - apart, texts)
        second = np.array([generator.integers(begin + apart, length) for begin in first])
        swapped = generator.integers(0, 2, texts)
        rows = np.arange(texts)
        ids[rows, first], ids[rows, second], ids[:, 0] = 2 + swapped, 3 - swapped, 1
        return ids, np.zeros((texts, 1), "int64"), swapped[:, None]

    return _learn(model, seed, batch, 2, 20, layers=1, size=32, steps=300)


if __name__ == "__main__":
    task, name, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
    begin = time.time()
    score = {"recall": recall, "order": order, "cluener": cluener}[task](name, number)
    print(task, name, number, json.dumps({"score": round(score, 4), "seconds": round(time.time() - begin)}), flush=True)
