#!/usr/bin/env bash
# Build the site of the documents into site/, in an environment of its own: .venv-docs. Other arguments go to MkDocs:
#   bash tools/docs.sh             every warning is an error
#   bash tools/docs.sh serve       at http://127.0.0.1:8000, renewed while you write
set -euo pipefail
cd "$(dirname "$0")/.."
venv=.venv-docs
if ! cmp -s pyproject.toml $venv/installed-requirements; then
  [ -x $venv/bin/python ] || "${BASE_PYTHON:-python3}" -m venv $venv
  install="$venv/bin/python -m pip install --no-compile --quiet --disable-pip-version-check"
  $install --upgrade "pip>=25.1" # knows --group
  $install --group docs
  cp pyproject.toml $venv/installed-requirements
fi
export NO_MKDOCS_2_WARNING=1
exec $venv/bin/mkdocs "${@:-build}"
