"""The choice of the device, and the errors that end a command."""

import paddle
import pytest

from tasks.common.errors import EXIT_BAD_INPUT, InputError, exit_on_input_error
from tasks.common.process import choose_device


def test_a_gpu_is_taken_where_there_is_one(monkeypatch):
    chosen = []
    monkeypatch.setattr(paddle, "is_compiled_with_cuda", lambda: False)
    assert choose_device() == choose_device("cpu") == paddle.get_device() == "cpu"
    monkeypatch.setattr(paddle, "is_compiled_with_cuda", lambda: True)
    monkeypatch.setattr(paddle.device.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(paddle, "set_device", chosen.append)
    assert choose_device() == "gpu" and choose_device("gpu:1") == "gpu:1"
    assert chosen == ["gpu", "gpu:1"]


@pytest.mark.parametrize("name", ["abacus", "gpu", "gpu:0", "cpu:7", ""])
def test_unusable_device_is_an_error_with_the_remedy(monkeypatch, name):
    monkeypatch.setattr(paddle, "is_compiled_with_cuda", lambda: False)
    with pytest.raises(InputError, match=f"^--device {name}: .*use --device cpu") as caught:
        choose_device(name)
    assert "\n" not in str(caught.value) and paddle.get_device() == "cpu"


def test_input_errors_become_one_line_with_status_2_and_others_keep_their_traceback(capsys):
    @exit_on_input_error
    def main(error):
        raise error

    assert main(InputError("file:1: wrong; do this")) == EXIT_BAD_INPUT == 2
    assert capsys.readouterr() == ("", "error: file:1: wrong; do this\n")
    with pytest.raises(ZeroDivisionError):
        main(ZeroDivisionError())
