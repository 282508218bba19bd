"""Configuration keys of the simulated annotation loop: defaults, types and ranges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from tasks.common.training.arguments import POSITIVE, one_of, option
from tasks.experiments.annotation.selection import STRATEGIES
from tasks.ner.arguments import NerArguments


@dataclass
class AnnotationArguments(NerArguments):
    """Keys of one round of the loop: those of NER and its own."""

    labeled_texts: int = option(500, "texts of `train_file` whose labels are known in this round")
    strategy: str = option("random", f"how they are chosen: {', '.join(STRATEGIES)}")
    previous_run: Optional[str] = option(None, "folder of the round before, whose texts are kept; empty: the first")

    def ranges(self):
        return {**super().ranges(), "labeled_texts": POSITIVE, "strategy": one_of(STRATEGIES)}
