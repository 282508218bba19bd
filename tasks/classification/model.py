"""The classification model: RoFormer, pooling and a classifier, with the names of the classes."""

import paddle.nn.functional as F

from paddle_rope.roformer import RoFormerForSequenceClassification
from paddle_rope.tasks.classification.arguments import ClassificationConfig


class ClassificationModel(RoFormerForSequenceClassification):
    """:class:`RoFormerForSequenceClassification` with a :class:`ClassificationConfig`."""

    config_class = ClassificationConfig

    def forward(self, input_ids, attention_mask=None, labels=None):
        """Probabilities of the classes, float32 ``[batch, classes]``; with ``labels`` the pair (loss, logits)."""
        # super() has no meaning in the static graphs of paddle 2.6.2
        found = RoFormerForSequenceClassification.forward(self, input_ids, attention_mask, labels=labels)
        return F.softmax(found.astype("float32"), axis=-1) if labels is None else found
