"""Products in bfloat16: rounding, products, layers, training, and prediction; what refuses them."""

import json
import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import paddle
import pytest
import yaml

from paddle_rope import RotaryPositionEmbedding, softmax_attention
from paddle_rope.layers import LayerNorm, Linear
from paddle_rope.machine import processor_flags
from paddle_rope.native import products
from paddle_rope.native.library import library
from paddle_rope.native.products import DECISION, bfloat16_is_faster, bfloat16_products, rounded
from paddle_rope.roformer import RoFormerForMaskedLM
from paddle_rope.tasks.commands.main import main
from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.ner.demo import UNSEEN_SENTENCES
from paddle_rope.tasks.recipes import load, train_config
from tests.helpers.comparison import cast, random_tensor
from tests.helpers.models import FORMATS, export
from tests.paddle_rope.roformer.small_models import make
from tests.tasks.commands.conftest import MODELS, write_models

TINY = {"train_file": "configs/classification/demo.jsonl", "dev_fraction": 0.25, "max_characters": 32, "device": "cpu"}
TINY |= {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 32}
WORK = {  # numbers of a predictor for the texts
    "ner": lambda predictor: [
        one.score for of_text in predictor.find(UNSEEN_SENTENCES, thresholds=-1e3) for one in of_text
    ],
    "classification": lambda predictor: predictor.probabilities(UNSEEN_SENTENCES)[:, 0],
    "matching": lambda predictor: predictor.encode(UNSEEN_SENTENCES).ravel(),
}


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """dict from a recipe to the folder of a model with random weights."""
    return write_models(tmp_path_factory.mktemp("models"), {recipe: MODELS[recipe] for recipe in WORK})


def nearest(x):
    """float32 -> the nearest numbers of 8 bits of mantissa, in float64 arithmetic; ties to even."""
    mantissa, exponent = np.frexp(np.asarray(x, dtype="float64"))
    return np.ldexp(np.rint(mantissa * 256), exponent - 8)


def test_rounding_is_to_the_nearest_and_ties_go_to_even():
    x = [*np.random.standard_normal(1000), 1 + 2**-8, 1 + 3 * 2**-8, -1 - 2**-8, 0, 3e38, -1e-30]
    all_ones = np.array([0x7FFFFFFF, 0xFFFFFFFF], dtype="uint32").view("float32")  # NaN that must not become 0
    x = np.array([*x, np.inf, -np.inf, np.nan, *all_ones], dtype="float32")
    np.testing.assert_array_equal(rounded(paddle.to_tensor(x)).astype("float32").numpy(), nearest(x))
    assert rounded(paddle.to_tensor([3.4e38])).astype("float32").item() == np.inf


@pytest.mark.parametrize("activation", [None, "gelu"])
def test_a_linear_layer_rounds_the_factors_of_its_three_products_and_nothing_else(has_bfloat16, activation):
    layer = Linear(24, 16, activation=activation)
    x, towards = (random_tensor(4, 9, size, dtype="float32") for size in (24, 16))
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


@pytest.mark.parametrize("version", [1, 2])
def test_logits_of_a_language_model_are_products_of_the_rounded_factors(has_bfloat16, version):
    model = make(RoFormerForMaskedLM, version=version)
    head, table = model.lm_head, model.roformer.token_embedding.weight
    x, labels = random_tensor(2, 7, table.shape[1], dtype="float32"), paddle.arange(14).reshape([2, 7])
    (exact,) = paddle.grad(head.loss(x, table, labels)[0], [table])
    with bfloat16_products():
        logits, (loss, chosen) = head(x, table), head.loss(x, table, labels)
        before = x if head.norm is None else head.norm(head.dense(x))
    bias = 0 if head.bias is None else head.bias.numpy()
    np.testing.assert_allclose(logits.numpy(), nearest(before.numpy()) @ nearest(table.numpy()).T + bias, atol=1e-4)
    np.testing.assert_array_equal(chosen.numpy(), logits.reshape([14, -1]).numpy())
    loss.backward()
    np.testing.assert_allclose(table.grad.numpy(), exact.numpy(), rtol=0, atol=0.02 * float(exact.abs().max()))


