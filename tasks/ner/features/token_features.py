"""Features of the tokens of one text."""

from typing import NamedTuple

import numpy as np


class TokenFeatures(NamedTuple):
    """Columns and flags of tokens; the flags are packed, eight in a byte, until they are batched."""

    columns: np.ndarray  # int32 [tokens, columns]; 0 none, 1 unknown, then the vocabulary
    packed_flags: np.ndarray  # uint8 [tokens, bytes]
    num_flags: int

    @property
    def flags(self):
        """bool ``[tokens, num_flags]``."""
        return np.unpackbits(self.packed_flags, axis=1, count=self.num_flags).view(bool)

    def of_tokens(self, rows):
        """The features of some of the tokens, in the order of their numbers ``rows``."""
        return self._replace(columns=self.columns[rows], packed_flags=self.packed_flags[rows])
