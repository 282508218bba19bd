#!/usr/bin/env python
"""Print the results of training runs as a Markdown table."""

import json
import sys
from pathlib import Path

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tasks.common.errors import InputError, OneLineArgumentParser, exit_on_input_error  # noqa: E402


def read_run(folder):
    """One row: the run's settings and scores."""
    try:
        config = yaml.safe_load((folder / "config.yaml").read_text(encoding="utf-8"))
        metrics = json.loads((folder / "metrics.json").read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise InputError(f"{error.filename}: missing; give the OUTPUT_DIR of a finished training run") from None
    row = [folder.name, config.get("attention", ""), config["seed"], f"{metrics['parameters']:,}"]
    row.append(f"{metrics['train_seconds'] / 60:.1f}")
    for split in ("dev", "test"):
        scores = metrics.get(split)
        row.append(" / ".join(f"{scores[name]:.4f}" for name in ("precision", "recall", "f1")) if scores else "")
    return row


@exit_on_input_error
def main(argv=None):
    parser = OneLineArgumentParser(description=__doc__)
    parser.add_argument("runs", metavar="OUTPUT_DIR", nargs="+", type=Path)
    rows = [read_run(folder) for folder in parser.parse_args(argv).runs]
    print("| run | attention | seed | parameters | train minutes | dev P / R / F1 | test P / R / F1 |")
    print("|---|---|---|---|---|---|---|")
    for row in rows:
        print(f"| {' | '.join(map(str, row))} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
