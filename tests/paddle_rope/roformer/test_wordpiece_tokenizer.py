"""BERT's tokenizer: ids and offsets of Hugging Face's, settings in its files."""

import json
from pathlib import Path

import numpy as np
import pytest

from paddle_rope import WordPieceTokenizer, load_tokenizer
from tests.paddle_rope.roformer import wordpiece

EXPECTED = np.load(Path(__file__).parent / "data/wordpiece.npz")


@pytest.mark.parametrize("name", wordpiece.SETTINGS)
def test_ids_and_offsets_are_those_of_hugging_face(name, tmp_path):
    vocab = wordpiece.vocabulary()
    (tmp_path / "vocab.txt").write_text("".join(f"{token}\n" for token in vocab), encoding="utf-8")
    settings = {"tokenizer_class": "BertTokenizer", **wordpiece.SETTINGS[name]}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    tokenizer, rows = load_tokenizer(tmp_path), EXPECTED[name]
    assert type(tokenizer) is WordPieceTokenizer
    tokenizer.save_pretrained(tmp_path / "saved")
    for one in (tokenizer, load_tokenizer(tmp_path / "saved")):
        for number, text in enumerate(wordpiece.texts(name)):
            encoding, expected = one.encode(text, add_special_tokens=False), rows[rows[:, 0] == number]
            assert encoding.ids == expected[:, 1].tolist(), text
            assert encoding.offsets == list(map(tuple, expected[:, 2:].tolist())), text
    assert np.mean(rows[:, 1] == tokenizer.unk_token_id) < 0.7 and len({*rows[:, 1].tolist()}) > 80


def test_a_setting_that_is_not_true_or_false_is_refused(tmp_path):
    WordPieceTokenizer(wordpiece.vocabulary()).save_pretrained(tmp_path)
    settings = json.loads((tmp_path / "tokenizer_config.json").read_text(encoding="utf-8"))
    for name in WordPieceTokenizer.OPTIONS:
        (tmp_path / "tokenizer_config.json").write_text(json.dumps({**settings, name: "no"}), encoding="utf-8")
        with pytest.raises(ValueError, match=f"tokenizer_config.json: {name} is 'no'; make it true or false"):
            load_tokenizer(tmp_path)
