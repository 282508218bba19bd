"""AdamW in one call against Paddle's step: weights, state, clipping, rates and decays; what is left to Paddle."""

import contextlib

import numpy as np
import paddle
import pytest
from paddle.nn import ClipGradByGlobalNorm, ClipGradByNorm
from paddle.nn.initializer import Assign

from paddle_rope.native import adamw
from paddle_rope.native.adamw import AdamW
from paddle_rope.native.dispatch import plain_forms
from tests.helpers.pairwise import pairwise
from tests.paddle_rope.native.operators import views

SHAPES = [3, 40_000], [256], [7, 5], []  # the first is more than one thread takes at a time
RATES = 1.0, 0.5, 1.0, 2.0


@pytest.fixture
def calls(monkeypatch):
    """A list with an entry for each native step."""
    made, call = [], adamw.call
    monkeypatch.setattr(adamw, "call", lambda *arguments: (made.append(1), call(*arguments)))
    return made


def new_weights():
    rng = np.random.default_rng(0)
    starts = [Assign(rng.standard_normal(shape).astype("float32")) for shape in SHAPES]
    return [
        paddle.create_parameter(shape, "float32", attr=paddle.ParamAttr(learning_rate=rate), default_initializer=start)
        for shape, rate, start in zip(SHAPES, RATES, starts)
    ]


def give_gradients(weights, step):
    """Other numbers at each step; the second weight has its first gradient at the third."""
    rng = np.random.default_rng(step)
    arrays = [rng.standard_normal(weight.shape).astype("float32") for weight in weights]
    for place, (weight, array) in enumerate(zip(weights, arrays)):
        if place != 1 or step > 1:
            weight.grad = paddle.to_tensor(array)
    return arrays


def trained(native_steps=range(6), clip=1.0):
    """Weights and state after six steps, of which those in ``native_steps`` are native."""
    with paddle.utils.unique_name.guard():
        weights = new_weights()
        schedule = paddle.optimizer.lr.LambdaDecay(0.01, lambda done: 1 / (1 + done))
        options = {"beta1": 0.8, "beta2": 0.95, "epsilon": 1e-6, "weight_decay": 0.1}
        options |= {"apply_decay_param_fun": lambda name: name != weights[1].name}
        optimizer = AdamW(schedule, parameters=weights, grad_clip=clip and ClipGradByGlobalNorm(clip), **options)
        for step in range(6):
            given = give_gradients(weights, step)
            with contextlib.nullcontext() if step in native_steps else plain_forms():
                optimizer.step()
            schedule.step()
        state = {name: value.numpy() for name, value in optimizer.state_dict().items() if hasattr(value, "numpy")}
    if 5 in native_steps:  # Paddle's step clips the gradients themselves
        for weight, array in zip(weights, given):
            np.testing.assert_array_equal(weight.grad.numpy(), array)
    return {**{str(place): weight.numpy() for place, weight in enumerate(weights)}, **state}


# no clipping, clipped, not long enough to be clipped; all steps native, the first, the last
@pairwise({"clip": [None, 1.0, 1e6], "native_steps": [range(6), range(3), range(3, 6)]})
def test_weights_and_state_are_those_of_paddle_and_either_goes_on_from_the_other(calls, clip, native_steps):
    found, expected = trained(native_steps, clip), trained((), clip)
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


def stepped(optimizer_class, dtype="float32", is_grouped=False, is_view=False, grad_clip=None, **of_weight):
    """A weight after a step."""
    attr = paddle.ParamAttr(initializer=Assign(np.ones([4, 3])), **of_weight)
    weight = paddle.create_parameter([4, 3], dtype, attr=attr)
    with views() if is_view else contextlib.nullcontext():
        (weight.transpose([1, 0]) * paddle.arange(12, dtype=weight.dtype).reshape([3, 4])).sum().backward()
        assert weight.grad.is_contiguous() != is_view
        parameters = [{"params": [weight]}] if is_grouped else [weight]
        optimizer_class(0.01, parameters=parameters, grad_clip=grad_clip).step()
    return weight.numpy()


LEFT_TO_PADDLE = {
    "clipping of each": {"grad_clip": ClipGradByNorm(1.0)},
    "groups": {"is_grouped": True},
    "regularizer": {"regularizer": paddle.regularizer.L2Decay(0.1)},
    "float64": {"dtype": "float64"},
    "clipping to 0": {"grad_clip": ClipGradByGlobalNorm(0.0)},
    "not to be clipped": {"need_clip": False, "grad_clip": ClipGradByGlobalNorm(1.0)},
    "view": {"is_view": True},
}


@pytest.mark.parametrize("options", LEFT_TO_PADDLE.values(), ids=LEFT_TO_PADDLE)
def test_what_is_not_for_the_operator_is_paddles_step(calls, options):
    np.testing.assert_array_equal(stepped(AdamW, **options), stepped(paddle.optimizer.AdamW, **options))
    assert calls == []


def test_a_gradient_of_another_shape_is_never_read_by_the_operator(calls):
    weights = new_weights()
    weights[2].grad = paddle.ones([2, 3])
    with contextlib.suppress(ValueError):  # of Paddle's step
        AdamW(0.01, parameters=weights).step()
    assert calls == []
