"""The classification model: RoFormer, pooling and a classifier, with the names of the classes."""

import paddle.nn.functional as F

from paddle_rope.roformer import RoFormerForSequenceClassification
from tasks.classification.config import ClassificationConfig
from tasks.common.inference import evaluated


class ClassificationModel(RoFormerForSequenceClassification):
    """:class:`RoFormerForSequenceClassification` with a :class:`ClassificationConfig`."""

    config_class = ClassificationConfig

    def find_probabilities(self, batch):
        """Probabilities of the classes of a batch of arrays, in evaluation mode: a float32 array."""
        return F.softmax(evaluated(self, batch).astype("float32"), axis=-1).numpy()
