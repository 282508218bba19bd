"""Make ``data/encoders.npz``, what transformers computes in float64 with the models of encoders.py, and
``data/wordpiece.npz``, what the tokenizers of Hugging Face make of the texts of encoders.py.

    PYTHONPATH=. PEER_PYTHON tests/paddle_rope/roformer/make_encoder_data.py

PEER_PYTHON has torch, transformers, tokenizers and safetensors, for example of pip install --group peers.
"""

import tempfile
from pathlib import Path

import numpy as np
import tokenizers
import torch
import transformers

from tests.paddle_rope.roformer import encoders

FOLDER = Path(__file__).with_name("data")


def computed(name):
    """Hidden states, and the output of the head if there is one, at the chosen tokens of a case."""
    with tempfile.TemporaryDirectory() as folder:
        encoders.write(name, folder)
        model = getattr(transformers, name).from_pretrained(folder, attn_implementation="eager", dtype=torch.float64)
    ids, types, mask = encoders.inputs_of(name)
    given = {"input_ids": ids, "token_type_ids": types, "attention_mask": mask.astype(int)}
    with torch.no_grad():
        found = model.eval()(**{key: torch.tensor(array) for key, array in given.items()}, output_hidden_states=True)
    tokens = encoders.chosen(mask)
    arrays = {f"{name}/hidden": found.hidden_states[-1].numpy()[tokens]}
    if "logits" in found:
        logits = found.logits.numpy()
        arrays[f"{name}/logits"] = logits[tokens] if logits.ndim == 3 else logits
    return arrays


def tokenized(name):
    """For each token of the texts of one of the settings: number of its text, id, start and end."""
    settings, vocab = dict(encoders.SETTINGS[name]), encoders.vocabulary()
    names = {"do_lower_case": "lowercase", "tokenize_chinese_chars": "handle_chinese_chars"}
    options = {names.get(key, key): value for key, value in settings.items()}
    vocab = {token: index for index, token in enumerate(vocab)}
    tokenizer = tokenizers.BertWordPieceTokenizer(vocab, **options)
    rows = []
    for number, text in enumerate(encoders.texts(name)):
        encoding = tokenizer.encode(text, add_special_tokens=False)
        rows += [(number, index, *offsets) for index, offsets in zip(encoding.ids, encoding.offsets)]
    return np.array(rows, dtype=np.uint16)


if __name__ == "__main__":
    arrays = {key: array.astype(np.float32) for name in encoders.CASES for key, array in computed(name).items()}
    np.savez_compressed(FOLDER / "encoders.npz", **arrays)
    np.savez_compressed(FOLDER / "wordpiece.npz", **{name: tokenized(name) for name in encoders.SETTINGS})
