"""The relation model: the NER model and, for each relation, scores of pairs of starts and of ends."""

from functools import partial
from typing import ClassVar

import paddle

from paddle_rope.global_pointer.heads import EfficientGlobalPointer
from paddle_rope.tasks.common.inference import evaluated
from paddle_rope.tasks.ner.model import NerModel
from paddle_rope.tasks.relations.arguments import RelationsConfig
from paddle_rope.tasks.relations.decoding import linked_spans


class RelationsModel(NerModel):
    """GPLinker (Su, https://kexue.fm/archives/8888): the head of entities, and two of relations.

    ``starts`` scores, for each relation, whether two tokens are the first ones of its head and its tail, ``ends``
    whether they are the last ones. The tail may precede the head, so these heads have no triangular mask.

    With ``relation_rope`` they have RoPE, which GPLinker has not. The efficient form scores a pair by its head, by its
    tail, and by one product for all relations. Without RoPE, little but the words is in that product, and where a text
    has a relation twice, the head of one is found with the tail of the other.
    """

    config_class = RelationsConfig
    _heads_of: ClassVar = {**NerModel._heads_of, "relations": ("starts", "ends")}

    def __init__(self, config):
        super().__init__(config)
        sizes = config.hidden_size, len(config.relations), config.head_size, config.relation_rope
        self.starts, self.ends = (EfficientGlobalPointer(*sizes, ordered=False) for _ in range(2))
        self.init_weights()

    def forward(self, input_ids, attention_mask, token_mask, columns=None, flags=None, labels=None, pairs=None):
        """The logits of a batch, of entities, starts and ends; with ``labels`` and ``pairs`` the loss.

        The loss is the sum over the three heads, each the mean over texts and types. ``pairs`` are int64
        ``[batch, relations, 5]``: the type, first and last token of the head, first and last token of the tail; type -1
        is padding. The other arguments are as in :meth:`NerModel.forward`. Logits are ``[batch, types, seq, seq]``, for
        entities ``[batch, types, seq, max_span_length]`` if there is one.
        """
        hidden = self.encoded(input_ids, attention_mask, token_mask, columns, flags)
        if labels is None:
            return self.head(hidden, token_mask), self.starts(hidden, token_mask), self.ends(hidden, token_mask)
        kind, head_first, head_last, tail_first, tail_last = pairs.unbind(axis=2)
        of_starts, of_ends = (
            paddle.stack([kind, *of_pair], axis=2) for of_pair in ((head_first, tail_first), (head_last, tail_last))
        )
        heads = (self.head, labels), (self.starts, of_starts), (self.ends, of_ends)
        return sum(head.loss(hidden, wanted, token_mask).mean() for head, wanted in heads)

    def find_spans(self, batch, thresholds, most=None):
        """As :meth:`NerModel.find_spans`, with related spans: a list of
        :class:`~paddle_rope.tasks.relations.decoding.LinkedSpans`. Only tokens at which an entity starts, or ends, are
        scored as pairs."""

        def find(token_mask, **inputs):
            hidden = self.encoded(token_mask=token_mask, **inputs)
            logits, sizes = self.head(hidden, token_mask), token_mask.sum(axis=1).tolist()
            return linked_spans(self.config, logits, thresholds, most, sizes, partial(self._scored, hidden))

        return evaluated(self, batch, find)

    def _scored(self, hidden, text, first, last):
        """Logits between the first tokens and between the last tokens of spans of a text of ``hidden``."""
        logits = []
        for head, tokens in ((self.starts, first), (self.ends, last)):
            tokens = paddle.to_tensor(tokens)
            of_tokens = head(paddle.gather(hidden[text], tokens).unsqueeze(0), positions=tokens)
            logits.append(of_tokens[0].astype("float32").numpy())
        return logits
