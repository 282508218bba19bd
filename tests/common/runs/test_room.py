"""The memory of a run is estimated before it begins."""

from types import SimpleNamespace

import pytest

from tasks.common.runs.room import Load, free_bytes, lighter_loads, room_note

CONFIG = SimpleNamespace(
    hidden_size=256, intermediate_size=1024, num_hidden_layers=4, num_attention_heads=4, attention="softmax",
    attention_window=64,
)  # fmt: skip


def changed(**options):
    return SimpleNamespace(**{**vars(CONFIG), **options})


@pytest.fixture
def load():
    return Load(3_000_000, CONFIG, 32, 1000, lambda tokens: 10 * tokens * tokens)


def test_what_takes_more_is_estimated_as_more(load):
    sizes = {
        "it": load.peak_bytes,
        "half the batch": load._replace(batch=16).peak_bytes,
        "half the length": load._replace(tokens=500).peak_bytes,
        "no scores": load._replace(scores_of=None).peak_bytes,
        "recomputed": load._replace(recompute=True).peak_bytes,
        "window": load._replace(config=changed(attention="window")).peak_bytes,
        "linear": load._replace(config=changed(attention="linear")).peak_bytes,
        "fewer layers": load._replace(config=changed(num_hidden_layers=2)).peak_bytes,
    }
    assert max(sizes, key=sizes.get) == "it" and sizes["linear"] < sizes["window"]
    # a length takes memory by its square, a batch by itself
    assert sizes["half the length"] < sizes["half the batch"]
    mixed = load._replace(config=changed(attention=["softmax", "linear", "linear", "linear"]))
    assert sizes["linear"] < mixed.peak_bytes < sizes["it"]


def test_nothing_is_said_of_a_run_that_fits_or_where_memory_is_not_known(load):
    assert room_note(load, load.peak_bytes + 1, {}) is None
    assert room_note(load, None, {}) is None


def test_note_names_what_fits(load):
    free = load.peak_bytes / 3
    ways = lighter_loads(load, free, accumulated=2)
    (words, smaller), (recompute, _) = ways.items()
    assert (
        recompute == "--recompute true"
        and smaller.peak_bytes <= free < smaller._replace(batch=smaller.batch * 2).peak_bytes
    )
    times = 2 * 32 // smaller.batch
    assert words == f"--per_device_train_batch_size {smaller.batch} --gradient_accumulation_steps {times}"
    note = room_note(load, free, {**ways, "--no_help": load})
    assert note.startswith(
        f"note: training needs about {load.peak_bytes / 1e9:.1f} GB, and {free / 1e9:.1f} GB are free; "
    )
    assert words in note and "--no_help" not in note and "\n" not in note


def test_a_run_that_nothing_makes_fit_is_told_what_comes_nearest(load):
    note = room_note(load, 1.0, lighter_loads(load, 1.0, 1))
    assert "--per_device_train_batch_size 1 --gradient_accumulation_steps 32 (" in note and "--recompute true (" in note
    least = load._replace(batch=1, recompute=True)
    assert room_note(least, 1.0, lighter_loads(least, 1.0, 1)).endswith("; shorter texts or a smaller model need less")


def test_what_is_free_is_some_of_this_machine():
    assert 1e8 < free_bytes() < 1e14
