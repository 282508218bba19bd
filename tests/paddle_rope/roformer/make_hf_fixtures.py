"""Make ``data/`` beside it: what Hugging Face's RoFormer and torch write, and what that RoFormer computes.

Run once, by hand, in an environment of its own (the tests read only the result):

    python3.11 -m venv /tmp/hf
    /tmp/hf/bin/pip install torch==2.13.0 transformers==5.23.0 safetensors==0.8.0 numpy==2.4.6    # CPU builds
    CUDA_VISIBLE_DEVICES= /tmp/hf/bin/python tests/paddle_rope/roformer/make_hf_fixtures.py

Weights are random, with a standard deviation large enough for attention and positions to matter. ``expected.npz``
holds, for one right-padded batch, the last hidden states and the masked-LM logits of the tokens that are not padding.
"""

from pathlib import Path

import numpy as np
import torch
from transformers import RoFormerConfig, RoFormerForMaskedLM, RoFormerForSequenceClassification

FOLDER = Path(__file__).parent / "data"
LENGTHS = np.array([1, 2, 7, 64, 511])
SIZES = {"vocab_size": 40, "num_hidden_layers": 2, "max_position_embeddings": 512, "pad_token_id": 0}
LARGER = {"hidden_size": 32, "embedding_size": 24, "num_attention_heads": 4, "intermediate_size": 48}
SMALLER = {"hidden_size": 16, "embedding_size": 16, "num_attention_heads": 2, "intermediate_size": 32}
SMALLER |= {"rotary_value": True, "layer_norm_eps": 1e-3}


def made(kind, **options):
    """A model with every parameter random, those of norms about their usual values."""
    model = kind(RoFormerConfig(**{**SIZES, **options}))
    for name, parameter in model.named_parameters():
        if "embed_positions" not in name:
            centre = 1.0 if name.endswith("LayerNorm.weight") else 0.0
            parameter.data = centre + 0.25 * torch.randn(parameter.shape)
    model.tie_weights()
    return model.eval()


def masked_lm(name, legacy, **options):
    """One folder with the same weights in both files, and what they compute."""
    model, mask = made(RoFormerForMaskedLM, **options), np.arange(512) < LENGTHS[:, np.newaxis]
    model.save_pretrained(FOLDER / name)
    torch.save(model.state_dict(), FOLDER / name / "pytorch_model.bin", _use_new_zipfile_serialization=not legacy)
    ids, types = (np.where(mask, np.random.randint(least, most, mask.shape), 0) for least, most in ((1, 40), (0, 2)))
    with torch.no_grad():
        output = model(*map(torch.from_numpy, (ids, mask.astype("int64"), types)), output_hidden_states=True)
    hidden, logits = (one.numpy()[mask] for one in (output.hidden_states[-1], output.logits))
    inputs = {"input_ids": ids.astype("int16"), "token_type_ids": types.astype("int8"), "lengths": LENGTHS}
    np.savez_compressed(FOLDER / name / "expected.npz", **inputs, hidden=hidden, logits=logits)


def sequence_classification():
    """The classifier of three labels: its logits for texts of a few lengths."""
    options = {**SMALLER, "hidden_act": "gelu", "max_position_embeddings": 16, "num_labels": 3}
    model, folder = made(RoFormerForSequenceClassification, **options), FOLDER / "hf_tiny_classifier"
    model.save_pretrained(folder)
    mask = np.arange(9) < np.array([[9], [4], [1]])
    ids = np.where(mask, np.random.randint(1, 40, mask.shape), 0)
    with torch.no_grad():
        logits = model(torch.from_numpy(ids), torch.from_numpy(mask.astype("int64"))).logits.numpy()
    np.savez_compressed(folder / "expected.npz", input_ids=ids.astype("int16"), attention_mask=mask, logits=logits)


def torch_files():
    """One dictionary of awkward tensors in torch's two file formats, and the arrays it holds."""
    folder, base = FOLDER / "torch_files", torch.randn(6, 5)
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {
        **{"contiguous": base, "shared": base, "transposed": base.T, "strided_view": base[1::2, 3:]},
        **{"one_element": base[2, 2], "expanded": base[:1].expand(3, 5), "empty": torch.zeros(0, 4)},
        **{"parameter": torch.nn.Parameter(torch.randn(3)), "bfloat16": torch.randn(4).bfloat16()},
        **{"float16": torch.randn(4).half(), "float64": torch.randn(2, 2).double(), "int64": torch.arange(-2, 3)},
        **{"uint8": torch.arange(4, dtype=torch.uint8), "bool": torch.tensor([True, False])},
    }
    torch.save(tensors, folder / "zip.bin")
    torch.save(tensors, folder / "legacy.bin", _use_new_zipfile_serialization=False)
    wide = {name: one.float() if one.dtype is torch.bfloat16 else one for name, one in tensors.items()}
    np.savez_compressed(folder / "expected.npz", **{name: one.detach().numpy() for name, one in wide.items()})


if __name__ == "__main__":
    np.random.seed(2021)
    torch.manual_seed(2021)
    masked_lm("hf_tiny", False, **LARGER)
    masked_lm("hf_tiny_rotary_value", True, **SMALLER, hidden_act="gelu_new")
    sequence_classification()
    torch_files()
