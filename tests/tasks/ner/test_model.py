"""From examples to padded batches; NerModel: padding, loss, gradients, first weights, configuration, a teacher."""

from types import SimpleNamespace

import numpy as np
import paddle
import pytest
from paddle import nn

from paddle_rope import multilabel_categorical_crossentropy
from paddle_rope.global_pointer.heads import MASKED_LOGIT
from paddle_rope.roformer import CharTokenizer, RoFormerConfig, RoFormerModel
from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.training import loop
from paddle_rope.tasks.common.training.data import NO_DATA
from paddle_rope.tasks.common.training.run import Run
from paddle_rope.tasks.common.training.settings import Settings
from paddle_rope.tasks.ner.arguments import NerArguments
from paddle_rope.tasks.ner.batching import NerDataset, pad_spans
from paddle_rope.tasks.ner.data.splits import read_teacher
from paddle_rope.tasks.ner.examples import Entity, align_entities
from paddle_rope.tasks.ner.model import NerConfig, NerModel
from paddle_rope.tasks.ner.recipe import NerRecipe
from tests.paddle_rope.roformer.small_models import SIZES
from tests.tasks.ner.conftest import example, tokenized

GAZETTEER = {"features": ["gazetteer"], "hidden_size": 16, "num_hidden_layers": 1, "vocab_min_count": 1}
each_head = pytest.mark.parametrize("span_head", ["efficient", "dense"])


def ner_model(span_head="efficient", **options):
    options |= {"span_head": span_head, "head_size": 4, "types": ["a", "b", "c"]}
    return NerModel(NerConfig(**options, **SIZES)).eval()


def random_texts(*lengths):
    return [tokenized(np.random.randint(1, 23, length - 2).tolist(), [(1, 1, length - 2, 1.0)]) for length in lengths]


def batch_of(texts, with_labels=False):
    return {name: paddle.to_tensor(array) for name, array in pad_spans(texts, 0, with_labels).items()}


@each_head
def test_a_padded_batch_gives_the_logits_of_each_text_alone(span_head):
    model, texts = ner_model(span_head, attention="window"), random_texts(4, 13, 3, 9)
    logits = model(**batch_of(texts)).numpy()
    assert logits.shape == (4, 3, 13, 13)
    for row, text in enumerate(texts):
        length = len(text.ids)
        alone = model(**batch_of([text])).numpy()[0]
        np.testing.assert_allclose(logits[row, :, :length, :length], alone, rtol=1e-5, atol=1e-5)
        assert (logits[row, :, length:] == MASKED_LOGIT).all() and (logits[row, :, :, length:] == MASKED_LOGIT).all()
        assert (alone[:, [0, -1]] == MASKED_LOGIT).all(), "special tokens start no span"
        assert (alone[:, 1, 1 : length - 1] > MASKED_LOGIT / 2).all()


@each_head
def test_a_model_with_other_types_scores_those_it_knows_as_before(span_head, tmp_path):
    model, batch = ner_model(span_head=span_head), batch_of(random_texts(4, 13))
    model.save_pretrained(tmp_path)
    other = NerModel.from_pretrained(tmp_path, types=["c", "new", "a", "newer"]).eval()
    before, after = model(**batch).numpy(), other(**batch).numpy()
    np.testing.assert_allclose(after[:, [2, 0]], before[:, [0, 2]], rtol=1e-5, atol=1e-5)
    assert (after[:, 1] == after[:, 3]).all() and not np.allclose(after[:, 1], after[:, 0])
    if span_head == "efficient":  # its scores are linear in what belongs to a type
        np.testing.assert_allclose(after[:, 1], before.mean(1), rtol=1e-4, atol=1e-4)


