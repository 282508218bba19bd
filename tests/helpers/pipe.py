"""A pipe whose writer waits."""

import io


class Pipe(io.RawIOBase):
    """Gives its pieces, bytes, one a read; ``before_each`` is called before a piece is given, and before the end."""

    def __init__(self, *pieces, before_each=None):
        self.pieces, self.before_each = list(pieces), before_each

    def readable(self):
        return True

    def readinto(self, buffer):
        if self.before_each is not None:
            self.before_each()
        piece = self.pieces.pop(0) if self.pieces else b""
        buffer[: len(piece)] = piece
        return len(piece)
