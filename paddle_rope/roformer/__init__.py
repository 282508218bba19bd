"""Names are loaded when they are first asked for: the tokenizers import neither paddle nor PaddleNLP."""

from typing import TYPE_CHECKING

from paddle_rope.lazy import lazy_names

if TYPE_CHECKING:  # the same names for type checkers
    from paddle_rope.roformer.configuration import RoFormerConfig
    from paddle_rope.roformer.heads import RoFormerForCausalLM, RoFormerForMaskedLM, RoFormerForSequenceClassification
    from paddle_rope.roformer.modeling import RoFormerCache, RoFormerModel, RoFormerPretrainedModel
    from paddle_rope.roformer.tokenization import CharTokenizer, Encoding, WordTokenizer, load_tokenizer

__getattr__, __dir__, __all__ = lazy_names(
    __name__,
    {
        "configuration": "RoFormerConfig",
        "heads": "RoFormerForCausalLM RoFormerForMaskedLM RoFormerForSequenceClassification",
        "modeling": "RoFormerCache RoFormerModel RoFormerPretrainedModel",
        "tokenization": "CharTokenizer Encoding WordTokenizer load_tokenizer",
    },
)
