from paddle_rope.roformer.configuration import RoFormerConfig
from paddle_rope.roformer.heads import RoFormerForCausalLM, RoFormerForMaskedLM, RoFormerForSequenceClassification
from paddle_rope.roformer.modeling import RoFormerCache, RoFormerModel, RoFormerPretrainedModel
from paddle_rope.roformer.tokenization import CharTokenizer, Encoding

__all__ = [
    "CharTokenizer",
    "Encoding",
    "RoFormerCache",
    "RoFormerConfig",
    "RoFormerForCausalLM",
    "RoFormerForMaskedLM",
    "RoFormerForSequenceClassification",
    "RoFormerModel",
    "RoFormerPretrainedModel",
]
