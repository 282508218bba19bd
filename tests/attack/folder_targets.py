"""Folders of models: trained, of other libraries, exported, and the checkpoint of a run."""

import functools
import tempfile
from pathlib import Path

import numpy as np

from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.word_vectors import SIZE, VECTORS_FILE, WORDS_FILE, WordVectors
from tests.attack.tensor_targets import CHECKSUMS, change_files
from tests.attack.watchdog import SilentLossError, json_bytes, read_case, target_of_folder, write_case

TEXTS = ["浙商银行企业信贷部叶老桂博士", ""]
FOREIGN = Path(__file__).resolve().parents[1] / "paddle_rope" / "roformer" / "data"
SETTINGS, WEIGHTS = ("config.json", "tokenizer_config.json", "vocab.txt"), "model.safetensors"


@functools.cache
def _model():
    """The files of a small NER model that has learned nothing."""
    from paddle_rope.tasks.ner.examples import Entity, Example
    from tests.helpers.models import write_small_ner

    example = Example(TEXTS[0], (Entity(0, 4, "company"), Entity(9, 12, "name")), "")
    options = {"num_hidden_layers": 2, "max_characters": 64, "attention": ["softmax", "linear"]}
    with tempfile.TemporaryDirectory() as folder:
        return read_case(write_small_ner(Path(folder), [example], **options))


@functools.cache
def _exported(format):
    from tests.helpers.models import export

    with tempfile.TemporaryDirectory() as place:
        trained = Path(place) / "model"
        trained.mkdir()
        write_case(trained, _model())
        return read_case(export(Path(place) / "exported", format, trained))


def read_model(folder: Path) -> None:
    from paddle_rope.tasks.common.model_folder import write_checksums
    from paddle_rope.tasks.recipes import load

    if (folder / CHECKSUMS).is_file() and (folder / CHECKSUMS).read_bytes() == b"":
        write_checksums(folder)
    predictor = load(folder, device="cpu")
    found = predictor(TEXTS)
    if [one["text"] for one in found] != TEXTS:
        raise SilentLossError(f"predictions of other texts: {str(found)[:200]}")
    for name, value in vars(predictor.model.config).items():
        if name.endswith(("_prob", "_dropout")) and value is not None and not 0 <= value < 1:
            raise SilentLossError(f"{name} is {value!r}")


def read_foreign(folder: Path) -> None:
    """Weights of other libraries into a model."""
    from paddle_rope.roformer import RoFormerModel

    RoFormerModel.from_pretrained(str(folder))


def _foreign(folder):
    return {name: (FOREIGN / folder / name).read_bytes() for name in ("config.json", WEIGHTS)}


@functools.cache
def _bundle():
    """An original checkpoint of a small encoder, as ZhuiyiTechnology's: settings, index and data."""
    from paddle_rope.roformer import RoFormerConfig, RoFormerForMaskedLM
    from paddle_rope.roformer.checkpoints.names import TENSORFLOW, source_names
    from paddle_rope.tasks.commands.model import tensorflow_reader

    tensorflow_reader()  # sets what tensorflow says on import
    import tensorflow

    sizes = {"vocab_size": 11, "hidden_size": 8, "intermediate_size": 6, "num_hidden_layers": 1}
    sizes |= {"num_attention_heads": 2, "type_vocab_size": 2}
    config, rng = RoFormerConfig(**sizes), np.random.default_rng(0)
    state = RoFormerForMaskedLM(config).state_dict()
    names = source_names(config, TENSORFLOW)
    shapes = {names[name]: weight.shape for name, weight in state.items() if name.startswith("roformer.")}
    with tempfile.TemporaryDirectory() as folder:
        tensorflow.raw_ops.SaveV2(
            prefix=str(Path(folder) / "bert_model.ckpt"),
            tensor_names=list(shapes),
            shape_and_slices=[""] * len(shapes),
            tensors=[rng.standard_normal(shape).astype("float32") for shape in shapes.values()],
        )
        settings = {**sizes, "max_position_embeddings": 512, "hidden_act": "gelu"}
        return {**read_case(Path(folder)), "bert_config.json": json_bytes(settings)}


