"""The names of what can be chosen, for configurations and argument parsers: this module imports neither paddle nor
PaddleNLP."""

from collections.abc import Collection

from paddle_rope.option_kinds import shown

ATTENTION_KINDS = ("softmax", "linear", "window")
FEATURE_MAPS = ("elu_plus_one", "relu", "exp", "softmax_exp", "one_plus_cosine", "favor")
NORMALIZERS = ("unrotated", "rotated", "none")
# What RoPE rotates: every subset of q, k, v, o in this order; "o" is the inverse rotation of the output.
PLACEMENTS = tuple("".join(letter for bit, letter in enumerate("qkvo") if subset >> bit & 1) for subset in range(1, 16))
# What a model can know of positions: where RoPE rotates, or another embedding in its place.
POSITION_EMBEDDINGS = (*PLACEMENTS, "sinusoidal", "learned", "alibi", "none")
ROTARY_LAYOUTS = ("interleaved", "half")
ACTIVATIONS = ("gelu", "gelu_tanh", "relu", "tanh")
POOLINGS = ("first", "mean")
WIDEST_BAND = 2**16  # longest span of a GlobalPointer in a band, whose memory counts each length


def check_choice(name: str, value: object, known: Collection) -> None:
    """Raise ValueError unless ``value``, called ``name`` in the message, is one of the ``known``."""
    if not isinstance(value, str | int | None) or value not in known:
        raise ValueError(f"{name} must be one of {', '.join(map(str, known))}, got {shown(value)}")
