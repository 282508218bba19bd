"""Whole-word masking: which tokens the model must predict, and by what they are replaced."""

import numpy as np

from paddle_rope.roformer.heads import IGNORED_LABEL

HIDDEN_SHARE = 0.15  # of the words
MASK_SHARE = 0.8  # of the hidden tokens: become [MASK]
RANDOM_SHARE = 0.1  # become another token; the rest stay as they are


class WholeWordMasking:
    """Hides each word with 15 %; 80 % of its tokens become ``[MASK]``, 10 % a random token, 10 % stay.

    The shares are BERT's (arXiv 1810.04805, appendix A.1). Words are hidden as a whole as in BERT-wwm (arXiv
    1906.08101), which also draws the replacement for each token of a word.

    Args:
        tokenizer: with ``[MASK]``.
    """

    def __init__(self, tokenizer):
        special = {getattr(tokenizer, f"{name}_token_id") for name in ("pad", "unk", "cls", "sep", "mask")}
        self.mask_token_id = tokenizer.mask_token_id
        self.random_ids = np.array([index for index in range(len(tokenizer)) if index not in special])

    def hide(self, ids, word_starts, random):
        """Hide words.

        Args:
            ids: integers ``[tokens]``, without special tokens.
            word_starts: bool ``[tokens]``, True where a word begins, as at the first token.
            random: numpy generator.

        Returns:
            (inputs, labels), int64 ``[tokens]``: the tokens with some hidden; the hidden tokens, -100 at the others.
        """
        words = np.cumsum(word_starts) - 1
        is_hidden_word = random.random(words[-1] + 1) < HIDDEN_SHARE
        if not is_hidden_word.any():  # without a hidden token there is no loss
            is_hidden_word[random.integers(len(is_hidden_word))] = True
        hidden = np.flatnonzero(is_hidden_word[words])
        labels = np.full(len(ids), IGNORED_LABEL, dtype=np.int64)
        labels[hidden] = ids[hidden]
        inputs = ids.astype(np.int64)
        draws = random.random(len(hidden))
        inputs[hidden[draws < MASK_SHARE]] = self.mask_token_id
        replaced = hidden[(draws >= MASK_SHARE) & (draws < MASK_SHARE + RANDOM_SHARE)]
        inputs[replaced] = random.choice(self.random_ids, len(replaced))
        return inputs, labels
