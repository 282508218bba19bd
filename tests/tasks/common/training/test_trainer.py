"""The optimizer of a run."""

from types import SimpleNamespace

import paddle

from paddle_rope.tasks.common.training.trainer import RecipeTrainer

TRAINING = {"adam_beta1": 0.9, "adam_beta2": 0.999, "adam_epsilon": 1e-8, "max_grad_norm": 1.0, "fp16_opt_level": "O1"}


def test_matrices_decay_and_biases_and_norms_do_not():
    model = paddle.nn.Sequential(("dense", paddle.nn.Linear(2, 3)), ("layer_norm", paddle.nn.LayerNorm(3)))
    for weight in model.parameters():
        weight.set_value(paddle.ones_like(weight))
        weight.sum().backward()
        weight.clear_gradient()  # a gradient of zero
    training = SimpleNamespace(**TRAINING, weight_decay=0.5)
    RecipeTrainer.create_optimizer(SimpleNamespace(optimizer=None, model=model, args=training), 0.1).step()
    changed = {name for name, weight in model.state_dict().items() if (weight.numpy() != 1).all()}
    assert changed == {"dense.weight"}
