"""What an import of the library loads."""

import subprocess
import sys
from pathlib import Path

import pytest

import paddle_rope
import paddle_rope.roformer

REPOSITORY = Path(__file__).resolve().parents[1]
HEAVY = ("paddle", "paddlenlp")


@pytest.mark.parametrize(
    "program, loaded",
    [
        ("import paddle_rope", []),
        ("import paddle_rope.choices", []),
        ("from paddle_rope import prepare_process; prepare_process()", []),
        ("from paddle_rope import CharTokenizer, WordTokenizer, Encoding, load_tokenizer", []),
        ("from paddle_rope.roformer import CharTokenizer, load_tokenizer", []),
        ("from paddle_rope import LinearScaling; import paddle_rope.analysis", []),
        (
            "from paddle_rope import RotaryPositionEmbedding, linear_attention, EfficientGlobalPointer; "
            "from paddle_rope import MultiHeadAttention, decode_spans, alibi_bias",
            ["paddle"],
        ),
        ("from paddle_rope import RoFormerConfig", ["paddle", "paddlenlp"]),
    ],
)
def test_an_import_loads_no_more_than_it_needs(program, loaded):
    program = f"import sys; {program}; print(*(name for name in {HEAVY} if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], cwd=REPOSITORY, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == loaded


@pytest.mark.parametrize("package", [paddle_rope, paddle_rope.roformer], ids=lambda package: package.__name__)
def test_every_name_is_there_and_others_are_not(package):
    assert len(package.__all__) > 9
    for name in package.__all__:
        assert getattr(package, name).__name__ == name
    with pytest.raises(AttributeError, match=f"module '{package.__name__}' has no attribute 'RotaryEmbedding'"):
        _ = package.RotaryEmbedding
