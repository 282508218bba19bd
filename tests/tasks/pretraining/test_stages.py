import pytest

from tasks.common.errors import InputError
from tasks.pretraining.arguments import Stage, parse_stages

TWO = [Stage(512, 8, 100), Stage(128, 32, 50)]


@pytest.mark.parametrize(
    "value",
    [
        ",".join(map(str, TWO)),
        " 512x8x100 , 128x32x50",
        ["512x8x100", "128x32x50"],
        [{"steps": 100, "max_tokens": 512, "batch_size": 8}, "128x32x50"],
        [{"max_tokens": "512", "batch_size": "8", "steps": "100"}, {"max_tokens": 128, "batch_size": 32, "steps": 50}],
    ],
)
def test_stages_are_given_as_text_or_list(value):
    assert parse_stages(value) == TWO


@pytest.mark.parametrize(
    "value, said",
    [
        (None, "stages"),
        ([], "stages"),
        ("512x8", "stage 1"),
        ("512x8x1,512x8x1x1", "stage 2"),
        ("512x8x1,", "stage 2"),
        ("512x8x-1", "stage 1"),
        ("512x8x1.5", "stage 1"),
        ("4x8x1", "8 or more"),
        ("512x0x1", "1 or more"),
        ("512x8x0", "1 or more"),
        ([{"max_tokens": 512, "batch_size": 8}], "stage 1"),
        ([{"max_tokens": 512, "batch_size": 8, "step": 1}], "stage 1"),
        ([[512, 8, 100]], "stage 1"),
    ],
)
def test_bad_stage_is_named(value, said):
    with pytest.raises(InputError, match=said):
        parse_stages(value)
