"""Import this first in every tool: finds the project and sets the machine up before paddle is imported."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from paddle_rope.machine import import_paddle, prepare_machine  # noqa: E402

prepare_machine()
import_paddle()
