"""Read checkpoints of other libraries as our configurations and weights: RoFormers, and BERT, ELECTRA and ERNIE, which
are RoFormers with learned positions.

The sources are Hugging Face (also JunnYu's RoFormerV2, which uses the same names), PaddleNLP, and the original
TensorFlow checkpoints of BERT and of ZhuiyiTechnology's RoFormer, which bert4keras reads.
"""

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from paddle_rope.files import read_json_object
from paddle_rope.options import shown
from paddle_rope.roformer.checkpoints.names import (
    COPIES,
    DEFAULT_SIZES,
    HUGGINGFACE,
    MODELS,
    PADDLENLP,
    TASK_TYPES,
    TENSORFLOW,
    WITH_LEARNED_POSITIONS,
    Layout,
    is_transposed,
    source_names,
)
from paddle_rope.roformer.checkpoints.tensor_files import WEIGHT_FILES, find_weights, read_tensors
from paddle_rope.roformer.config import NAMED, RoFormerConfig, folder_of

CONFIG_FILES = ("config.json", "model_config.json")  # the second: PaddleNLP before 2.5
TENSORFLOW_CONFIG = "bert_config.json"
ACTIVATION_NAMES = {
    "gelu": "gelu",
    "gelu_python": "gelu",
    **dict.fromkeys(("gelu_new", "gelu_fast", "gelu_pytorch_tanh"), "gelu_tanh"),
    "relu": "relu",
    "tanh": "tanh",
}
SAME_KEYS = (*DEFAULT_SIZES, "hidden_dropout_prob", "attention_probs_dropout_prob", "layer_norm_eps", "pad_token_id")
# Position tables and optimizer states: ignored if present, and not required.
REDUNDANT = re.compile(
    r"(.*\.)?(embed_positions\.weight|position_ids|self_attn\.rotary\.(sin|cos))$"
    r"|(.*/)?(adam_[mv](_\d+)?|AdamWeightDecayOptimizer.*|global_step)$"
)
# `model_type`, or the class of the model in older folders of PaddleNLP
KIND = re.compile(rf"({'|'.join(MODELS)})(model|for.*|discriminator|generator)?", re.IGNORECASE)
POOLER = re.compile(r"[a-z0-9]+[./]pooler[./]")
MOST_NAMES, LONGEST_NAME = 5, 120  # weight names in a message, and characters of each
HEADS = ("cls.", "classifier.", "qa_outputs.")


class Checkpoint(NamedTuple):
    """A checkpoint in our terms."""

    config: dict  # options of a RoFormerConfig and of a classifier; for a folder of ours, all of its config.json
    tensors: dict  # float32 arrays by our names; the encoder's begin with ``roformer.``
    sources: dict  # our name -> name in the file
    unused: list  # names in the file without a counterpart here
    head: str | None  # "lm", "classifier" or None


def read_checkpoint(folder: str | os.PathLike) -> Checkpoint:
    """The checkpoint in a folder of this library, Hugging Face or PaddleNLP, or of a shipped encoder, given by name.
    Raises ValueError if a file cannot be read, an option is not supported, the decoder is not tied to the embedding, or
    tensors are missing or left over in the encoder.
    """
    folder = folder_of(folder)
    settings = read_settings(folder)
    tensors = read_tensors(weights_file(folder))
    architecture = str(settings.get("architectures") or settings.get("init_class"))
    if is_ours(settings):
        heads = {"MaskedLM": "lm", "CausalLM": "lm", "SequenceClassification": "classifier"}
        head = next((heads[kind] for kind in heads if f"RoFormerFor{kind}" in architecture), None)
        return Checkpoint(settings, tensors, {name: name for name in tensors}, [], head)
    kind = _kind(settings)
    is_paddlenlp = kind not in HUGGINGFACE or any(name.endswith("self_attn.q_proj.weight") for name in tensors)
    return _convert(folder, tensors, settings, (PADDLENLP if is_paddlenlp else HUGGINGFACE)[kind], architecture)


def weights_file(folder: str | os.PathLike) -> Path:
    """The file of the weights of a folder, or of a shipped encoder; raises ValueError if there is none."""
    path = find_weights(folder_of(folder))
    if path is None:
        raise ValueError(f"{folder}: no weights here; one of {', '.join(WEIGHT_FILES)} must be in the folder")
    return path


