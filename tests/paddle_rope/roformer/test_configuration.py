"""RoFormerConfig and NerConfig refuse what cannot be built."""

import json
from pathlib import Path

import paddle
import pytest

from paddle_rope import RoFormerConfig, RoFormerForSequenceClassification, RoFormerModel
from paddle_rope.roformer import SequenceClassificationConfig
from paddle_rope.roformer.removed import RemovedOption
from tasks.classification.model import ClassificationConfig
from tasks.matching.model import MatchingConfig
from tasks.ner.model import NerConfig, NerModel


@pytest.mark.parametrize(
    "wrong, named",
    [
        ({"vocab_size": 0}, "vocab_size"),
        ({"hidden_size": -8}, "hidden_size"),
        ({"num_hidden_layers": 0}, "num_hidden_layers"),
        ({"num_attention_heads": 0}, "num_attention_heads"),
        ({"intermediate_size": 0}, "intermediate_size"),
        ({"hidden_size": 10, "num_attention_heads": 4}, "hidden_size 10 .* 4 heads"),
        ({"hidden_size": 12, "num_attention_heads": 4}, "even size; take a multiple of 8"),
        ({"attention": "quadratic"}, "attention must be one of softmax, linear, window, .* got 'quadratic'"),
        ({"attention": None}, "attention"),
        ({"attention": ["softmax"] * 11}, "attention lists 11 layers, num_hidden_layers is 12"),
        ({"attention": ["softmax"] * 11 + ["lstm"]}, "attention must be one of softmax, linear, window, "),
        ({"attention_window": 0}, "attention_window must be .* got 0"),
        ({"position_embedding": "alibi", "attention": "window"}, "not of a window"),
        ({"embedding_size": 0}, "embedding_size"),
        ({"version": 3}, "version must be one of 1, 2, got 3"),
        ({"hidden_act": "swish"}, "hidden_act must be one of gelu, "),
        ({"position_embedding": "rope"}, "position_embedding must be one of q, .*alibi, none, got 'rope'"),
        ({"position_embedding": "kq"}, "position_embedding must be one of"),
        ({"position_embedding": "learned"}, "needs max_position_embeddings"),
        ({"position_embedding": "alibi", "attention": "linear"}, "does the same: exp"),
        ({"position_embedding": "sinusoidal", "embedding_size": 7}, "even embedding_size"),
        ({"feature_map": "gelu"}, "feature_map must be one of elu_plus_one"),
        ({"normalizer": None}, "normalizer must be one of"),
        ({"decay": [0.5]}, "decay must be 12 numbers in"),
        ({"decay": [0.5] * 11 + [1.5]}, "decay must be a list of .* greater than 0 and at most 1"),
        ({"decay": "token"}, "decay must be a list of at most .* or None, got 'token'"),
        ({"convolutions": ["value"]}, "convolutions must be true or false, got"),
        ({"rotary": {"scaling": {"factor": 2}}}, "type of rotary scaling must be one of linear, ntk, yarn, got None"),
        ({"rotary": {"scaling": {"type": "yarn", "factor": 2}}}, "'yarn' takes factor, original_length"),
        ({"rotary": {"scaling": {"type": "ntk", "factor": 0.5}}}, "factor must be"),
        (
            {
                "rotary": {"scaling": {"type": "yarn", "factor": 2, "original_length": 9}},
                "attention": ["linear"] + ["softmax"] * 11,
            },
            "'yarn' multiplies the scores of softmax attention",
        ),
    ],
    ids=str,
)
def test_wrong_values_are_an_error_that_names_them(wrong, named):
    with pytest.raises(ValueError, match=named):
        RoFormerConfig(**wrong)


@pytest.mark.parametrize(
    "wrong, named",
    [
        ({"pooling": "max"}, "pooling must be one of first, mean"),
        ({"num_labels": 0}, "num_labels must be .* got 0"),
        ({"num_labels": 10**9}, "num_labels must be .* got 1000000000"),
        ({"id2label": {}}, "num_labels must be .* got 0"),
        ({"id2label": ["a", "b"]}, "id2label must be an object"),
        ({"id2label": {"one": "a"}}, "id2label must be an object"),
        ({"id2label": {0: ["a"]}}, "id2label must be an object"),
        ({"id2label": {0: "a", 1: "b"}, "num_labels": 3}, "num_labels is 3, but id2label has 2 names"),
    ],
    ids=str,
)
def test_wrong_values_of_classifiers_are_an_error_that_names_them(wrong, named):
    with pytest.raises(ValueError, match=named):
        SequenceClassificationConfig(**wrong)


def test_names_of_classes_and_their_number_follow_from_each_other(tmp_path):
    assert SequenceClassificationConfig().id2label == {0: "LABEL_0", 1: "LABEL_1"}
    named = SequenceClassificationConfig(id2label={"0": "a", "1": "b", "2": "c"})
    assert (named.num_labels, named.label2id) == (3, {"a": 0, "b": 1, "c": 2})
    named.save_pretrained(tmp_path)
    assert SequenceClassificationConfig.from_pretrained(tmp_path) == named
    assert SequenceClassificationConfig.from_pretrained(tmp_path, num_labels=2) == SequenceClassificationConfig()


