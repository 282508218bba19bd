"""Names are loaded when they are first asked for: the tokenizers import neither paddle nor PaddleNLP."""

from typing import TYPE_CHECKING

from paddle_rope.lazy import lazy_names

if TYPE_CHECKING:  # the same names for type checkers
    from paddle_rope.roformer.configuration import RoFormerConfig
    from paddle_rope.roformer.heads import RoFormerForCausalLM, RoFormerForMaskedLM, RoFormerForSequenceClassification
    from paddle_rope.roformer.modeling import RoFormerCache, RoFormerModel, RoFormerPretrainedModel
    from paddle_rope.roformer.tokenization import CharTokenizer, Encoding, WordTokenizer, load_tokenizer

__getattr__, __all__ = lazy_names(
    __name__,
    {
        "paddle_rope.roformer.configuration": ("RoFormerConfig",),
        "paddle_rope.roformer.heads": (
            "RoFormerForCausalLM",
            "RoFormerForMaskedLM",
            "RoFormerForSequenceClassification",
        ),
        "paddle_rope.roformer.modeling": ("RoFormerCache", "RoFormerModel", "RoFormerPretrainedModel"),
        "paddle_rope.roformer.tokenization": ("CharTokenizer", "Encoding", "WordTokenizer", "load_tokenizer"),
    },
)
