"""The NER model (RoFormer, embeddings of word features and a GlobalPointer head) and ensembles of it."""

import copy
import itertools
import os
from pathlib import Path
from typing import ClassVar

import numpy as np
import paddle
from paddle import nn

from paddle_rope.global_pointer.decoding import decode_spans
from paddle_rope.global_pointer.heads import EfficientGlobalPointer, GlobalPointer
from paddle_rope.layers import Embedding, Linear
from paddle_rope.roformer import RoFormerModel, RoFormerPretrainedModel
from paddle_rope.roformer.checkpoints.reading import read_checkpoint
from paddle_rope.roformer.pretrained import build_model
from paddle_rope.tasks.common import word_vectors
from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.inference import evaluated
from paddle_rope.tasks.ner.arguments import DENSE, EFFICIENT, NerConfig, of_types
from paddle_rope.tasks.ner.features import COLUMNS, FIRST_VALUE, UNKNOWN
from paddle_rope.tasks.ner.features import FILE_NAME as FEATURES_FILE

HEADS = {EFFICIENT: EfficientGlobalPointer, DENSE: GlobalPointer}
# Size of the embedding of each column of a kind, and of all flags together.
COLUMN_SIZES = {"segmentation": 32, "bigrams": 64, "words": word_vectors.SIZE}
FLAGS_SIZE = 64
VECTOR_DEVIATION = 0.12  # with which word vectors start; chosen in docs/results/pretraining.md


def _draw_lecun_normal(layer):
    """Draw the weights ``[inputs, outputs]`` of a linear layer with the standard deviation 1 / sqrt(inputs), as in
    bert4keras's GlobalPointer."""
    if isinstance(layer, nn.Linear) and layer.weight._is_initialized():  # not in shapes_only()
        weight = layer.weight
        weight.set_value(paddle.normal(std=weight.shape[0] ** -0.5, shape=weight.shape).astype(weight.dtype))


def word_rows(tensors):
    """The vectors ``[words, SIZE]`` of all ``WordFeatures.words``, from the arrays of a NER model, by their names."""
    tables = (f"feature_embedding.{table}.weight" for table in ("tables.words", "fixed_words"))
    return np.concatenate([tensors[table] for table in tables if table in tensors])[FIRST_VALUE:]


class FeatureEmbedding(nn.Layer):
    """Embeds columns and flags, concatenates them and projects them to the size of the token embeddings.

    The columns of a kind share one table. Tables and flags are initialized like the token embeddings, and the
    projection with 1 / sqrt(inputs), which keeps their scale, so the features weigh at least as much in the sum as the
    tokens. ``sizes`` are ``WordFeatures.sizes``.
    """

    def __init__(self, sizes, embedding_size):
        super().__init__()
        rows = sizes["tables"]
        self.kinds = [kind for kind in COLUMNS if kind in rows]
        self.tables = nn.LayerDict({kind: Embedding(rows[kind], COLUMN_SIZES[kind], kind) for kind in self.kinds})
        self.fixed_words = None  # go on after the rows of the table of words
        if "fixed_words" in sizes:
            self.fixed_words = Embedding(sizes["fixed_words"], COLUMN_SIZES["words"], "fixed_words")
            self.fixed_words.weight.stop_gradient = True
        inputs = sum(COLUMNS[kind] * COLUMN_SIZES[kind] for kind in self.kinds)
        self.flags = None
        if sizes["flags"]:
            self.flags = Embedding(sizes["flags"], FLAGS_SIZE, "flags")  # a token gets the sum over its flags
            inputs += FLAGS_SIZE
        self.projection = Linear(inputs, embedding_size)
        _draw_lecun_normal(self.projection)

    def start_words_from(self, known, words):
        """Set the rows of the words that ``known``, ``WordVectors``, has to their vectors ``[words, SIZE]``; ``words``
        are ``WordFeatures.words``."""
        tables = [table.weight for table in (self.tables["words"], self.fixed_words) if table is not None]
        rows = np.concatenate([table.numpy() for table in tables])
        row_of = {word: row for row, word in enumerate(words, FIRST_VALUE)}
        scale = VECTOR_DEVIATION / known.vectors.std(dtype=np.float64)
        rows[[row_of[word] for word in known.words]] = known.vectors * scale
        for table, part in zip(tables, np.split(rows, [len(tables[0])])):
            table.set_value(part)

    def forward(self, columns=None, flags=None):
        """float ``[batch, seq, embedding_size]``, from ``columns`` int64 ``[batch, seq, columns]``, in the order of
        ``COLUMNS``, and ``flags`` bool ``[batch, seq, flags]``; None for inputs that the model does not have."""
        if (columns is None) == bool(self.kinds) or (flags is None) == (self.flags is not None):
            raise ValueError("a model with word features needs the columns and flags of its texts")
        kinds = [kind for kind in self.kinds for _ in range(COLUMNS[kind])]
        parts = [self._embedded(kind, columns[:, :, column]) for column, kind in enumerate(kinds)]
        if self.flags is not None:
            parts.append(paddle.matmul(flags.astype(self.flags.weight.dtype), self.flags.weight))
        return self.projection(paddle.concat(parts, axis=-1))

    def _embedded(self, kind, values):
        """float ``[batch, seq, size of the kind]``, from the numbers of values, int64 ``[batch, seq]``."""
        table = self.tables[kind]
        if kind != "words" or self.fixed_words is None:
            return table(values)
        rows = table.weight.shape[0]
        is_fixed, nothing = values >= rows, paddle.zeros_like(values)
        fixed = self.fixed_words(paddle.where(is_fixed, values - rows, nothing))
        return paddle.where(is_fixed.unsqueeze(-1), fixed, table(paddle.where(is_fixed, nothing, values)))


