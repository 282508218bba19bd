"""Masked language modeling on the training texts before the entities are learned, so that the encoder learns more from
the texts of a small labeled set."""

import copy
import dataclasses

import numpy as np
import paddle
from paddle import nn
from paddlenlp.trainer import IntervalStrategy

from paddle_rope.roformer.heads import IGNORED_LABEL, LanguageModelHead
from paddle_rope.tasks.common.training.monitor import VisualDLMonitor
from paddle_rope.tasks.common.training.trainer import LengthGroupedBatchSampler, RecipeTrainer
from paddle_rope.tasks.ner.batching import pad_spans
from paddle_rope.tasks.ner.features import UNKNOWN

# A stretch of one or two tokens begins at a token with this probability; 90 % of them become [MASK], the rest stay.
STRETCH_PROBABILITY = 0.12
SECOND_PROBABILITY = 0.5
MASK_PROBABILITY = 0.9
# Few labels are learned with much dropout; here less is enough, because hidden tokens are new each time.
LARGEST_DROPOUT = 0.1
DROPOUTS = ("hidden_dropout_prob", "embedding_dropout_prob", "attention_probs_dropout_prob")


def pretrain(run, texts):
    """Train the encoder and the feature embedding of a run's model to predict hidden tokens of tokenized texts, with
    little dropout. Texts without a token are left out. Checkpoints go to ``run.checkpoints_before``, where one remains
    in the end; training resumes from ``run.checkpoint``, or starts anew if it is None."""
    texts = [text for text in texts if any(end > start for start, end in text.offsets)]
    model, arguments = run.model, copy.copy(run.training)
    arguments.output_dir = str(run.checkpoints_before)
    arguments.num_train_epochs = run.keys.masked_lm_epochs
    arguments.max_steps = -1
    arguments.evaluation_strategy = arguments.save_strategy = IntervalStrategy.NO
    arguments.load_best_model_at_end = False
    # Train a copy, since a tensor cannot be in two data-parallel models. Its parameters get other names, because a
    # resumed run, which skips this, must give the optimizer's state the same names.
    with paddle.utils.unique_name.guard("masked_lm_"):
        known = {name: rate for name in DROPOUTS if (rate := getattr(model.config, name)) is not None}
        little = {name: min(rate, LARGEST_DROPOUT) for name, rate in known.items()}
        copied = type(model)(dataclasses.replace(model.config, **little))
        copied.set_state_dict(model.state_dict())
        trainer = RecipeTrainer(
            VisualDLMonitor(arguments.logging_dir, group="pretraining"),
            dict,  # nothing is evaluated
            LengthGroupedBatchSampler.of(arguments, [len(text.ids) for text in texts]),
            model=NerMaskedLM(copied),
            args=arguments,
            train_dataset=texts,
            data_collator=MaskingCollator(run.tokenizer, arguments.seed),
            checkpoint_minutes=run.keys.checkpoint_minutes,
            phase="masked language modeling",
        )
        if run.checkpoint is not None:
            trainer.see_epochs_before(run.checkpoint)  # restores the random numbers of the collator
        trainer.train(run.checkpoint)
        run.trainer.started = trainer.started
    model.set_state_dict(copied.state_dict())


class NerMaskedLM(nn.Layer):
    """A :class:`LanguageModelHead` on the encoder of a ``NerModel``."""

    def __init__(self, model):
        super().__init__()
        self.roformer = model.roformer
        self.feature_embedding = getattr(model, "feature_embedding", None)
        self.lm_head = LanguageModelHead(model.config)

    def forward(self, input_ids, attention_mask, token_mask, labels, columns=None, flags=None, labeled=None):
        """(loss, logits of the labeled tokens); ``labels`` int64 ``[batch, seq]``, -100 where no token is hidden."""
        added = None if self.feature_embedding is None else self.feature_embedding(columns, flags)
        hidden = self.roformer(input_ids, attention_mask, added_embeddings=added)
        return self.lm_head.loss(hidden, self.roformer.token_embedding.weight, labels, labeled)


class MaskingCollator:
    """Pads texts and hides tokens, different ones each time.

    The features of hidden tokens and their neighbors are also hidden, since bigrams and words would reveal the hidden
    character. A longer word of the segmentation or of the dictionary may still reveal it.
    """

    def __init__(self, tokenizer, seed):
        self.mask_token_id, self.pad_token_id = tokenizer.mask_token_id, tokenizer.pad_token_id
        self.random = np.random.RandomState(seed)

    def __call__(self, texts):
        """The arrays of :func:`pad_spans`; ``labels`` int64 ``[batch, seq]``, the ids of hidden tokens, else -100;
        and ``labeled``, the flat indices of the hidden tokens."""
        batch = pad_spans(texts, self.pad_token_id, with_labels=False)
        ids, token_mask = batch["input_ids"], batch["token_mask"]
        first = self.random.rand(*ids.shape) < STRETCH_PROBABILITY
        second = first & (self.random.rand(*ids.shape) < SECOND_PROBABILITY)
        hidden = (first | np.pad(second, ((0, 0), (1, 0)))[:, :-1]) & token_mask
        if not hidden.any():  # a batch without a hidden token has no loss
            hidden[tuple(np.argwhere(token_mask)[0])] = True
        batch["labels"], batch["labeled"] = np.where(hidden, ids, IGNORED_LABEL), np.flatnonzero(hidden)
        becomes_mask = hidden & (self.random.rand(*ids.shape) < MASK_PROBABILITY)
        batch["input_ids"] = np.where(becomes_mask, self.mask_token_id, ids)
        padded = np.pad(hidden, ((0, 0), (1, 1)))
        near = (hidden | padded[:, :-2] | padded[:, 2:])[:, :, np.newaxis]
        if "columns" in batch:
            batch["columns"] = np.where(near & (batch["columns"] > 0), UNKNOWN, batch["columns"])
        if "flags" in batch:
            batch["flags"] = batch["flags"] & ~near
        return batch
