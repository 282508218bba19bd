"""paddle-rope demo: the embedded demo data as files."""

from collections import Counter
from pathlib import Path

from tasks.commands.options import choose, new_parser
from tasks.common.errors import InputError
from tasks.common.files import check_makeable

TASKS = {
    "ner": "a corpus of Chinese sentences with nested entities: train.jsonl and dev.jsonl in the format of CLUENER",
    "matching": "pairs of texts with 0/1, pairs with grades, triples",
}


def demo(words):
    task, words = choose("paddle-rope demo", "task", words, TASKS)
    parser = new_parser(f"demo {task}", f"Write {TASKS[task]}.")
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="where to write; new or empty")
    parser.add_argument("--seed", type=int, default=0, help="another seed gives other texts (default: 0)")
    options = parser.parse_args(words)
    if options.folder.is_dir() and any(options.folder.iterdir()):
        raise InputError(f"{options.folder}: is not empty; give another FOLDER")
    check_makeable(options.folder, "FOLDER")
    options.folder.mkdir(parents=True, exist_ok=True)
    {"ner": write_ner, "matching": write_matching}[task](options.folder, options.seed)
    return 0


def write_ner(folder, seed):
    from tasks.ner.data.reading import read_examples
    from tasks.ner.demo.corpus import ENTITY_TYPES, write_demo_corpus

    for path in write_demo_corpus(folder, seed):
        examples = read_examples(path)
        counts = Counter(entity.type for example in examples for entity in example.entities)
        print(f"{path}: {len(examples)} sentences, " + ", ".join(f"{kind} {counts[kind]}" for kind in ENTITY_TYPES))


def write_matching(folder, seed):
    from tasks.matching.demo_data import write_demo_data

    for path in write_demo_data(folder, seed):
        print(f"{path}: {len(path.read_text(encoding='utf-8').splitlines())} lines")
