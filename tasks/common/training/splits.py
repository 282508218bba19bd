"""The part of the training data that is held out where there is no dev file."""

import numpy as np

from tasks.common.errors import InputError


def hold_out(examples, fraction):
    """Cut labeled data in two, always in the same way: a text that is there twice is on one side.

    Args:
        examples: with a ``text`` and the place ``where`` it is, "path:line".
        fraction: of the texts that is to be held out.

    Returns:
        (rest, held): lists of examples in their order; ``held`` has ``fraction`` of the texts, at least one.

    Raises:
        InputError: there are less than two different texts.
    """
    texts = sorted({example.text for example in examples})
    if len(texts) < 2:
        raise InputError(f"{examples[0].where}: one text cannot be cut in two; give a dev_file")
    np.random.RandomState(0).shuffle(texts)
    held = set(texts[: max(1, min(len(texts) - 1, round(fraction * len(texts))))])
    return [e for e in examples if e.text not in held], [e for e in examples if e.text in held]
