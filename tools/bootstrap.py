"""Import this first in every tool: finds the project and sets the process up before paddle is imported."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from paddle_rope.machine import import_paddle, prepare_process  # noqa: E402
from tasks.common.tool.streams import print_in_any_locale  # noqa: E402

prepare_process()
print_in_any_locale()
import_paddle()
