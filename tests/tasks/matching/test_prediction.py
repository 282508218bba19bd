"""Prediction: scores, embeddings, and the tools around them."""

import io
import json
import os
import shutil
import subprocess
import sys
from itertools import chain
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from tasks.commands.predict import CHUNK_BATCHES
from tasks.common.errors import InputError
from tasks.matching.data import ExampleStream, read_labeled
from tasks.matching.prediction import MatchingPredictor
from tests.helpers.verbs import verb

evaluate_matching = verb("evaluate")
predict_matching = verb("predict")

make_demo_matching = verb("demo", "matching")

REPOSITORY = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def predictors(bi_encoder, cross_encoder, of_triples):
    folders = {"bi": bi_encoder.model, "cross": cross_encoder.model, "triples": of_triples.model}
    return {name: MatchingPredictor(folder, "cpu") for name, folder in folders.items()}


@pytest.fixture(scope="module")
def pairs(data):
    return [example.texts for example in chain.from_iterable(ExampleStream(data.pairs_dev))]


# ---- the Python interface


@pytest.mark.parametrize("name", ["bi", "cross"])
def test_saved_model_scores_pairs_as_in_training(request, predictors, pairs, name):
    run = request.getfixturevalue(f"{name}_encoder")
    scores = predictors[name].score(pairs)
    assert scores.dtype == np.float32 and scores.shape == (len(pairs),)
    np.testing.assert_allclose(scores, [record["score"] for record in run.predictions], atol=1e-5)


def test_dot_products_of_embeddings_are_the_scores(predictors, pairs):
    texts = [text for texts in pairs for text in texts]
    vectors = predictors["bi"].encode(texts)
    assert vectors.dtype == np.float32 and vectors.shape == (len(texts), 32)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    np.testing.assert_allclose((vectors[::2] * vectors[1::2]).sum(axis=1), predictors["bi"].score(pairs), atol=1e-5)
    np.testing.assert_allclose(predictors["bi"].encode(texts[3:4])[0], vectors[3], atol=1e-5)  # of any batch


def test_search_finds_the_question_that_means_the_same(predictors, data):
    """The nearest other question is a paraphrase more often than one in two of ten."""
    matching = [example.texts for example in read_labeled(data.pairs_dev) if example.label == 1][:10]
    queries, answers = (predictors["bi"].encode([texts[side] for texts in matching]) for side in (0, 1))
    assert (np.argmax(queries @ answers.T, axis=1) == np.arange(10)).mean() > 0.5


def test_triples_are_scored_by_any_model(predictors, data):
    triples = [example.texts for example in chain.from_iterable(ExampleStream(data.triples))][:5]
    for predictor in predictors.values():
        scores = predictor.score_triples(triples)
        assert scores.shape == (5, 2)
        np.testing.assert_allclose(scores[:, 1], predictor.score([(a, c) for a, _, c in triples]), atol=1e-5)


def test_nothing_has_no_scores_and_an_empty_text_has_a_vector(predictors):
    assert predictors["bi"].score([]).shape == (0,)
    assert predictors["bi"].score_triples([]).shape == (0, 2)
    assert predictors["bi"].encode([]).shape == (0, 32)
    assert np.isfinite(predictors["bi"].encode(["", " ", "𠮷" * 100])).all()


def test_longer_sequences_are_cut_as_asked(bi_encoder):
    text = "怎么申请信用卡和储蓄卡"
    short = MatchingPredictor(bi_encoder.model, "cpu", max_tokens=7)
    np.testing.assert_allclose(short.encode([text]), short.encode([text[:5]]), atol=1e-6)
    whole = MatchingPredictor(bi_encoder.model, "cpu")
    assert np.abs(whole.encode([text]) - whole.encode([text[:5]])).max() > 1e-3


def test_cross_encoder_has_no_vectors(predictors):
    with pytest.raises(InputError, match="is a cross_encoder, which reads two texts at once and has no vector for one"):
        predictors["cross"].encode(["x"])


@pytest.mark.parametrize(
    "call, message",
    [
        (lambda p: p.score("xy"), "give a list of pairs of strings, got one string"),
        (lambda p: p.score(["xy"]), "number 1 is 'xy'"),
        (lambda p: p.score([("x", "y"), ("x", "y", "z")]), "list of pairs of strings; number 2 is"),
        (lambda p: p.score([("x", 3)]), "number 1 is"),
        (lambda p: p.score_triples([("x", "y")]), "give a list of triples of strings; number 1 is"),
        (lambda p: p.encode("x"), "give a list of strings, got one string"),
        (lambda p: p.encode([None]), "give a list of strings; number 1 is"),
    ],
)
def test_other_things_than_texts_are_refused(predictors, call, message):
    with pytest.raises(InputError, match=message):
        call(predictors["bi"])


