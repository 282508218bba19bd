# Sourced from the root of the repository: makes or reuses an environment, installs into it and sets PYTHON to its
# interpreter.
#   paddle   where it is set: the version of paddlepaddle to install, for CPU; requirements/paddle-VERSION.txt must exist.
#            An environment other than the default one is .venv-VERSION
#   BASE_PYTHON   where it is set: the interpreter to make the environment with
set -euo pipefail # what fails to install must not be noted as installed

default_paddle=3.3.1
venv=.venv
hardware=cpu
if command -v nvidia-smi >/dev/null 2>&1 && nvidia-smi >/dev/null 2>&1; then
  hardware=gpu
fi
if [ -z "${paddle:-}" ]; then
  if [ $hardware = gpu ]; then paddle=2.6.2; else paddle=$default_paddle; fi
else
  if [ "$paddle" != "$default_paddle" ] || [ $hardware = gpu ]; then venv=.venv-$paddle; fi
  hardware=cpu
fi
constraints=requirements/paddle-$paddle.txt
if [ ! -f "$constraints" ]; then
  echo "error: --paddle $paddle: expected one of" $(ls requirements | sed -n 's/^paddle-\(.*\)\.txt$/\1/p') >&2
  exit 2
fi

# Python 3.12 or older where there is one, because paddle2onnx, which exports models as ONNX, has no wheel for 3.13, and
# Paddle 2.6.2 has none.
if [ ! -x "$venv/bin/python" ]; then
  newest=13
  if [ "$paddle" = 2.6.2 ]; then newest=12; fi
  base=
  for candidate in ${BASE_PYTHON:-python3.12 python3.11 python3.10 python3.13 python3 python}; do
    if command -v "$candidate" >/dev/null 2>&1 && "$candidate" -c "
import ensurepip, sys; raise SystemExit(not (3, 10) <= sys.version_info[:2] <= (3, $newest))" 2>/dev/null; then
      base=$candidate
      break
    fi
  done
  if [ -z "$base" ]; then
    echo "error: no Python from 3.10 to 3.$newest with the module venv found; install one so that python3 starts it" >&2
    exit 2
  fi
  "$base" -m venv "$venv"
fi
PYTHON=$venv/bin/python

# What was installed last: installs again only when the requirements, or the commands of the package, change.
stamp=$venv/installed-requirements
files="pyproject.toml setup.py $constraints"
if ! cat $files | cmp -s - "$stamp"; then
  echo "installing the extra $hardware with $constraints into $venv (about 2 GB, some minutes)"
  # Python compiles what it imports; compiling all of the files would take longer
  install="$PYTHON -m pip install --no-compile --quiet --disable-pip-version-check"
  $install --upgrade "pip>=25.1" # knows --group
  # setuptools says much about editable installations
  PYTHONWARNINGS=ignore $install -e ".[$hardware,onnx,serve,crf]" --group test --group lint -c "$constraints"
  if ! "$PYTHON" -m pip show --quiet paddlenlp 2>/dev/null; then # Python 3.13, see pyproject.toml
    $install --no-deps paddlenlp==2.8.1
  fi
  cat $files > "$stamp"
fi

# The native operators, where there is a C++ compiler: built unless they are. Everything works without them.
"$PYTHON" -m paddle_rope.native || echo "continuing without the native operators" >&2