def test_a_model_takes_a_configuration_of_its_kind_alone():
    with pytest.raises(TypeError, match="takes a SequenceClassificationConfig, got RoFormerConfig"):
        RoFormerForSequenceClassification(RoFormerConfig())


def test_changes_count_more_than_what_a_file_of_before_holds():
    settings = {"rotary_base": 500.0, "rotary_layout": "half"}
    assert RoFormerConfig.from_dict(settings).rotary == {"base": 500.0, "layout": "half"}
    assert RoFormerConfig.from_dict(settings, rotary=None).rotary is None
    for name, error in (("rotary_base", "the nearest is 'rotary'"), ("position_gaps", "was removed")):
        with pytest.raises(ValueError, match=error):
            RoFormerConfig.from_dict(settings, **{name: 9})


def test_an_earlier_name_counts_where_the_name_is_missing():
    assert NerConfig.from_dict({"max_length": 77}).max_tokens == 77
    for settings in ({"max_length": 77, "max_tokens": 99}, {"max_tokens": 99, "max_length": 77}):
        assert NerConfig.from_dict(settings).max_tokens == 99


def add_to_file(folder, **options):
    """Put ``options`` into the folder's config.json."""
    path = folder / "config.json"
    path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), **options}), encoding="utf-8")


def test_a_file_may_hold_options_of_another_kind_of_model(tmp_path):
    NerConfig(types=["place"], hidden_size=24, num_attention_heads=2).save_pretrained(tmp_path)
    loaded = RoFormerConfig.from_pretrained(str(tmp_path))
    assert loaded.hidden_size == 24
    assert not hasattr(loaded, "types")
    assert NerConfig.from_pretrained(str(tmp_path)).types == ["place"]


@pytest.mark.parametrize(
    "saved, read, name, nearest",
    [
        (RoFormerConfig, RoFormerConfig, "atention", "attention"),
        (NerConfig, NerConfig, "atention", "attention"),
        (NerConfig, RoFormerConfig, "atention", "attention"),
        (NerConfig, RoFormerConfig, "rotarybase", "rotary"),
        (NerConfig, NerConfig, "span_heads", "span_head"),
    ],
)
def test_an_unknown_option_in_a_file_is_an_error_that_names_the_nearest(saved, read, name, nearest, tmp_path):
    model = {RoFormerConfig: RoFormerModel, NerConfig: NerModel}
    sizes = {"hidden_size": 16, "num_attention_heads": 2, "num_hidden_layers": 1, "intermediate_size": 8}
    config = saved(vocab_size=9, **sizes, **({"types": ["place"]} if saved is NerConfig else {}))
    model[saved](config).save_pretrained(str(tmp_path))
    add_to_file(tmp_path, **{name: "linear"})
    settings = json.loads((tmp_path / "config.json").read_text(encoding="utf-8"))
    for load in (
        lambda: read.from_dict(settings),
        lambda: read.from_pretrained(str(tmp_path)),
        lambda: model[read].from_pretrained(str(tmp_path)),
    ):
        with pytest.raises(ValueError, match=f"{read.__name__} has no option '{name}'; the nearest is '{nearest}'"):
            load()


def test_what_libraries_write_into_a_file_is_no_unknown_option(tmp_path):
    NerConfig(types=["place"]).save_pretrained(tmp_path)
    written = {"architectures": ["NerModel"], "paddlenlp_version": None, "dtype": "float32", "torch_dtype": "float32"}
    add_to_file(tmp_path, transformers_version="4.1", _name_or_path="x", max_length=77, **written)
    assert NerConfig.from_pretrained(str(tmp_path)).types == ["place"]


def save_small(config, folder):
    options = {"types": ["place"]} if config is NerConfig else {}
    config(hidden_size=24, num_attention_heads=2, **options).save_pretrained(folder)


# What a file of before holds of the options that are gone, where none of them is in use.
UNUSED = {
    **{"score_scaling_length": None, "convolutions": [], "convolution_size": 3, "position_gaps": None},
    **{"num_random_features": None, "initializer_range": 0.5},
}


@pytest.mark.parametrize("config", [RoFormerConfig, NerConfig])
@pytest.mark.parametrize(
    "written, convolutions",
    [({}, False), ({"convolutions": ["input", "value", "output"]}, True), ({"convolutions": True}, True)],
    ids=str,
)
def test_a_file_of_before_is_read(config, written, convolutions, tmp_path):
    save_small(config, tmp_path)
    add_to_file(tmp_path, **{**UNUSED, **written})
    loaded = config.from_pretrained(str(tmp_path))
    assert (loaded.hidden_size, loaded.convolutions) == (24, convolutions)
    assert not {*loaded.to_dict()} & ({*UNUSED} - {"convolutions"})


