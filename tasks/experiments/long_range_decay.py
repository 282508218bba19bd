r"""Long-range decay of RoPE: what the frequencies theta_i do to dot products as the relative distance grows.

Sources: Su, https://kexue.fm/archives/8265, the section on long-range decay; Su et al. 2021, arXiv 2104.09864, section
3.4.3, eq. (35)-(37). float64. Every function takes the frequencies theta ``[d / 2]``, so that RoPE's can be compared
with others, and raises ValueError for arguments that are not vectors.
"""

import numpy as np

from paddle_rope.rotary_frequencies import rotary_frequencies as frequencies
from paddle_rope.tasks.common.reports.figures import BLUE, GRAY, GREEN, ORANGE, new_figure, png

ZOOM = 50  # distances at which the period of theta = 1, 6.28, can be seen
FAR = 2000  # from this distance on, the dot products are drawn by octaves


def mean_partial_sums(theta: np.ndarray, distances: np.ndarray) -> np.ndarray:
    r"""mean_{j = 1..d/2} |S_j(x)| with S_j(x) = sum_{i < j} exp(i x theta_i), for each distance x = m - n.

    8265, the figure of the section; 2104.09864, eq. (37) and figure 2. The maximum, at x = 0, is (d/2 + 1) / 2.

    >>> mean_partial_sums(frequencies(64), [0])
    array([16.5])
    """
    theta, distances = _vector(theta, "theta"), _vector(distances, "distances")
    partial, total = np.zeros(distances.size, np.complex128), np.zeros(distances.size)
    for angle in theta:  # pair by pair: memory for the distances only, not for distances x pairs
        partial += np.exp(1j * distances * angle)
        total += np.abs(partial)
    return total / theta.size


def ones_scores(theta: np.ndarray, distances: np.ndarray) -> np.ndarray:
    r"""g(x) = 2 sum_i cos(x theta_i): <R_m q, R_n k> with q = k = (1, ..., 1), for each of the distances x = n - m.

    >>> ones_scores(frequencies(64), [0])
    array([64.])
    """
    theta, distances = _vector(theta, "theta"), _vector(distances, "distances")
    return 2 * sum(np.cos(distances * angle) for angle in theta)


def pair_products(q: np.ndarray, k: np.ndarray) -> np.ndarray:
    r"""h_i = q_i conj(k_i), the features ``[d]`` of q and k read in pairs as complex numbers.

    <R_m q, R_n k> = Re sum_i h_i exp(i (m - n) theta_i): 2104.09864, eq. (35).

    >>> pair_products([1, 0], [0, 1])
    array([0.-1.j])
    """
    q, k = _vector(q, "q"), _vector(k, "k")
    if q.size != k.size or q.size % 2:
        raise ValueError(f"q and k must have the same even number of features, got {q.size} and {k.size}")
    return (q[0::2] + 1j * q[1::2]) * (k[0::2] - 1j * k[1::2])


def abel_bound(q: np.ndarray, k: np.ndarray, theta: np.ndarray, distances: np.ndarray) -> np.ndarray:
    r"""(max_i |h_{i+1} - h_i|) sum_{j = 1..d/2} |S_j(x)|, an upper bound of |<R_m q, R_n k>|, x = m - n.

    8265 and 2104.09864, eq. (35)-(37), by summation by parts (Abel) with h_{d/2} = 0. Only the first factor depends on
    the vectors, and only the second, d/2 times :func:`mean_partial_sums`, on the distance.

    >>> ones = np.ones(64)
    >>> bool(abel_bound(ones, ones, frequencies(64), [100]) >= abs(ones_scores(frequencies(64), [100])))
    True
    """
    theta = _vector(theta, "theta")
    products = pair_products(q, k)
    if products.size != theta.size:
        raise ValueError(f"q and k must have {2 * theta.size} features for {theta.size} frequencies, got {len(q)}")
    largest_step = np.abs(np.diff(products, append=0)).max()
    return largest_step * theta.size * mean_partial_sums(theta, distances)