@pytest.mark.parametrize("faster", [True, False])
def test_the_times_of_products_tell_whether_it_is_faster_unless_the_variable_does(has_bfloat16, monkeypatch, faster):
    clock = [0.0]

    def product(a, b):
        clock[0] += 1 if (a.dtype == paddle.bfloat16) is faster else 2

    monkeypatch.setattr(products, "product", product)
    monkeypatch.setattr(products.time, "thread_time", lambda: clock[0])
    monkeypatch.delenv(DECISION, raising=False)
    products._is_measured_faster.cache_clear()
    assert bfloat16_is_faster() is faster
    products._is_measured_faster.cache_clear()
    monkeypatch.setenv(DECISION, str(int(not faster)))
    assert bfloat16_is_faster() is not faster and clock[0] == 15


@pytest.fixture
def by_primitive(has_bfloat16):
    """Products are by oneDNN's primitive, as on processors with AMX."""
    yield library().set_dnnl(library().dnnl, 1)
    library().set_dnnl(library().dnnl, int("amx_bf16" in processor_flags()))


def factors(m, n, k, transpose_a=False, transpose_b=False):
    paddle.seed(m)
    a, b = paddle.randn([k, m] if transpose_a else [m, k]), paddle.randn([n, k] if transpose_b else [k, n])
    return rounded(a), rounded(b), transpose_a, transpose_b


SIZES = [(1, 1, 1), (3, 5, 7, True), (40, 17, 33, False, True), (129, 64, 300), (256, 96, 40, True)]


@pytest.mark.parametrize("sizes", SIZES)
def test_both_functions_of_onednn_multiply_the_same_numbers(by_primitive, sizes):
    a, b, *transposes = factors(*sizes)
    expected = paddle.matmul(a.astype("float32"), b.astype("float32"), *transposes).numpy()
    found = products.product(a, b, *transposes).numpy()
    library().set_dnnl(library().dnnl, 0)
    for one in (found, products.product(a, b, *transposes).numpy()):
        np.testing.assert_allclose(one, expected, rtol=0, atol=1e-4)


def test_threads_and_a_child_process_multiply_like_their_parent(by_primitive):
    given = [factors(8 * number, 24, 40) for number in range(1, 25)]
    expected = [products.product(*one).numpy() for one in given]
    with ThreadPoolExecutor(4) as threads:
        for one, found in zip(expected, threads.map(lambda one: products.product(*one).numpy(), given * 3)):
            np.testing.assert_array_equal(found, one)
    child = os.fork()
    if not child:
        os._exit(0 if all((products.product(*one).numpy() == two).all() for one, two in zip(given, expected)) else 1)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("p", [0.0, 0.2])
def test_softmax_attention_of_long_texts_rounds_its_factors(has_bfloat16, causal, p):
    q, k, v, towards = (random_tensor(2, 300, 2, 16, dtype="float32") for _ in range(4))
    mask = paddle.arange(300) < paddle.to_tensor([[300], [170]])

    def computed(length):
        paddle.seed(7)
        inputs = cast([x[:, :length] for x in (q, k, v)], "float32")
        rope = RotaryPositionEmbedding(16).cos_sin(length)
        y = softmax_attention(*inputs, rope, mask[:, :length], p, causal=causal)
        return [x.numpy() for x in (y, *paddle.grad([y], inputs, [towards[:, :length]]))]

    exact, exact_short = computed(300), computed(100)
    with bfloat16_products():
        found, found_short = computed(300), computed(100)
    for one, two in zip(exact, found):
        assert 1e-4 < np.abs(one - two).max() / np.abs(one).max() < 0.02
    assert all((one == two).all() for one, two in zip(exact_short, found_short))


@pytest.mark.parametrize("layer", [Linear(24, 16, activation="gelu"), LayerNorm(24)])
def test_what_a_layer_rounds_along_the_way_is_its_output(has_bfloat16, layer):
    x = random_tensor(5, 24, dtype="float32")
    with bfloat16_products():
        y = layer(x)
        assert rounded(y) is rounded(y)
        np.testing.assert_array_equal(rounded(y).astype("float32").numpy(), nearest(y.numpy()))
        y = layer(x).detach()
        layer(y) if isinstance(layer, LayerNorm) else None
        y.scale_(3.0)
        np.testing.assert_array_equal(rounded(y).astype("float32").numpy(), nearest(y.numpy()))


def test_weights_that_are_kept_rounded_give_the_same_outputs(has_bfloat16):
    layer, x = Linear(24, 16), random_tensor(5, 24, dtype="float32")
    with bfloat16_products(), paddle.no_grad():
        before = layer(x)
        layer.weight.rounded = rounded(layer.weight)
        assert rounded(layer.weight) is layer.weight.rounded and bool((layer(x) == before).all())
        layer.weight.rounded = rounded(paddle.zeros([24, 16]))
        assert bool((layer(x) == layer.bias).all())


