"""The classification model: RoFormer, pooling and a classifier, with the names of the classes."""

import paddle.nn.functional as F

from paddle_rope.option_kinds import NAMES, integer
from paddle_rope.roformer import RoFormerConfig, RoFormerForSequenceClassification
from tasks.common.inference import evaluated

_CHARACTERS = integer(1, 10**9)


class ClassificationConfig(RoFormerConfig):
    """A :class:`RoFormerConfig` with the classes.

    Args:
        classes: names of the classes, in the order of the logits.
        max_characters: characters of a text that are read, from its beginning.
        pooling: ``"mean"`` over the tokens or the ``"first"`` token.
    """

    model_type = "paddle_rope_classification"

    def __init__(self, classes=(), max_characters=None, pooling="mean", **kwargs):
        max_length = kwargs.pop("max_length", 512)  # its name in models of version 0.1
        for name in ("id2label", "label2id", "num_labels"):  # a saved configuration has them beside the classes
            kwargs.pop(name, None)
        NAMES.check("classes", classes)
        super().__init__(pooling=pooling, **kwargs)
        self.classes = list(classes)
        self.max_characters = max_length if max_characters is None else max_characters
        _CHARACTERS.check("max_characters", self.max_characters)
        self.id2label = dict(enumerate(self.classes))
        self.label2id = {name: index for index, name in enumerate(self.classes)}


class ClassificationModel(RoFormerForSequenceClassification):
    """:class:`RoFormerForSequenceClassification` with a :class:`ClassificationConfig`."""

    config_class = ClassificationConfig

    def find_probabilities(self, batch):
        """Probabilities of the classes of a batch of arrays, in evaluation mode: a float32 array."""
        return F.softmax(evaluated(self, batch).astype("float32"), axis=-1).numpy()
