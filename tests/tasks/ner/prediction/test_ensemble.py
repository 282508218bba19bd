"""Several models whose scores are averaged."""

import shutil

import numpy as np
import paddle
import predict_ner
import pytest

from tasks.common.errors import InputError
from tasks.common.files import write_json
from tasks.ner import NerPredictor
from tasks.ner.batching import SpanCollator
from tests.tasks.ner.conftest import EPOCHS


@pytest.fixture(scope="module")
def other(train, tmp_path_factory):
    """A model of another seed, size and attention than ``trained``."""
    folder = tmp_path_factory.mktemp("other") / "run"
    return train(folder, seed=43, attention="linear", intermediate_size=32, num_train_epochs=EPOCHS)


def test_scores_are_the_mean_of_those_of_the_models(trained, other, corpus):
    alone = [NerPredictor(model, "cpu") for model in (trained.model, other.model)]
    together = NerPredictor([trained.model, other.model], "cpu")
    texts = [together.tokenize(record["text"]) for record in corpus.dev_records[:4]]
    batch = SpanCollator(together.tokenizer.pad_token_id, with_labels=False)(texts)
    batch = {name: paddle.to_tensor(array) for name, array in batch.items()}
    with paddle.no_grad():
        for predictor in (*alone, together):
            predictor.model.eval()
        expected = [predictor.model(**batch).numpy().astype("float64") for predictor in alone]
        logits = together.model(**batch).numpy()
    is_span = expected[0] > -1e3  # others are masked
    assert is_span.sum() > 1000 and np.abs(expected[0] - expected[1])[is_span].max() > 1
    assert np.allclose(logits[is_span], np.mean(expected, axis=0)[is_span], atol=1e-5)


def test_a_model_with_itself_finds_what_it_finds_alone(trained, corpus):
    texts = [record["text"] for record in corpus.dev_records]
    assert NerPredictor([trained.model] * 2, "cpu")(texts) == NerPredictor(trained.model, "cpu")(texts)


def test_tools_take_several_models(trained, other, corpus, evaluate, tmp_path):
    models = [str(trained.model), str(other.model)]
    texts = [record["text"] for record in corpus.dev_records]
    number = sum(len(record["entities"]) for record in NerPredictor(models, "cpu")(texts))
    assert evaluate(corpus.dev, *models)["predicted"] == number
    given, found = tmp_path / "given.txt", tmp_path / "found.jsonl"
    given.write_text(corpus.dev_records[0]["text"], encoding="utf-8")
    words = ["--input", str(given), "--output", str(found), "--device", "cpu"]
    assert predict_ner.main([*models, *words]) == 0
    both = found.read_bytes()
    assert predict_ner.main([models[0], *words]) == 0
    assert both != found.read_bytes()  # other scores


def changed(trained, folder, file, **keys):
    shutil.copytree(trained.model, folder)
    if file == "config.json":
        write_json(folder / file, {**trained.model_config, **keys})
    else:
        lines = (folder / file).read_text(encoding="utf-8").splitlines()
        (folder / file).write_text("\n".join([*lines[:-2], lines[-1], lines[-2]]) + "\n", encoding="utf-8")
    return folder


def test_thresholds_are_averaged_and_the_least_length_is_taken(trained, tmp_path):
    kinds = len(trained.model_config["types"])
    lengths = {"max_tokens": 20, "window_tokens": 18, "longest_entity": 50, "longest_text": None}
    folder = changed(trained, tmp_path / "tuned", "config.json", thresholds=[1.0] * kinds, **lengths)
    predictor = NerPredictor([trained.model, folder], "cpu")
    config = predictor.model.config
    assert config.thresholds == [0.5] * kinds
    assert (config.max_tokens, config.longest_text) == (20, trained.model_config["longest_text"])
    assert predictor.reading == (18, 9, 100)


@pytest.mark.parametrize(
    ("file", "name", "keys"),
    [
        ("vocab.txt", "vocab.txt", {}),
        ("config.json", "types", {"types": ["a", "b", "c", "d", "e", "f", "g", "h"]}),
        ("config.json", "allow_overlap", {"allow_overlap": False}),
    ],
)
def test_models_that_do_not_belong_together_are_refused(trained, tmp_path, capsys, file, name, keys):
    if "types" in keys:
        keys = {"types": keys["types"][: len(trained.model_config["types"])]}
    folder = changed(trained, tmp_path / "changed", file, **keys)
    with pytest.raises(InputError, match=f"changed: its {name} differs from .*trained on the same files"):
        NerPredictor([trained.model, folder], "cpu")
    assert predict_ner.main([str(trained.model), str(folder), "--device", "cpu"]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_no_folder_at_all_is_refused():
    with pytest.raises(InputError, match="no folder of a model"):
        NerPredictor([])