def read_bundle(folder: Path) -> None:
    """An original checkpoint of TensorFlow, into a model."""
    from paddle_rope.roformer.checkpoints.reading import read_tensorflow
    from paddle_rope.tasks.commands.model import build, tensorflow_reader

    checkpoint = read_tensorflow(folder, tensorflow_reader())
    for name, array in checkpoint.tensors.items():
        if array.dtype != np.float32:
            raise SilentLossError(f"{name} is {array.dtype}")
    build(checkpoint, folder)


@functools.cache
def _training():
    """(optimizer, schedule) of a layer after a step."""
    import paddle

    layer = paddle.nn.Linear(3, 2)
    schedule = paddle.optimizer.lr.LinearWarmup(1e-3, 10, 0.0, 1e-3)
    optimizer = paddle.optimizer.AdamW(schedule, parameters=layer.parameters())
    layer(paddle.ones([1, 3])).sum().backward()
    optimizer.step()
    return optimizer, schedule


@functools.cache
def _checkpoint():
    from paddle_rope.tasks.common.training import checkpoints

    with tempfile.TemporaryDirectory() as folder:
        checkpoints.write_optimizer(Path(folder), *_training())
        return read_case(Path(folder))


def read_checkpoint(folder: Path) -> None:
    """The optimizer of a run that goes on."""
    from paddle_rope.tasks.common.training import checkpoints

    checkpoints.read_optimizer(folder, *_training())


def _word_vectors():
    with tempfile.TemporaryDirectory() as folder:
        WordVectors(["北京", "大学"], np.eye(2, SIZE, dtype=np.int8)).save_pretrained(folder)
        return read_case(Path(folder))


def read_word_vectors(folder: Path) -> None:
    """Those beside an encoder."""
    if found := WordVectors.from_pretrained(folder):
        rows = found.vectors * (1 / found.vectors.std(dtype=np.float64))
        if len(rows) != len(set(found.words)) or not np.isfinite(rows.astype(np.float32)).all():
            raise SilentLossError(f"{len(rows)} vectors of {found.vectors.dtype} for {len(found.words)} words")


def _exported_target(format, *graphs):
    change = change_files(*SETTINGS, CHECKSUMS, weights=graphs * 2)
    sample = functools.partial(_exported, format)
    return target_of_folder(f"exported_{format}", sample, change, read_model, InputError, **{CHECKSUMS: b""})


_IN_BUNDLE = ("bert_model.ckpt.index", "bert_model.ckpt.data-00000-of-00001") * 2
_IN_CHECKPOINT = ("optimizer.json", "optimizer.safetensors")
_OF_FOREIGN = change_files("config.json", weights=(WEIGHTS,))
_OF_BUNDLE = change_files("bert_config.json", weights=_IN_BUNDLE)
TARGETS = [
    target_of_folder(
        "model", _model, change_files(*SETTINGS, "config.json", weights=(WEIGHTS,)), read_model, InputError
    ),
    target_of_folder("foreign", lambda: _foreign("hf_tiny"), _OF_FOREIGN, read_foreign, ValueError),
    target_of_folder("foreign_value", lambda: _foreign("hf_tiny_rotary_value"), _OF_FOREIGN, read_foreign, ValueError),
    _exported_target("onnx", "model.onnx"),
    _exported_target("paddle", "inference.json", "inference.pdmodel", "inference.pdiparams"),
    target_of_folder("checkpoint", _checkpoint, change_files(*_IN_CHECKPOINT), read_checkpoint, InputError),
    target_of_folder(
        "word_vectors", _word_vectors, change_files(WORDS_FILE, VECTORS_FILE), read_word_vectors, InputError
    ),
    target_of_folder("tensorflow", _bundle, _OF_BUNDLE, read_bundle, ValueError, InputError),
]
