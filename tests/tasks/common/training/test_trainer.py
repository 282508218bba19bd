"""The optimizer of a run, and what is overridden of PaddleNLP's Trainer."""

from types import SimpleNamespace

import paddle
from paddlenlp.trainer import Trainer

from paddle_rope.tasks.common.training.trainer import CheckpointedTrainer, RecipeTrainer


def test_matrices_decay_and_biases_and_norms_do_not():
    model = paddle.nn.Sequential(("dense", paddle.nn.Linear(2, 3)), ("layer_norm", paddle.nn.LayerNorm(3)))
    for weight in model.parameters():
        weight.set_value(paddle.ones_like(weight))
        weight.sum().backward()
        weight.clear_gradient()  # a gradient of zero
    training = SimpleNamespace(max_grad_norm=1.0, weight_decay=0.5)
    RecipeTrainer.create_optimizer(SimpleNamespace(optimizer=None, model=model, args=training), 0.1).step()
    changed = {name for name, weight in model.state_dict().items() if (weight.numpy() != 1).all()}
    assert changed == {"dense.weight"}


def test_four_private_methods_of_paddlenlp_are_overridden_in_one_class():
    private = {name for name in dir(Trainer) if name.startswith("_") and not name.startswith("__")}
    assert private & vars(RecipeTrainer).keys() == set()
    assert private & vars(CheckpointedTrainer).keys() == {
        "_save_checkpoint", "_load_from_checkpoint", "_load_optimizer_and_scheduler", "_load_rng_state",
    }  # fmt: skip
