"""Word features as embeddings that are added to the token embeddings."""

import paddle
from paddle import nn

from paddle_rope.layers import Linear
from tasks.ner.features import COLUMNS

# Size of the embedding of each column of a kind, and of all flags together.
COLUMN_SIZES = {"segmentation": 32, "bigrams": 64, "words": 64}
FLAGS_SIZE = 64


class FeatureEmbedding(nn.Layer):
    """Embeds columns and flags, concatenates them and projects them to the size of the token embeddings.

    The columns of a kind share one table. Tables and flags start like the token embeddings, and the projection with
    1 / sqrt(inputs), which keeps their scale: so the features have at least as much weight in the sum as the tokens.

    Args:
        sizes: :attr:`tasks.ner.features.WordFeatures.sizes`.
        embedding_size: of the tokens.
    """

    def __init__(self, sizes, embedding_size):
        super().__init__()
        self.kinds = [kind for kind in COLUMNS if kind in sizes["tables"]]
        self.tables = nn.LayerDict(
            {kind: nn.Embedding(sizes["tables"][kind], COLUMN_SIZES[kind]) for kind in self.kinds}
        )
        inputs = sum(COLUMNS[kind] * COLUMN_SIZES[kind] for kind in self.kinds)
        self.flags = None
        if sizes["flags"]:
            self.flags = nn.Embedding(sizes["flags"], FLAGS_SIZE)  # a token has the sum over its flags
            inputs += FLAGS_SIZE
        self.projection = Linear(inputs, embedding_size)
        self.init_projection()

    def init_projection(self):
        """Start the projection with the standard deviation 1 / sqrt(inputs)."""
        weight = self.projection.weight
        if not weight._is_initialized():  # in a LazyGuard
            return
        weight.set_value(paddle.normal(std=weight.shape[0] ** -0.5, shape=weight.shape).astype(weight.dtype))

    def forward(self, columns=None, flags=None):
        """Embed a batch.

        Args:
            columns: int64 ``[batch, seq, columns]``, those of each kind in the order of ``COLUMNS``; None if the model
                has no such kind.
            flags: bool or 0/1 ``[batch, seq, flags]``; None if it has none.

        Returns:
            float ``[batch, seq, embedding_size]``.
        """
        if (columns is None) == bool(self.kinds) or (flags is None) == (self.flags is not None):
            raise ValueError("a model with word features needs the columns and flags of its texts")
        tables = [self.tables[kind] for kind in self.kinds for _ in range(COLUMNS[kind])]
        parts = [table(columns[:, :, column]) for column, table in enumerate(tables)]
        if self.flags is not None:
            parts.append(paddle.matmul(flags.astype(self.flags.weight.dtype), self.flags.weight))
        return self.projection(paddle.concat(parts, axis=-1))
