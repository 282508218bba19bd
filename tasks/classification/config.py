"""The configuration of the classification model. Without paddle."""

from dataclasses import dataclass
from typing import ClassVar

from paddle_rope.options import NAMES, POOLINGS, choice, integer, option
from paddle_rope.roformer.config import SequenceClassificationConfig


@dataclass
class ClassificationConfig(SequenceClassificationConfig):
    """A :class:`SequenceClassificationConfig` with the classes."""

    classes: list[str] = option([], "names of the classes, in the order of the logits", NAMES)
    max_characters: int = option(512, "characters of a text that are read; the rest is cut", integer(1, 10**9))
    pooling: str = option("mean", "`mean` of the tokens, or the `first` token", choice(*POOLINGS))

    model_type: ClassVar[str] = "paddle_rope_classification"
    RENAMED: ClassVar[dict[str, str]] = {"max_length": "max_characters"}  # names of version 0.1

    def __post_init__(self):
        NAMES.check("classes", self.classes)
        if len(self.classes) < 2:
            raise ValueError(f"classes must name two classes or more, got {self.classes!r}")
        self.classes = list(self.classes)
        self.num_labels, self.id2label = None, dict(enumerate(self.classes))
        super().__post_init__()
