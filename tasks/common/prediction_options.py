"""Options of prediction that all recipes have, each declared once; a recipe adds its own in its ``arguments.py``."""

from dataclasses import dataclass

from paddle_rope.options import TEXT, TRUTH, Options, integer, option, optional

COUNT = integer(1, 10**9)
SIZE = optional(COUNT)


@dataclass
class PredictorOptions(Options):
    """The options of a predictor, which the command line and the service have under the same names."""

    device: str | None = option(None, "cpu, gpu, ... (default: a GPU where there is one)", optional(TEXT))
    batch_size: int = option(32, "texts, or windows of long texts, computed together", COUNT)
    bf16: bool = option(
        False, "multiply in bfloat16 where that is faster; scores change a little (docs/guides/performance.md)", TRUTH
    )
