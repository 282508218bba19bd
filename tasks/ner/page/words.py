"""The words of a page, in the languages that it is written in."""

from __future__ import annotations

from collections.abc import Mapping

WORDS: dict[str, dict[str, str]] = {
    "en": {
        "title": "Entities of {}",
        "one text": "{} text",
        "texts": "{} texts",
        "one entity": "{} entity",
        "entities": "{} entities",
        "summary": "{texts}, {entities}. {certainty} Point at a box for its offsets.",
        "probability": "probability",
        "probability of a box": "A box is an entity, with its type and the probability that it is right.",
        "score": "score",
        "score of a box": (
            "A box is an entity, with its type and score, from 0 to 1. The score is no probability: this model has no "
            "temperatures."
        ),
        "offsets": "characters {start} to {end} (exclusive)",
        "only": "Show only",
        "all": "Show all",
        "contents": "Contents",
        "list": "Entities",
        "of a type": "{total} ({different} different)",
    },
    "zh": {
        "title": "{} 中的实体",
        "one text": "{} 篇文本",
        "texts": "{} 篇文本",
        "one entity": "{} 个实体",
        "entities": "{} 个实体",
        "summary": "{texts}，{entities}。{certainty}鼠标指向方框可查看位置。",
        "probability": "概率",
        "probability of a box": "每个方框是一个实体，标有类型和正确的概率。",
        "score": "得分",
        "score of a box": "每个方框是一个实体，标有类型和 0 到 1 之间的得分。该模型没有温度，得分不是概率。",
        "offsets": "第 {start} 到 {end} 个字符（从 0 开始，不含 {end}）",
        "only": "只显示",
        "all": "全部显示",
        "contents": "目录",
        "list": "实体",
        "of a type": "{total} 个（不同的 {different} 个）",
    },
}
LANGUAGES = tuple(WORDS)


def counted(words: Mapping[str, str], number: int, one: str, many: str) -> str:
    """A number with its noun, such as ``1 text`` or ``1,000 texts``."""
    return words[one if number == 1 else many].format(f"{number:,}")