class NerModel(RoFormerPretrainedModel):
    """Scores every span of a text for every type."""

    config_class = NerConfig
    _heads_of: ClassVar = {"types": ("head",)}  # option -> heads with outputs for each of its names

    def __init__(self, config):
        super().__init__(config)
        self.roformer = RoFormerModel(config)
        if config.features is not None:
            self.feature_embedding = FeatureEmbedding(config.features, config.embedding_size)
        self.head = HEADS[config.span_head](
            config.hidden_size, len(config.types), config.head_size, config.span_rope, config.max_span_length
        )
        self.init_weights()

    def _init_weights(self, layer):
        super()._init_weights(layer)
        if isinstance(layer, FeatureEmbedding):  # after the layers inside it
            _draw_lecun_normal(layer.projection)

    @classmethod
    def from_pretrained(cls, folder, **changes):
        """Load as in ``RoFormerPretrainedModel``. With other ``types``, the head keeps the weights of the types that it
        knows, and a new type starts with the mean of all known types. Word features of other data have other values, so
        their weights are new. A new head on a pretrained encoder starts with larger weights than one from scratch: its
        scores are products, and would begin so close to 0 that few labels take nearly twice as many steps."""
        checkpoint = read_checkpoint(folder)
        features = checkpoint.config.get("features")
        if changes.get("features", features) != features:
            for name in [name for name in checkpoint.tensors if name.startswith("feature_embedding.")]:
                del checkpoint.tensors[name]
        for option, heads in cls._heads_of.items():
            known, types = checkpoint.config.get(option), changes.get(option, [])
            if not (isinstance(known, list) and known) or types in ([], known):
                continue
            for head in heads:
                is_dense = f"{head}.type_scores.weight" not in checkpoint.tensors
                layer, axis = (f"{head}.dense", -2) if is_dense else (f"{head}.type_scores", -1)
                for name in {f"{layer}.weight", f"{layer}.bias"} & checkpoint.tensors.keys():
                    checkpoint.tensors[name] = _of_other_types(checkpoint.tensors[name], axis, known, types)
        model = build_model(cls, checkpoint, folder, **changes)
        for head in itertools.chain(*cls._heads_of.values()):
            if f"{head}.dense.weight" not in checkpoint.tensors:
                getattr(model, head).apply(_draw_lecun_normal)
        return model

    def forward(self, input_ids, attention_mask, token_mask, columns=None, flags=None, labels=None, probabilities=None):
        """Logits of a batch or, with ``labels``, the loss: the mean over texts and types.

        Args:
            input_ids: int64 ``[batch, seq]``; ``attention_mask`` bool, False at padding.
            token_mask: bool ``[batch, seq]``, True where the token has characters of the text.
            columns, flags: as in :meth:`FeatureEmbedding.forward`, for a model with features.
            labels: int64 ``[batch, entities, 3]``, (type, first token, last token) of the entities; type -1 is padding.
            probabilities: float ``[batch, entities]`` of a teacher's labels: each is used with its probability.
        """
        hidden = self.encoded(input_ids, attention_mask, token_mask, columns, flags)
        if labels is None:
            return self.head(hidden, token_mask)
        if probabilities is not None:
            is_drawn = _drawn(probabilities, probabilities).unsqueeze(-1)
            labels = paddle.where(is_drawn, labels, paddle.full_like(labels, -1))
        return self.head.loss(hidden, labels, token_mask).mean()

    def encoded(self, input_ids, attention_mask, token_mask, columns=None, flags=None):
        """The hidden states ``[batch, seq, hidden_size]``, from the arguments of :meth:`forward`; in training some
        characters and features are hidden."""
        config = self.config
        if self.training and config.character_dropout:
            is_hidden = token_mask & _drawn(input_ids, config.character_dropout)
            input_ids = paddle.where(is_hidden, paddle.full_like(input_ids, config.unk_token_id), input_ids)
        if self.training and config.feature_dropout and columns is not None:
            is_hidden = (columns > 0) & _drawn(columns, config.feature_dropout)
            columns = paddle.where(is_hidden, paddle.full_like(columns, UNKNOWN), columns)
        added = None if config.features is None else self.feature_embedding(columns, flags)
        return self.roformer(input_ids, attention_mask, added_embeddings=added)

    def find_spans(self, batch, thresholds, most=None):
        """A list of ``ScoredSpan`` for each text of a batch, in evaluation mode. The arrays are named as the arguments
        of :meth:`forward`; ``thresholds`` and ``most`` go to ``decode_spans``."""
        return decode_spans(evaluated(self, batch), thresholds, self.config.max_span_length is not None, most)