def test_the_loss_is_the_mean_over_texts_and_types():
    without_entities = tokenized([7, 8])
    model, batch = ner_model(), batch_of([*random_texts(4, 7), without_entities], with_labels=True)
    loss, labels = model(**batch), batch.pop("labels")
    dense = np.zeros([3, 3, 7, 7], np.float32)
    for text, spans in enumerate(labels.tolist()):
        for kind, first, last in spans:
            dense[text, kind, first, last] = kind >= 0
    assert dense.sum() == 2
    logits = model(**batch).reshape([9, 49])
    rows = multilabel_categorical_crossentropy(logits, paddle.to_tensor(dense.reshape([9, 49])))
    np.testing.assert_allclose(float(loss), rows.numpy().mean(), rtol=1e-6)
    assert pad_spans([without_entities], 0)["labels"].tolist() == [[[-1] * 3]]  # a data loader takes no empty tensors


@pytest.mark.parametrize("span_rope", [True, False])
def test_the_span_head_rotates_unless_span_rope_is_false(span_rope):
    hidden = paddle.randn([1, 1, SIZES["hidden_size"]]).expand([1, 6, -1])  # tokens that differ in their place alone
    scores = ner_model(span_rope=span_rope).head(hidden, paddle.ones([1, 6], dtype="bool"))
    spans = scores.numpy()[0][(slice(None), *np.triu_indices(6))]
    assert (np.ptp(spans, axis=1) > 1e-4).all() == span_rope


@each_head
def test_every_parameter_gets_a_gradient(span_head):
    model = ner_model(span_head, attention="linear")
    model(**batch_of(random_texts(5, 8), with_labels=True)).backward()
    for name, parameter in model.named_parameters():
        assert bool(paddle.isfinite(parameter.grad).all()), name
        assert float(parameter.grad.abs().max()) > 0, name


def test_first_weights_of_heads_and_features_have_the_deviation_of_the_encoder(tmp_path):
    sizes = {**SIZES, "vocab_size": 200, "hidden_size": 48, "intermediate_size": 400}
    types, features = list("abcdefgh"), {"tables": {"words": 200}, "flags": 40}
    RoFormerModel(RoFormerConfig(**sizes)).save_pretrained(tmp_path / "encoder")
    scratch = NerModel(NerConfig(types=types, features=features, **sizes))
    scratch.save_pretrained(tmp_path / "ner")
    on_encoder = NerModel.from_pretrained(tmp_path / "encoder", types=types, features=features)
    again = NerModel.from_pretrained(tmp_path / "ner", types=types, features=features)
    for model in (scratch, on_encoder, again):
        for path, layer in model.named_sublayers():
            if isinstance(layer, (nn.Linear, nn.Embedding)):
                expected = 0.02 if isinstance(layer, nn.Embedding) else 0.5 * layer.weight.shape[0] ** -0.5
                # keeps the scale of what it sums up; a new head on an encoder
                if path == "feature_embedding.projection" or (model is on_encoder and path.startswith("head.")):
                    expected *= 2
                assert abs(layer.weight.numpy().std() / expected - 1) < 0.2, path


# ---- the configuration
OFFSETS = [(0, 0), (0, 1), (1, 3), (4, 5), (0, 0)]  # special, one character, two, a gap, one, special


@pytest.mark.parametrize("start, end, tokens", [
    *((0, 1, (1, 1)), (0, 3, (1, 2)), (1, 5, (2, 3))),
    *((start, end, None) for start, end in ((2, 3), (0, 2), (3, 5), (0, 4), (0, 0))),
])  # fmt: skip
def test_an_entity_has_a_first_and_a_last_token_unless_it_cuts_one_or_ends_in_a_gap(start, end, tokens):
    entity = Entity(start, end, "a")
    assert align_entities([entity], OFFSETS) == (([(entity, *tokens)], []) if tokens else ([], [entity]))


def test_a_dataset_counts_what_the_model_cannot_find():
    tokenizer = CharTokenizer.from_corpus(["去北京大学cafe店"])
    examples = example("cafe\u0301店", (0, 4, "org"), (5, 6, "org")), example("北京大", (0, 2, "org"), (0, 3, "org"))
    made = NerDataset(examples, tokenizer, ["org", "place"], max_span_length=2)
    assert made.faults == {
        "start or end inside a token": [(examples[0], Entity(0, 4, "org"))],
        "have more than max_span_length 2 tokens": [(examples[1], Entity(0, 3, "org"))],
    }
    assert [[span[:3] for span in text.spans] for text in made.texts] == [[(0, 5, 5)], [(0, 1, 2)]]