def read_tensorflow(folder: str | os.PathLike, open_checkpoint: Callable[[str], Any]) -> Checkpoint:
    """The original checkpoint in a folder: ``bert_config.json``, and ``NAME.index`` with its ``NAME.data-...``.

    A checkpoint with a table of positions is BERT, one without normalization weights is RoFormerV2.
    ``open_checkpoint`` is ``tensorflow.train.load_checkpoint``. Errors as in :func:`read_checkpoint`.
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
    layout = TENSORFLOW._replace(kind="bert") if "bert/embeddings/position_embeddings" in tensors else TENSORFLOW
    version = 1 if "bert/embeddings/LayerNorm/gamma" in tensors else 2
    return _convert(folder, tensors, settings, layout, "RoFormerForMaskedLM", version=version)


def read_settings(folder: str | os.PathLike) -> dict[str, Any]:
    """The dictionary in the configuration file of a folder, or of a shipped encoder, given by name; raises ValueError
    if there is no such folder or file, it is not JSON, or it is of a model that cannot be read.
    """
    folder = Path(folder_of(folder))
    if not folder.is_dir():
        needed = f"{CONFIG_FILES[0]}, {WEIGHT_FILES[0]} and vocab.txt"
        raise ValueError(f"{folder}: no such folder; nothing is downloaded: get {needed} and give their folder")
    path = next((folder / name for name in CONFIG_FILES if (folder / name).is_file()), None)
    if path is None:
        hint = ""
        if (folder / TENSORFLOW_CONFIG).is_file():
            hint = "; this is a TensorFlow checkpoint: convert it with paddle-rope convert-weights"
        elif (folder / "model" / CONFIG_FILES[0]).is_file():
            hint = f"; give {folder / 'model'}"
        raise ValueError(f"{folder}: no model here, {CONFIG_FILES[0]} is missing{hint}")
    settings = read_json_object(path)
    # PaddleNLP before 2.5: {"init_args": [{sizes}], "init_class": name of the class with the head}
    given = settings.pop("init_args", None) or []
    if not isinstance(given, list) or not all(isinstance(inner, dict) for inner in given):
        raise ValueError(f"{path}: init_args is no list of objects; copy or download it again")
    settings = {key: value for inner in [settings, *given][::-1] for key, value in inner.items()}
    if not is_ours(settings) and _kind(settings) is None:
        named, readable = shown(_name(settings)), ", ".join(MODELS.values())
        raise ValueError(f"{path}: model_type is {named}; the models that can be read are {readable}")
    return settings


def read_config(folder: str | os.PathLike) -> RoFormerConfig:
    """The configuration of the encoder in a folder that :func:`read_checkpoint` reads, without reading its weights."""
    settings = read_settings(folder)
    if not is_ours(settings):
        kind = _kind(settings)
        settings = options_of(settings, HUGGINGFACE.get(kind) or PADDLENLP[kind])
    return RoFormerConfig.from_dict(settings)


def _name(settings):
    return settings.get("model_type") or settings.get("init_class", "")


def _kind(settings):
    """The key in :data:`MODELS` of a model of another library; None for one that cannot be read."""
    found = KIND.fullmatch(str(_name(settings)))
    return found and found[1].lower()


def is_ours(settings: dict[str, Any]) -> bool:
    """Whether ``settings`` belong to a model of this library."""
    return str(settings.get("model_type", "")).startswith("paddle_rope")


def options_of(settings: dict[str, Any], layout: Layout) -> dict[str, Any]:
    """Options of a RoFormerConfig, and of a classifier, for the configuration of another library; raises ValueError for
    an unsupported option.
    """
    settings = {**layout.defaults, **settings}
    options = {key: settings[key] for key in SAME_KEYS if key in DEFAULT_SIZES or settings.get(key) is not None}
    has_projection = layout.kind not in ("bert", "ernie")  # which ignore the key
    options["embedding_size"] = (has_projection and settings.get("embedding_size")) or settings["hidden_size"]
    options["hidden_act"] = _activation(settings, "hidden_act")
    options["position_embedding"] = "qkv" if settings.get("rotary_value") else "qk"
    if layout.kind in WITH_LEARNED_POSITIONS:
        _refuse(settings, position_embedding_type="absolute", task_id=0)
        options.update(position_embedding="learned", learned_positions=settings["max_position_embeddings"])
    if layout is HUGGINGFACE.get(layout.kind):
        _refuse(settings, add_cross_attention=False)
        if layout.kind == "electra":
            _refuse(settings, hidden_act="gelu")  # its heads have it in any case
        options["causal"] = bool(settings.get("is_decoder", False))
        if settings.get("norm_type", "layer_norm") != "layer_norm":  # JunnYu's RoFormerV2
            _refuse(settings, norm_type="rms_norm", use_bias=False)
            options["version"] = 2
    elif layout.kind == "roformerv2":
        _refuse(settings, use_bias=False)
        options.update(version=2, layer_norm_eps=1e-12, embedding_size=settings["hidden_size"])
    elif layout.kind == "ernie":
        options["layer_norm_eps"] = 1e-12  # as in RoFormerV2, PaddleNLP's epsilon whatever is configured
    if settings.get("id2label"):
        NAMED.check("id2label", settings["id2label"])
        options["id2label"] = settings["id2label"]
    return options


def _activation(settings, key):
    if not isinstance(settings[key], str) or settings[key] not in ACTIVATION_NAMES:
        raise ValueError(f"{key} is {shown(settings[key])}; known are {', '.join(ACTIVATION_NAMES)}")
    return ACTIVATION_NAMES[settings[key]]


def _refuse(settings, **supported):
    """Raise ValueError if an option in ``settings`` has another value than the supported one."""
    for key, value in supported.items():
        if settings.get(key, value) != value:
            raise ValueError(f"{key} is {shown(settings[key])} in its configuration; only {value!r} can be read")


def _convert(folder, *arguments, **known):
    try:
        return _converted(*arguments, **known)
    except ValueError as error:
        raise ValueError(f"{folder}: {error}") from None


def _converted(tensors, settings, layout, architecture, **known):
    """The :class:`Checkpoint` of tensors named as in ``layout``; ``architecture`` is the class that was saved."""
    options = {**options_of(settings, layout), **known}
    config = RoFormerConfig(**{name: options[name] for name in options if name in RoFormerConfig.names()})
    names = source_names(config, layout)
    tensors = {_current(name): array for name, array in tensors.items() if not REDUNDANT.match(name)}
    if names["roformer.token_embedding.weight"].removeprefix(layout.prefix) in tensors:
        # an encoder saved without a head has no prefix
        tensors = {name if name.startswith(HEADS) else layout.prefix + name: array for name, array in tensors.items()}
    _drop_copies(tensors, names)
    task_types = tensors.pop(layout.prefix + TASK_TYPES, None)
    bias = names["classifier.output.bias"]
    head = None
    if any(source in tensors for name, source in names.items() if name.startswith("lm_head.")):
        head = "lm"
    elif config.version == 2 and re.search("MaskedLM|CausalLM", architecture):
        head = "lm"  # its head has no weights except the embedding
    # other heads are called "classifier" too
    elif bias in tensors and (layout is HUGGINGFACE["roformer"] or "ForSequenceClassification" in architecture):
        head = "classifier"
        key = "pool_act" if "pool_act" in layout.defaults else "hidden_act"
        options["classifier_activation"] = _activation({**layout.defaults, **settings}, key)
        options["num_labels"] = tensors[bias].size
        if len(options.get("id2label", ())) != options["num_labels"]:
            options.pop("id2label", None)
    prefix_of_head = {"lm": "lm_head.", "classifier": "classifier.", None: "roformer."}[head]
    sources = {name: source for name, source in names.items() if name.startswith(("roformer.", prefix_of_head))}
    unused = sorted(set(tensors) - set(sources.values()))
    missing = [source for source in sources.values() if source not in tensors]
    # an encoder tensor without a place in ours would change what it computes; tensors of other heads do not matter
    left_over = [name for name in unused if name.startswith(layout.prefix) and not POOLER.match(name)]
    if missing or left_over:
        of_missing, of_left_over = listed("; missing: ", missing), listed("; left over: ", left_over)
        raise ValueError(f"the weights do not match its configuration{of_missing}{of_left_over}")
    arrays = {}
    for name, source in sources.items():
        array = tensors[source].T if is_transposed(name, layout) else tensors[source]
        arrays[name] = np.ascontiguousarray(array, dtype=np.float32)
    if settings.get("use_task_id"):  # ERNIE 3.0 adds row 0 to every token; here it becomes part of each token type
        types = arrays.get("roformer.token_type_embedding.weight")
        if task_types is None or types is None or task_types.shape[1:] != types.shape[1:]:
            raise ValueError(f"use_task_id is true, but {TASK_TYPES} is missing or does not fit the token types")
        arrays["roformer.token_type_embedding.weight"] = types + task_types[:1].astype(np.float32)
    return Checkpoint(options, arrays, sources, unused, head)


def _current(name):
    """The name in today's files of a weight that Hugging Face's first files called gamma or beta."""
    return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")


def listed(words: str, names: list[str]) -> str:
    """``words`` followed by the names, shortened to fit into a line; empty if there are no names."""
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return words + ", ".join(name[:LONGEST_NAME] for name in names[:MOST_NAMES]) + more if names else ""


def _drop_copies(tensors, names):
    """Remove copies of the embedding and of the head's bias from ``tensors``; a copy must equal its original."""
    for copy in COPIES.keys() & tensors.keys():
        original, array = names.get(COPIES[copy], copy), tensors.pop(copy)
        if original in tensors and not np.array_equal(array, tensors[original]):
            what = f"{copy} is not equal to {original}, to which it is tied here"
            raise ValueError(f"{what}; if you need only the encoder, save it there without the head")
        tensors.setdefault(original, array)