def quarter_period(theta: np.ndarray) -> float:
    r"""pi / (2 min_i |theta_i|): the distance at which the cosine of the slowest pair first reaches 0.

    The trend of g (:func:`ones_scores`) falls up to about there. For many pairs the sum over i tends to an integral
    over s = 2i/d, g(x) = d int_0^1 cos(x base^-s) ds, and x dg/dx = (d / ln base) (cos x - cos(x / base)): the cosine
    of the fastest pair averages out, so g falls as long as the cosine of the slowest pair is positive.

    >>> round(quarter_period(frequencies(64)))
    11779
    """
    slowest = np.abs(_vector(theta, "theta")).min()
    return float(np.pi / (2 * slowest)) if slowest else np.inf


def octave_averages(values: np.ndarray) -> np.ndarray:
    """Averages of the values at distances 0, 1, 2, ... over the whole octaves 1, 2-3, 4-7, ...: the trend without the
    ripple of the fast pairs.

    >>> octave_averages([9, 1, 2, 4])
    array([1., 3.])
    """
    values = _vector(values, "values")
    return np.array([values[1 << k : 2 << k].mean() for k in range(values.size.bit_length() - 1)])


def smallest_base(head_dim: int, length: int) -> float:
    r"""The smallest base with sum_i cos(x theta_i) >= 0 at every distance x < length (arXiv 2405.14591, section 4).

    While the sum is not negative, a random key that resembles the query scores higher on average than one that does
    not. The sum is not monotone in the base, so a base above the first that fits may not fit. Bases from 1 on are tried
    upward in steps of 1 %, and the first that fits is refined by bisection.

    Args:
        head_dim: number of rotated features, even, at least 4: one pair alone has a negative cosine.
        length: length of the texts in positions, at least 2.

    Raises:
        ValueError: ``head_dim`` or ``length`` is not as above.

    >>> round(smallest_base(64, 512))
    5267
    """
    if head_dim < 4 or head_dim % 2 or length < 2:
        raise ValueError(f"head_dim must be even and at least 4, length at least 2, got {head_dim} and {length}")
    distances = np.arange(length)

    def fits(base: float) -> bool:
        return bool(ones_scores(frequencies(head_dim, base), distances).min() >= 0)

    base = 1.0
    while not fits(base):
        base *= 1.01
    below = max(base / 1.01, 1.0)
    while base - below > 1e-6 * base:
        middle = (below + base) / 2
        below, base = (below, middle) if fits(middle) else (middle, base)
    return base


def _vector(x, name):
    x = np.asarray(x, dtype=np.float64)
    if x.ndim != 1 or not x.size:
        raise ValueError(f"{name} must be a vector with at least one number, got the shape {list(x.shape)}")
    return x


# ---- figures and tables: ``paddle-rope decay``


def contents(options):
    """Files, name -> bytes, and lines that describe them; ``options`` are the command's: head_dim, base, max_distance,
    query_position."""
    query, reach = options.query_position, options.max_distance
    theta = frequencies(options.head_dim, options.base)
    distances, keys = np.arange(reach + 1), np.arange(max(0, query - reach), query + reach + 1)  # on either side
    bound, ones = mean_partial_sums(theta, distances), ones_scores(theta, keys - query)
    quarter = quarter_period(theta)
    files = {
        "decay_bound.png": draw_bound(options, distances, bound, quarter),
        "decay_ones.png": (
            draw_ones(options, keys, ones, quarter)
            if reach < FAR
            else draw_octaves(options, ones[keys >= query], quarter)
        ),
    }
    return files, describe(reach, quarter, bound, ones[keys >= query])


