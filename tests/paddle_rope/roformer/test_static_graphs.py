"""RoFormer through paddle.jit.to_static: every form, what is given beside the tokens, and the tracing by default."""

import copy

import numpy as np
import paddle
import pytest
from paddle.static import InputSpec

from paddle_rope import RoFormerModel
from tests.helpers.comparison import assert_close
from tests.paddle_rope.roformer.small_models import FORMS, make, random_ids

# What the other forms have more than these is exported with one of these.
EXPORTED = (
    *("version 1", "version 2, embedding size", "window mixed", "causal window", "two-sided decay", "qkv", "shared"),
    *(
        "exp",
        "cosine",
        "softmax exp",
        "favor",
        "convolutions",
        "convolutions, shared",
        "convolutions, linear",
        "causal, all",
    ),
    *("sinusoidal", "learned", "alibi", "none"),
)


class Given(paddle.nn.Layer):
    """An encoder with a mask and, by name, one more argument."""

    def __init__(self, model, name=None):
        super().__init__()
        self.model, self.name = model, name

    def forward(self, input_ids, attention_mask, more=None):
        return self.model(input_ids, attention_mask, **({self.name: more} if self.name else {}))


def saved_and_loaded(layer, folder):
    layer.eval()
    specs = [InputSpec([None, None], "int64") for _ in range(2 if layer.name is None else 3)]
    if layer.name == "added_embeddings":
        specs[2] = InputSpec([None, None, 12], "float32")
    paddle.jit.save(paddle.jit.to_static(layer, input_spec=specs, full_graph=True), str(folder / "layer"))
    return paddle.jit.load(str(folder / "layer"))


LONG = {"linear": [(1, 1100)]}  # more chunks than a group
THREE = {"attention": ["softmax", "linear", "window"], "num_hidden_layers": 3}
GIVEN = [  # an argument beside the mask, and options
    *((None, FORMS[form] | ({"num_hidden_layers": 1} if isinstance(FORMS[form].get("attention", ""), str) else {}))
      for form in EXPORTED),
    ("positions", THREE),
    ("positions", {"attention": "window", "rotary": {"learned": True}}),
    ("positions", {"position_embedding": "alibi"}),
    ("segment_ids", {"attention": ["softmax", "window", "linear"], "attention_window": 2, "num_hidden_layers": 3}),
    ("segment_ids", {"attention": ["softmax", "linear"], "causal": True}),
    ("added_embeddings", {}),
]  # fmt: skip


@pytest.mark.equation("2.7")
@pytest.mark.parametrize("name, options", GIVEN, ids=str)
def test_a_saved_model_takes_any_batch_and_length_and_what_is_given_with_the_tokens(name, options, tmp_path):
    model, batches, outputs = make(RoFormerModel, **options), [], []
    for batch, seq in (
        (1, 1),
        (3, 9),
        (2, 70),
        *LONG.get(str(options.get("attention", "")) + options.get("position_embedding", ""), ()),
    ):
        mask = np.arange(seq) < np.random.randint(1, seq + 1, (batch, 1))
        numbers = np.sort(np.random.randint(0, 500 if name == "positions" else 3, (batch, seq)))
        more = paddle.randn([batch, seq, 12]) if name == "added_embeddings" else paddle.to_tensor(numbers)
        given = random_ids(batch, seq), paddle.to_tensor(mask.astype("int64")), more
        batches.append(given[: 2 if name is None else 3])
        outputs.append(Given(model, name)(*batches[-1]).numpy())
    loaded = saved_and_loaded(Given(model, name), tmp_path)
    for given, expected in zip(batches, outputs):
        is_real = given[1].numpy().astype(bool)
        assert_close(loaded(*given).numpy()[is_real], expected[is_real], 2e-4)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("options", [THREE, {"attention": "linear"}], ids=["mixed", "linear"])
def test_to_static_by_its_defaults_changes_nothing(options):
    model, ids = make(RoFormerModel, **options), random_ids(2, 7)
    results = []
    for form in (model, paddle.jit.to_static(copy.deepcopy(model))):
        hidden = form(ids)
        hidden.sum().backward()
        results.append([hidden, *(weight.grad for weight in form.parameters())])
    for plain, traced in zip(*results):
        assert_close(traced, plain, 1e-4)
