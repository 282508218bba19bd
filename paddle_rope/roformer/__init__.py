from paddle_rope.roformer.configuration import RoFormerConfig
from paddle_rope.roformer.heads import RoFormerForCausalLM, RoFormerForMaskedLM, RoFormerForSequenceClassification
from paddle_rope.roformer.modeling import RoFormerCache, RoFormerModel, RoFormerPretrainedModel
from paddle_rope.roformer.tokenization.char_tokenizer import CharTokenizer
from paddle_rope.roformer.tokenization.loading import load_tokenizer
from paddle_rope.roformer.tokenization.tokenizer import Encoding
from paddle_rope.roformer.tokenization.word_tokenizer import WordTokenizer

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
    "WordTokenizer",
    "load_tokenizer",
]
