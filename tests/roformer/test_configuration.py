"""RoFormerConfig and NerConfig refuse what cannot be built."""

import pytest

from paddle_rope import RoFormerConfig
from tasks.ner.model import NerConfig


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
        ({"attention": "quadratic"}, "attention must be one of softmax, linear, got 'quadratic'"),
        ({"attention": None}, "attention"),
    ],
    ids=str,
)
def test_wrong_values_are_an_error_that_names_them(wrong, named):
    with pytest.raises(ValueError, match=named):
        RoFormerConfig(**wrong)


@pytest.mark.parametrize("config", [RoFormerConfig, NerConfig])
def test_every_value_survives_saving_and_loading(config, tmp_path):
    values = {
        "vocab_size": 31,
        "hidden_size": 24,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "intermediate_size": 17,
        "attention": "linear",
        "rotary_base": 500.0,
        "hidden_dropout_prob": 0.25,
        "attention_probs_dropout_prob": 0.5,
        "initializer_range": 0.125,
        "layer_norm_eps": 1e-6,
        "pad_token_id": 5,
    }
    if config is NerConfig:
        values.update(types=["人名", "place"], span_head="dense", head_size=6, max_length=77)
    config(**values).save_pretrained(tmp_path)
    loaded = config.from_pretrained(str(tmp_path))
    assert {name: getattr(loaded, name) for name in values} == values


def test_there_is_no_longest_position():
    assert RoFormerConfig().to_dict()["max_position_embeddings"] is None


def test_an_unknown_span_head_is_an_error():
    with pytest.raises(ValueError, match="span_head must be one of efficient, dense, got 'biaffine'"):
        NerConfig(types=["a"], span_head="biaffine")
