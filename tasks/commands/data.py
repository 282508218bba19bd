"""paddle-rope inspect, convert, download and demo: data to train on."""

import contextlib
import os
import sys
from pathlib import Path
from shlex import quote

from paddle_rope.tasks.commands.options import LABELED, add_reading, choose, new_parser, whole
from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.files import check_new_folder, check_output_file, write_json
from paddle_rope.tasks.common.output import check_standard_output, standard_output
from paddle_rope.tasks.common.texts.text_files import STDIN
from paddle_rope.tasks.recipes import RECIPES, get_part, recipes_with

INSPECT = """\
Look at labeled NER data before training: counts, lengths, balance of types, duplicates, suspicious spans.

    paddle-rope inspect train.json dev.json

Every example has its file:line. Annotations that are wrong are counted by kind; with --on_error skip the others are
looked at. The findings are for you to judge: the exit status is 0 whatever they are."""
CONVERT = """\
Convert labeled NER data from one format to another.

    paddle-rope convert train.json train.bio --to bio

The format of SOURCE is recognized by its content. TARGET appears only when all of it is written; a file of that name
is replaced, a folder is not."""
DOWNLOAD = """\
Download a public data set to where configs/ expect it, below OUTPUT, or an encoder to train from, to
OUTPUT/encoders/NAME/.

    paddle-rope download cluener
    paddle-rope download hfl/rbt3

Files that are already there are checked and kept, and the download of an encoder resumes. Encoders come from
huggingface.co, or from the mirror that HF_ENDPOINT names; nothing in them is executed (docs/guides/encoders.md tells
which to take). If the network is closed, the message for a data set says which address to fetch yourself and where to
put it. The READMEs of the publishers of data sets state no license: ask them before any use but research."""
SPLITS = ("train", "dev", "test")


def inspect(argv):
    parser = new_parser("inspect", INSPECT)
    parser.add_argument("train", metavar="TRAIN", help=LABELED)
    parser.add_argument("dev", metavar="DEV", nargs="?", help="labeled file to compare with TRAIN")
    parser.add_argument("test", metavar="TEST", nargs="?", help="labeled file to compare with both")
    parser.add_argument("--format", metavar="FORMAT", help="format of all the files (default: recognized)")
    parser.add_argument(
        "--examples", type=whole(0), default=5, metavar="N", help="examples of each finding (default: 5)"
    )
    parser.add_argument("--output", metavar="FILE", help="write the result to FILE as JSON")
    add_reading(parser)
    options = parser.parse_args(argv)
    files = {split: getattr(options, split) for split in SPLITS if getattr(options, split) is not None}
    if options.output:
        check_output_file(options.output, files.values())
    from paddle_rope.tasks.ner.data.inspection import inspect
    from paddle_rope.tasks.ner.data.reading import note_unlabeled, read_labeled
    from paddle_rope.tasks.ner.formats.source import SKIP, Faults
    from paddle_rope.tasks.ner.reports.printed import print_faults, print_first_texts, print_inspection

    faults = {split: Faults() for split in files}
    read = {split: read_labeled(path, options.format, options.fields, faults[split]) for split, path in files.items()}
    print_faults(faults, options.examples)
    wrong = sum(one.counts.total() for one in faults.values())
    if wrong and options.on_error != SKIP:
        raise InputError(f"{wrong} annotations are wrong, see above; correct them, or leave them out: --on_error skip")
    for split, (examples, _) in read.items():
        note_unlabeled(examples, files[split])
        print_first_texts(split, examples)
    result = inspect({split: examples for split, (examples, _) in read.items()}, options.examples)
    for split, (_, format) in read.items():
        of_file = {"file": files[split], "format": format, "left_out": dict(faults[split].counts)}
        result["splits"][split] = {**of_file, **result["splits"][split]}
    print_inspection(result)
    if options.output:
        write_json(options.output, result)


