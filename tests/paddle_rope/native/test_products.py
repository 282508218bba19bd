"""Products in bfloat16: rounding, products, linear layers, and a training run."""

import numpy as np
import paddle
import pytest
import yaml

from paddle_rope.layers import Linear
from paddle_rope.native import products
from paddle_rope.native.products import DECISION, bfloat16_is_faster, bfloat16_products, product, rounded
from paddle_rope.roformer import RoFormerForMaskedLM
from tasks.classification.recipe import ClassificationRecipe
from tests.helpers.comparison import random_tensor
from tests.paddle_rope.roformer.small_models import make

TINY = {
    "train_file": "configs/classification/demo.jsonl",
    "dev_fraction": 0.25,
    "max_characters": 32,
    "hidden_size": 32,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "num_train_epochs": 1,
    "device": "cpu",
}


def rounded_array(x):
    return rounded(paddle.to_tensor(x)).astype("float32").numpy()


def nearest(x):
    """float32 -> the nearest numbers of 8 bits of mantissa, in float64 arithmetic; ties to even."""
    mantissa, exponent = np.frexp(np.asarray(x, dtype="float64"))
    return np.ldexp(np.rint(mantissa * 256), exponent - 8)


def test_rounding_is_to_the_nearest_and_ties_go_to_even():
    x = np.concatenate([np.random.standard_normal(1000), [1 + 2**-8, 1 + 3 * 2**-8, -1 - 2**-8, 0, 3e38, -1e-30]])
    x = x.astype("float32")
    np.testing.assert_array_equal(rounded_array(x), nearest(x))
    special = np.array([np.inf, -np.inf, np.nan, 3.4e38], dtype="float32")
    np.testing.assert_array_equal(rounded_array(special), [np.inf, -np.inf, np.nan, np.inf])
    all_ones = np.array([0x7FFFFFFF, 0xFFFFFFFF], dtype="uint32").view("float32")  # NaN that must not become 0
    assert np.isnan(rounded_array(all_ones)).all()


@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize("transpose_a", [False, True])
def test_products_are_those_of_the_rounded_factors(has_bfloat16, transpose_a, transpose_b):
    a, b = np.random.standard_normal((17, 33)), np.random.standard_normal((33, 21))
    a, b = (nearest(x.astype("float32")) for x in (a, b))
    given = (x.T if transposed else x for x, transposed in ((a, transpose_a), (b, transpose_b)))
    given = (rounded(paddle.to_tensor(np.ascontiguousarray(x), dtype="float32")) for x in given)
    found = product(*given, transpose_a, transpose_b)
    assert found.dtype == paddle.float32
    np.testing.assert_allclose(found.numpy(), a @ b, rtol=0, atol=1e-5)


@pytest.mark.parametrize("activation", [None, "gelu"])
def test_a_linear_layer_rounds_the_factors_of_its_three_products_and_nothing_else(has_bfloat16, activation):
    layer, x, towards = (
        Linear(24, 16, activation=activation),
        random_tensor(4, 9, 24, dtype="float32"),
        random_tensor(4, 9, 16, dtype="float32"),
    )
    before = layer(x)
    with bfloat16_products(), bfloat16_products():
        y = layer(x)
    with pytest.raises(ZeroDivisionError), bfloat16_products():
        raise ZeroDivisionError
    assert bool((layer(x) == before).all()) and not bool((y == before).all())
    (y * towards).sum().backward()  # outside of the block: rounded because the forward pass was
    x64, w64 = nearest(x.numpy()).reshape(-1, 24), nearest(layer.weight.numpy())
    sums = x64 @ w64 + layer.bias.numpy()
    wide = paddle.to_tensor(sums, dtype="float64", stop_gradient=False)
    plain = wide if activation is None else paddle.nn.functional.gelu(wide)
    np.testing.assert_allclose(y.numpy().reshape(-1, 16), plain.numpy(), rtol=0, atol=1e-5)
    (plain * towards.reshape([-1, 16]).astype("float64")).sum().backward()
    d_sums = wide.grad.numpy()
    np.testing.assert_allclose(layer.bias.grad.numpy(), d_sums.sum(axis=0), rtol=0, atol=1e-4)
    # where a gradient is next to a tie, either neighbor is right
    np.testing.assert_allclose(x.grad.numpy().reshape(-1, 24), nearest(d_sums) @ w64.T, rtol=0, atol=0.02)
    np.testing.assert_allclose(layer.weight.grad.numpy(), x64.T @ nearest(d_sums), rtol=0, atol=0.05)
    exact = x.numpy().reshape(-1, 24) @ layer.weight.numpy() + layer.bias.numpy()
    assert np.abs(sums - exact).max() > 1e-4  # it is not the product in float32


