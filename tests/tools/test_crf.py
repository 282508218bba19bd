"""The CRF: features and tags of characters, training, scores, and mistakes."""

import json

import pytest

from paddle_rope.tasks.ner.demo import write_demo_corpus
from paddle_rope.tasks.ner.examples import Entity, make_example
from paddle_rope.tasks.ner.features import WordFeatures
from tools.benchmarks.crf import attributes, entities_of, longest_entities, main, tags_of

pytest.importorskip("pycrfsuite", reason="python-crfsuite is not installed: pip install 'paddle_rope[crf]'")
NESTED = make_example(
    "在北京大学读书", [Entity(1, 3, "place"), Entity(1, 5, "school"), Entity(4, 6, "other"), Entity(6, 7, "act")], "f:1"
)


def test_tags_hold_the_longest_of_the_entities_that_share_characters():
    assert longest_entities(NESTED.entities) == [Entity(1, 5, "school"), Entity(6, 7, "act")]
    tags = tags_of(NESTED)
    assert tags == ["O", "B-school", "M-school", "M-school", "E-school", "O", "S-act"]
    assert entities_of(tags) == longest_entities(NESTED.entities)
    assert entities_of(["M-x", "M-x", "O", "B-y"]) == [Entity(0, 2, "x"), Entity(3, 4, "y")]  # not well-formed
    # of one length the first
    assert longest_entities([Entity(1, 3, "b"), Entity(0, 2, "a"), Entity(0, 2, "z")]) == [Entity(0, 2, "a")]


def test_word_features_are_those_of_the_neural_models_without_a_text_s_own_labels():
    examples = [make_example("去了北京", [Entity(2, 4, "place")], "f:1"), make_example("没有", (), "f:2")]
    features, text = WordFeatures.from_examples(examples, ["segmentation", "gazetteer"], min_count=1), "去了北京"
    given = features(text, [(place, place + 1) for place in range(len(text))])
    assert given.columns.any() and given.flags.any()
    for names, columns, flags in zip(attributes(text, features), given.columns, given.flags):
        assert [name for name in names if name.startswith(("column", "flag"))] == [
            *(f"column {number}={value}" for number, value in enumerate(columns) if value),
            *(f"flag={number}" for number in flags.nonzero()[0]),
        ]
    own = attributes(text, features, own=examples[0])
    assert not any("flag" in name for names in own for name in names)


def test_a_crf_learns_and_is_scored_as_others_are(tmp_path, capsys):
    train, test = map(str, write_demo_corpus(tmp_path, train_size=150, dev_size=40))
    words = f"--train_file {train} --test_file {test} --train_texts 60 --features segmentation,gazetteer".split()

    def train_crf(name, *more):
        assert main([*words, "--output_dir", str(tmp_path / name), *more]) == 0
        return json.loads((tmp_path / name / "metrics.json").read_text(encoding="utf-8"))

    metrics, printed = train_crf("run"), capsys.readouterr().out
    assert "train_texts: 60 of the 150 texts" in printed and f"{metrics['test']['f1']:.4f}" in printed
    assert metrics["dev"]["support"] > 0 and metrics["test"]["f1"] > 0.5
    assert metrics["parameters"] > 0 and metrics["not_learned"] > 0  # the demo corpus has nested entities
    nothing = train_crf("nothing", "--c1", "1e9")
    assert (nothing["parameters"], nothing["iterations"]) == (0, 0)
    for more, said in ((["--features", "words,nothing"], "--features must be some of"),
                       (["--dev_fraction", "2"], "--dev_fraction must be"),
                       (["--train_texts", "151"], "has only 150 texts"),
                       (["--output_dir", str(tmp_path / "run")], "is not empty")):  # fmt: skip
        capsys.readouterr()
        assert main([*words, "--output_dir", str(tmp_path / "new"), *more]) == 2
        assert said in capsys.readouterr().err and not (tmp_path / "new").exists()
