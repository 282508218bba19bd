import pytest

from tasks.common.errors import InputError
from tasks.pretraining.stages import Stage, parse_stages, stage_ends

TWO = [Stage(512, 8, 100), Stage(128, 32, 50)]


@pytest.mark.parametrize(
    "value",
    [
        "512x8x100,128x32x50",
        " 512x8x100 , 128x32x50",
        ["512x8x100", "128x32x50"],
        [{"steps": 100, "max_tokens": 512, "batch_size": 8}, "128x32x50"],
        [{"max_tokens": "512", "batch_size": "8", "steps": "100"}, {"max_tokens": 128, "batch_size": 32, "steps": 50}],
    ],
)
def test_stages_are_given_as_text_or_list(value):
    assert parse_stages(value) == TWO


def test_text_of_a_stage_is_read_again():
    assert parse_stages(",".join(map(str, TWO))) == TWO


@pytest.mark.parametrize(
    "value, message",
    [
        (None, "no 'stages'"),
        ([], "no 'stages'"),
        ("512x8", "stage 1 of stages is '512x8'"),
        ("512x8x1,512x8x1x1", "stage 2 of stages"),
        ("512x8x1,", "stage 2 of stages is ''"),
        ("512x8x-1", "write max_tokensxbatch_sizexsteps"),
        ("512x8x1.5", "in numbers"),
        ("4x8x1", "max_tokens must be 8 or more"),
        ("512x0x1", "1 or more"),
        ("512x8x0", "1 or more"),
        ([{"max_tokens": 512, "batch_size": 8}], "stage 1 of stages has the keys max_tokens, batch_size"),
        ([{"max_tokens": 512, "batch_size": 8, "step": 1}], "it takes max_tokens, batch_size, steps"),
        ([[512, 8, 100]], "stage 1"),
    ],
)
def test_bad_stage_is_named(value, message):
    with pytest.raises(InputError) as error:
        parse_stages(value)
    assert message in str(error.value)


def test_ends_count_from_the_beginning_of_the_run():
    assert stage_ends(TWO) == [100, 150]
