from paddle_rope.roformer.tokenization.char_tokenizer import CharTokenizer
from paddle_rope.roformer.tokenization.loading import load_tokenizer
from paddle_rope.roformer.tokenization.tokenizer import Encoding
from paddle_rope.roformer.tokenization.word_tokenizer import WordTokenizer

__all__ = ["CharTokenizer", "Encoding", "WordTokenizer", "load_tokenizer"]
