"""The contract of native operators: plain form, views, several backward passes, changes in place, threads, range."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import paddle
import pytest
from scipy.special import erf

from paddle_rope.layers import linear
from paddle_rope.native.dispatch import plain_forms
from tests.conftest import REPOSITORY
from tests.helpers.comparison import assert_close, assert_same, is_native
from tests.paddle_rope.native.operators import OPERATORS, bits_of, gradients_of, span_loss, views
from tests.paddle_rope.native.test_adamw import trained

ERRORS = (OSError, RuntimeError, SystemError)  # what Paddle makes of a RuntimeError of ours, and its own errors


def each_operator(test):
    """The test with each operator in turn; pytest shows the last name if it fails."""

    def of_each():
        for name, operator in OPERATORS.items():
            print(name)
            test(operator, operator.arguments())

    return of_each


def differentiable(arguments):
    return [one for one in arguments if not one.stop_gradient]


@each_operator
def test_outputs_and_gradients_equal_the_plain_form(operator, arguments):
    found = operator(*arguments)
    assert is_native(found)
    with paddle.no_grad():
        assert_close(operator(*arguments), found, 0)
    if operator.options.get("p"):  # each form draws its own mask, see test_layers.py
        return
    with plain_forms():
        expected = operator(*arguments)
    assert not is_native(expected)
    assert_same(found, expected, differentiable(arguments), atol=2e-5)


@each_operator
def test_views_are_read_as_they_stand(operator, arguments):
    def transposed(*given):
        y = operator(*given)
        return y.transpose(list(range(y.ndim))[::-1])  # the gradient of y is a view, too

    expected = gradients_of(transposed, arguments)
    for place, x in enumerate(arguments):
        with views():
            apart = paddle.stack([x, paddle.zeros_like(x)], axis=-1)[..., 0]
            assert not apart.is_contiguous()
            found = gradients_of(transposed, [*arguments[:place], apart, *arguments[place + 1 :]])
        for one, other in zip(found, expected):
            assert_close(one, other, 1e-6)


@each_operator
def test_paddle_grad_is_of_any_inputs_and_repeats_and_other_passes_are_refused(operator, arguments):
    inputs = differentiable(arguments)
    total = operator(*(one if one.stop_gradient else 1.5 * one for one in arguments)).square().sum()
    first, again = (paddle.grad(total, inputs, retain_graph=True) for _ in range(2))
    for one, expected, repeated in zip(inputs, first, again):
        np.testing.assert_array_equal(repeated.numpy(), expected.numpy())
        if not paddle.__version__.startswith("2."):  # which refuses the gradients of the others
            (alone,) = paddle.grad(total, one, retain_graph=True)
            np.testing.assert_array_equal(alone.numpy(), expected.numpy())
    assert all(one.grad is None for one in inputs)
    for retain_graph in (True, False):
        y = operator(*arguments)
        one, other = y.sum(), (2 * y).sum()
        one.backward(retain_graph=retain_graph)
        with pytest.raises(ERRORS, match="only once|backward twice"):  # of an operator, or of Paddle's own concat
            other.backward()
    with pytest.raises(ERRORS, match="gradient of its gradient"):
        paddle.grad(operator(*arguments).sum(), inputs, create_graph=True)


@each_operator
def test_a_change_in_place_before_backward_is_refused_or_does_not_matter(operator, arguments):
    inputs = differentiable(arguments)
    expected = [x.numpy() for x in paddle.grad(operator(*arguments).sum(), inputs)]
    refused = 0
    for place in range(len(arguments) + 1):  # the last is the output
        given = [x.clone() if x.stop_gradient else x * 1 for x in arguments]
        output = operator(*given)
        total = output.sum()
        changed = output if place == len(arguments) else given[place]
        with paddle.no_grad():
            changed[0] = 1
        try:
            total.backward()
        except ERRORS as error:
            assert "in place" in str(error) or "inplace" in str(error)
            refused += 1
        else:
            for x, right in zip(inputs, expected):
                assert_close(x.grad, right, 1e-6)
        for x in inputs:
            x.clear_gradient(set_to_zero=False)
    assert refused or not operator.keeps_inputs


@each_operator
def test_what_needs_no_gradient_gets_none(operator, arguments):
    for frozen in range(len(differentiable(arguments))):
        given = [x.clone().detach() for x in arguments]
        for place, x in enumerate(given):
            x.stop_gradient = arguments[place].stop_gradient or place == frozen
        if differentiable(given):
            operator(*given).sum().backward()
            assert [x.grad is None for x in given] == [x.stop_gradient for x in given]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_an_output_that_nobody_takes_is_freed():
    def resident_after(calls):
        """MB of this process."""
        for _ in range(calls):
            operator(*arguments)
        return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20

    others = ("RMS norm of", "span loss", "wide", "causal", "convolution ")  # too small, or like one that is measured
    for name in [name for name in OPERATORS if not name.startswith(others)]:
        operator, arguments = OPERATORS[name], OPERATORS[name].arguments(batch=8000)  # outputs of 0.6 MB and more
        before = resident_after(4)
        assert (resident_after(8) - before) / 8 < 0.2, name


TWO_THREADS = """
from paddle_rope.machine import import_paddle, prepare_process
prepare_process()
import_paddle()
import numpy as np
from paddle_rope.native.dispatch import plain_forms
from paddle_rope.native.library import library
from tests.paddle_rope.native.operators import OPERATORS, bits_of, gradients_of
from tests.paddle_rope.native.test_adamw import trained