# ---- labels of a teacher
def labeled(probability, length=9):
    (text,) = random_texts(length)
    return text._replace(spans=[(1, 1, length - 2, probability)])


def test_labels_are_drawn_with_their_probabilities():
    model, text = ner_model(), labeled(0.3)
    batch = batch_of([text], with_labels=True)
    given = ({**batch, "probabilities": paddle.full([1, 1], probability)} for probability in (1.0, 0.0))
    with_label, without = (float(model(**one)) for one in given)
    assert float(model(**batch_of([labeled(1.0)._replace(ids=text.ids)], with_labels=True))) == with_label
    paddle.seed(0)
    losses = [float(model(**batch)) for _ in range(200)]
    assert {*losses} == {with_label, without}
    assert 40 <= losses.count(with_label) <= 80
    assert "probabilities" not in pad_spans([labeled(1.0), *random_texts(5)], 0)


def test_probabilities_are_read_and_checked(write):
    text = "张三在北京"

    def taught(*entities):
        path = write([{"text": text, "entities": entities}], "found.jsonl")
        return read_teacher(type("Keys", (), {"teacher_files": [str(path)]}), {})

    first, second = {"start": 0, "end": 2, "type": "person"}, {"start": 3, "end": 5, "type": "place"}
    (example,) = taught({**first, "score": -1.2, "probability": 0.25}, second)
    found = [(*entity[:3], entity.probability) for entity in example.entities]
    assert found == [(0, 2, "person", 0.25), (3, 5, "place", None)]
    for wrong in (1.5, -0.1, "0.5", True):
        with pytest.raises(InputError, match="found.jsonl:1: the probability .* is not a number from 0 to 1"):
            taught({**first, "probability": wrong})


def test_texts_that_the_teacher_shares_are_told_and_do_not_see_their_labels(write, capsys):
    taught = {"text": "去青川", "entities": [{"start": 1, "end": 3, "type": "place", "probability": 0.9}]}
    records = [{"text": text, "label": {"place": {text[1:]: [[1, 2]]}}} for text in ("去青川", "在北川", "到北京")]
    files = {name: str(write(some, name)) for name, some in (("train", records[:2]), ("dev", records[2:]))}
    teacher = str(write([taught, {"text": "到北京", "entities": []}], "teacher"))
    keys = NerArguments(train_file=files["train"], dev_file=files["dev"], teacher_files=[teacher], **GAZETTEER)
    recipe = NerRecipe()
    settings = Settings({}, keys, SimpleNamespace(seed=1), {})
    data = recipe.read(settings, NO_DATA)
    assert data.chosen == {}
    run = Run(*settings, data, None, NO_DATA)
    assert "of other files: 1 of train, 1 of dev; " in capsys.readouterr().out
    loop._build(recipe, run)
    texts = recipe.dataset(run, "train").texts
    assert [[span[3] for span in text.spans] for text in texts] == [[1.0], [1.0], [0.9], []]
    for text in texts[:3:2]:  # the same one as it is labeled, and as it was predicted
        assert not text.features.flags.any() and data.features("去青川", text.offsets).flags.any()


def test_a_student_learns_the_texts_of_its_teacher(train_few, trained, corpus, predict, write, tmp_path):
    texts = "\n".join(record["text"] for record in corpus.dev_records)
    found = predict(texts, trained.model, ["--min_probability", "0.05"])
    options = {"train_texts": 8, "dev_file": "", "dev_fraction": 0, "test_file": corpus.dev, "num_train_epochs": 16}
    alone = train_few(tmp_path / "alone", **options)
    student = train_few(tmp_path / "student", **options, teacher_files=write(found, "taught.jsonl"))
    assert student.metrics["test"]["f1"] > alone.metrics["test"]["f1"] + 0.2