# ---- tools


def read_json_lines(path):
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_tool_writes_pairs_with_their_score_and_label(bi_encoder, predictors, pairs, data, tmp_path):
    words = [str(bi_encoder.model), "--input", str(data.pairs_dev), "--output", str(tmp_path / "out"), "--device=cpu"]
    assert predict_matching.main(words) == 0
    records = read_json_lines(tmp_path / "out")
    assert [(record["sentence1"], record["sentence2"]) for record in records] == pairs
    scores = predictors["bi"].score(pairs)
    np.testing.assert_allclose([record["score"] for record in records], scores, atol=1e-6)
    labels = np.array([record["label"] for record in records])
    np.testing.assert_array_equal(labels, scores >= bi_encoder.model_config["threshold"])
    gold = np.array([example.label for example in read_labeled(data.pairs_dev)])
    assert (labels == gold).mean() == bi_encoder.metrics["dev"]["accuracy"]


def test_tool_writes_the_candidate_that_is_closer(of_triples, data, tmp_path):
    words = [str(of_triples.model), "--input", str(data.triples), "--output", str(tmp_path / "out"), "--device=cpu"]
    assert predict_matching.main(words) == 0
    records, given = read_json_lines(tmp_path / "out"), read_json_lines(data.triples)
    assert [{key: record[key] for key in "ABC"} for record in records] == given
    assert all(("C", "B")[record["scores"][0] > record["scores"][1]] == record["label"] for record in records)
    share = np.mean([record["label"] == "B" for record in records])  # B is the closer one in the file
    assert share == of_triples.metrics["dev"]["accuracy"]


def test_tool_embeds_texts_of_lines(bi_encoder, predictors, tmp_path):
    (tmp_path / "texts").write_text("怎么申请信用卡\n\n房贷利息\n", encoding="utf-8")
    output = tmp_path / "vectors.npy"
    words = [str(bi_encoder.model), "--embed", "--input", str(tmp_path / "texts"), "--output", str(output)]
    assert predict_matching.main([*words, "--device=cpu"]) == 0
    expected = predictors["bi"].encode(["怎么申请信用卡", "", "房贷利息"])
    np.testing.assert_allclose(np.load(output), expected, atol=1e-6)


def test_pairs_are_scored_and_written_before_the_next_ones_are_read(bi_encoder, predictors, monkeypatch, capsys):
    class Pipe(io.RawIOBase):
        pieces = ["怎么申请信用卡\t信用卡如何申请\n", "\n甲\t乙\t1\n丙\t", "丁"]
        written = []

        def readable(self):
            return True

        def readinto(self, buffer):
            self.written.append(capsys.readouterr().out.count("\n"))
            piece = self.pieces.pop(0).encode() if self.pieces else b""
            buffer[: len(piece)] = piece
            return len(piece)

    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=Pipe(), isatty=lambda: False))
    assert predict_matching.main([str(bi_encoder.model), "--device=cpu"]) == 0
    assert Pipe.written == [0, 1, 1, 0] and capsys.readouterr().out.count("\n") == 1


def test_more_pairs_than_a_chunk_holds_are_scored_in_turn(bi_encoder, predictors, pairs, data, tmp_path):
    words = [str(bi_encoder.model), "--input", str(data.pairs_dev), "--output", str(tmp_path / "out"), "--device=cpu"]
    assert len(pairs) > CHUNK_BATCHES["matching"]
    assert predict_matching.main([*words, "--batch_size", "1"]) == 0
    found = [record["score"] for record in read_json_lines(tmp_path / "out")]
    np.testing.assert_allclose(found, predictors["bi"].score(pairs), atol=1e-5)


def test_what_is_scored_is_not_kept_where_a_later_line_is_wrong(bi_encoder, tmp_path, fails):
    (tmp_path / "pairs").write_text("甲\t乙\n丙\n", encoding="utf-8")
    words = ("--device", "cpu", "--input", "pairs", "--output", "out")
    assert fails(predict_matching, bi_encoder.model, *words).startswith("pairs:2: 1 columns")
    assert not (tmp_path / "out").exists()


