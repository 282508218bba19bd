from paddle_rope.roformer.configuration import RoFormerConfig
from paddle_rope.roformer.modeling import RoFormerModel, RoFormerPretrainedModel
from paddle_rope.roformer.tokenization import CharTokenizer, Encoding

__all__ = ["CharTokenizer", "Encoding", "RoFormerConfig", "RoFormerModel", "RoFormerPretrainedModel"]
