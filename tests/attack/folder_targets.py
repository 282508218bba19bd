"""Folders of models: trained, of other libraries, exported, and the checkpoint of a run."""

import functools
import tempfile
from pathlib import Path

import numpy as np

from tasks.common.errors import InputError
from tests.attack.mutators import OF_BYTES, OF_LINES, mutate
from tests.attack.targets import SilentLossError, Target, json_bytes, read_case, write_case
from tests.attack.tensor_targets import change_safetensors
from tests.attack.trees import change_json

TEXTS = ["浙商银行企业信贷部叶老桂博士", ""]
FOREIGN = Path(__file__).resolve().parents[1] / "paddle_rope" / "roformer" / "data"
CHECKSUMS = "SHA256SUMS"
SIZES = {
    "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32, "head_size": 8,
    "max_tokens": 64,
}  # fmt: skip
BY_ENDING = {
    ".json": (*OF_BYTES[:3], *OF_LINES[:2], *[change_json] * 20),
    ".safetensors": (change_safetensors, change_safetensors, change_safetensors, *OF_BYTES),
}


def _change(*names, weights=()):
    """A mutator of the files ``names``; those in ``weights`` are large and changed less often."""

    def change(case, rng):
        known = [name for name in names if name in case]
        name = rng.choice(known * 4 + [name for name in weights if name in case])
        return {**case, name: mutate(case[name], rng, BY_ENDING.get(Path(name).suffix, (*OF_BYTES, *OF_LINES)))}

    return change


@functools.cache
def _model() -> dict[str, bytes]:
    """The files of a small NER model that has learned nothing."""
    import paddle

    from paddle_rope.roformer import CharTokenizer
    from tasks.common.process import prepare
    from tasks.ner.model import NerConfig, NerModel

    prepare()
    paddle.seed(0)
    tokenizer = CharTokenizer.from_corpus(TEXTS)
    sizes = {**SIZES, "vocab_size": len(tokenizer)}
    config = NerConfig(types=["name", "company"], **sizes, attention=["softmax", "linear"])
    with tempfile.TemporaryDirectory() as folder:
        NerModel(config).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        return read_case(Path(folder))


def _exported(format) -> list[dict[str, bytes]]:
    from tests.helpers.verbs import verb

    with tempfile.TemporaryDirectory() as place:
        trained, exported = Path(place) / "model", Path(place) / "exported"
        trained.mkdir()
        write_case(trained, _model())
        if verb("export").main([str(trained), "--output", str(exported), "--format", format]):
            raise RuntimeError("the small model cannot be exported")
        return [read_case(exported)]


def read_model(folder: Path) -> None:
    """Predict with a model folder."""
    from tasks.recipes import open_predictor

    if (folder / CHECKSUMS).is_file() and (folder / CHECKSUMS).read_bytes() == b"":
        from tasks.common.export.folder import write_checksums

        write_checksums(folder)  # what a forger does
    predictor = open_predictor(folder, device="cpu")
    found = predictor(TEXTS)
    if [one["text"] for one in found] != TEXTS:
        raise SilentLossError(f"predictions of other texts: {str(found)[:200]}")
    config = predictor.model.config
    for name, value in vars(config).items():
        if name.endswith(("_prob", "_dropout")) and value is not None and not 0 <= value < 1:
            raise SilentLossError(f"{name} is {value!r}")


def _forged(change):
    """``change``, and checksums that fit what it has made."""

    def mutated(case, rng):
        changed = change(case, rng)
        return {**changed, CHECKSUMS: b""} if changed[CHECKSUMS] == case[CHECKSUMS] else changed

    return mutated


def read_foreign(folder: Path) -> None:
    """Weights of other libraries into a model."""
    from paddle_rope.roformer import RoFormerModel

    RoFormerModel.from_pretrained(str(folder))


def _foreign_samples():
    names = ("config.json", "model.safetensors")
    return [
        {name: (FOREIGN / folder / name).read_bytes() for name in names}
        for folder in ("hf_tiny", "hf_tiny_rotary_value")
    ]


