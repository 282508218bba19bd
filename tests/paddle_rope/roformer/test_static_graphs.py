"""RoFormer through paddle.jit.to_static: every form, what is given beside the tokens, and the tracing by default."""

import numpy as np
import paddle
import pytest
from paddle.static import InputSpec

from paddle_rope import RoFormerModel
from tests.helpers.comparison import assert_close
from tests.paddle_rope.roformer.small_models import FORMS, make, random_ids

# Causal linear attention needs a known length; what the others have more than these is exported with one of these.
EXPORTED = (
    *("version 1", "version 2, embedding size", "window mixed", "causal window", "two-sided decay", "qkv", "shared"),
    *("exp", "cosine", "softmax exp", "favor", "convolutions", "convolutions, shared", "convolutions, linear"),
    *("sinusoidal", "learned", "alibi", "none"),
)


class Given(paddle.nn.Layer):
    """An encoder with a mask and one more argument, by name."""

    def __init__(self, model, name):
        super().__init__()
        self.model, self.name = model, name

    def forward(self, input_ids, attention_mask, more):
        return self.model(input_ids, attention_mask, **{self.name: more})


def saved_and_loaded(layer, folder, *specs):
    layer.eval()
    paddle.jit.save(paddle.jit.to_static(layer, input_spec=specs, full_graph=True), str(folder / "layer"))
    return paddle.jit.load(str(folder / "layer"))


def ids_specs(number):
    return [InputSpec([None, None], "int64") for _ in range(number)]


@pytest.mark.parametrize("form", EXPORTED)
def test_a_saved_model_takes_any_batch_and_length(form, tmp_path):
    options = FORMS[form]
    model = make(RoFormerModel, num_hidden_layers=2 if isinstance(options.get("attention"), list) else 1, **options)
    batches, outputs = [], []
    for batch, seq in ((1, 1), (3, 5), (2, 7)):
        mask = paddle.to_tensor(np.arange(seq) < np.random.randint(1, seq + 1, (batch, 1)))
        batches.append((random_ids(batch, seq), mask.astype("int64")))
        outputs.append(model(*batches[-1]).numpy())
    loaded = saved_and_loaded(model, tmp_path, *ids_specs(2))
    for (ids, mask), expected in zip(batches, outputs):
        is_real = mask.numpy()[:, :, np.newaxis]
        np.testing.assert_allclose(loaded(ids, mask).numpy() * is_real, expected * is_real, rtol=0, atol=1e-4)


@pytest.mark.equation("2.7")
@pytest.mark.parametrize(
    "name, options",
    [
        ("positions", {"attention": ["softmax", "linear", "window"], "num_hidden_layers": 3}),
        ("positions", {"attention": "window", "rotary": {"learned": True}}),
        ("positions", {"position_embedding": "alibi"}),
        ("segment_ids", {"attention": ["softmax", "window"], "attention_window": 2}),
        ("added_embeddings", {}),
    ],
    ids=str,
)
def test_a_saved_model_takes_what_is_given_with_the_tokens(name, options, tmp_path):
    model, specs = make(RoFormerModel, **options), ids_specs(3)
    if name == "added_embeddings":
        specs[2] = InputSpec([None, None, 12], "float32")
    loaded = saved_and_loaded(Given(model, name), tmp_path, *specs)
    for sizes in ((1, 1), (3, 9), (2, 70)):
        numbers = np.sort(np.random.randint(0, 500 if name == "positions" else 3, sizes))
        ids, more = random_ids(*sizes), paddle.to_tensor(numbers)
        if name == "added_embeddings":
            more = paddle.randn([*sizes, 12])
        expected = model(ids, **{name: more})
        assert_close(loaded(ids, paddle.ones_like(ids), more), expected, 2e-4)


@pytest.mark.parametrize(
    "options", [{"attention": "linear"}, {"attention": ["softmax", "linear"], "causal": True}], ids=str
)
def test_what_needs_a_known_length_says_so(options, tmp_path):
    with pytest.raises(ValueError, match="known length"):
        saved_and_loaded(Given(make(RoFormerModel, **options), "segment_ids"), tmp_path, *ids_specs(3))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_to_static_by_its_defaults_changes_nothing():
    model = make(RoFormerModel, attention=["softmax", "linear", "window"], num_hidden_layers=3)
    ids = random_ids(2, 7)
    expected = model(ids)
    assert_close(paddle.jit.to_static(model)(ids), expected, 1e-5)
