#!/usr/bin/env bash
# Set-up, then the main job on the embedded demo corpus: train, score, predict.
# usage: bash tools/quickstart.sh [FOLDER]   (default: runs/quickstart of this repository; must not exist yet)
set -euo pipefail
folder=${1:-runs/quickstart}
if [[ $# -gt 0 && $folder != /* ]]; then folder=$PWD/$folder; fi
cd "$(dirname "$0")/.."
if [ -e "$folder" ]; then
  echo "error: $folder exists already; give another folder: bash tools/quickstart.sh FOLDER" >&2
  exit 2
fi
paddle=
. tools/setup.sh

"$venv/bin/paddle-rope" demo ner "$folder/corpus"
"$venv/bin/paddle-rope" train configs/ner/demo.yaml \
  --train_file "$folder/corpus/train.jsonl" --dev_file "$folder/corpus/dev.jsonl" --output_dir "$folder/run"

echo
echo "Three sentences that are in no file:"
"$PYTHON" -c 'from paddle_rope.tasks.ner.demo import UNSEEN_SENTENCES; print(*UNSEEN_SENTENCES, sep="\n")' |
  "$venv/bin/paddle-rope" predict "$folder/run/model" --html "$folder/entities.html"

echo
echo "Boxes: open $folder/entities.html in a browser"
echo "VisualDL: $venv/bin/visualdl --disable-telemetry --logdir $(printf %q "$folder/run/vdl")   then open http://localhost:8040"
