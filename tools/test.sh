#!/usr/bin/env bash
# Set-up, then the tests. Arguments go to pytest.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/setup.sh

"$PYTHON" -m ruff check .
"$PYTHON" -m mypy
# one process a core, and the tests of a file in one of them: they share what they train
exec "$PYTHON" -m pytest --numprocesses logical --maxprocesses 4 --dist loadfile "$@"
