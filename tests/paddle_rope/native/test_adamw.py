"""AdamW in one call, against its equations in float64 and against Paddle's step."""

import contextlib

import numpy as np
import paddle
import pytest
from paddle.nn import ClipGradByGlobalNorm, ClipGradByNorm
from paddle.nn.initializer import Assign

from paddle_rope.native import adamw
from paddle_rope.native.adamw import AdamW
from paddle_rope.native.dispatch import plain_forms
from tests.paddle_rope.native.operators import views

SHAPES = [3, 40_000], [256], [7, 5], []  # the first is more than one thread takes at a time


@pytest.fixture
def calls(monkeypatch):
    """A list with an entry for each native step."""
    made, call = [], adamw.call
    monkeypatch.setattr(adamw, "call", lambda *arguments: (made.append(1), call(*arguments)))
    return made


def new_weights(rates=(1.0, 1.0, 1.0, 1.0)):
    rng = np.random.default_rng(0)
    starts = [Assign(rng.standard_normal(shape).astype("float32")) for shape in SHAPES]
    return [
        paddle.create_parameter(shape, "float32", attr=paddle.ParamAttr(learning_rate=rate), default_initializer=start)
        for shape, rate, start in zip(SHAPES, rates, starts)
    ]


def give_gradients(weights, step):
    """Other numbers at each step; the second weight has its first gradient at the third."""
    rng = np.random.default_rng(step)
    arrays = [rng.standard_normal(weight.shape).astype("float32") for weight in weights]
    if step < 2:
        arrays[1] = None
    for weight, array in zip(weights, arrays):
        if array is not None:
            weight.grad = paddle.to_tensor(array)
    return arrays


def equations(weights, gradients, rates, decays, clip, beta1=0.8, beta2=0.95, epsilon=1e-6):
    """float64; ``gradients`` and ``rates`` have an entry for each step."""
    weights = [weight.astype("float64") for weight in weights]
    m, v, count = ([np.zeros_like(weight) for weight in weights] for _ in range(3))
    for step, rate in zip(gradients, rates):
        norm = np.sqrt(sum((g.astype("float64") ** 2).sum() for g in step if g is not None))
        for i, given in enumerate(step):
            if given is None:
                continue
            g = given.astype("float64") * (min(1.0, clip / norm) if clip else 1.0)
            count[i] = count[i] + 1
            m[i] = beta1 * m[i] + (1 - beta1) * g
            v[i] = beta2 * v[i] + (1 - beta2) * g * g
            mean, square = m[i] / (1 - beta1 ** count[i]), v[i] / (1 - beta2 ** count[i])
            weights[i] = weights[i] - rate[i] * decays[i] * weights[i] - rate[i] * mean / (np.sqrt(square) + epsilon)
    return weights


@pytest.mark.parametrize("clip", [None, 1.0, 1e6], ids=["no clipping", "clipped", "not long enough to be clipped"])
def test_steps_are_those_of_the_equations(calls, clip):
    shares = [1.0, 0.5, 1.0, 2.0]
    weights = new_weights(shares)
    before = [weight.numpy() for weight in weights]
    schedule = paddle.optimizer.lr.LambdaDecay(0.01, lambda done: 1 / (1 + done))
    options = {"beta1": 0.8, "beta2": 0.95, "epsilon": 1e-6, "weight_decay": 0.1}
    options |= {"apply_decay_param_fun": lambda name: name != weights[1].name}
    optimizer = AdamW(schedule, parameters=weights, grad_clip=clip and ClipGradByGlobalNorm(clip), **options)
    gradients, rates = [], []
    for step in range(5):
        gradients.append(give_gradients(weights, step))
        rates.append([optimizer.get_lr() * share for share in shares])
        optimizer.step()
        schedule.step()
    assert len(calls) == 5
    expected = equations(before, gradients, rates, [0.1, 0.0, 0.1, 0.1], clip)
    for weight, right, given in zip(weights, expected, gradients[-1]):
        np.testing.assert_allclose(weight.numpy(), right, rtol=0, atol=2e-6)
        np.testing.assert_array_equal(weight.grad.numpy(), given)


def trained(native_steps=range(6)):
    """Weights and state after six steps, of which those in ``native_steps`` are native."""
    with paddle.utils.unique_name.guard():
        weights = new_weights()
        optimizer = AdamW(0.01, parameters=weights, weight_decay=0.1, grad_clip=ClipGradByGlobalNorm(1.0))
        for step in range(6):
            give_gradients(weights, step)
            with contextlib.nullcontext() if step in native_steps else plain_forms():
                optimizer.step()
        state = {name: value.numpy() for name, value in optimizer.state_dict().items() if hasattr(value, "numpy")}
    return {**{str(place): weight.numpy() for place, weight in enumerate(weights)}, **state}


@pytest.mark.parametrize("native_steps", [range(6), range(3), range(3, 6)], ids=["all", "the first", "the last"])
def test_weights_and_state_are_those_of_paddle_and_either_goes_on_from_the_other(calls, native_steps):
    found, expected = trained(native_steps), trained(())
    assert len(calls) == len(native_steps)
    assert found.keys() == expected.keys() and len(found) == 5 * len(SHAPES)
    for name, right in expected.items():
        np.testing.assert_allclose(found[name], right, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("clip", [None, ClipGradByGlobalNorm(1.0)], ids=["no clipping", "clipped"])
def test_a_gradient_that_is_no_number_shows(calls, clip):
    weights = new_weights()
    give_gradients(weights, 0)
    weights[2].grad = paddle.full(weights[2].shape, float("nan"))
    AdamW(0.01, parameters=weights, grad_clip=clip).step()
    assert len(calls) == 1 and np.isnan(weights[2].numpy()).all()
    assert np.isnan(weights[0].numpy()).all() == (clip is not None)  # of the norm of all


LEFT_TO_PADDLE = {
    "clipping of each": {"grad_clip": ClipGradByNorm(1.0)},
    "groups": {"groups": True},
    "regularizer": {"regularizer": paddle.regularizer.L2Decay(0.1)},
    "float64": {"dtype": "float64"},
    "not to be clipped": {"need_clip": False, "grad_clip": ClipGradByGlobalNorm(1.0)},
    "view": {"view": True},
}


@pytest.mark.parametrize("name", LEFT_TO_PADDLE)
def test_what_is_not_for_the_operator_is_paddles_step(calls, name):
    options = LEFT_TO_PADDLE[name]

    def after(optimizer_class):
        attr = {name: options[name] for name in ("regularizer", "need_clip") if name in options}
        attr = paddle.ParamAttr(initializer=Assign(np.ones([4, 3])), **attr)
        weight = paddle.create_parameter([4, 3], options.get("dtype", "float32"), attr=attr)
        (weight.transpose([1, 0]) * paddle.arange(12, dtype=weight.dtype).reshape([3, 4])).sum().backward()
        assert weight.grad.is_contiguous() == ("view" not in options)
        parameters = [{"params": [weight]}] if "groups" in options else [weight]
        optimizer_class(0.01, parameters=parameters, grad_clip=options.get("grad_clip")).step()
        return weight.numpy()

    with views() if "view" in options else contextlib.nullcontext():
        np.testing.assert_array_equal(after(AdamW), after(paddle.optimizer.AdamW))
    assert calls == []


def test_a_gradient_of_another_shape_is_never_read_by_the_operator(calls):
    weights = new_weights()
    weights[2].grad = paddle.ones([2, 3])
    with contextlib.suppress(ValueError):  # of Paddle's step
        AdamW(0.01, parameters=weights).step()
    assert calls == []