@pytest.mark.parametrize("options", [{}, {"version": 2}], ids=str)
def test_logits_of_a_language_model_are_products_of_the_rounded_factors(has_bfloat16, options):
    model = make(RoFormerForMaskedLM, **options)
    head, table = model.lm_head, model.roformer.token_embedding.weight
    x, labels = random_tensor(2, 7, table.shape[1], dtype="float32"), paddle.arange(14).reshape([2, 7])
    exact, _ = head.loss(x, table, labels)
    exact.backward()
    gradient = table.grad.numpy()
    table.clear_gradient()
    with bfloat16_products():
        logits, (loss, chosen) = head(x, table), head.loss(x, table, labels)
        before = x if head.norm is None else head.norm(head.dense(x))
    bias = 0 if head.bias is None else head.bias.numpy()
    np.testing.assert_allclose(logits.numpy(), nearest(before.numpy()) @ nearest(table.numpy()).T + bias, atol=1e-4)
    np.testing.assert_array_equal(chosen.numpy(), logits.reshape([14, -1]).numpy())
    assert float(loss) != float(exact) and float(loss) == pytest.approx(float(exact), rel=0.01)
    loss.backward()
    np.testing.assert_allclose(table.grad.numpy(), gradient, rtol=0, atol=0.02 * np.abs(gradient).max())


@pytest.mark.parametrize(
    "processor, faster",
    [
        ({"vendor_id": "AuthenticAMD", "flags": "avx512_bf16"}, True),
        ({"vendor_id": "GenuineIntel", "flags": "avx512_bf16"}, False),
        ({"vendor_id": "GenuineIntel", "flags": "avx512_bf16 amx_bf16"}, True),
    ],
)
def test_the_processor_tells_whether_it_is_faster_unless_the_variable_does(monkeypatch, processor, faster):
    monkeypatch.setattr(products, "processors", lambda: [processor])
    monkeypatch.delenv(DECISION, raising=False)
    assert bfloat16_is_faster() is faster
    monkeypatch.setenv(DECISION, str(int(not faster)))
    assert bfloat16_is_faster() is not faster


def train(folder, **options):
    ClassificationRecipe().train({**TINY, **options, "output_dir": str(folder)})
    return (folder / "model" / "model.safetensors").read_bytes()


def test_training_multiplies_in_bfloat16_where_that_is_faster_and_says_so(has_bfloat16, tmp_path, monkeypatch, capsys):
    plain, rounded_once = train(tmp_path / "plain"), train(tmp_path / "once", bf16=True)
    assert capsys.readouterr().out.count("training multiplies in bfloat16") == 1
    assert train(tmp_path / "twice", bf16=True) == rounded_once != plain
    monkeypatch.setenv(DECISION, "0")
    capsys.readouterr()
    assert train(tmp_path / "asked", bf16=True) == plain
    assert capsys.readouterr().err.count("float32 is faster") == 1
    assert yaml.safe_load((tmp_path / "asked" / "config.yaml").read_text(encoding="utf-8"))["bf16"] is False
