"""Time and memory of one call, and power laws of both in the length of the text."""

import contextlib
import resource
import time

import numpy as np

LEAST_RUNS = 2  # the first is slower: the process has not touched its memory before
MOST_RUNS = 3  # of jobs that are short
LONG_SECONDS = 5.0


def forget_peak():
    """Let :func:`peak_megabytes` of this process begin with what it has now; False where the system cannot (Linux
    can)."""
    with contextlib.suppress(OSError), open("/proc/self/clear_refs", "w", encoding="ascii") as file:
        file.write("5")
        return True
    return False


def peak_megabytes(device="cpu"):
    """The peak memory of this process so far, or, on a GPU, that of its tensors there."""
    if device.startswith("gpu"):
        import paddle

        return round(paddle.device.cuda.max_memory_allocated() / 2**20)
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)


def fastest_seconds(run):
    """The time of the fastest of two calls of ``run()``, or of three where these take less than ``LONG_SECONDS``."""
    seconds = []
    while len(seconds) < (MOST_RUNS if sum(seconds) < LONG_SECONDS else LEAST_RUNS):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return min(seconds)


def reason_to_leave_out(known, length, memory_limit, time_limit):
    """Whether a length would pass a limit if time and memory keep to the power law of the last two lengths.

    Args:
        known: (length, seconds, peak in MB) of what has been measured, lengths rising.
        length: the next one.
        memory_limit: GB.
        time_limit: seconds.

    Returns:
        What is foreseen, in words; "" where it is within the limits, or less than three lengths are known.
    """
    if len(known) < 3:
        return ""
    idle = min(peak for _, _, peak in known) - 1
    (n1, t1, m1), (n2, t2, m2) = known[-2:]
    for name, first, second, floor, limit in (
        ("memory", m1 - idle, m2 - idle, idle, 1024 * memory_limit),
        ("time", t1, t2, 0, time_limit),
    ):
        power = np.clip(np.log(second / first) / np.log(n2 / n1), 1, 2)
        foreseen = floor + second * (length / n2) ** power
        if foreseen > limit:
            unit = f"{foreseen / 1024:.0f} GB" if name == "memory" else f"{foreseen:.0f} s"
            return f"{unit} foreseen"
    return ""


def slope(lengths, values):
    """The exponent p of the power law values = c * lengths^p: the least-squares slope in logarithms."""
    return float(np.polyfit(np.log(lengths), np.log(values), 1)[0])


def crossing(lengths, first, second):
    """The length from which ``second`` stays below ``first``: interpolated in logarithms between the last length where
    it is not, and the next.

    Args:
        lengths: rising; ``first``, ``second``: positive values at them.

    Returns:
        The length; the first of ``lengths`` if ``second`` is below everywhere, None if it is not below at the last.
    """
    gap = np.log(first) - np.log(second)
    if gap[-1] <= 0:
        return None
    above = np.flatnonzero(gap <= 0)
    if len(above) == 0:
        return float(lengths[0])
    i = above[-1]
    share = -gap[i] / (gap[i + 1] - gap[i])
    return float(np.exp(np.log(lengths[i]) + share * (np.log(lengths[i + 1]) - np.log(lengths[i]))))
