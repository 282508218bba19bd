#!/usr/bin/env bash
# Set-up, then the tests. Arguments go to pytest.
set -euo pipefail
cd "$(dirname "$0")/.."
. tools/setup.sh

"$PYTHON" -m ruff check .
exec "$PYTHON" -m pytest "$@"
