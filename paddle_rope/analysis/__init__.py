from paddle_rope.analysis.decay import (
    abel_bound,
    falls_until,
    frequencies,
    mean_partial_sums,
    octave_averages,
    ones_scores,
    pair_products,
    quarter_period,
)