assert library() is not None
for name, operator in OPERATORS.items():
    np.random.seed(1)
    arguments = operator.arguments() if "span" in name else operator.arguments(batch=6)
    found, again = gradients_of(operator, arguments), gradients_of(operator, arguments)
    with plain_forms():
        plain = gradients_of(operator, arguments)
    for one, repeated, expected in zip(found, again, plain):
        np.testing.assert_array_equal(one, repeated, name)
        if "dropout" not in name:
            np.testing.assert_allclose(one, expected, rtol=0, atol=2e-5 * max(1, np.abs(expected).max()), err_msg=name)
print(bits_of(trained().values()))
"""


def test_two_threads_add_the_same_and_equal_calls_give_equal_bits():
    environment = {**os.environ, "OMP_NUM_THREADS": "2", "PYTHONPATH": str(REPOSITORY)}
    found = subprocess.run([sys.executable, "-c", TWO_THREADS], env=environment, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    assert found.stdout.strip() == bits_of(trained().values())  # of a step of AdamW they are those of one thread


# ---- over their whole range
def test_gelu_is_exact_over_its_whole_range():
    x = np.concatenate([np.linspace(-12, 12, 4801), [-100.0, -1e4, 100.0, 1e4]]).astype("float32")
    rows = paddle.to_tensor(x[:, np.newaxis], stop_gradient=False)
    y = linear(rows, paddle.ones([1, 1]), None, "gelu")
    assert is_native(y)
    y.sum().backward()
    wide = x.astype("float64")
    distribution = (1 + erf(wide / np.sqrt(2))) / 2
    np.testing.assert_allclose(y.numpy()[:, 0], wide * distribution, rtol=2e-6, atol=4e-7)
    density = np.exp(-(wide**2) / 2) / np.sqrt(2 * np.pi)
    np.testing.assert_allclose(rows.grad.numpy()[:, 0], distribution + wide * density, rtol=2e-6, atol=4e-7)


def test_masked_tokens_anywhere_bound_no_span_however_large_their_scores():
    projections = np.zeros([1, 5, 6], dtype="float32")
    projections[..., 4], projections[..., 5] = 2.0**23, -(2.0**23)  # halved, and their sum is 0
    projections = paddle.to_tensor(projections, stop_gradient=False)
    mask, operator = paddle.to_tensor([[False, True, True, False, True]]), span_loss(5, (4, 2), np.full([1, 1, 3], -1))
    loss = operator(projections, mask)
    np.testing.assert_allclose(loss.numpy(), [[np.log(1 + 6)]], rtol=1e-6)  # 6 pairs of tokens 1, 2 and 4
    loss.sum().backward()
    pairs = np.array([[0, 3, 2, 0, 1], [0, 1, 2, 0, 3]]).T  # that start with a token, that end with it
    np.testing.assert_allclose(projections.grad.numpy()[0, :, 4:], 0.5 / 7 * pairs, rtol=1e-5)
    np.testing.assert_array_equal(operator(projections, paddle.zeros([1, 5], "bool")).numpy(), [[0]])
