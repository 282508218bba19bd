"""The recipe of causal language models of characters, which counts in steps."""

import dataclasses
from typing import Any

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle.io import Dataset

from paddle_rope.machine import machine_in_words
from paddle_rope.roformer import CharTokenizer, RoFormerForCausalLM
from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.inference import evaluated
from paddle_rope.tasks.common.texts.documents import read_documents
from paddle_rope.tasks.common.texts.text_files import ADDITIONS
from paddle_rope.tasks.common.training.recipe import Recipe
from paddle_rope.tasks.common.training.run import Run, RunData
from paddle_rope.tasks.common.training.settings import Settings
from paddle_rope.tasks.common.training.trainer import new_optimizer
from paddle_rope.tasks.language_model.arguments import LONGEST_TIMES, UNSCALED, LanguageModelArguments

TOKENS_A_BATCH = 2048  # no more at once than in a training step, to bound memory


class LanguageModelRecipe(Recipe):
    """Loss of the next character in held-out text, in nats.

    Runs with the same seed see the same texts, and begin with the same weights where these have the same shapes.
    ``metrics.json`` has the curves ``training`` and ``held_out``, lists of [step, loss], and the result of
    :func:`measure`.
    """

    arguments = LanguageModelArguments

    def read(self, settings: Settings, memory: Any) -> RunData:
        corpus = load_corpus(settings.keys)
        facts = {"machine": machine_in_words(), "text": corpus.facts()}
        return RunData({"train": corpus, "dev": corpus.held_out}, facts=facts)

    def new_tokenizer(self, run: Run) -> CharTokenizer:
        return run.examples["train"].tokenizer

    def dataset(self, run: Run, split: str) -> Any:
        if split == "dev":
            return run.examples["dev"]
        corpus, training, last = run.examples["train"], run.training, run.training.max_steps
        ends = [*range(training.eval_steps, last, training.eval_steps), last]
        return TrainingBatches(corpus, training.per_device_train_batch_size, ends, training.seed, run.batches_per_step)

    def longest(self, run: Run) -> int:
        return run.keys.length * max(run.keys.evaluation_times or [1])

    def describe(self, run: Run) -> None:
        facts = run.facts["text"]
        print(f"{facts['training_tokens']:,} characters to train on, {facts['held_out_tokens']:,} held out")

    def prepare(self, run: Run) -> None:
        run.trainer.optimizer, run.trainer.lr_scheduler = make_optimizer(run.model, run.training)
        if run.keys.scale_embeddings:
            # Added sinusoids need this (arXiv 1706.03762, section 3.4): their root mean square is 0.7, while embeddings
            # start small, because they also give the scores of the characters, and would hardly matter in the sum.
            # A model folder cannot record the scale.
            scale, run.is_saved = run.model.config.embedding_size**0.5, False
            run.model.roformer.token_embedding.register_forward_post_hook(lambda layer, inputs, output: output * scale)

    def dev_scores(self, run: Run) -> dict[str, float]:
        return {"loss": float(held_out_losses(run.model, run.datasets["dev"], run.keys.length).mean())}

    def score(self, run: Run, split: str) -> tuple[dict[str, Any], Any]:
        """The last loss in held-out text; the curves and the measurements go to ``metrics.json``."""
        history = run.trainer.state.log_history
        curves = {
            name: [[entry["step"], entry[key]] for entry in history if key in entry]
            for name, key in (("training", "loss"), ("held_out", "eval_loss"))
        }
        seconds = run.trainer.monitor.seconds_per_step()
        run.facts.update(seconds_per_step=seconds, **curves, **measure(run.model, run.datasets[split], run.keys))
        return {"loss": curves["held_out"][-1][1]}, None


# ---- text files -> one stream of character ids -> random windows for training, fixed ones held out -> batches


class Corpus:
    """One stream of ids: the documents follow each other, each ended by ``[SEP]``.

    ``held_out``, int64 ``[held_out_windows, held_out_length + 1]``, are evenly spaced stretches, so that they come from
    all files; no training window of ``length`` tokens reaches into them. Raises InputError if the text is too short for
    that.
    """

    def __init__(self, documents, vocab_min_count, length, held_out_windows, held_out_length):
        self.tokenizer = CharTokenizer.from_corpus(documents, vocab_min_count)
        self.length = length
        end = [self.tokenizer.sep_token_id]
        parts = [np.array(self.tokenizer.encode(text, add_special_tokens=False).ids + end) for text in documents]
        self._ids = np.concatenate(parts).astype("int64") if parts else np.zeros(0, "int64")
        size = held_out_length + 1
        if self._ids.size < 2 * held_out_windows * size:
            raise InputError(
                f"text_files: {self._ids.size} characters, of which {held_out_windows} x {size} are to be held out: "
                f"give {2 * held_out_windows * size} or more, or a smaller held_out_windows"
            )
        distance = self._ids.size // held_out_windows
        chosen = np.arange(held_out_windows)[:, None] * distance + np.arange(size)
        self.held_out = self._ids[chosen]
        is_held_out = np.zeros(self._ids.size + 1, dtype="int64")
        is_held_out[chosen.ravel() + 1] = 1
        before = is_held_out.cumsum()  # held-out ids before each
        self._starts = np.flatnonzero(before[length + 1 :] == before[: -(length + 1)])
        if not self._starts.size:
            raise InputError(f"text_files: between held-out stretches no {length + 1} characters are left; give more")

    def training_windows(self, count, seed, step):
        """Random windows, int64 ``[count, length + 1]``, which depend only on ``seed`` and ``step``."""
        starts = np.random.default_rng([seed, step]).choice(self._starts, count)
        return self._ids[starts[:, None] + np.arange(self.length + 1)]

    def facts(self):
        """dict of sizes in tokens (characters, runs of white space, ends of documents), for reports."""
        return {
            "tokens": self._ids.size,
            "training_tokens": self._ids.size - self.held_out.size,
            "held_out_tokens": self.held_out.size,
            "vocabulary": len(self.tokenizer),
            "unknown_share": float((self._ids == self.tokenizer.unk_token_id).mean()),
        }


