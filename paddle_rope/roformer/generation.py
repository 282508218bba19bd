"""Generation of text, token by token, by a causal language model with a cache."""

import numpy as np
import paddle
from paddle import Tensor, nn


@paddle.no_grad()
def generate(
    model: nn.Layer,
    input_ids: Tensor,
    attention_mask: Tensor | None = None,
    max_new_tokens: int = 32,
    temperature: float = 0.0,
    top_p: float = 1.0,
    seed: int | None = None,
    eos_token_id: int | None = None,
) -> Tensor:
    """Continue texts. Each new token costs one step from a cache, which does not grow with linear attention.

    Args:
        model: a :class:`~paddle_rope.RoFormerForCausalLM`, a method of which this is; in training mode dropout acts.
        input_ids: int64 ``[batch, seq]``; shorter texts are padded on the left.
        attention_mask: ``[batch, seq]``, 0 at padding; by default no padding.
        max_new_tokens: number of tokens to add, at least 1.
        temperature: 0 takes the best token each time; otherwise tokens are drawn from softmax(logits / temperature).
        top_p: draw among the fewest best tokens that hold this share of the probability, in (0, 1].
        seed: of the drawing; None for numpy's entropy.
        eos_token_id: a text that gets it ends there and is filled with ``pad_token_id``; None to continue to the end.

    Returns:
        The new tokens, int64 ``[batch, new]``, new at most ``max_new_tokens``.

    Raises:
        ValueError: an argument is out of range, or a text is padded on the right.

    Example:
        >>> from paddle_rope import RoFormerConfig, RoFormerForCausalLM
        >>> model = RoFormerForCausalLM(RoFormerConfig(20, 8, num_hidden_layers=1, num_attention_heads=2))
        >>> tuple(generate(model, paddle.to_tensor([[2, 7]]), max_new_tokens=3, temperature=1, seed=1).shape)
        (1, 3)
    """
    if max_new_tokens < 1:
        raise ValueError(f"max_new_tokens must be at least 1, got {max_new_tokens}")
    if temperature < 0 or not 0 < top_p <= 1:
        raise ValueError(f"temperature must be 0 or more and top_p in (0, 1], got {temperature} and {top_p}")
    if input_ids.shape[1] == 0:
        raise ValueError("input_ids must hold at least one token of each text")
    if attention_mask is not None and not bool(attention_mask[:, -1].astype("bool").all()):
        raise ValueError("the last token of each text must be real: pad on the left")
    random = np.random.default_rng(seed)
    ended = np.zeros(input_ids.shape[0], dtype=bool)
    tokens = []
    logits, cache = model.forward_with_cache(input_ids, None, attention_mask)
    while True:
        token = _choose(logits.astype("float64").numpy(), temperature, top_p, random)
        token[ended] = model.config.pad_token_id
        tokens.append(token)
        ended |= eos_token_id is not None and token == eos_token_id
        if len(tokens) == max_new_tokens or ended.all():
            return paddle.to_tensor(np.stack(tokens, axis=1))
        logits, cache = model.forward_with_cache(paddle.to_tensor(token).unsqueeze(1), cache)


def _choose(logits, temperature, top_p, random):
    """A token for each row of ``logits`` ``[batch, vocab]``: int64 ``[batch]``."""
    if temperature == 0:
        return logits.argmax(axis=-1)
    tokens = []
    for row in logits / temperature:
        probabilities = np.exp(row - row.max())
        probabilities /= probabilities.sum()
        if top_p < 1:
            order = np.argsort(-probabilities, kind="stable")
            before = np.cumsum(probabilities[order]) - probabilities[order]
            probabilities[order[before >= top_p]] = 0.0
            probabilities /= probabilities.sum()
        tokens.append(random.choice(len(probabilities), p=probabilities))
    return np.array(tokens, dtype=np.int64)
