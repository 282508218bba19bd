"""Train a linear-chain CRF over characters on the files, splits and word features of a NER run, and score it as one.

    .venv/bin/python -m tools.benchmarks.crf --train_file my/train.jsonl --test_file my/test.jsonl \
      --features segmentation,bigrams,words,dictionary,gazetteer --output_dir runs/crf

The features of a character are the characters and pairs of characters around it, which follow Chen, Zhang and Isahara
(2006), aclanthology.org/W06-0116, and the word features. Dev chooses nothing and is scored like test. OUTPUT_DIR gets
metrics.json and the weights as CRFsuite writes them. It needs pip install '.[crf]'.
"""

import argparse
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from paddle_rope.tasks.commands.options import whole
from paddle_rope.tasks.common.errors import InputError, OneLineArgumentParser
from paddle_rope.tasks.common.files import check_new_folder, write_json
from paddle_rope.tasks.common.output import on_terminal
from paddle_rope.tasks.common.training.arguments import check_kinds
from paddle_rope.tasks.common.training.run import METRICS_FILE
from paddle_rope.tasks.common.training.settings import parse_arguments
from paddle_rope.tasks.ner.arguments import NerArguments
from paddle_rope.tasks.ner.data.splits import read_splits
from paddle_rope.tasks.ner.examples import Entity, Example, entity_types, without_overlaps
from paddle_rope.tasks.ner.features import WordFeatures
from paddle_rope.tasks.ner.formats.tagging import BMES, decode_tags, encode_tags, parse_tag
from paddle_rope.tasks.ner.metrics import scores_and_errors
from paddle_rope.tasks.ner.reports.printed import print_scores

# keys of a NER run that the CRF has as well
KEYS = ("train_file", "dev_file", "test_file", "dev_fraction", "dev_split", "train_texts", "features")
WINDOW = 2  # characters to each side
PAIRS = ((-2, -1), (-1, 0), (0, 1), (1, 2), (-1, 1))
OUTSIDE = "<>"  # beyond the text; longer than a character


@on_terminal
def main(argv: list[str] | None = None) -> None:
    """Train, score, print the scores and write them."""
    parser = OneLineArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in KEYS:
        meaning = NerArguments.__dataclass_fields__[name].metadata["help"].replace("`", "")
        parser.add_argument(f"--{name}", help=meaning, required=name == "train_file")
    parser.add_argument("--output_dir", type=Path, required=True, help="a new folder")
    parser.add_argument("--seed", type=whole(0), default=42, help="draws train_texts and dev (default: 42)")
    parser.add_argument("--c1", type=float, default=0.1, help="penalty on the sum of the absolute weights")
    parser.add_argument("--c2", type=float, default=0.1, help="penalty on the sum of the squared weights")
    parser.add_argument("--max_iterations", type=whole(1), default=100, help="iterations of L-BFGS at most")
    options = parser.parse_args(argv)
    keys = parse_arguments({name: getattr(options, name) for name in KEYS}, NerArguments)
    check_kinds(keys, "--")
    check_new_folder(options.output_dir)
    try:
        import pycrfsuite
    except ImportError as error:
        raise InputError(f"{error}; pip install '.[crf]'") from None
    splits = read_splits(keys, options.seed)
    train = splits["train"]
    features = WordFeatures.from_examples(train, keys.features) if keys.features else None
    for split, examples in splits.items():
        print(f"{split}: {len(examples)} texts, {sum(len(example.entities) for example in examples)} entities")
    not_learned = sum(len(one.entities) - len(longest_entities(one.entities)) for one in train)
    if not_learned:
        print(f"{not_learned} entities of train share characters with longer ones: no tags hold them")

    started = time.perf_counter()
    trainer = pycrfsuite.Trainer(algorithm="lbfgs", verbose=False)
    penalties = {name: getattr(options, name) for name in ("c1", "c2", "max_iterations")}
    trainer.set_params({**penalties, "feature.possible_transitions": True})
    for example in train:
        trainer.append(attributes(example.text, features, own=example), tags_of(example))
    options.output_dir.mkdir(parents=True, exist_ok=True)
    weights = str(options.output_dir / "model.crfsuite")
    trainer.train(weights)
    last = trainer.logparser.last_iteration or {"active_features": 0, "num": 0}  # all weights are 0
    metrics = {
        "train_seconds": round(time.perf_counter() - started, 1),
        "parameters": last["active_features"],  # weights that are not zero
        "iterations": last["num"],
        "seed": options.seed,
        "not_learned": not_learned,
    }
    tagger = pycrfsuite.Tagger()
    tagger.open(weights)
    for split in sorted(splits.keys() - {"train"}):
        found = [entities_of(tagger.tag(attributes(example.text, features))) for example in splits[split]]
        metrics[split] = scores_and_errors(splits[split], found, entity_types(*splits.values()))
        print_scores(split, metrics[split])
    write_json(options.output_dir / METRICS_FILE, metrics)


def attributes(text: str, features: WordFeatures | None = None, own: Example | None = None) -> list[list[str]]:
    """For each character of a text a list of ``NAME=VALUE``: characters at -2 to 2, pairs of them, the values of the
    columns of the word ``features``, and the numbers of their flags that are set; ``own`` is as in
    :class:`~paddle_rope.tasks.ner.features.WordFeatures`."""
    padded = [OUTSIDE] * WINDOW + list(text) + [OUTSIDE] * WINDOW
    found = []
    for place in range(WINDOW, WINDOW + len(text)):
        names = [f"{step}={padded[place + step]}" for step in range(-WINDOW, WINDOW + 1)]
        names += [f"{one},{other}={padded[place + one]}{padded[place + other]}" for one, other in PAIRS]
        found.append(names)
    if features is not None and text:
        of_text = features(text, [(place, place + 1) for place in range(len(text))], own)
        for names, columns, flags in zip(found, of_text.columns.tolist(), of_text.flags):
            names += [f"column {number}={value}" for number, value in enumerate(columns) if value]
            names += [f"flag={number}" for number in flags.nonzero()[0].tolist()]
    return found


def longest_entities(entities: Iterable[Entity]) -> list[Entity]:
    """The entities that tags can hold, in order: if some share a character, the longest is kept, then the first."""
    return without_overlaps(entities, lambda entity: entity.start - entity.end)


def tags_of(example: Example) -> list[str]:
    """The BMES tag of each character of an example, for its :func:`longest_entities`."""
    spans = [entity[:3] for entity in longest_entities(example.entities)]
    return encode_tags(len(example.text), spans, BMES)


def entities_of(tags: list[str]) -> list[Entity]:
    """The entities of the tags of a text, which need not be well-formed."""
    spans, _ = decode_tags([parse_tag(tag) for tag in tags], must_close=BMES.closes)
    return [Entity(*span) for span in spans]


if __name__ == "__main__":
    sys.exit(main())
