"""The encoder that comes with the package, by its name."""

import paddle
import pytest

from paddle_rope.roformer import RoFormerForMaskedLM, RoFormerModel, load_tokenizer
from paddle_rope.roformer.config import ENCODERS, folder_of
from tests.paddle_rope.roformer.small_models import make


@pytest.mark.parametrize("text, hidden", [("他在北京大学学习历史。", 3), ("公司与员工签订劳动合同。", 9)])
def test_the_small_encoder_fills_in_a_hidden_character(text, hidden):
    tokenizer, model = load_tokenizer("small"), RoFormerForMaskedLM.from_pretrained("small")
    model.eval()
    ids = tokenizer.encode(text).ids
    at = ids.index(tokenizer.vocab.index(text[hidden]))
    ids[at] = tokenizer.mask_token_id
    assert tokenizer.vocab[int(model(paddle.to_tensor([ids]))[0, at].argmax())] == text[hidden]


def test_the_small_encoder_is_small():
    weights = ENCODERS / "small" / "model.safetensors"
    assert weights.stat().st_size <= 10e6
    assert {str(p.dtype) for p in RoFormerModel.from_pretrained("small").parameters()} == {"paddle.float32"}


def test_a_folder_of_this_name_goes_first(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert folder_of("small") == ENCODERS / "small" and folder_of("runs/mine") == "runs/mine"
    make(RoFormerModel).save_pretrained("small")
    assert folder_of("small") == "small"
    assert RoFormerModel.from_pretrained("small").config.hidden_size < 256
