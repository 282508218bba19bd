"""Our layers against others, forward and backward, on CPU; see ``paddle-rope benchmark layers --help``."""

import statistics
import time

import paddle
import paddle.nn.functional as F
from paddle import nn
from paddlenlp.transformers import RoFormerConfig as PaddleNLPRoFormerConfig
from paddlenlp.transformers import RoFormerModel as PaddleNLPRoFormer

from paddle_rope import RoFormerConfig, RoFormerModel, RotaryPositionEmbedding, linear_attention, softmax_attention
from paddle_rope.global_pointer import losses
from paddle_rope.layers import Dropout, Linear, projections, scaled

BATCH, SEQ, HIDDEN, TYPES = 32, 40, 256, 10
SPAN_SIZES = [(40, 10), (178, 8)]  # length, types
ENCODER = {
    "vocab_size": 3500,
    "embedding_size": 256,
    "hidden_size": 256,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "intermediate_size": 1024,
    "type_vocab_size": 2,
}
ENCODER_SIZES = [(32, 40), (8, 256), (2, 1024)]  # texts, length
PACKED_SIZES = [(16, 128), (8, 256), (4, 512), (2, 1024), (1, 2048)]  # texts, length; 4 heads of 64
ROUNDS = 20


def paddle_multilabel_loss(logits, labels):
    """The same loss by paddle.logsumexp."""
    excluded = paddle.full_like(logits, -1e9)
    negatives = paddle.logsumexp(paddle.where(labels, excluded, logits), axis=-1)
    positives = paddle.logsumexp(paddle.where(labels, -logits, excluded), axis=-1)
    return F.softplus(negatives) + F.softplus(positives)


def milliseconds(function, inputs):
    """One forward and backward pass."""
    start = time.perf_counter()
    output = function(*inputs)
    output.backward(paddle.ones_like(output))
    elapsed = time.perf_counter() - start
    for tensor in inputs:
        tensor.clear_gradient()
    return 1000 * elapsed


def span_loss_case(seq, types):
    """(loss from 0/1 labels, loss from a list of 4 spans a text, [logits]) for the same spans of padded texts."""
    logits = paddle.randn([BATCH * types, seq * seq])
    logits = paddle.where(paddle.rand(logits.shape) < 0.5, logits, paddle.full_like(logits, -1e4))
    logits.stop_gradient = False
    spans = paddle.randint(0, logits.size, [4 * BATCH])
    positives = paddle.stack([spans // (seq * seq), spans % (seq * seq)], axis=1)
    labels = paddle.zeros([logits.size]).put_along_axis(spans, 1.0, 0).reshape(logits.shape).astype("bool")
    return (
        lambda x: losses.multilabel_categorical_crossentropy(x, labels),
        lambda x: losses.sparse_multilabel_categorical_crossentropy(x, positives),
        [logits],
    )


def packed_attention_case(batch, seq):
    """(softmax attention, linear attention, [q, k, v]) with RoPE, the rows packed with segments of about 150 tokens."""
    qkv = [paddle.randn([batch, 4, seq, 64]) for _ in range(3)]
    for tensor in qkv:
        tensor.stop_gradient = False
    borders = paddle.rand([batch, seq]) < 1 / 150
    segments, rotary = paddle.cumsum(borders.astype("int64"), axis=1), RotaryPositionEmbedding(64)
    return (
        lambda q, k, v: softmax_attention(q, k, v, rotary, segment_ids=segments),
        lambda q, k, v: linear_attention(q, k, v, rotary, segment_ids=segments),
        qkv,
    )


def encoder_case(batch, seq):
    """(PaddleNLP's RoFormer, ours, [all weights]) in training, with a dropout of 0.1, on random tokens."""
    theirs = PaddleNLPRoFormer(PaddleNLPRoFormerConfig(**ENCODER, max_position_embeddings=seq))
    ours = RoFormerModel(RoFormerConfig(**ENCODER))
    theirs.train()
    ours.train()
    ids = paddle.randint(1, ENCODER["vocab_size"], [batch, seq])
    return lambda *_: theirs(ids)[0], lambda *_: ours(ids), [*theirs.parameters(), *ours.parameters()]


def print_layer_times():
    """Print a table of milliseconds."""
    paddle.set_device("cpu")
    paddle.seed(0)
    hidden = paddle.randn([BATCH, SEQ, HIDDEN])
    logits = paddle.randn([BATCH * TYPES, SEQ * SEQ])
    logits = paddle.where(paddle.rand(logits.shape) < 0.5, logits, paddle.full_like(logits, -1e4))
    labels = paddle.rand(logits.shape) < 0.001
    states = paddle.randn([BATCH, 4, SEQ, 64])
    mask = paddle.rand([BATCH, 1, SEQ, 1]) < 0.9
    for tensor in (hidden, logits, states):
        tensor.stop_gradient = False
    ours, theirs = Linear(HIDDEN, 4 * HIDDEN), nn.Linear(HIDDEN, 4 * HIDDEN)
    three = [Linear(HIDDEN, HIDDEN) for _ in range(3)]
    cases = {
        f"Linear {HIDDEN} to {4 * HIDDEN}": (theirs, ours, [hidden]),
        f"three products of {HIDDEN} from one input, layer by layer against together": (
            lambda x: paddle.concat([layer(x) for layer in three], axis=-1),
            lambda x: paddle.concat(list(projections(x, *three)), axis=-1),
            [hidden],
        ),
        "mask of a shorter shape": (lambda x: x * mask.astype(x.dtype), lambda x: scaled(x, mask), [states]),
        "Dropout 0.2": (nn.Dropout(0.2), Dropout(0.2), [hidden]),
        f"multi-label loss, {SEQ}x{SEQ} spans, {TYPES} types": (
            lambda x: paddle_multilabel_loss(x, labels),
            lambda x: losses.multilabel_categorical_crossentropy(x, labels),
            [logits],
        ),
    }
    for seq, types in SPAN_SIZES:
        cases[f"index lists against 0/1 labels, {seq}x{seq} spans, {types} types"] = span_loss_case(seq, types)
    for batch, seq in PACKED_SIZES:
        cases[f"packed attention, softmax against linear, {batch} x {seq}"] = packed_attention_case(batch, seq)
    for batch, seq in ENCODER_SIZES:
        cases[f"RoFormer, 4 layers of 256, PaddleNLP's against ours, {batch} x {seq}"] = encoder_case(batch, seq)
    print(f"batch {BATCH}, length {SEQ}, hidden {HIDDEN}; milliseconds forward + backward, median of {ROUNDS}")
    print("| layer | other | ours | other / ours |")
    print("|---|---|---|---|")
    for name, (other_layer, our_layer, inputs) in cases.items():
        times = {other_layer: [], our_layer: []}
        for _ in range(ROUNDS + 2):
            for layer, results in times.items():
                results.append(milliseconds(layer, inputs))
        medians = [statistics.median(results[2:]) for results in times.values()]
        print(f"| {name} | {medians[0]:.2f} | {medians[1]:.2f} | {medians[0] / medians[1]:.1f} |")
