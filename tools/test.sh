#!/usr/bin/env bash
# Set-up, then the tests.
# usage: bash tools/test.sh [--paddle VERSION] [--all] [arguments of pytest]
#   --all              every test; without it, and without arguments of pytest, the slow ones (training for long, servers,
#                      many processes) are left out
#   --paddle VERSION   with this version of paddlepaddle, in a separate environment; VERSION is 3.3.1 or 2.6.2 (see
#                      requirements/). Unless --all is given, only the tests that another Paddle can change, and no linters
set -euo pipefail
cd "$(dirname "$0")/.."

paddle=
all=
while [ $# -gt 0 ]; do
  case $1 in
    --paddle)
      if [ -z "${2:-}" ]; then
        echo "error: --paddle: give a version, such as 2.6.2" >&2
        exit 2
      fi
      paddle=$2
      shift 2
      ;;
    --all)
      all=yes
      shift
      ;;
    *) break ;;
  esac
done
. tools/setup.sh

if [ "$venv" = .venv ]; then
  "$PYTHON" -m ruff check .
  "$PYTHON" -m ruff format --check .
  "$PYTHON" -m mypy
else
  export PADDLE_ROPE_NATIVE=0  # the run without native operators
  # what calls Paddle: kernels, layers, models, graphs; checkpoints, and a recipe that is trained and resumed
  [ -n "$all" ] || [ $# -gt 0 ] || set -- tests/paddle_rope tests/tasks/common/training \
    tests/tasks/common/test_process.py tests/tasks/ner/test_resume.py tests/tasks/classification tests/tasks/matching \
    --ignore-glob="*tokenizer*" # which have no tensors
fi
[ -n "$all" ] || [ $# -gt 0 ] || set -- -m "not slow"
# one process a core, and the tests of a file in one of them: they share what they train; files in the order of conftest.py
exec "$PYTHON" -m pytest --numprocesses logical --maxprocesses 4 --dist loadfile --no-loadscope-reorder "$@"
