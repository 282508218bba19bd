"""The three heads beside PaddleNLP's GPLinker, their loss beside a loop, and decoding beside all pairs of entities."""

import itertools
from types import SimpleNamespace

import numpy as np
import paddle
import pytest

from paddle_rope.global_pointer.decoding import MASKED_LOGIT, ScoredSpan, decode_spans
from paddle_rope.tasks.relations.arguments import RelationsConfig
from paddle_rope.tasks.relations.decoding import PER_TOKEN, all_scored, link_spans, linked_spans
from paddle_rope.tasks.relations.model import RelationsModel
from tests.paddle_rope.reference import multilabel_categorical_crossentropy

SEQ, TYPES, RELATIONS = 9, 3, 4
MASK = np.array([[True] * SEQ, [True] * 6 + [False] * 3])
# with a relation of an entity to itself, a tail before its head, two relations of one pair, and nested entities
LABELS = np.array([[(0, 1, 2), (1, 4, 7), (0, 5, 5)], [(2, 0, 0), (-1, -1, -1), (-1, -1, -1)]])
PAIRS = np.array(
    [[(0, 1, 2, 4, 7), (3, 4, 7, 1, 2), (1, 4, 7, 1, 2), (2, 5, 5, 4, 7)], [(1, 0, 0, 0, 0), *[(-1,) * 5] * 3]]
)


def new_model(rope=False):
    paddle.seed(0)
    names = [f"r{number}" for number in range(RELATIONS)]
    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    names_of = {"types": list("abc"), "relations": names}
    config = RelationsConfig(vocab_size=50, head_size=8, relation_rope=rope, **names_of, **sizes)
    model = RelationsModel(config)
    for one in model.parameters():
        one.set_value(0.3 * paddle.randn(one.shape))
    model.eval()
    return model


def new_batch():
    ids = np.arange(2 * SEQ).reshape(2, SEQ)
    arrays = {"input_ids": ids, "attention_mask": MASK, "token_mask": MASK}
    return {name: paddle.to_tensor(one) for name, one in arrays.items()}


def set_as(ours, theirs):
    """Give the head of PaddleNLP, which alternates q and k, and scores of ends and starts, the weights of ours."""
    size, types = 2 * ours.head_size, ours.num_types
    features = np.arange(size).reshape(2, -1).T.ravel()
    of_types = np.stack([np.arange(types) + types, np.arange(types)], axis=1).ravel()
    theirs.dense1.weight.set_value(ours.dense.weight.numpy()[:, features])
    theirs.dense1.bias.set_value(ours.dense.bias.numpy()[features])
    theirs.dense2.weight.set_value(ours.type_scores.weight.numpy()[features][:, of_types])
    theirs.dense2.bias.set_value(ours.type_scores.bias.numpy()[of_types])


def slow_loss(logits, positives):
    """The mean over texts and types of the plain form; ``positives`` are (type, token, token) of each text."""
    labels = np.zeros(logits.shape)
    for text, pairs in enumerate(positives):
        for kind, one, other in (pair for pair in pairs if pair[0] >= 0):
            labels[text, kind, one, other] = 1
    rows = np.maximum(logits, -300.0).reshape([-1, SEQ * SEQ])  # which is as good as masked
    return multilabel_categorical_crossentropy(paddle.to_tensor(rows, "float64"), labels.reshape(rows.shape)).mean()


def test_logits_and_loss_are_those_of_paddlenlp_with_the_same_weights():
    peers = pytest.importorskip("paddlenlp.layers.globalpointer")
    model, batch = new_model(), new_batch()
    hidden = model.encoded(**batch)

    class Encoder(paddle.nn.Layer):
        config = {"hidden_size": 16}

        def forward(self, input_ids, attention_mask):
            return (hidden,)

    maps = {"entity2id": dict.fromkeys(range(TYPES)), "relation2id": dict.fromkeys(range(RELATIONS))}
    theirs = peers.GPLinkerForRelationExtraction(Encoder(), maps, head_size=8)
    for ours, one in zip(
        (model.head, model.starts, model.ends), (theirs.entity_output, theirs.head_output, theirs.tail_output)
    ):
        set_as(ours, one)
    mask = batch["attention_mask"].astype("float32")
    expected = [one.numpy() for one in theirs(batch["input_ids"], mask)]
    found = [one.numpy() for one in model(**batch)]
    for ours, one in zip(found, expected):
        counts = one > -1e11  # theirs subtract 1e12
        pairs = 45 + 21 if one is expected[0] else 81 + 36
        assert (ours[~counts] == MASKED_LOGIT).all() and counts.sum() == one.shape[1] * pairs
        np.testing.assert_allclose(ours[counts], one[counts], atol=1e-5)
    labels, pairs = (paddle.to_tensor(one) for one in (LABELS, PAIRS))
    loss = model(**batch, labels=labels, pairs=pairs)
    wanted = (LABELS, PAIRS[..., [0, 1, 3]], PAIRS[..., [0, 2, 4]])
    assert abs(loss.item() - sum(map(slow_loss, expected, wanted)).item()) < 1e-5
    loss.backward()
    for head in (model.head, model.starts, model.ends):
        assert np.abs(head.dense.weight.grad.numpy()).max() > 0