def _of_other_types(weights, axis, known, types):
    """Convert the weights ``[..., outputs]`` of a layer with outputs for each of the ``known`` types to other
    ``types``. The outputs form a matrix with the types in ``axis``."""
    shape = [*weights.shape[:-1], -1, -1]
    shape[axis] = len(known)
    by_type = weights.reshape(shape)
    with_mean = np.concatenate([by_type, by_type.mean(axis, keepdims=True)], axis)
    numbers = [known.index(kind) if kind in known else len(known) for kind in types]
    return with_mean.take(numbers, axis).reshape([*weights.shape[:-1], -1])


def _drawn(x, probability):
    """A bool tensor of the shape of ``x``, each element True with the given probability."""
    return paddle.rand(x.shape, dtype="float32") < probability


# Files and options that decide how a text becomes model input and how scores become entities.
SAME_FILES = ("vocab.txt", "tokenizer_config.json", FEATURES_FILE)
SAME_KEYS = ("types", "max_span_length", "allow_overlap")


class NerEnsemble(nn.Layer):
    """The mean of the scores of several models, used like a ``NerModel`` for prediction. Sizes, number of layers and
    attention may differ.

    Models that differ only in their seed make different mistakes (Lakshminarayanan et al. 2017, arXiv 1612.01474, who
    average probabilities; here it is logits, because each model was trained to score entities above 0). ``config``
    comes from the first model, with the mean thresholds and temperatures and the lengths that suit all models. Raises
    InputError if the models do not read the same tokens and features, or do not find the same types.
    """

    def __init__(self, folders: list[str | os.PathLike], models: list[NerModel]):
        super().__init__()
        _refuse_different(folders, models)
        self.members = nn.LayerList(models)
        configs = [model.config for model in models]
        self.config = copy.copy(configs[0])
        for name in ("max_characters", "window_tokens", "longest_text", "longest_entity"):
            known = [value for config in configs if (value := getattr(config, name)) is not None]
            setattr(self.config, name, (max if name == "longest_entity" else min)(known, default=None))
        for name in ("thresholds", "temperatures"):
            of_models = [of_types(getattr(config, name), len(config.types)) for config in configs]
            setattr(self.config, name, np.mean(of_models, axis=0).tolist())
        self.eval()

    def forward(self, input_ids, attention_mask, token_mask, columns=None, flags=None):
        """Logits of a batch, from the arguments of a model."""
        scores = [member(input_ids, attention_mask, token_mask, columns, flags) for member in self.members]
        return sum(scores) / len(scores)

    find_spans = NerModel.find_spans


def _refuse_different(folders, models):
    def seen(folder, model):
        files = {name: (Path(folder) / name).read_bytes() for name in SAME_FILES if (Path(folder) / name).is_file()}
        return {**dict.fromkeys(SAME_FILES), **files, **{name: getattr(model.config, name) for name in SAME_KEYS}}

    first, *others = map(seen, folders, models)
    for folder, other in zip(folders[1:], others):
        for name in first:
            if other[name] != first[name]:
                raise InputError(
                    f"{folder}: its {name} differs from {folders[0]}, so their scores cannot be averaged; give "
                    "models that were trained on the same files with the same features"
                )
