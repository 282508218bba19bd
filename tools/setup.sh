# Sourced from the root of the repository: makes or reuses an environment and installs into it. Sets PYTHON to its
# interpreter. The variable `paddle`, where it is set, is the version of paddlepaddle to install, for CPU: another one than
# the default is in .venv-VERSION. A version has a file constraints-VERSION.txt.

default_paddle=3.3.1
venv=.venv
requirements=requirements.txt
has_gpu=
if command -v nvidia-smi >/dev/null 2>&1 && nvidia-smi >/dev/null 2>&1; then
  has_gpu=yes
fi
if [ -n "${paddle:-}" ]; then
  if [ ! -f "constraints-$paddle.txt" ]; then
    echo "error: --paddle $paddle: there is no constraints-$paddle.txt, only" constraints-*.txt >&2
    exit 2
  fi
  if [ "$paddle" != "$default_paddle" ] || [ -n "$has_gpu" ]; then
    venv=.venv-$paddle
  fi
elif [ -n "$has_gpu" ]; then
  requirements=requirements-gpu.txt
  paddle=2.6.2
else
  paddle=$default_paddle
fi
constraints=constraints-$paddle.txt

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
files="requirements-common.txt requirements-cpu.txt requirements-onnx.txt requirements-serve.txt requirements-crf.txt requirements-test.txt $requirements $constraints pyproject.toml setup.py"
if ! cat $files | cmp -s - "$stamp"; then
  echo "installing $requirements with $constraints into $venv (about 2 GB, some minutes)"
  "$PYTHON" -m pip install --quiet --disable-pip-version-check -r "$requirements" -c "$constraints"
  # bin/paddle-rope there runs the code of this folder
  "$PYTHON" -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
  cat $files > "$stamp"
fi

# The native operators, where there is a C++ compiler: built unless they are. Everything works without them.
"$PYTHON" -m paddle_rope.native || echo "continuing without the native operators" >&2
