"""Write the demo corpus (train.jsonl and dev.jsonl, CLUENER format) into a folder.

    python tools/make_demo_corpus.py data/demo
"""

import bootstrap  # noqa: F401

import json
from collections import Counter
from pathlib import Path

from tasks.common.errors import InputError, OneLineArgumentParser, exit_on_input_error
from tasks.ner.demo.corpus import DEV_FILE, ENTITY_TYPES, TRAIN_FILE, write_demo_corpus


def count_types(path: Path) -> tuple[int, Counter]:
    """The number of sentences in a corpus file and the number of annotated spans of each type."""
    counts, sentences = Counter(), 0
    for line in path.read_text(encoding="utf-8").splitlines():
        sentences += 1
        for kind, surfaces in json.loads(line)["label"].items():
            counts[kind] += sum(map(len, surfaces.values()))
    return sentences, counts


@exit_on_input_error
def main(argv=None) -> int:
    parser = OneLineArgumentParser(description="Write the demo corpus for Chinese NER with nested entities.")
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="where to write train.jsonl and dev.jsonl")
    parser.add_argument("--seed", type=int, default=0, help="another seed gives other sentences (default: 0)")
    args = parser.parse_args(argv)

    for name in (TRAIN_FILE, DEV_FILE):
        if (args.folder / name).exists():
            raise InputError(f"{args.folder / name} exists already: give another FOLDER or remove the file")
    try:
        args.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{args.folder}: cannot be made ({error.strerror}); give another FOLDER") from None
    paths = write_demo_corpus(args.folder, seed=args.seed)

    for path in paths:
        sentences, counts = count_types(path)
        print(f"{path}: {sentences} sentences, " + ", ".join(f"{kind} {counts[kind]}" for kind in ENTITY_TYPES))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
