"""The classification model: RoFormer, pooling and a classifier, with the names of the classes."""

from dataclasses import dataclass
from typing import ClassVar

import paddle.nn.functional as F

from paddle_rope.choices import POOLINGS
from paddle_rope.option_kinds import NAMES, choice, integer, option
from paddle_rope.roformer import RoFormerForSequenceClassification, SequenceClassificationConfig
from tasks.common.inference import evaluated


@dataclass
class ClassificationConfig(SequenceClassificationConfig):
    """A :class:`SequenceClassificationConfig` with the classes."""

    classes: list[str] = option([], "names of the classes, in the order of the logits", NAMES)
    max_characters: int = option(512, "characters of a text that are read, from its beginning", integer(1, 10**9))
    pooling: str = option("mean", "what is classified: the `mean` of the tokens or the `first`", choice(*POOLINGS))

    model_type: ClassVar[str] = "paddle_rope_classification"
    RENAMED: ClassVar[dict[str, str]] = {"max_length": "max_characters"}  # names of version 0.1

    def __post_init__(self):
        NAMES.check("classes", self.classes)
        self.classes = list(self.classes)
        self.num_labels, self.id2label = None, dict(enumerate(self.classes))
        super().__post_init__()


class ClassificationModel(RoFormerForSequenceClassification):
    """:class:`RoFormerForSequenceClassification` with a :class:`ClassificationConfig`."""

    config_class = ClassificationConfig

    def find_probabilities(self, batch):
        """Probabilities of the classes of a batch of arrays, in evaluation mode: a float32 array."""
        return F.softmax(evaluated(self, batch).astype("float32"), axis=-1).numpy()
