"""Trains one small language model for a fixed number of steps; an interrupted run goes on to the same result.

A loop of its own instead of ``tasks.common.training.trainer``: a grid trains dozens of models for some minutes each,
counts in
steps and not in epochs, and keeps one small file per model. All that is random in a step is a function of (seed, step),
so a checkpoint is weights, the optimizer's state and the losses so far.
"""

import io
import math
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import paddle
from tqdm import tqdm
from visualdl import LogWriter

from paddle_rope.roformer import RoFormerForCausalLM
from tasks.common.errors import InputError
from tasks.common.files import atomic_writer
from tasks.language_model.evaluation import held_out_losses

CHECKPOINT_FILE = "checkpoint.pdparams"


class History(NamedTuple):
    """What a training run looked like: lists of (step, loss), and how long it took."""

    training: list  # mean over the steps since the pair before
    held_out: list  # mean over the held-out text, in texts of the length of training
    seconds: float  # without evaluation


def train_language_model(config, corpus, run, seed, folder, theta_rate=1.0, scale_embeddings=False, title=""):
    """Train, or go on from the checkpoint in ``folder``; a checkpoint of the last step stays there.

    AdamW; the learning rate rises over ``run.warmup_steps`` and falls linearly to 0 at ``run.steps``. Weights of one
    dimension (biases, frequencies) do not decay. Rows of a grid with the same shapes of weights start from the same
    ones with the same seed, and see the same windows.

    Args:
        config: :class:`~paddle_rope.RoFormerConfig`.
        corpus: :class:`tasks.language_model.corpus.Corpus`.
        run: :class:`tasks.language_model.arguments.LanguageModelArguments`.
        seed: of weights and windows.
        folder: for the checkpoint and the VisualDL log; exists.
        theta_rate: learning rate of trained frequencies as a share of the others'.
        scale_embeddings: multiply what goes in by the square root of its size (arXiv 1706.03762, section 3.4), as added
            sinusoids need it: beside their root mean square of 0.7 the embeddings, which also give the scores of the
            characters and start small for that, would hardly be heard.
        title: of the progress bar.

    Returns:
        (:class:`~paddle_rope.RoFormerForCausalLM` in evaluation mode, :class:`History`).

    Raises:
        InputError: a loss is not finite.
    """
    paddle.seed(seed)
    # checkpoints know weights and what the optimizer keeps of them by names that count what the process has made
    with paddle.utils.unique_name.guard():
        model = RoFormerForCausalLM(config)
        if scale_embeddings:
            scale = config.embedding_size**0.5
            model.roformer.token_embedding.register_forward_post_hook(lambda layer, inputs, output: output * scale)
        optimizer = make_optimizer(model, run, theta_rate)
        history = _train(model, optimizer, corpus, run, seed, Path(folder), title)
    model.eval()
    return model, history


def _train(model, optimizer, corpus, run, seed, folder, title):
    """The steps that are still to do; returns the :class:`History` of all."""
    checkpoint = folder / CHECKPOINT_FILE
    start, history = 0, History([], [], 0.0)
    if checkpoint.is_file():
        start, history = _load(checkpoint, model, optimizer)
    with _Log(folder, run, history) as log, tqdm(total=run.steps, initial=start, desc=title, disable=None) as bar:
        losses = []
        for step in range(start + 1, run.steps + 1):
            began = time.perf_counter()
            optimizer.set_lr(learning_rate(run, step))
            losses.append(_step(model, optimizer, corpus.training_windows(run.batch_size, seed, step)))
            if not math.isfinite(losses[-1]):
                raise InputError(f"{folder.name}: the loss of step {step} is {losses[-1]}; lower learning_rate")
            history = history._replace(seconds=history.seconds + time.perf_counter() - began)
            bar.update()
            is_due = step % run.evaluation_steps == 0 or step == run.steps
            if step % run.logging_steps == 0 or is_due:
                history.training.append((step, float(np.mean(losses))))
                log.training(*history.training[-1])
                losses = []
                bar.set_postfix(loss=f"{history.training[-1][1]:.3f}")
            if is_due:
                history.held_out.append((step, float(held_out_losses(model, corpus.held_out, run.length).mean())))
                log.held_out(*history.held_out[-1])
                _save(checkpoint, model, optimizer, step, history)
    return history


def learning_rate(run, step):
    """Of a step from 1 to ``run.steps``: linear up to ``run.warmup_steps``, then linear to 0 after the last."""
    rising = step / (run.warmup_steps + 1)
    falling = (run.steps + 1 - step) / max(1, run.steps - run.warmup_steps)
    return run.learning_rate * min(1.0, rising, falling)


def make_optimizer(model, run, theta_rate):
    """AdamW for ``model``, with :func:`train_language_model`'s rules of decay and of the frequencies' learning rate."""
    named = dict(model.named_parameters())
    decaying = {weight.name for weight in named.values() if weight.ndim > 1}
    thetas = [weight for name, weight in named.items() if name.endswith("rotary.theta")]
    others = [weight for name, weight in named.items() if not name.endswith("rotary.theta")]
    groups = [{"params": others}]
    if thetas:
        groups.append({"params": thetas, "learning_rate": theta_rate})
    return paddle.optimizer.AdamW(
        learning_rate=run.learning_rate,
        parameters=groups,
        weight_decay=run.weight_decay,
        apply_decay_param_fun=lambda name: name in decaying,
        grad_clip=paddle.nn.ClipGradByGlobalNorm(run.max_grad_norm),
    )


def _step(model, optimizer, windows):
    model.train()
    loss, _ = model(paddle.to_tensor(windows[:, :-1]), labels=paddle.to_tensor(windows[:, 1:]))
    loss.backward()
    optimizer.step()
    optimizer.clear_grad()
    return loss.item()


def _save(path, model, optimizer, step, history):
    content = io.BytesIO()
    paddle.save(
        {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step, "history": tuple(history)},
        content,
    )
    with atomic_writer(path, binary=True) as file:
        file.write(content.getvalue())


def _load(path, model, optimizer):
    saved = paddle.load(str(path))
    model.set_state_dict(saved["model"])
    optimizer.set_state_dict(saved["optimizer"])
    training, held_out, seconds = saved["history"]
    return saved["step"], History([tuple(pair) for pair in training], [tuple(pair) for pair in held_out], seconds)


class _Log:
    """The VisualDL log of one run, written anew from ``history`` where it goes on: no point is there twice."""

    def __init__(self, folder, run, history):
        for earlier in folder.glob("vdlrecords*"):
            earlier.unlink()
        self._run = run
        self._writer = LogWriter(logdir=str(folder))
        for point in history.training:
            self.training(*point)
        for point in history.held_out:
            self.held_out(*point)

    def training(self, step, loss):
        self._writer.add_scalar("train/loss", loss, step)
        self._writer.add_scalar("train/learning_rate", learning_rate(self._run, step), step)

    def held_out(self, step, loss):
        self._writer.add_scalar("held_out/loss", loss, step)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self._writer.close()
