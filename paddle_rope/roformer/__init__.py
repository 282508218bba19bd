"""RoFormer: models, configurations and tokenizers. Names load at first use, so the tokenizers do not import paddle."""

from typing import TYPE_CHECKING

from paddle_rope.machine import lazy_names

if TYPE_CHECKING:
    from paddle_rope.roformer.config import RoFormerConfig, SequenceClassificationConfig
    from paddle_rope.roformer.heads import RoFormerForCausalLM, RoFormerForMaskedLM, RoFormerForSequenceClassification
    from paddle_rope.roformer.modeling import RoFormerCache, RoFormerModel
    from paddle_rope.roformer.pretrained import RoFormerPretrainedModel
    from paddle_rope.roformer.tokenization import (
        CharTokenizer,
        Encoding,
        WordPieceTokenizer,
        WordTokenizer,
        load_tokenizer,
    )

__getattr__, __dir__, __all__ = lazy_names(__name__, {
    "config": ["RoFormerConfig", "SequenceClassificationConfig"],
    "heads": ["RoFormerForCausalLM", "RoFormerForMaskedLM", "RoFormerForSequenceClassification"],
    "modeling": ["RoFormerCache", "RoFormerModel"],
    "pretrained": ["RoFormerPretrainedModel"],
    "tokenization": ["CharTokenizer", "Encoding", "WordPieceTokenizer", "WordTokenizer", "load_tokenizer"],
})  # fmt: skip