@pytest.mark.parametrize("line", (Path(__file__).parent / "data/version_0_2.jsonl").read_text("utf-8").splitlines())
def test_a_folder_that_version_0_2_trained_is_read(line, tmp_path):
    (tmp_path / "config.json").write_text(line, encoding="utf-8")
    written = json.loads(line)
    kinds = {one.model_type: one for one in (RoFormerConfig, NerConfig, MatchingConfig, ClassificationConfig)}
    read = kinds[written["model_type"]].from_pretrained(tmp_path)
    values = json.loads(json.dumps(read.to_dict()))
    shared = written.keys() & values.keys() - {"convolutions"}
    assert len(shared) > 20
    assert {name: values[name] for name in shared} == {name: written[name] for name in shared}
    assert read.convolutions == bool(written["convolutions"]) and read.rotary is None
    read.save_pretrained(tmp_path)
    assert type(read).from_pretrained(tmp_path) == read


@pytest.mark.parametrize("config", [RoFormerConfig, NerConfig])
@pytest.mark.parametrize(
    "name, value",
    [
        ("score_scaling_length", 64),
        ("convolution_size", 5),
        ("position_gaps", 1024),
        ("num_random_features", 64),
        ("feature_map", "hedgehog"),
        ("feature_map", "identity"),
        ("feature_map", "squared_relu"),
        ("normalizer", "subtracted_mean"),
        ("decay", "token"),
        ("convolutions", ["input", "value"]),
    ],
)
def test_a_file_that_uses_a_removed_option_is_refused_by_its_name(config, name, value, tmp_path):
    save_small(config, tmp_path)
    add_to_file(tmp_path, **{**UNUSED, name: value})
    with pytest.raises(RemovedOption) as raised:
        config.from_pretrained(str(tmp_path))
    message = str(raised.value)
    assert message.startswith(f"{name} {value!r} was removed") and "e394b37" in message and "\n" not in message


@pytest.mark.parametrize("config", [RoFormerConfig, NerConfig])
def test_every_value_survives_saving_and_loading(config, tmp_path):
    values = {
        "vocab_size": 31,
        "hidden_size": 24,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "intermediate_size": 17,
        "attention": "linear",
        "rotary": {"base": 500.0},
        "hidden_dropout_prob": 0.25,
        "attention_probs_dropout_prob": 0.5,
        "layer_norm_eps": 1e-6,
        "pad_token_id": 5,
    }
    if config is NerConfig:
        values.update(types=["人名", "place"], span_head="dense", head_size=6, max_tokens=77)
        values.update(window_tokens=31, longest_text=70, longest_entity=9)
    config(**values).save_pretrained(tmp_path)
    loaded = config.from_pretrained(str(tmp_path))
    assert {name: getattr(loaded, name) for name in values} == values


def test_contradictions_of_linear_attention_are_an_error():
    for options, words in (
        ({"feature_map": "softmax_exp", "causal": True}, "whole sequence"),
        ({"feature_map": "one_plus_cosine"}, "normalizer='rotated'"),
    ):
        with pytest.raises(ValueError, match=words):
            config = RoFormerConfig(attention="linear", num_hidden_layers=1, vocab_size=5, **options)
            RoFormerModel(config)(paddle.to_tensor([[1, 2]]))


def test_every_form_survives_saving_and_loading(tmp_path):
    values = {
        "num_hidden_layers": 2,
        "attention": ["linear", "softmax"],
        "embedding_size": 128,
        "type_vocab_size": 2,
        "version": 2,
        "hidden_act": "relu",
        "causal": True,
        "position_embedding": "qkvo",
        "rotary": {"layout": "half", "rotary_dim": 32, "scaling": {"type": "ntk", "factor": 4.0}, "learned": True},
        "share_kv": True,
        "feature_map": "favor",
        "normalizer": "none",
        "decay": [0.9] * 12,
        "pooling": "mean",
        "classifier_activation": "gelu",
        "id2label": {0: "bad", 1: "fair", 2: "good"},
        "num_labels": 3,
    }
    SequenceClassificationConfig(**values).save_pretrained(tmp_path)
    loaded = SequenceClassificationConfig.from_pretrained(str(tmp_path))
    assert {name: getattr(loaded, name) for name in values} == values


def test_there_is_no_longest_position():
    assert RoFormerConfig().to_dict()["max_position_embeddings"] is None


@pytest.mark.parametrize("name", ["window_tokens", "longest_text", "longest_entity"])
def test_lengths_are_positive_or_unknown(name):
    assert getattr(NerConfig(types=["a"]), name) is None
    for wrong in (0, -3, 2.5, True, "9"):
        with pytest.raises(ValueError, match=f"{name} must be .* or None, got {wrong!r}"):
            NerConfig(types=["a"], **{name: wrong})


def test_an_unknown_span_head_is_an_error():
    with pytest.raises(ValueError, match="span_head must be one of efficient, dense, got 'biaffine'"):
        NerConfig(types=["a"], span_head="biaffine")