class TrainingBatches(Dataset):
    """The batches of all steps; after the steps ``ends`` the run is evaluated. Each batch depends only on the seed and
    its number, so runs with the same seed see the same texts. ``batches_per_step`` is the number of processes times
    accumulated gradients."""

    def __init__(self, corpus, batch_size, ends, seed, batches_per_step=1):
        self.corpus, self.batch_size, self.ends, self.seed = corpus, batch_size, ends, seed
        self.batches_per_step = batches_per_step

    def __len__(self):
        return self.ends[-1] * self.batches_per_step

    def __getitem__(self, index):
        windows = self.corpus.training_windows(self.batch_size, self.seed, index + 1)
        inputs, labels = windows[:, :-1], windows[:, 1:]
        return {"input_ids": inputs, "labels": labels, "labeled": np.arange(inputs.size)}


def additions(count=40_000, digits=6, seed=0):
    """``count`` sums such as ``047731+900012=0947743``: what follows "=" is predictable, and nothing before it is."""
    terms = np.random.default_rng(seed).integers(10**digits, size=(count, 2))
    return [f"{a:0{digits}}+{b:0{digits}}={a + b:0{digits + 1}}" for a, b in terms.tolist()]


def load_corpus(keys):
    """The :class:`Corpus` of ``LanguageModelArguments``."""
    documents = additions() if keys.text_files == [ADDITIONS] else read_documents(keys.text_files)
    return Corpus(documents, keys.vocab_min_count, keys.length, keys.held_out_windows, LONGEST_TIMES * keys.length)


# ---- the optimizer


def learning_rate_share(step, warmup_steps, steps):
    """The share of the highest learning rate at a step from 1 to ``steps``: it rises linearly up to ``warmup_steps``,
    then falls linearly to 0 after the last step."""
    return min(1.0, step / (warmup_steps + 1), (steps + 1 - step) / max(1, steps - warmup_steps))


def make_optimizer(model, training):
    """(optimizer, schedule) of a ``Trainer``: AdamW, without weight decay for weights of one dimension (biases,
    frequencies)."""
    decaying = {weight.name for weight in model.parameters() if weight.ndim > 1}
    schedule = paddle.optimizer.lr.LambdaDecay(
        training.learning_rate, lambda done: learning_rate_share(done + 1, training.warmup_steps, training.max_steps)
    )
    return new_optimizer(training, schedule, model.parameters(), decaying), schedule


# ---- losses in held-out text, also at lengths that the model was not trained on


def held_out_losses(model, windows, length):
    """Cross-entropy in nats of every character in texts of ``length``; every length has the same characters.

    ``windows`` is int64 ``[windows, size + 1]``, as ``Corpus.held_out``, and ``length`` divides ``size``. Returns
    float64 ``[windows * size / length, length]``.
    """
    texts, targets = windows[:, :-1].reshape(-1, length), windows[:, 1:].reshape(-1, length)
    rows = max(1, TOKENS_A_BATCH // length)
    losses = []
    for first in range(0, len(texts), rows):
        logits = evaluated(model, {"input_ids": texts[first : first + rows]})
        wanted = paddle.to_tensor(targets[first : first + rows])
        losses.append(F.cross_entropy(logits, wanted, reduction="none").reshape(wanted.shape).numpy())
    return np.concatenate(losses).astype("float64")


def measure(model, windows, keys):
    """The measurements of a trained model that the ``keys`` of its run request.

    A dict with ``lengths``, the mean loss for each of the ``evaluation_times`` and each scaling; empty without times.
    """
    if not keys.evaluation_times:
        return {}
    scalings = {UNSCALED: None}
    for factor in keys.scaling_factors or ():
        scalings[f"NTK x{factor:g}"] = {"type": "ntk", "factor": factor}
        scalings[f"YaRN x{factor:g}"] = {"type": "yarn", "factor": factor, "original_length": keys.length}
    entries = []
    for scaling, settings in scalings.items():
        scaled = model
        if settings is not None:  # other frequencies, the same weights
            rotary = {**(model.config.rotary or {}), "scaling": settings}
            scaled = RoFormerForCausalLM(dataclasses.replace(model.config, rotary=rotary))
            scaled.set_state_dict(model.state_dict())
        for length in (time * keys.length for time in keys.evaluation_times):
            loss = float(held_out_losses(scaled, windows, length).mean())
            entries.append({"scaling": scaling, "length": length, "loss": loss})
    return {"lengths": entries}
