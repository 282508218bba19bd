# Sourced by quickstart.sh and test.sh, from the root of the repository: makes or reuses .venv and installs into it.
# Sets PYTHON to its interpreter.

venv=.venv
requirements=requirements.txt
if command -v nvidia-smi >/dev/null 2>&1 && nvidia-smi >/dev/null 2>&1; then
  requirements=requirements-gpu.txt
fi

if [ ! -x "$venv/bin/python" ]; then
  base=
  for candidate in python3.11 python3 python; do
    if command -v "$candidate" >/dev/null 2>&1 &&
      "$candidate" -c 'import sys; raise SystemExit(sys.version_info[:2] != (3, 11))' 2>/dev/null; then
      base=$candidate
      break
    fi
  done
  if [ -z "$base" ]; then
    echo "error: Python 3.11 not found; install it so that python3.11 or python3 starts it" >&2
    exit 2
  fi
  "$base" -m venv "$venv"
fi
PYTHON=$venv/bin/python

# What was installed last: installs again only when the requirements change, or what the package's commands are.
stamp=$venv/installed-requirements
files="requirements-common.txt requirements-cpu.txt requirements-onnx.txt requirements-serve.txt requirements-crf.txt requirements-test.txt $requirements pyproject.toml setup.py"
if ! cat $files | cmp -s - "$stamp"; then
  echo "installing $requirements into $venv (about 2 GB, some minutes)"
  "$PYTHON" -m pip install --quiet --disable-pip-version-check -r "$requirements"
  # .venv/bin/paddle-rope runs the code of this folder
  "$PYTHON" -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
  cat $files > "$stamp"
fi