def test_standard_streams_are_utf_8_in_any_locale(cross_encoder, tmp_path):
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        [sys.executable, "-m", "paddle_rope", "predict", cross_encoder.model, "--device", "cpu"],
        input="怎么申请信用卡\t信用卡如何申请\n".encode(),
        capture_output=True, env=environment, cwd=tmp_path, timeout=120,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    (record,) = map(json.loads, done.stdout.decode("utf-8").splitlines())
    assert record["sentence1"] == "怎么申请信用卡" and 0 < record["score"] < 1 and record["label"] in (0, 1)


def test_evaluation_gives_the_figures_of_training(bi_encoder, cross_encoder, of_triples, data, tmp_path, capsys):
    for run, file in ((bi_encoder, data.pairs_dev), (cross_encoder, data.pairs_dev), (of_triples, data.triples)):
        words = [str(run.model), str(file), "--output", str(tmp_path / "out"), "--device", "cpu"]
        assert evaluate_matching.main(words) == 0
        assert json.loads((tmp_path / "out").read_text("utf-8")) == pytest.approx(run.metrics["dev"], abs=1e-5)
        assert f"accuracy {run.metrics['dev']['accuracy']:.4f}" in capsys.readouterr().out


def test_model_of_pairs_is_evaluated_on_grades_by_their_order(bi_encoder, data, tmp_path):
    words = [str(bi_encoder.model), str(data.grades_dev), "--output", str(tmp_path / "out"), "--device", "cpu"]
    assert evaluate_matching.main(words) == 0
    assert json.loads((tmp_path / "out").read_text("utf-8")).keys() == {"spearman"}


# ---- what cannot be


@pytest.fixture
def predict_fails(fails, bi_encoder, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"x\ty\n")))
    return lambda *words, model=bi_encoder.model: fails(predict_matching, model, "--device", "cpu", *words)


def test_bad_input_of_the_tools_is_one_line(predict_fails, fails, cross_encoder, bi_encoder, tmp_path):
    (tmp_path / "texts").write_text("x\n", encoding="utf-8")
    (tmp_path / "pairs").write_text("x\ty\n", encoding="utf-8")
    assert predict_fails("--input", "missing") == "missing: no such file; check the path"
    assert predict_fails("--input", "texts").startswith("texts:1: 1 columns, 'x'; give two texts and a label between")
    assert predict_fails("--output", "no/out").startswith("no/out: cannot be written")
    assert predict_fails("--input", "pairs", "--output", "./pairs").startswith("./pairs: is the input too")
    assert predict_fails("--embed") == "--embed writes an array: give --output FILE.npy"
    assert "is a cross_encoder" in predict_fails("--embed", "--output", "x.npy", model=cross_encoder.model)
    assert predict_fails("--batch_size", "0") == "--batch_size 0: must be 1 or more"
    assert predict_fails("--max_tokens", "4").endswith(" 4: must be 5 or more")
    message = fails(evaluate_matching, bi_encoder.model, "pairs", "--device", "cpu")
    assert message.startswith("pairs:1: there is no label")


def test_folder_that_is_no_model_is_named(predict_fails, bi_encoder, tmp_path):
    assert predict_fails(model="missing").startswith("missing: no such folder")
    assert predict_fails(model=bi_encoder.folder).endswith(f"is a training run, not a model; give {bi_encoder.model}")
    folder = shutil.copytree(bi_encoder.model, tmp_path / "damaged")
    config = json.loads((folder / "config.json").read_text("utf-8"))
    for changed, what in (
        ({**config, "vocab_size": 7}, "config.json"),
        ({**config, "architecture": "other"}, "config.json"),
        ({**config, "architecture": "cross_encoder"}, "model.safetensors"),
    ):
        (folder / "config.json").write_text(json.dumps(changed), "utf-8")
        assert predict_fails(model="damaged").startswith(f"damaged: {what} is damaged or does not fit")


# ---- demo data


def test_demo_data_are_the_same_each_time(tmp_path, capsys):
    for name in ("one", "same"):
        assert make_demo_matching.main([str(tmp_path / name)]) == 0
    one, same = ({path.name: path.read_bytes() for path in (tmp_path / name).iterdir()} for name in ("one", "same"))
    assert one == same
    assert one.keys() == {
        "pairs_train.tsv", "pairs_dev.tsv", "grades_train.tsv", "grades_dev.tsv", "triples.jsonl"
    }  # fmt: skip
    assert "pairs_train.tsv: 600 lines" in capsys.readouterr().out
    assert make_demo_matching.main([str(tmp_path / "one")]) == 2
    assert "one: is not empty" in capsys.readouterr().err
