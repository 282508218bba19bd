"""Models with word features: embedding and dropouts, and from training to prediction."""

import shutil

import numpy as np
import paddle
import pytest

from tasks.ner import NerPredictor
from tasks.ner.features import COLUMNS, FEATURE_KINDS
from tasks.ner.model import NerConfig, NerModel
from tests.tasks.ner.conftest import spans_of
from tests.tasks.ner.features.plain_features import same

# ---- the model

SIZES = {
    "vocab_size": 40, "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16,
    "head_size": 8, "types": ["a", "b"], "unk_token_id": 1, "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}  # fmt: skip
ALL = {"tables": {"segmentation": 50, "bigrams": 400, "words": 300}, "flags": 90}


def random_batch(batch=4, seq=50, columns=6, flags=90):
    return {
        "input_ids": paddle.to_tensor(np.random.randint(4, 40, (batch, seq))),
        "attention_mask": paddle.ones([batch, seq], dtype="bool"),
        "token_mask": paddle.to_tensor(np.arange(seq)[None].repeat(batch, 0) > 0),
        "columns": paddle.to_tensor(np.random.randint(0, 50, (batch, seq, columns))),
        "flags": paddle.to_tensor(np.random.random((batch, seq, flags)) < 0.1),
    }


@pytest.mark.parametrize("sizes", [ALL, {"tables": {"bigrams": 60}, "flags": 0}, {"tables": {}, "flags": 9}], ids=str)
def test_every_parameter_of_the_features_gets_a_gradient(sizes):
    model = NerModel(NerConfig(features=sizes, **SIZES))
    shapes = {"columns": sum(COLUMNS[kind] for kind in sizes["tables"]), "flags": sizes["flags"]}
    batch = random_batch(**shapes)
    for name in [name for name, size in shapes.items() if not size]:
        del batch[name]
    model(**batch).sum().backward()
    for name, parameter in model.feature_embedding.named_parameters():
        assert parameter.grad is not None and np.abs(parameter.grad.numpy()).sum() > 0, name
    batch.popitem()  # flags, or columns
    with pytest.raises(ValueError, match="columns and flags"):
        model(**batch)


def seen_by(model, batch):
    """(token ids, columns) that reach the embeddings."""
    seen = []
    layers = (model.roformer.token_embedding, model.feature_embedding)
    hooks = [layer.register_forward_pre_hook(lambda _, given: seen.append(given[0].numpy())) for layer in layers]
    model(**batch)
    for hook in hooks:
        hook.remove()
    columns, ids = seen
    return ids, columns


def test_dropouts_hide_tokens_and_values_at_their_rate_in_training_only():
    model = NerModel(NerConfig(features=ALL, character_dropout=0.1, feature_dropout=0.3, **SIZES))
    batch = random_batch(batch=20, seq=200)
    given_ids, given_columns = batch["input_ids"].numpy(), batch["columns"].numpy()
    model.eval()
    ids, columns = seen_by(model, batch)
    assert np.array_equal(ids, given_ids) and np.array_equal(columns, given_columns)
    model.train()
    ids, columns = seen_by(model, batch)
    hidden, covered = ids != given_ids, batch["token_mask"].numpy()
    assert (ids[hidden] == 1).all() and not hidden[~covered].any()
    assert abs(hidden[covered].mean() - 0.1) < 0.02
    changed = columns != given_columns
    assert (columns[changed] == 1).all() and not changed[given_columns == 0].any()
    assert abs(changed[given_columns > 1].mean() - 0.3) < 0.02
    again = seen_by(model, batch)
    assert not np.array_equal(again[0], ids) and not np.array_equal(again[1], columns)
    np.random.seed(7)
    first = seen_by(model, batch)
    np.random.seed(7)
    assert same(first, seen_by(model, batch))


def test_wrong_values_of_the_configuration_are_an_error():
    tables = ({"bigram": 3}, {"bigrams": 1}, {})
    for features in (*({"tables": one, "flags": 0} for one in tables), ["bigrams"]):
        with pytest.raises(ValueError, match="features must be"):
            NerConfig(**{**SIZES, "features": features})
    with pytest.raises(ValueError, match="needs unk_token_id"):
        NerConfig(**{**SIZES, "character_dropout": 0.1, "unk_token_id": None})


# ---- from training to prediction


@pytest.fixture(scope="module")
def run(train, tmp_path_factory):
    """A model that was trained with all features. Do not change its files."""
    options = {"features": ",".join(FEATURE_KINDS), "character_dropout": 0.05, "feature_dropout": 0.1}
    return train(tmp_path_factory.mktemp("features") / "run", **options, num_train_epochs=6)


def test_the_trained_folder_predicts_what_training_predicted_a_text_alone_or_with_others(run, evaluate, corpus):
    texts = ["", *(record["text"] for record in run.predictions), " \t", "".join(r["text"] for r in run.predictions)]
    predictor = NerPredictor(run.model, "cpu")
    assert len(texts[-1]) > 2 * predictor.max_tokens and run.model_config["features"] == predictor.features.sizes
    together = predictor(texts)
    assert spans_of(together[1:-2]) == spans_of(run.predictions) and sum(map(len, spans_of(together))) > 40
    for text, record in zip(texts, together):
        (alone,) = predictor([text])
        assert spans_of([alone]) == spans_of([record])
        scores = [[entity["score"] for entity in one["entities"]] for one in (alone, record)]
        assert scores[0] == pytest.approx(scores[1], abs=2e-4)
    assert evaluate(corpus.dev, run.model)["f1"] == run.metrics["dev"]["f1"] > 0.1


DAMAGES = [("{", ""), ('"vocabularies"', '"vocabulary"'), ('"dictionary"', '"dictionaries"'), ('      "B-n",\n', ""),
           ('"gazetteer": {', '"gazette": {'), (": 1,\n", ": 0,\n"), ("", None)]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("old, new", DAMAGES, ids=repr)
def test_a_damaged_or_missing_file_is_one_line_with_the_folder(run, tmp_path, refused, corpus, old, new):
    path = shutil.copytree(run.model, tmp_path / "model") / "features.json"
    content = path.read_text(encoding="utf-8")
    path.unlink()
    assert old in content
    if new is not None:
        path.write_text(content.replace(old, new), encoding="utf-8")
    message = refused("predict", tmp_path / "model", "--input", corpus.dev, "--output", "found.jsonl")
    assert message.startswith(f"{tmp_path / 'model'}: ") and "features.json" in message
