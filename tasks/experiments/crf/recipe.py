"""A linear-chain CRF over characters, with the files, splits, word features and scores of the NER recipe.

The features of a character are the characters and pairs of characters around it, which follow Chen, Zhang and Isahara
(2006), aclanthology.org/W06-0116, and also the word features that the neural models take.
"""

import time
from collections.abc import Iterable
from typing import Any

from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.files import write_json
from paddle_rope.tasks.common.recipe import Recipe
from paddle_rope.tasks.common.training.run import METRICS_FILE, MODEL_FOLDER, Run
from paddle_rope.tasks.common.training.settings import Settings
from paddle_rope.tasks.experiments.crf.arguments import CrfArguments
from paddle_rope.tasks.ner.data.splits import read_splits
from paddle_rope.tasks.ner.examples import Entity, Example, entity_types, without_overlaps
from paddle_rope.tasks.ner.features import WordFeatures
from paddle_rope.tasks.ner.formats.tagging import BMES, decode_tags, encode_tags, parse_tag
from paddle_rope.tasks.ner.metrics import scores_and_errors
from paddle_rope.tasks.ner.recipe import NerRun
from paddle_rope.tasks.ner.reports.printed import print_scores

WEIGHTS_FILE = "model.crfsuite"
WINDOW = 2  # characters to each side
PAIRS = ((-2, -1), (-1, 0), (0, 1), (1, 2), (-1, 1))
OUTSIDE = "<>"  # beyond the text; longer than a character


class CrfRecipe(Recipe):
    """A linear-chain CRF over characters, trained by L-BFGS: precision, recall and micro F1 as in the NER recipe.

    A run has no epochs and no checkpoints. Dev chooses nothing and is scored like test. The model folder has the
    weights as CRFsuite writes them, and the word features. The seed draws ``train_texts``; L-BFGS itself draws nothing.
    """

    arguments = CrfArguments
    run_class = NerRun
    scores = ("precision", "recall", "f1")
    report = staticmethod(print_scores)

    def read(self, settings: Settings, memory: Any) -> dict[str, Any]:
        _pycrfsuite()  # raises before anything is trained
        keys, examples = settings.keys, read_splits(settings.keys, settings.training.seed, memory.examples)
        features = WordFeatures.from_examples(examples["train"], keys.features) if keys.features else None
        lost = sum(len(one.entities) - len(longest_entities(one.entities)) for one in examples["train"])
        return {"examples": examples, "features": features, "facts": {"not_learned": lost}}

    def describe(self, run: Run) -> None:
        for split, examples in run.examples.items():
            print(f"{split}: {len(examples)} texts, {sum(len(example.entities) for example in examples)} entities")
        if run.facts["not_learned"]:
            print(f"{run.facts['not_learned']} entities of train share characters with longer ones: no tags hold them")

    def train_run(self, run: NerRun) -> dict[str, Any]:
        self.describe(run)
        run.claim()
        started = time.perf_counter()
        folder = run.output_dir / MODEL_FOLDER
        folder.mkdir(exist_ok=True)  # exists if the run begins anew
        if run.features is not None:
            run.features.save_pretrained(folder)
        trainer = _pycrfsuite().Trainer(algorithm="lbfgs", verbose=False)
        options = {key: getattr(run.keys, key) for key in ("c1", "c2", "max_iterations")}
        trainer.set_params({**options, "feature.possible_transitions": True})
        for example in run.examples["train"]:
            trainer.append(attributes(example.text, run.features, own=example), tags_of(example))
        part = folder / f"{WEIGHTS_FILE}.part"
        trainer.train(str(part))
        part.replace(folder / WEIGHTS_FILE)
        last = trainer.logparser.last_iteration or {"active_features": 0, "num": 0}  # all weights are 0
        metrics = {
            "train_seconds": round(time.perf_counter() - started, 1),
            "parameters": last["active_features"],  # weights that are not zero
            "iterations": last["num"],
            "seed": run.training.seed,
            **run.facts,
        }
        tagger = _pycrfsuite().Tagger()
        tagger.open(str(folder / WEIGHTS_FILE))
        types = entity_types(*run.examples.values())
        for split in sorted(run.examples.keys() - {"train"}):
            examples = run.examples[split]
            found = [entities_of(tagger.tag(attributes(example.text, run.features))) for example in examples]
            metrics[split] = scores_and_errors(examples, found, types)
            self.report(split, metrics[split])
        write_json(run.output_dir / METRICS_FILE, metrics)
        print(f"{run.output_dir}: trained in {metrics['train_seconds']:.0f} s")
        return metrics


def _pycrfsuite():
    """The module; raises InputError if it is not installed."""
    try:
        import pycrfsuite
    except ImportError as error:
        raise InputError(f"recipe crf: {error}; pip install 'paddle_rope[crf]'") from None
    return pycrfsuite


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
