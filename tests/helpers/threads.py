"""Threads that share a predictor."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np

THREADS, ROUNDS = 8, 4


def assert_threads_get_what_one_caller_gets(predict, items):
    """``predict``, called by 8 threads at once with parts of the items, gives the numbers that it gives one caller."""
    parts = [items[start::THREADS] for start in range(THREADS)]
    alone = [np.asarray(predict(part)) for part in parts]
    assert all(np.abs(part - alone[0][: len(part)]).max() > 1e-3 for part in alone[1:]), "results could be exchanged"
    with ThreadPoolExecutor(THREADS) as pool:
        together = list(pool.map(predict, parts * ROUNDS))
    for found, expected in zip(together, alone * ROUNDS, strict=True):
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)
