"""Where the rotation is placed: on queries, keys, values and the output, in any combination (kexue.fm 10862)."""

from collections.abc import Callable

from paddle import Tensor

from paddle_rope.options import PLACEMENTS

# Called as ``rotate(x)`` or ``rotate(x, inverse=True)`` on ``[batch, heads, seq, size]``.
Rotation = Callable[..., Tensor]


def check_placement(placement: str) -> None:
    """Raise ValueError unless ``placement`` is one of :data:`~paddle_rope.options.PLACEMENTS`."""
    if placement not in PLACEMENTS:
        raise ValueError(f"placement must be some of the letters qkvo in this order, such as 'qk', got {placement!r}")


def depends_on_relative_position_only(placement: str) -> bool:
    """Whether shifting all positions by the same number leaves the output unchanged.

    The scores see the shift unless both q and k are rotated or neither; the values come back unchanged only if both v
    and o are rotated or neither.
    """
    check_placement(placement)
    return ("q" in placement) == ("k" in placement) and ("v" in placement) == ("o" in placement)


def rotate_at(place: str, x: Tensor, rotate: Rotation | None, placement: str) -> Tensor:
    """R x if ``placement`` has the letter ``place``, else x; at ``"o"`` the rotation is undone. No ``rotate``: x."""
    if rotate is None or place not in placement:
        return x
    return rotate(x, inverse=True) if place == "o" else rotate(x)