# ---- training and prediction
def train(folder, **options):
    train_config({**TINY, "recipe": "classification", "num_train_epochs": 1, **options, "output_dir": str(folder)})
    return (folder / "model" / "model.safetensors").read_bytes()


def test_training_multiplies_in_bfloat16_where_that_is_faster_and_says_so(
    has_bfloat16, tmp_path, monkeypatch, capsys, recwarn
):
    plain, rounded_once = train(tmp_path / "plain", bf16=False), train(tmp_path / "once", bf16=True)
    assert not [one for one in recwarn if "AmpScaler" in str(one.message)]  # of Paddle's mixed precision
    assert capsys.readouterr().out.count("training multiplies in bfloat16") == 1
    assert train(tmp_path / "chosen") == rounded_once != plain
    assert "--bf16 false turns it off" in capsys.readouterr().out
    monkeypatch.setenv(DECISION, "0")
    for folder, options, notes in (("asked", {"bf16": True}, 1), ("not asked", {}, 0)):
        assert train(tmp_path / folder, **options) == plain
        assert capsys.readouterr().err.count("float32 is faster") == notes
        assert yaml.safe_load((tmp_path / folder / "config.yaml").read_text(encoding="utf-8"))["bf16"] is False


@pytest.mark.parametrize("recipe", WORK)
def test_predictors_multiply_in_bfloat16_where_it_is_faster(has_bfloat16, folders, recipe, monkeypatch, capsys):
    work = WORK[recipe]
    plain, in_bfloat16 = (load(folders[recipe], device="cpu", bf16=bf16) for bf16 in (False, True))
    before, found, after = work(plain), work(in_bfloat16), work(plain)
    with bfloat16_products():
        expected = work(plain)
    assert len(found) > 2 and np.array_equal(before, after) and not np.array_equal(before, found)
    np.testing.assert_array_equal(found, expected)
    monkeypatch.setenv(DECISION, "0")
    np.testing.assert_array_equal(work(load(folders[recipe], device="cpu", bf16=True)), before)
    captured = capsys.readouterr()
    assert captured.err.count("float32 is faster") == 1 and captured.out == ""


@pytest.mark.slow
@pytest.mark.parametrize("then, now", [("1", "0"), ("0", "1")])
def test_a_run_over_many_documents_multiplies_as_it_began(has_bfloat16, folders, tmp_path, monkeypatch, then, now):
    texts, output = tmp_path / "texts.txt", tmp_path / "found"
    texts.write_text("\n".join(UNSEEN_SENTENCES[:4]), encoding="utf-8")
    words = [str(folders["classification"]), "--input", str(texts), "--output", str(output), "--bf16"]
    words += ["--processes", "1", "--part_records", "2"]
    monkeypatch.setenv(DECISION, then)
    assert main(["predict", *words]) == 0
    parts = sorted(output.glob("part-*.jsonl"))
    before = [part.read_bytes() for part in parts]
    parts[1].unlink()
    monkeypatch.setenv(DECISION, now)
    assert main(["predict", *words]) == 0
    assert [part.read_bytes() for part in parts] == before
    assert json.loads((output / "manifest.json").read_text(encoding="utf-8"))["options"]["bf16"] is (then == "1")


def test_what_cannot_multiply_in_bfloat16_refuses_it(monkeypatch, folders, tmp_path, refused):
    exported = export(tmp_path / "exported", FORMATS[0], folders["classification"])
    with pytest.raises(InputError, match="computes as it was exported"):
        load(exported, device="cpu", bf16=True)
    with monkeypatch.context() as patch, pytest.raises(InputError, match="--bf16 is for models on a CPU"):
        patch.setattr(paddle, "get_device", lambda: "gpu:0")
        load(folders["classification"], device="cpu", bf16=True)
    with monkeypatch.context() as patch, pytest.raises(InputError, match="native operators: "):
        patch.setattr(products, "library", lambda: None)
        load(folders["classification"], device="cpu", bf16=True)
    monkeypatch.setattr(products, "processor_flags", lambda: {"sse2", "avx2"})
    with pytest.raises(RuntimeError, match="none of avx512_bf16"), bfloat16_products():
        pass
    (tmp_path / "texts.txt").write_text("你好", encoding="utf-8")
    words = [folders["ner"], "--input", tmp_path / "texts.txt", "--output", tmp_path / "out.jsonl", "--bf16"]
    assert "--bf16 cannot be used on this CPU: the processor" in refused("predict", *words)
