"""RoFormer checkpoints of others as configuration and weights of ours.

Hugging Face's (also JunnYu's RoFormerV2, which goes by the same names), PaddleNLP's RoFormer and RoFormerV2, and the
original TensorFlow checkpoints of ZhuiyiTechnology, which bert4keras reads.
"""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple, Optional

import numpy as np

from paddle_rope.json_files import read_json_object
from paddle_rope.options import shown
from paddle_rope.roformer.checkpoints.names import HUGGINGFACE, PADDLENLP, PADDLENLP_V2, TENSORFLOW, weights_of
from paddle_rope.roformer.checkpoints.settings import TENSORFLOW_CONFIG, is_ours, options_of, read_settings
from paddle_rope.roformer.checkpoints.tensor_files import WEIGHT_FILES, find_weights, read_tensors
from paddle_rope.roformer.config import RoFormerConfig

# Tables of positions and states of optimizers: neither used nor missed.
REDUNDANT = re.compile(
    r"(.*\.)?(embed_positions\.weight|position_ids|self_attn\.rotary\.(sin|cos))$"
    r"|(.*/)?(adam_[mv](_\d+)?|AdamWeightDecayOptimizer.*|global_step)$"
)
POOLER = re.compile(r"[a-z0-9]+[./]pooler[./]")
MOST_NAMES, LONGEST_NAME = 5, 120  # of weights in a message
HEADS = ("cls.", "classifier.", "qa_outputs.")


class Checkpoint(NamedTuple):
    """A checkpoint in our terms."""

    config: dict  # options of a RoFormerConfig, and of a classifier; of a folder of ours all that its config.json has
    tensors: dict  # float32 arrays by our names; the encoder's begin with ``roformer.``
    sources: dict  # what each of them is called in the file
    unused: list  # names in the file that no weight of ours has
    head: Optional[str]  # "lm", "classifier" or None


def read_checkpoint(folder: str | os.PathLike) -> Checkpoint:
    """Read a folder of this library, Hugging Face or PaddleNLP: ``config.json`` (before PaddleNLP 2.5
    ``model_config.json``) and weights.

    Raises:
        ValueError: the folder or a file cannot be read; an option is not supported; the decoder is not tied to the
            embedding; or tensors are missing, ill-shaped, or left over in the encoder.
    """
    settings = read_settings(folder)
    named = settings.get("model_type") or settings.get("init_class", "")
    kind = str(named).lower()
    if not is_ours(settings) and not kind.startswith("roformer"):
        raise ValueError(f"{folder}: model_type is {shown(named)}; only RoFormer and RoFormerV2 can be read")
    path = find_weights(folder)
    if path is None:
        raise ValueError(f"{folder}: no weights here; one of {', '.join(WEIGHT_FILES)} must be in the folder")
    tensors = read_tensors(path)
    if is_ours(settings):
        return Checkpoint(settings, tensors, {name: name for name in tensors}, [], None)
    architecture = str(settings.get("architectures") or settings.get("init_class"))
    layout = HUGGINGFACE
    if kind.startswith("roformerv2"):
        layout = PADDLENLP_V2
    elif any(name.endswith("self_attn.q_proj.weight") for name in tensors):
        layout = PADDLENLP
    return _convert(folder, tensors, settings, layout, architecture)


