"""The memory of a NER run, and folders that are not there, are told before the work begins."""

import train_ner

from paddle_rope.roformer import RoFormerConfig
from tasks.common.runs.room import Load
from tasks.ner.arguments import NerArguments
from tasks.ner.lengths import shorter_loads, span_scores


def test_scores_grow_with_types_and_the_square_of_the_length_unless_spans_are_short():
    keys, short = NerArguments(), NerArguments(max_span_length=16)
    assert span_scores(keys, 300, 100) == 300 * 100 * 100
    assert span_scores(keys, 3, 2000) == 4 * span_scores(keys, 3, 1000)
    assert span_scores(short, 3, 2000) == 2 * span_scores(short, 3, 1000) < span_scores(keys, 3, 1000)
    assert span_scores(NerArguments(span_head="dense"), 3, 100) > span_scores(keys, 3, 100)


def test_short_spans_and_windows_are_offered_where_they_help():
    load = Load(1000, RoFormerConfig(vocab_size=10), 2, 2000, lambda tokens: 10 * tokens * tokens)
    ways = shorter_loads(load, NerArguments(), 10)
    assert list(ways) == ["--max_span_length 64", "--max_characters 512 --cut_long_texts true"]
    assert all(way.peak_bytes < load.peak_bytes for way in ways.values())
    assert shorter_loads(load._replace(tokens=100), NerArguments(max_span_length=8), 10) == {}


def test_run_that_needs_more_than_is_free_says_so_and_trains(train, few_texts, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("tasks.common.recipe.free_bytes", lambda: 3e8)
    train(tmp_path / "run", train_file=few_texts.train, dev_file="", dev_fraction=0, num_train_epochs=1)
    lines = capsys.readouterr().out.splitlines()
    (note,) = [line for line in lines if line.startswith("note: training needs about ")]
    assert "0.3 GB are free; less with one of: --per_device_train_batch_size " in note
    assert (tmp_path / "run/model/model.safetensors").is_file()


def test_missing_pretrained_folder_is_told_before_the_data_are_read(fails, tmp_path):
    words = ("--train_file", "also_missing.jsonl", "--dev_file=", "--output_dir", "run", "--pretrained", "nope")
    message = fails(train_ner, "configs/ner/own_data.yaml", *words)
    assert message.startswith("configuration: pretrained: nope: no such folder.")
    assert not (tmp_path / "run").exists()