@functools.cache
def _bundle() -> dict[str, bytes]:
    """An original checkpoint of a small encoder, as ZhuiyiTechnology's: settings, index and data."""
    from paddle_rope.roformer import RoFormerConfig, RoFormerForMaskedLM
    from paddle_rope.roformer.checkpoints.names import TENSORFLOW, weights_of
    from tasks.commands.weights import tensorflow_reader

    tensorflow_reader()  # sets what tensorflow says on import
    import tensorflow

    sizes = {"vocab_size": 11, "hidden_size": 8, "intermediate_size": 6, "num_hidden_layers": 1}
    settings = {**sizes, "num_attention_heads": 2, "type_vocab_size": 2, "max_position_embeddings": 512}
    config = RoFormerConfig(**sizes, num_attention_heads=2, type_vocab_size=2)
    rng = np.random.default_rng(0)
    state = RoFormerForMaskedLM(config).state_dict()
    shapes = {weight.source: state[weight.name].shape for weight in weights_of(config, TENSORFLOW)}
    with tempfile.TemporaryDirectory() as folder:
        tensorflow.raw_ops.SaveV2(
            prefix=str(Path(folder) / "bert_model.ckpt"),
            tensor_names=list(shapes),
            shape_and_slices=[""] * len(shapes),
            tensors=[rng.standard_normal(shape).astype("float32") for shape in shapes.values()],
        )
        return {**read_case(Path(folder)), "bert_config.json": json_bytes({**settings, "hidden_act": "gelu"})}


def read_bundle(folder: Path) -> None:
    """An original checkpoint of TensorFlow, into a model."""
    from paddle_rope.roformer.checkpoints.reading import read_tensorflow
    from tasks.commands.weights import build, tensorflow_reader

    checkpoint = read_tensorflow(folder, tensorflow_reader())
    for name, array in checkpoint.tensors.items():
        if array.dtype != np.float32:
            raise SilentLossError(f"{name} is {array.dtype}")
    build(checkpoint, folder)


def _training():
    """A layer with what trains it, after a step."""
    import paddle

    layer = paddle.nn.Linear(3, 2)
    schedule = paddle.optimizer.lr.LinearWarmup(1e-3, 10, 0.0, 1e-3)
    optimizer = paddle.optimizer.AdamW(schedule, parameters=layer.parameters())
    layer(paddle.ones([1, 3])).sum().backward()
    optimizer.step()
    return optimizer, schedule


_KEPT = []


def _checkpoint_samples():
    from tasks.common.training import checkpoints

    _KEPT[:] = [_training()]
    with tempfile.TemporaryDirectory() as folder:
        checkpoints.write_optimizer(Path(folder), *_KEPT[0])
        checkpoints.write_random_state(Path(folder), 0)
        return [read_case(Path(folder))]


def read_checkpoint(folder: Path) -> None:
    """The optimizer and the random numbers of a run that goes on."""
    from tasks.common.training import checkpoints

    checkpoints.read_optimizer(folder, *_KEPT[0])
    checkpoints.read_random_state(folder, 0)
    np.random.seed(0)


def _target(name, samples, change, read, *refusals, **added):
    """A target whose regressions hold the files that differ from the first sample."""
    return Target(name, samples, change, read, refusals, lambda case: {**samples()[0], **added, **case})


def _exported_target(format, *graphs):
    samples = functools.cache(lambda: _exported(format))
    change = _forged(_change(*_SETTINGS, CHECKSUMS, weights=graphs * 2))
    return _target(f"exported_{format}", samples, change, read_model, InputError, **{CHECKSUMS: b""})


_SETTINGS = ("config.json", "tokenizer_config.json", "vocab.txt")
_WEIGHTS = ("model.safetensors",)
_BUNDLE = ("bert_model.ckpt.index", "bert_model.ckpt.data-00000-of-00001") * 2
_IN_CHECKPOINT = ("optimizer.json", "optimizer.safetensors", "random_state_0.json")
TARGETS = [
    _target(
        "tensorflow",
        lambda: [_bundle()],
        _change("bert_config.json", weights=_BUNDLE),
        read_bundle,
        ValueError,
        InputError,
    ),
    _target("model", lambda: [_model()], _change(*_SETTINGS, "config.json", weights=_WEIGHTS), read_model, InputError),
    _target("foreign", _foreign_samples, _change("config.json", weights=_WEIGHTS), read_foreign, ValueError),
    _exported_target("onnx", "model.onnx"),
    _exported_target("paddle", "inference.json", "inference.pdmodel", "inference.pdiparams"),
    Target("checkpoint", _checkpoint_samples, _change(*_IN_CHECKPOINT), read_checkpoint, (InputError,)),
]
