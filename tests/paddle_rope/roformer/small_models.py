"""Forms of RoFormer, small models of them with random weights, and what a model computes, spelled out."""

from pathlib import Path

import numpy as np
import paddle
import paddle.nn.functional as F
import yaml

from paddle_rope import LinearScaling, alibi_slopes, sinusoidal_embedding
from paddle_rope.roformer.config import ROTARY_DEFAULTS
from paddle_rope.rotary_frequencies import frequency_scaling
from tests.paddle_rope import reference
from tests.paddle_rope.attention.kernels import maps_of, turn_of

SIZES = {"vocab_size": 40, "hidden_size": 12, "num_hidden_layers": 2, "num_attention_heads": 3, "intermediate_size": 10}
FORMS = yaml.safe_load(Path(__file__).with_name("cases.yaml").read_text(encoding="utf-8"))["forms"]


def randomise(model, deviation=0.25):
    """The model with every parameter random, the weights of norms about 1, in evaluation mode."""
    for name, parameter in model.named_parameters():
        center = 1.0 if "norm" in name and name.endswith("weight") else 0.0
        parameter.set_value((center + deviation * np.random.standard_normal(parameter.shape)).astype("float32"))
    model.eval()
    return model


def make(model_class, **options):
    return randomise(model_class(model_class.config_class(**{**SIZES, **options})), 0.5)


def evaluated(model, *inputs):
    model.eval()
    with paddle.no_grad():
        return model(*inputs).numpy()


def random_ids(*shape):
    return paddle.to_tensor(np.random.randint(1, SIZES["vocab_size"], shape))


def states_equal(first, second):
    """Whether two models have the same weights, to the bit."""
    first, second = first.state_dict(), second.state_dict()
    return first.keys() == second.keys() and all((first[name].numpy() == second[name].numpy()).all() for name in first)


def in_heads(x, heads, size):
    """``[batch, seq, heads, size]``; heads of keys that queries share are repeated."""
    groups = x.reshape([0, 0, -1, size])
    return paddle.stack([groups[:, :, head * groups.shape[2] // heads] for head in range(heads)], axis=2)


def rotation_of(config, kind, seq):
    """The rotation in layers of a kind of attention, or None."""
    if not config.has_rotary:
        return None
    options = {**ROTARY_DEFAULTS, **(config.rotary or {})}
    base = (kind == "window" and options["window_base"]) or options["base"]
    scaling = frequency_scaling(options["scaling"]) or LinearScaling(1)
    theta = scaling.frequencies(options["rotary_dim"] or config.head_dim, base)
    return turn_of(range(seq), theta=theta, layout=options["layout"], amplitude=scaling.amplitude)


def plain_model(model, weights, ids, types, mask, added):
    """A RoFormer spelled out in float64 from its weights; ``added`` are further embeddings."""
    config = model.config
    seq = ids.shape[1]
    heads, size = config.num_attention_heads, config.head_dim

    def linear(x, name):
        x = paddle.matmul(x, weights[f"{name}.weight"])
        return x + weights[f"{name}.bias"] if f"{name}.bias" in weights else x

    def norm(x, name):
        x = x if config.version == 2 else x - x.mean(axis=-1, keepdim=True)
        x = x / paddle.sqrt((x**2).mean(axis=-1, keepdim=True) + 1e-12)
        return x if config.version == 2 else x * weights[f"{name}.weight"] + weights[f"{name}.bias"]

    activations = {"relu": F.relu, "gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate=True)}

    def convolved(x, name):
        return reference.depthwise_convolution(x, weights[f"{name}.weight"], mask, causal=config.causal)

    hidden = weights["token_embedding.weight"][ids] + added
    if types is not None:
        hidden = hidden + weights["token_type_embedding.weight"][types]
    if config.position_embedding == "sinusoidal":
        hidden = hidden + sinusoidal_embedding(paddle.arange(seq), config.embedding_size).astype("float64")
    if config.position_embedding == "learned":
        hidden = hidden + weights["position_embedding.weight"][:seq]
    hidden = norm(hidden, "embedding_norm")
    if config.embedding_size != config.hidden_size:
        hidden = linear(hidden, "embedding_projection")
    placement = config.position_embedding if config.has_rotary else "qk"
    for layer in range(config.num_hidden_layers):
        name, turn = f"blocks.{layer}.attention", rotation_of(config, config.layer_attention[layer], seq)
        if config.convolutions:
            hidden = hidden + convolved(hidden, f"blocks.{layer}.input_convolution")
        places = ("query", "key", "key" if config.share_kv else "value")
        *query_and_key, value = (linear(hidden, f"{name}.{place}") for place in places)
        if config.convolutions:
            value = F.silu(convolved(value, f"{name}.value_convolution"))
        q, k, v = (in_heads(x, heads, size) for x in (*query_and_key, value))
        options = {"causal": config.causal}
        if config.layer_attention[layer] != "linear":
            slopes = alibi_slopes(heads) if config.position_embedding == "alibi" else None
            options |= {"placement": placement, "slopes": slopes}
            if config.layer_attention[layer] == "window":
                options["window"] = config.attention_window
            attended = reference.softmax_attention(q, k, v, turn, mask, **options)
        else:
            maps = maps_of(config.feature_map, mask, weights.get(f"{name}.feature_map.projection"))
            options |= {"placement": placement, "normalizer": config.normalizer, "decay": config.decay}
            attended = reference.linear_attention(q, k, v, turn, mask, **maps, **options)
        attended = attended.reshape([0, 0, heads * size])
        if config.convolutions:
            added = convolved(value, f"{name}.output_convolution")
            attended = attended + in_heads(added, heads, size).reshape(attended.shape)
        if config.output_gate:
            attended = attended * F.silu(linear(hidden, f"{name}.gate"))
        attended = linear(attended, f"{name}.output")
        hidden = norm(hidden + attended, f"blocks.{layer}.attention_norm")
        inner = activations[config.hidden_act](linear(hidden, f"blocks.{layer}.feed_forward_in"))
        hidden = norm(hidden + linear(inner, f"blocks.{layer}.feed_forward_out"), f"blocks.{layer}.feed_forward_norm")
    return hidden
