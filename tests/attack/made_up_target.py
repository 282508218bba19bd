"""A target that does what its file says, to test the attack itself."""

import os

from tests.attack.cases import Target


def read_order(folder):
    order = (folder / "order").read_bytes()
    if order == b"hang":
        while True:
            pass
    if order == b"grow":
        bytearray(2 << 30)
    if order == b"die":
        os.abort()
    if order.startswith(b"fail"):
        raise KeyError("x")


TARGETS = [Target("made_up", lambda: [{"order": b"read"}], lambda case, rng: dict(case), read_order, (ValueError,))]
