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
LENGTHS = [1, 2, 7, 64, 511]
SEQ = 512
SIZES = {"vocab_size": 40, "num_hidden_layers": 2, "max_position_embeddings": SEQ, "pad_token_id": 0}
MODELS = {
    "hf_tiny": {"hidden_size": 32, "embedding_size": 24, "num_attention_heads": 4, "intermediate_size": 48},
    "hf_tiny_rotary_value": {
        "hidden_size": 16,
        "embedding_size": 16,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "rotary_value": True,
        "hidden_act": "gelu_new",
        "layer_norm_eps": 1e-3,
    },
}


def randomise(model):
    """Every parameter random, those of norms about their usual values."""
    for name, parameter in model.named_parameters():
        if "embed_positions" not in name:
            centre = 1.0 if name.endswith("LayerNorm.weight") else 0.0
            parameter.data = centre + 0.25 * torch.randn(parameter.shape)
    model.tie_weights()
    return model.eval()


def batch(vocab_size):
    """Right-padded ids, mask, token types."""
    mask = np.arange(SEQ) < np.array(LENGTHS)[:, np.newaxis]
    ids = np.where(mask, np.random.randint(1, vocab_size, mask.shape), 0)
    return ids, mask, np.where(mask, np.random.randint(0, 2, mask.shape), 0)


def masked_lm(name, sizes, legacy):
    """One folder with the same weights in both files, and what they compute."""
    config = RoFormerConfig(**SIZES, **sizes)
    model = randomise(RoFormerForMaskedLM(config))
    model.save_pretrained(FOLDER / name)
    torch.save(model.state_dict(), FOLDER / name / "pytorch_model.bin", _use_new_zipfile_serialization=not legacy)
    ids, mask, types = batch(config.vocab_size)
    tensors = [torch.from_numpy(array) for array in (ids, mask.astype("int64"), types)]
    with torch.no_grad():
        output = model(*tensors, output_hidden_states=True)
    np.savez_compressed(
        FOLDER / name / "expected.npz",
        input_ids=ids.astype("int16"),
        token_type_ids=types.astype("int8"),
        lengths=np.array(LENGTHS),
        hidden=output.hidden_states[-1].numpy()[mask],
        logits=output.logits.numpy()[mask],
    )


def sequence_classification():
    """The classifier of three labels: its logits for texts of a few lengths."""
    sizes = {**SIZES, **MODELS["hf_tiny_rotary_value"], "hidden_act": "gelu", "max_position_embeddings": 16}
    config = RoFormerConfig(**sizes, num_labels=3)
    model = randomise(RoFormerForSequenceClassification(config))
    folder = FOLDER / "hf_tiny_classifier"
    model.save_pretrained(folder)
    mask = np.arange(9) < np.array([[9], [4], [1]])
    ids = np.where(mask, np.random.randint(1, config.vocab_size, mask.shape), 0)
    with torch.no_grad():
        logits = model(torch.from_numpy(ids), torch.from_numpy(mask.astype("int64"))).logits.numpy()
    np.savez_compressed(folder / "expected.npz", input_ids=ids.astype("int16"), attention_mask=mask, logits=logits)


def torch_files():
    """One dictionary of awkward tensors in torch's two file formats, and the arrays it holds."""
    folder = FOLDER / "torch_files"
    folder.mkdir(parents=True, exist_ok=True)
    base = torch.randn(6, 5)
    tensors = {
        "contiguous": base,
        "shared": base,
        "transposed": base.T,
        "strided_view": base[1::2, 3:],
        "one_element": base[2, 2],
        "expanded": base[:1].expand(3, 5),
        "empty": torch.zeros(0, 4),
        "parameter": torch.nn.Parameter(torch.randn(3)),
        "bfloat16": torch.randn(4).bfloat16(),
        "float16": torch.randn(4).half(),
        "float64": torch.randn(2, 2).double(),
        "int64": torch.arange(-2, 3),
        "uint8": torch.arange(4, dtype=torch.uint8),
        "bool": torch.tensor([True, False]),
    }
    torch.save(tensors, folder / "zip.bin")
    torch.save(tensors, folder / "legacy.bin", _use_new_zipfile_serialization=False)
    arrays = {
        name: (tensor.float() if tensor.dtype is torch.bfloat16 else tensor).detach().numpy()
        for name, tensor in tensors.items()
    }
    np.savez_compressed(folder / "expected.npz", **arrays)


def main():
    np.random.seed(2021)
    torch.manual_seed(2021)
    for index, (name, sizes) in enumerate(MODELS.items()):
        masked_lm(name, sizes, legacy=index == 1)
    sequence_classification()
    torch_files()


if __name__ == "__main__":
    main()
