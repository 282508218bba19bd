"""A process that answers requests, for benchmarks whose sides take turns: lines of JSON over stdin and stdout."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tasks.common.errors import InputError

_ROOT = Path(__file__).resolve().parents[3]


class Worker:
    """A running Python program.

    Args:
        python: the interpreter.
        words: its arguments, such as ``-m`` and a module of this repository.
        settings: added to the environment; None takes a variable away.

    Raises:
        InputError: it cannot be started, or says why it cannot open what it is for.

    Attributes:
        first: what it wrote at its start.
    """

    def __init__(self, python: str, words: Sequence[str], settings: dict[str, str | None]):
        path = [str(_ROOT), *filter(None, [os.environ.get("PYTHONPATH")])] if python == sys.executable else [str(_ROOT)]
        more = {**settings, "PYTHONPATH": os.pathsep.join(path), "TOKENIZERS_PARALLELISM": "false"}
        environment = {name: value for name, value in {**os.environ, **more}.items() if value is not None}
        self.said = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115  lives as long as the process
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": self.said}
        try:
            self.process = subprocess.Popen([python, "-P", *words], env=environment, text=True, **pipes)
        except OSError as error:
            raise InputError(f"{python} cannot be started ({error.strerror}); give another --peer_python") from None
        self.first = self.answer()

    def answer(self) -> dict[str, Any]:
        """What it writes next."""
        line = self.process.stdout.readline()
        if not line:
            self.said.seek(0)
            lines = self.said.read().strip().splitlines() or ["it said nothing"]
            raise InputError(f"its process failed with status {self.process.wait()}: {lines[-1].strip()}")
        values = json.loads(line)
        if "left_out" in values:
            raise InputError(values["left_out"])
        return values

    def ask(self, request: str) -> dict[str, Any]:
        """Its answer to a line."""
        try:
            self.process.stdin.write(f"{request}\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass  # it has ended; answer() says why
        return self.answer()

    def end(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.communicate()
        self.said.close()
