"""Small files that ask for much memory or time, and configurations of kinds that do not fit, end in one line."""

import json
import tracemalloc

import numpy as np
import pytest
from safetensors.numpy import save_file

from paddle_rope.roformer import RoFormerConfig, RoFormerForMaskedLM, RoFormerModel
from paddle_rope.roformer.checkpoints.huggingface import write_huggingface
from paddle_rope.roformer.checkpoints.tensor_files import read_tensors
from tests.paddle_rope.roformer.hostile_files import HOSTILE, archive, tensor


@pytest.mark.parametrize("name", HOSTILE)
def test_a_small_file_that_asks_for_much_is_an_error(name, tmp_path):
    content, message = HOSTILE[name]
    (tmp_path / name).write_bytes(content)
    tracemalloc.start()
    try:
        if name == "memo.pdparams":  # a dictionary without tensors, noted at a far place
            assert read_tensors(tmp_path / name) == {}
        else:
            with pytest.raises(ValueError, match=message) as raised:
                read_tensors(tmp_path / name)
            assert len(str(raised.value)) < 600 + len(str(tmp_path))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 200e6


def test_the_same_archive_with_a_tensor_of_its_storage_is_read(tmp_path):
    (tmp_path / "a.bin").write_bytes(archive(tensor(b"K\x01\x85", b"K\x01\x85")))
    np.testing.assert_array_equal(read_tensors(tmp_path / "a.bin")["a"], [1.0])


@pytest.fixture
def folder(tmp_path):
    """A folder of a small model of ours; called with keys of config.json to change."""
    config = {"vocab_size": 20, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    RoFormerModel(RoFormerConfig(**config, intermediate_size=8)).save_pretrained(str(tmp_path))
    path = tmp_path / "config.json"
    whole = json.loads(path.read_text(encoding="utf-8"))

    def changed(**keys):
        path.write_text(json.dumps({**whole, **keys}), encoding="utf-8")
        return tmp_path

    return changed


@pytest.mark.parametrize(
    "keys, message",
    [
        ({"num_hidden_layers": 10**8}, "num_hidden_layers must be an integer of 1 to 1,000"),
        ({"vocab_size": 10**7}, r"token_embedding.weight is \[20, 16\] there and \[10000000, 16\]"),
        ({"vocab_size": 10**12}, "vocab_size must be an integer"),
        ({"hidden_size": 2**16, "num_attention_heads": 8}, "numbers, too few for hidden_size 65536"),
        ({"intermediate_size": 500_000}, r"\[16, 8\] there and \[16, 500000\] in the model"),
        ({"hidden_size": None}, "hidden_size must be an integer .* got None"),
        ({"hidden_size": "16"}, "hidden_size must be an integer .* got '16'"),
        ({"hidden_size": True}, "hidden_size must be an integer .* got True"),
        ({"hidden_act": ["gelu"]}, r"hidden_act must be one of gelu, .* got \['gelu'\]"),
        (
            {"hidden_dropout_prob": float("nan")},
            "hidden_dropout_prob must be .* less than 1, got nan",
        ),
        (
            {"attention_probs_dropout_prob": 1.0},
            "attention_probs_dropout_prob must be .* less than 1, got 1.0",
        ),
        (
            {"embedding_dropout_prob": "0.1"},
            "embedding_dropout_prob must be .* less than 1 or None",
        ),
        ({"rotary_scaling": "ntk"}, "rotary scaling must be an object"),
        ({"rotary": {"scaling": {"type": ["ntk"], "factor": 2}}}, "rotary scaling must be one of"),
        ({"attention": [["softmax"]]}, "attention must be one of softmax, .* or a list"),
        ({"decay": [None, 1]}, "decay must be a list"),
        ({"layer_norm_eps": float("inf")}, "layer_norm_eps must be a number"),
        ({"causal": "yes"}, "causal must be true or false"),
        ({"init_args": 3}, "init_args is no list of objects"),
        ({"init_args": [3]}, "init_args is no list of objects"),
    ],
    ids=str,
)
def test_a_configuration_that_cannot_be_is_an_error_before_memory_is_taken(folder, keys, message):
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=message) as raised:
            RoFormerModel.from_pretrained(folder(**keys))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 100e6 and len(str(raised.value)) < 2000


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "{" + '"a":[' * 50_000])
def test_a_configuration_nested_deep_is_an_error(folder, text):
    where = folder()
    (where / "config.json").write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match="config.json: is (nested too deep|not JSON)"):
        RoFormerModel.from_pretrained(where)


@pytest.mark.parametrize(
    "keys, message",
    [
        ({"hidden_act": ["gelu"]}, r"hidden_act is \['gelu'\]; known are"),
        ({"hidden_size": None}, "hidden_size must be an integer .* got None"),
        ({"num_hidden_layers": 10**8}, "num_hidden_layers must be an integer of 1 to 1,000"),
        ({"id2label": ["a"]}, "id2label must be an object"),
        ({"embedding_size": "24"}, "embedding_size must be an integer .* got '24'"),
        ({"layer_norm_eps": "small"}, "layer_norm_eps must be a number"),
    ],
    ids=str,
)
def test_a_configuration_of_others_that_cannot_be_is_an_error(keys, message, tmp_path):
    sizes = {"vocab_size": 20, "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
    settings = {"model_type": "roformer", "embedding_size": 16, "intermediate_size": 8, **sizes}
    source = RoFormerForMaskedLM(RoFormerConfig(**sizes, intermediate_size=8, type_vocab_size=2))
    write_huggingface(source, tmp_path, max_position_embeddings=8)
    (tmp_path / "config.json").write_text(json.dumps({**settings, **keys}), encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        RoFormerModel.from_pretrained(tmp_path)


def test_weights_that_a_folder_lacks_are_bounded(folder):
    where = folder()
    save_file({"token_embedding.weight": np.zeros((20, 16), np.float32)}, where / "model.safetensors")
    with pytest.raises(ValueError, match="lacks weights of [0-9,]+ numbers"):
        RoFormerModel.from_pretrained(folder(intermediate_size=2**18, num_hidden_layers=100))