def all_pairs(spans, starts, ends, threshold):
    for (number, one), (other, two) in itertools.product(enumerate(spans), repeat=2):
        for kind in range(len(starts)):
            score = min(starts[kind, one.start, two.start], ends[kind, one.end - 1, two.end - 1])
            if score > threshold[kind]:
                yield number, other, kind, score


@pytest.mark.parametrize("seed", range(5))
def test_linked_spans_are_all_pairs_that_both_heads_relate(seed):
    draw = np.random.RandomState(seed)
    entities = np.where(np.triu(np.ones([SEQ, SEQ], bool)), draw.randn(3, TYPES, SEQ, SEQ), MASKED_LOGIT)
    starts, ends = draw.randn(2, 3, RELATIONS, SEQ, SEQ)
    starts[1:, :, -2:] = MASKED_LOGIT
    threshold = 1.2 if seed else 9.0  # with the first seed there is no entity
    spans = decode_spans(entities, threshold)
    thresholds = [1.0, 1.5, -2e4, 0.5] if seed > 2 else [1.0] * RELATIONS
    config = SimpleNamespace(max_span_length=None, relations=range(RELATIONS))
    config.relation_thresholds = thresholds if seed > 2 else 1.0
    tokens = [SEQ, SEQ - 2, SEQ - 2]
    found = linked_spans(config, entities, threshold, None, tokens, all_scored(starts, ends))
    lowest = np.maximum(thresholds, 0.99 * MASKED_LOGIT)
    for of_text, size, linked, *logits in zip(spans, tokens, found, starts, ends):
        assert list(linked) == of_text
        expected = sorted(all_pairs(of_text, *logits, lowest))
        related = [logits[0][:, one.start, two.start] > lowest for one, two in itertools.product(of_text, repeat=2)]
        if max(np.sum(related), len(of_text)) <= PER_TOKEN * size:
            assert [tuple(pair) for pair in linked.pairs] == expected
        else:
            assert {*map(tuple, linked.pairs)} < {*expected}
    assert any(one.pairs for one in found) == bool(seed)


def test_the_work_is_bounded_where_everything_is_an_entity_and_related():
    seq = 40
    spans = [ScoredSpan(i, j + 1, 0, float(i == j)) for i in range(seq) for j in range(i, seq)]
    logits = np.full([RELATIONS, seq, seq], 3.0)
    logits[2, 7, 9] = 4.0  # the highest, of the starts of two of the highest entities
    found = link_spans(spans, seq, lambda *ends: [logits[:, one[:, None], one] for one in ends], 0.0)
    assert 0 < len(found.pairs) <= PER_TOKEN * seq
    best = [pair for pair in found.pairs if (found[pair.head].start, found[pair.tail].start, pair.type) == (7, 9, 2)]
    assert best and len(found) == len(spans)


@pytest.mark.parametrize("rope", [True, False])
def test_what_is_found_is_what_all_scores_of_the_three_heads_give(rope):
    model, batch = new_model(rope), {name: one.numpy() for name, one in new_batch().items()}
    config = model.config
    config.relation_thresholds, thresholds = [-2.0, -1.5, -1.0, -2.0], [0.0, 0.3, -0.2]
    entities, *of_pairs = (one.numpy() for one in model(**new_batch()))
    of_all = linked_spans(config, entities, thresholds, None, MASK.sum(axis=1), all_scored(*of_pairs))
    for found, expected in zip(model.find_spans(batch, thresholds), of_all, strict=True):
        assert [one[:3] for one in found] == [one[:3] for one in expected] and found.pairs
        assert [one[:3] for one in found.pairs] == [one[:3] for one in expected.pairs]
        np.testing.assert_allclose([one.score for one in found.pairs], [one.score for one in expected.pairs], atol=1e-5)


def test_a_trained_model_goes_on_with_other_relations(tmp_path):
    model, batch = new_model(), new_batch()
    model.save_pretrained(str(tmp_path))
    other = RelationsModel.from_pretrained(tmp_path, types=list("abc"), relations=["r2", "new", "r0"])
    other.eval()
    for before, after in zip(model(**batch)[1:], other(**batch)[1:]):
        np.testing.assert_allclose(after[:, [0, 2]].numpy(), before[:, [2, 0]].numpy(), atol=1e-5)
        np.testing.assert_allclose(after[0, 1].numpy(), before[0].numpy().mean(0), atol=1e-4)  # of what is known