def draw_bound(options, distances, bound, quarter):
    """The figure of kexue.fm 8265, as PNG bytes."""
    figure, axes = new_figure(8, 4.5)
    top = (options.head_dim // 2 + 1) / 2
    axes.axhline(top, color=ORANGE, ls="--", label=r"all $\theta_i = 0$, and all $\theta_i = 1$: constant")
    _draw_rope(axes, options, distances, bound, quarter, 0)
    axes.set_title(f"Decay of the bound: head_dim d = {options.head_dim}, base {options.base:g}")
    axes.set_xlabel("relative distance m - n")
    axes.set_ylabel(r"mean of $|S_1|, \ldots, |S_{d/2}|$")
    axes.set_ylim(0, 1.4 * top)
    axes.legend(loc="upper right")
    return png(figure)


def draw_ones(options, keys, ones, quarter):
    """A figure of RoPE and, below it and close to the query, the counter-examples, as PNG bytes."""
    query, top = options.query_position, options.head_dim
    figure, (above, below) = new_figure(8, 7, 2, 1, height_ratios=[3, 2])
    _draw_rope(above, options, keys, ones, quarter, query)
    averages = octave_averages(ones[keys >= query])
    label = r"averages over octaves, $2^k \leq n - m < 2^{k+1}$"
    starts = query + 2.0 ** np.arange(len(averages))
    above.hlines(averages, starts, 2 * starts - query, color=ORANGE, lw=2, label=label)
    above.set_title(f"All-ones q and k: head_dim d = {top}, base {options.base:g}, query at position m = {query}")
    above.set_ylim(min(0, 1.2 * ones.min()), 1.4 * top)
    shown = keys[np.abs(keys - query) <= ZOOM]
    near = np.linspace(shown[0], shown[-1], 2001)
    below.axhline(top, color=ORANGE, ls="--", label=r"all $\theta_i = 0$: constant")
    below.plot(near, top * np.cos(near - query), color=GREEN, lw=1, label=r"all $\theta_i = 1$: $d\,\cos(n - m)$")
    below.plot(shown, top * np.cos(shown - query), ".", color=GREEN, ms=4)
    below.set_title("Counter-examples: no decay")
    below.set_ylim(-1.15 * top, 2.1 * top)
    for axes in (above, below):
        axes.axhline(0, color=GRAY, lw=0.6)
        axes.set_xlabel("key position n")
        axes.set_ylabel(r"$\langle R_m q, R_n k\rangle$")
        axes.ticklabel_format(useOffset=False, style="plain", axis="x")
        axes.legend(loc="upper right")
    return png(figure)


def draw_octaves(options, ones, quarter):
    """A figure of RoPE on a logarithmic axis, as PNG bytes: the averages fall by about the same amount per octave."""
    figure, axes = new_figure(8, 4.5)
    averages = octave_averages(ones)
    starts = 2.0 ** np.arange(len(averages))
    _draw_rope(axes, options, np.arange(1, ones.size), ones[1:], quarter, 0)
    axes.hlines(averages, starts, 2 * starts, color=ORANGE, lw=2, zorder=3, label="averages over octaves")
    axes.axhline(0, color=GRAY, lw=0.6)
    axes.set_xscale("log", base=2)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:,.0f}")
    axes.set_title(f"All-ones q and k: head_dim d = {options.head_dim}, base {options.base:g}")
    axes.set_xlabel("relative distance n - m")
    axes.set_ylabel(r"$\langle R_m q, R_n k\rangle$")
    axes.legend(loc="upper right")
    return png(figure)


def _draw_rope(axes, options, places, values, quarter, query):
    """Draw the curve of RoPE, and a line where the slowest pair has made a quarter turn, if that is in the range."""
    label = rf"RoPE, $\theta_i = {options.base:g}^{{-2i/d}}$"
    axes.plot(places, values, color=BLUE, lw=1.2 if places.size < 2000 else 0.5, label=label)
    axes.set_xlim(places[0], places[-1])
    if quarter <= options.max_distance:
        label = f"quarter period of the slowest pair: {quarter:.0f}"
        axes.axvline(query + quarter, color=GREEN, lw=1.2, ls="-.", label=label)


def describe(reach, quarter, bound, ones):
    """The lines that describe the figures; ``bound`` and ``ones`` are the curves of RoPE from distance 0 on."""
    at = sorted({0, *(4**k for k in range(reach.bit_length()) if 4**k < reach), reach})
    return [
        "distance   " + " ".join(f"{x:>8}" for x in at),
        "mean |S_j| " + " ".join(f"{bound[x]:8.2f}" for x in at),
        "ones, g    " + " ".join(f"{ones[x]:8.2f}" for x in at),
        f"quarter period of the slowest pair: {quarter:.1f}; up to it the trend of g falls",
    ]
