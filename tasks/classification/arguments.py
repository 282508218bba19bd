"""The options of a classifier, and the keys of its recipe: each is declared once. Does not import Paddle."""

from dataclasses import dataclass
from typing import ClassVar, Optional

from paddle_rope.options import NAMES, POOLINGS, choice, integer
from paddle_rope.options import option as model_field
from paddle_rope.roformer.config import SequenceClassificationConfig
from paddle_rope.tasks.common.prediction_options import SIZE, PredictorOptions
from paddle_rope.tasks.common.training.arguments import RecipeArguments, model_option, option


@dataclass
class ClassificationConfig(SequenceClassificationConfig):
    """A :class:`SequenceClassificationConfig` with the classes."""

    classes: list[str] = model_field([], "names of the classes, in the order of the logits", NAMES)
    max_characters: int = model_field(512, "characters of a text that are read; the rest is cut", integer(1, 10**9))
    pooling: str = model_field("mean", "`mean` of the tokens, or the `first` token", choice(*POOLINGS))

    model_type: ClassVar[str] = "paddle_rope_classification"

    def __post_init__(self):
        NAMES.check("classes", self.classes)
        if len(self.classes) < 2:
            raise ValueError(f"classes must name two classes or more, got {self.classes!r}")
        self.classes = list(self.classes)
        self.num_labels, self.id2label = None, dict(enumerate(self.classes))
        super().__post_init__()

    @property
    def output_shape(self):
        """Shape of the model's output for a text: its probabilities of the classes."""
        return (len(self.classes),)


@dataclass
class ClassificationOptions(PredictorOptions):
    """The options of a ``Classifier``."""

    max_characters: int | None = model_field(None, "characters read, the rest is cut (default: as trained)", SIZE)

    RESULTS = "classes of texts"
    EXAMPLE = {"text": "今天天气很好。", "label": "weather", "probability": 0.86}


@dataclass
class ClassificationArguments(RecipeArguments):
    """Keys of the classification recipe, in addition to the keys of every recipe."""

    MODEL = "paddle_rope.tasks.classification.model:ClassificationModel"
    SCORES = ("accuracy", "macro_f1")
    METRIC = "accuracy"
    HYPER_PARAMETERS = (*RecipeArguments.HYPER_PARAMETERS, "pooling")
    # data sets have fewer documents than sentences
    DEFAULTS = {"num_train_epochs": 10, "per_device_train_batch_size": 16, "learning_rate": 5e-4}

    recipe: str = option("classification", "what is trained")
    train_file: Optional[str] = option(None, "labeled texts, JSON Lines or tab-separated")
    max_characters: int = model_option(ClassificationConfig, "max_characters")
    pooling: str = model_option(ClassificationConfig, "pooling")