def convert(argv):
    from paddle_rope.tasks.ner.data.reading import note_unlabeled, read_labeled, write_examples
    from paddle_rope.tasks.ner.formats import FORMATS, TEXT_FORMATS
    from paddle_rope.tasks.ner.formats.source import faults_of

    samples = {name: text_format.sample for name, text_format in TEXT_FORMATS.items()}
    samples["brat"] = "a folder with a text x.txt and its annotation x.ann for each document"
    formats = "formats:" + "".join(f"\n  {name:17} {sample}" for name, sample in samples.items())
    parser = new_parser("convert", CONVERT, epilog=formats)
    parser.add_argument("source", metavar="SOURCE", help="labeled file, or folder of brat; - is standard input")
    parser.add_argument("target", metavar="TARGET", help="file to write, or folder for brat; - is standard output")
    parser.add_argument("--to", required=True, choices=FORMATS, metavar="FORMAT", help="format of TARGET")
    recognized = "format of SOURCE (default: recognized)"
    parser.add_argument("--from", dest="source_format", choices=FORMATS, metavar="FORMAT", help=recognized)
    add_reading(parser)
    options = parser.parse_args(argv)
    to_stdout = options.target == STDIN
    if not to_stdout and _belongs_to(options.source, options.target):
        raise InputError(f"{options.target}: is the source too; give another TARGET")
    if to_stdout:
        check_standard_output()
    with faults_of(options.source, options.on_error) as faults:
        examples, source_format = read_labeled(options.source, options.source_format, options.fields, faults)
    note_unlabeled(examples, options.source)
    with standard_output() if to_stdout else contextlib.nullcontext(options.target) as target:
        write_examples(examples, target, options.to)
    entities = sum(len(example.entities) for example in examples)
    characters = sum(len(example.text) for example in examples)
    counts = f"{len(examples)} texts, {characters} characters, {entities} entities"
    done = f"{options.source} ({source_format}) -> {options.target} ({options.to}): {counts}"
    print(done, file=sys.stderr if to_stdout else sys.stdout)


def _belongs_to(source, target):
    """Whether writing ``target`` would change ``source``: the same path, a file in its folder, or its pair."""
    from paddle_rope.tasks.ner.formats.brat import is_brat

    source, target = os.path.realpath(source), os.path.realpath(target)
    pair = is_brat(source) and os.path.splitext(source)[0] == os.path.splitext(target)[0]
    return source in (target, os.path.dirname(target)) or (pair and target.endswith((".ann", ".txt")))


def download(argv):
    from paddle_rope.tasks.common.datasets import fetch_dataset, public

    parser = new_parser("download", DOWNLOAD)
    parser.add_argument("name", metavar="NAME", help=f"{', '.join(public())}, or OWNER/NAME of an encoder")
    parser.add_argument("--output", type=Path, default=Path("data"), metavar="OUTPUT", help="folder (default: data)")
    options = parser.parse_args(argv)
    if options.name in public():
        dataset = public()[options.name]
        fetch_dataset(dataset.files, options.output / dataset.folder, show_progress=sys.stderr.isatty())
    elif "/" in options.name:
        from paddle_rope.tasks.common.hub import fetch_encoder

        folder = options.output / "encoders" / options.name
        fetch_encoder(options.name, folder)
        run = f"--pretrained {quote(str(folder))} --output_dir runs/{folder.name}"
        print(f"train from it: paddle-rope train configs/ner/own_data.yaml --train_file FILE {run}")
    else:
        known = f"{', '.join(public())}, or OWNER/NAME of an encoder, such as hfl/rbt3"
        raise InputError(f"{options.name}: no such data set; take one of {known}")


def demo(argv):
    demos = {recipe: RECIPES[recipe].demo for recipe in recipes_with("demo")}
    recipe, argv = choose("paddle-rope demo", "recipe", argv, {"Recipes": demos})
    parser = new_parser(f"demo {recipe}", f"Write {demos[recipe]}.")
    parser.add_argument("folder", metavar="FOLDER", type=Path, help="where to write; new or empty")
    options = parser.parse_args(argv)
    check_new_folder(options.folder, "FOLDER")
    options.folder.mkdir(parents=True, exist_ok=True)
    print(*get_part(recipe, "demo")(options.folder), sep="\n")
