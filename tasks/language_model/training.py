"""How a language model is trained: windows of each step, rate of learning, which weights decay."""

import numpy as np
import paddle
from paddle.io import Dataset

from tasks.common.training.trainer import new_optimizer


class TrainingBatches(Dataset):
    """The batches of all steps, each known from the seed and its number: runs with the same seed see the same texts.

    ``batch_size`` windows of a :class:`tasks.language_model.corpus.Corpus` make a batch; ``batches_per_step`` are
    processes times accumulated gradients.
    """

    def __init__(self, corpus, batch_size, steps, seed, batches_per_step=1):
        super().__init__()
        self.corpus, self.batch_size, self.steps, self.seed = corpus, batch_size, steps, seed
        self.batches_per_step = batches_per_step

    def __len__(self):
        return self.steps * self.batches_per_step

    def __getitem__(self, index):
        windows = self.corpus.training_windows(self.batch_size, self.seed, index + 1)
        inputs = windows[:, :-1]
        return {"input_ids": inputs, "labels": windows[:, 1:], "token_mask": np.ones(inputs.shape, dtype=bool)}


def learning_rate_share(step, warmup_steps, steps):
    """Of the highest learning rate at a step from 1 to ``steps``: linear up to ``warmup_steps``, then linear to 0 after
    the last."""
    return min(1.0, step / (warmup_steps + 1), (steps + 1 - step) / max(1, steps - warmup_steps))


def make_optimizer(model, training, theta_rate=1.0):
    """(optimizer, schedule) as PaddleNLP's ``Trainer`` takes them: AdamW, where weights of one dimension (biases,
    frequencies) do not decay, and trained frequencies have ``theta_rate`` times the learning rate of the others."""
    named = dict(model.named_parameters())
    decaying = {weight.name for weight in named.values() if weight.ndim > 1}
    thetas = [weight for name, weight in named.items() if name.endswith("rotary.theta")]
    parameters = [weight for name, weight in named.items() if not name.endswith("rotary.theta")]
    if thetas:
        parameters = [{"params": parameters}, {"params": thetas, "learning_rate": theta_rate}]
    schedule = paddle.optimizer.lr.LambdaDecay(
        training.learning_rate, lambda done: learning_rate_share(done + 1, training.warmup_steps, training.max_steps)
    )
    return new_optimizer(training, schedule, parameters, lambda name: name in decaying), schedule
