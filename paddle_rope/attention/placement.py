"""Where the rotation is placed: on queries, keys, values and the output, in any combination (kexue.fm 10862)."""

# Every subset of q, k, v, o in this order; "o" is the inverse rotation of the output.
PLACEMENTS = tuple(
    "".join(letter for bit, letter in enumerate("qkvo") if subset >> bit & 1) for subset in range(1, 16)
)


def check_placement(placement):
    """Raise ValueError unless ``placement`` is one of :data:`PLACEMENTS`."""
    if placement not in PLACEMENTS:
        raise ValueError(f"placement must be some of the letters qkvo in this order, such as 'qk', got {placement!r}")


def depends_on_relative_position_only(placement):
    """Whether shifting all positions by the same number leaves the output as it is.

    The scores see the shift unless q and k turn both or not at all; the values come back as they were only if v and o
    turn both or not at all.
    """
    check_placement(placement)
    return ("q" in placement) == ("k" in placement) and ("v" in placement) == ("o" in placement)


def rotate_at(place, x, rotate, placement):
    """R x if ``placement`` has the letter ``place``, else x; at ``"o"`` the rotation is undone.

    Args:
        place: ``"q"``, ``"k"``, ``"v"`` or ``"o"``.
        x: ``[batch, heads, seq, size]``.
        rotate: called as ``rotate(x)`` or ``rotate(x, inverse=True)``; None for no rotation.
        placement: one of :data:`PLACEMENTS`.
    """
    if rotate is None or place not in placement:
        return x
    return rotate(x, inverse=True) if place == "o" else rotate(x)
