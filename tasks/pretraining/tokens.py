"""Documents as one array of tokens, with the beginnings of documents and words."""

from typing import NamedTuple

import numpy as np
from tqdm import tqdm

from paddle_rope.roformer.tokenization.word_tokenizer import jieba_cutter


class TokenStream(NamedTuple):
    """The tokens of all documents, one behind the other, without special tokens.

    Attributes:
        ids: int32 ``[tokens]``.
        word_starts: bool ``[tokens]``, True where a word of jieba begins.
        bounds: int64 ``[documents + 1]``; document ``n`` is ``ids[bounds[n]:bounds[n + 1]]``.
    """

    ids: np.ndarray
    word_starts: np.ndarray
    bounds: np.ndarray


def tokenize(documents, tokenizer, title, show_progress=True):
    """The :class:`TokenStream` of documents; those without a token are left out. ``title`` is of the progress bar."""
    ids, word_starts = [np.zeros(0, dtype=np.int32)], [np.zeros(0, dtype=bool)]
    characters = sum(map(len, documents))
    with tqdm(total=characters, desc=title, unit="char", unit_scale=True, disable=not show_progress) as bar:
        for document in documents:
            encoding = tokenizer.encode(document, add_special_tokens=False)
            if encoding.ids:
                ids.append(np.array(encoding.ids, dtype=np.int32))
                word_starts.append(starts_of_words(document, encoding.offsets))
            bar.update(len(document))
    return TokenStream(np.concatenate(ids), np.concatenate(word_starts), np.cumsum([len(part) for part in ids]))


def starts_of_words(text, offsets):
    """bool for each token: it begins in another word of jieba than the token before it.

    The segmentation is that of :class:`WordTokenizer`: jieba's dictionary, no hidden Markov model. Each run of white
    space and each mark is a word. ``offsets`` are the half-open characters (start, end) of the tokens, in their order.
    """
    lengths = [len(word) for word in jieba_cutter().cut(text, HMM=False)]
    word_of_character = np.repeat(np.arange(len(lengths)), lengths)
    word_of_token = word_of_character[[start for start, _ in offsets]]
    return np.diff(word_of_token, prepend=-1) != 0