def read_tensorflow(folder: str | os.PathLike, open_checkpoint: Callable[[str], Any]) -> Checkpoint:
    """Read an original checkpoint: ``bert_config.json``, and ``NAME.index`` with its ``NAME.data-...``.

    A checkpoint without weights of normalization is of version 2. Errors as :func:`read_checkpoint`.

    Args:
        folder: of the checkpoint.
        open_checkpoint: ``tensorflow.train.load_checkpoint``; called with the path of ``NAME``, it gives an object with
            ``get_variable_to_shape_map()`` and ``get_tensor(name)``.
    """
    folder = Path(folder)
    settings = read_json_object(folder / TENSORFLOW_CONFIG)
    indices = sorted(folder.glob("*.index"))
    if len(indices) != 1:
        raise ValueError(f"{folder}: has {len(indices)} files *.index; a TensorFlow checkpoint has one")
    try:
        reader = open_checkpoint(str(indices[0].with_suffix("")))
        names = [name for name in reader.get_variable_to_shape_map() if not REDUNDANT.match(name)]
        tensors = {name: np.asarray(reader.get_tensor(name)) for name in names}
    except Exception as error:  # tensorflow raises its own errors
        raise ValueError(f"{indices[0]}: cannot be read ({error}); copy or download the checkpoint again") from error
    version = 1 if "bert/embeddings/LayerNorm/gamma" in tensors else 2
    return _convert(folder, tensors, settings, TENSORFLOW, "RoFormerForMaskedLM", version=version)


def _convert(folder, tensors, settings, layout, architecture, **known):
    """A :class:`Checkpoint` of tensors by the names of ``layout``; ``architecture`` is the class that was saved."""
    try:
        options = {**options_of(settings, layout), **known}
        config = RoFormerConfig(**{name: options[name] for name in options if name in RoFormerConfig.names()})
    except ValueError as error:
        raise ValueError(f"{folder}: {error}") from None
    tensors = {name: array for name, array in tensors.items() if not REDUNDANT.match(name)}
    weights, with_lm_head = weights_of(config, layout), weights_of(config, layout, "lm")
    if weights[0].source.removeprefix(layout.prefix) in tensors:  # an encoder saved without a head has no prefix
        tensors = {name if name.startswith(HEADS) else layout.prefix + name: array for name, array in tensors.items()}
    _drop_copies(folder, tensors, layout)
    # PaddleNLP also calls other heads "classifier"
    bias = "classifier.out_proj.bias" if layout is HUGGINGFACE else "classifier.bias"
    is_classifier = layout is HUGGINGFACE or (layout is PADDLENLP and "ForSequenceClassification" in architecture)
    head = None
    if any(weight.source in tensors for weight in with_lm_head[len(weights) :]):
        weights, head = with_lm_head, "lm"
    elif config.version == 2 and re.search("MaskedLM|CausalLM", architecture):
        head = "lm"  # it has no weights but the embedding
    elif is_classifier and bias in tensors:
        options["num_labels"] = tensors[bias].size
        if len(options.get("id2label", ())) != options["num_labels"]:
            options.pop("id2label", None)
        head = "classifier"
        weights = weights_of(config, layout, head)
    sources = {weight.name: weight.source for weight in weights}
    unused = sorted(set(tensors) - set(sources.values()))
    missing = [source for source in sources.values() if source not in tensors]
    # an encoder with a tensor that ours has no place for would compute something else; other heads do not matter
    left_over = [name for name in unused if name.startswith(layout.prefix) and not POOLER.match(name)]
    for problem, names in (("missing", missing), ("left over", left_over)):
        if names:
            listed = ", ".join(name[:LONGEST_NAME] for name in names[:MOST_NAMES])
            raise ValueError(
                f"{folder}: the weights do not match its configuration; {problem}: {listed}"
                f"{f' and {len(names) - MOST_NAMES} more' * (len(names) > MOST_NAMES)}"
            )
    arrays = {}
    for weight in weights:
        array = tensors[weight.source].T if weight.transposed else tensors[weight.source]
        arrays[weight.name] = np.ascontiguousarray(array, dtype=np.float32)
    return Checkpoint(options, arrays, sources, unused, head)


def _drop_copies(folder, tensors, layout):
    """Take copies of the embedding and of the head's bias, which must equal them, out of ``tensors``."""
    for copy, original in layout.copies.items():
        if copy not in tensors:
            continue
        array = tensors.pop(copy)
        if original in tensors and not np.array_equal(array, tensors[original]):
            raise ValueError(
                f"{folder}: {copy} is not equal to {original}, to which the language model head of this library ties "
                "it. If you need only the encoder, save it without the head in the library that wrote this folder"
            )
        tensors.setdefault(original, array)
