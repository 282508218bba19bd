import numpy as np
import paddle
import pytest

from paddle_rope.roformer import RoFormerConfig, RoFormerForMaskedLM
from paddle_rope.roformer.heads import IGNORED_LABEL
from tasks.common.training.step_trainer import InOrder
from tasks.pretraining.batches import DevBatches, StageBatches
from tasks.pretraining.packing import PADDING_SEGMENT
from tasks.pretraining.stages import Stage, parse_stages

STAGES = parse_stages("40x3x5,16x7x30,40x3x4")
COLUMNS = ("input_ids", "labels", "positions", "segment_ids")


def make(sample, seed=1, batches_per_step=1, stages=STAGES):
    return StageBatches(sample.stream, stages, sample.tokenizer, sample.masking, seed, batches_per_step)


def true_tokens(batch):
    """``[batch, seq]``, the hidden tokens as they were."""
    return np.where(batch["labels"] != IGNORED_LABEL, batch["labels"], batch["input_ids"])


def equal(first, second):
    return all(np.array_equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize("batches_per_step", [1, 4])
def test_batches_follow_the_stages(sample, batches_per_step):
    batches = make(sample, batches_per_step=batches_per_step)
    shapes = [batches[index]["input_ids"].shape for index in range(len(batches))]
    expected = [(s.batch_size, s.max_tokens) for s in STAGES for _ in range(s.steps * batches_per_step)]
    assert shapes == expected


def test_batch_depends_on_seed_and_number_alone(sample):
    first, again, other = make(sample), make(sample), make(sample, seed=2)
    for index in reversed(range(len(first))):
        assert equal(again[index], first[index])
        assert not equal(other[index], first[index])


def test_batch_holds_whole_documents_and_what_is_hidden_in_them(sample):
    batch = make(sample)[0]
    tokenizer = sample.tokenizer
    assert all(batch[name].dtype == np.int64 for name in COLUMNS) and batch["token_mask"].dtype == bool
    is_padding = ~batch["token_mask"]
    assert (batch["input_ids"][is_padding] == tokenizer.pad_token_id).all()
    starts = batch["token_mask"] & (batch["positions"] == 0)
    assert (batch["input_ids"][starts] == tokenizer.cls_token_id).all()
    special = np.isin(true_tokens(batch), [tokenizer.pad_token_id, tokenizer.cls_token_id, tokenizer.sep_token_id])
    assert (batch["labels"][special] == IGNORED_LABEL).all()
    whole = "\n".join(sample.documents)
    for row, segments in zip(true_tokens(batch), batch["segment_ids"]):
        for number in set(segments.tolist()) - {-1}:
            assert tokenizer.decode(row[segments == number]) in whole
    hidden = (batch["labels"] != IGNORED_LABEL).sum()
    assert 0.03 * (~special).sum() < hidden < 0.4 * (~special).sum()


def test_all_rows_come_before_any_comes_again_in_another_order(sample):
    stage = Stage(16, 7, 100)
    batches = make(sample, stages=[stage])
    rows = len(batches.rows[16])
    passes = 100 * 7 // rows
    assert passes >= 2
    seen = np.concatenate([true_tokens(batches[index]) for index in range(len(batches))])
    texts = [tuple(row) for row in seen.tolist()]
    first, second = texts[:rows], texts[rows : 2 * rows]
    assert sorted(first) == sorted(second)
    assert first != second


def test_mask_is_drawn_anew_when_a_row_comes_again(sample):
    batches = make(sample, stages=[Stage(5000, 1, 6)])
    assert len(batches.rows[5000]) == 1
    drawn = {batches[index]["labels"].tobytes() for index in range(6)}
    assert len(drawn) == 6
    assert len({true_tokens(batches[index]).tobytes() for index in range(6)}) == 1


def test_small_data_fill_a_large_batch(sample):
    batch = make(sample, stages=[Stage(5000, 3, 1)])[0]
    assert batch["input_ids"].shape == (3, 5000)
    assert batch["token_mask"].any(axis=1).all()


# ---- held out


def test_dev_batches_hide_the_same_tokens_at_every_length(sample):
    answers = []
    for length in (16, 40, 5000):
        batches = DevBatches(sample.stream, Stage(length, 3, 1), sample.tokenizer, sample.masking)
        parts = list(batches)
        assert len(parts) == len(batches)
        assert all(equal(a, b) for a, b in zip(parts, batches))
        labels = np.concatenate([part["labels"][part["labels"] != IGNORED_LABEL] for part in parts])
        shown = np.concatenate([part["input_ids"][part["labels"] != IGNORED_LABEL] for part in parts])
        answers.append((np.sort(labels).tolist(), np.sort(shown).tolist()))
    assert answers[0] == answers[1] == answers[2]
    assert 0.1 * len(sample.stream.ids) < len(answers[0][0]) < 0.2 * len(sample.stream.ids)


def test_dev_batches_cover_every_token_once(sample):
    batches = DevBatches(sample.stream, Stage(40, 4, 1), sample.tokenizer, sample.masking)
    special = [sample.tokenizer.pad_token_id, sample.tokenizer.cls_token_id, sample.tokenizer.sep_token_id]
    tokens = np.concatenate([true_tokens(batch).ravel() for batch in batches])
    tokens = tokens[~np.isin(tokens, special)]
    assert np.array_equal(np.sort(tokens), np.sort(sample.stream.ids))


# ---- the order of a process


def test_processes_share_the_batches_of_each_step():
    parts = [list(InOrder(24, first=8, num_replicas=2, rank=rank)) for rank in (0, 1)]
    assert parts[0] == [[n] for n in range(8, 24, 2)]
    assert parts[1] == [[n] for n in range(9, 24, 2)]
    assert len(InOrder(24, first=8, num_replicas=2)) == 12


# ---- in the model


@pytest.mark.parametrize("attention", ["softmax", "linear"])
@pytest.mark.parametrize("position_embedding", ["qk", "sinusoidal"])
def test_documents_of_a_row_do_not_see_each_other(sample, attention, position_embedding):
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}
    options = {"attention": attention, "position_embedding": position_embedding}
    model = RoFormerForMaskedLM(RoFormerConfig(vocab_size=len(sample.tokenizer), **sizes, **options))
    model.eval()
    batch = make(sample, stages=[Stage(120, 6, 1)])[0]
    inputs = {name: paddle.to_tensor(batch[name]) for name in ("input_ids", "positions", "segment_ids")}
    packed = model(**inputs).numpy()
    counts = [len(set(row.tolist()) - {PADDING_SEGMENT}) for row in batch["segment_ids"]]
    most = int(np.argmax(counts))
    numbers = set(batch["segment_ids"][most].tolist()) - {PADDING_SEGMENT}
    assert len(numbers) > 1
    for number in numbers:
        inside = batch["segment_ids"][most] == number
        alone = model(paddle.to_tensor(batch["input_ids"][most][inside][np.newaxis])).numpy()[0]
        assert np.allclose(packed[most][inside], alone, atol=1e-5)
