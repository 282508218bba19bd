"""Options of prediction that all recipes have, each declared once, and what the command line and the service have to
know of a recipe's predictions; a recipe adds its own in its ``arguments.py``."""

from dataclasses import dataclass
from typing import Any, ClassVar

from paddle_rope.options import TEXT, TRUTH, Options, integer, option, optional

COUNT = integer(1, 10**9)
SIZE = optional(COUNT)
TEXTS, PAIRS = ("texts", "pairs")


@dataclass
class PredictorOptions(Options):
    """The options of a predictor, which the command line and the service have under the same names."""

    device: str | None = option(None, "cpu, gpu, ... (default: a GPU where there is one)", optional(TEXT))
    batch_size: int = option(32, "texts, or windows of long texts, computed together", COUNT)
    bf16: bool = option(
        False, "multiply in bfloat16 where that is faster; scores change a little (docs/guides/performance.md)", TRUTH
    )

    VERB_OPTIONS: ClassVar[tuple[str, ...]] = ("text_column",)  # of verbs, not of the predictor, that the recipe has
    AVERAGES: ClassVar[bool] = False  # whether several models compute together, with their mean scores
    FINDS_ENTITIES: ClassVar[bool] = False  # whether results have entities, which the options of a filter choose
    TAKES: ClassVar[str] = TEXTS  # what a request sends under this key
    RESULTS: ClassVar[str]  # what a request gets
    EXAMPLE: ClassVar[dict[str, Any]]  # the result of one text or pair

    @classmethod
    def embeds(cls, config: dict[str, Any]) -> bool:
        """Whether a model with this config.json gives vectors of texts."""
        return False

    @classmethod
    def record_keys(cls, text_column: str) -> tuple[tuple[str, ...], ...]:
        """The keys of the texts in a record of many documents, as alternatives."""
        return ((text_column,),)
