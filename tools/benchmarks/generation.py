"""Time a generated token, with native operators and without: milliseconds of processor time a token and layer, of small
causal models (4 layers of 64), for which Python and the calls of operators are what takes time. The forms take turns,
and the shortest one counts.

    .venv/bin/python -m tools.benchmarks.generation
"""

import contextlib
import sys
from typing import Any

from paddle_rope.tasks.commands.benchmark import add_counts
from paddle_rope.tasks.common.output import on_terminal
from paddle_rope.tasks.common.reports.tables import as_markdown
from paddle_rope.tasks.experiments.worker import report, timed
from tools.benchmarks.command import new_parser, parse

SIZES = {"vocab_size": 100, "hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4,
         "intermediate_size": 128}  # fmt: skip
LINEAR = {"attention": "linear"}
INGREDIENTS = {"normalizer": "none", "decay": [0.5, 0.8, 0.95, 1.0], "convolutions": True, "output_gate": True}
MODELS: dict[str, dict[str, Any]] = {"softmax": {}, "linear": LINEAR, "linear, all ingredients": LINEAR | INGREDIENTS}
BEGINNING = 16  # tokens


@on_terminal
def main(argv: list[str] | None = None) -> None:
    """Measure the models one after another. Raises InputError if an option is wrong."""
    parser = new_parser(__doc__)
    add_counts(parser, tokens=(100, "tokens of a text"), rounds=(5, "texts of each form, after one to warm up"))
    options = parse(parser, argv)
    import paddle

    from paddle_rope import RoFormerConfig, RoFormerForCausalLM
    from paddle_rope.native.dispatch import plain_forms

    rows, forms = [], {"native": contextlib.nullcontext, "plain": plain_forms}
    for name, further in MODELS.items():
        paddle.seed(0)
        model, times = RoFormerForCausalLM(RoFormerConfig(**SIZES, **further)), {form: [] for form in forms}
        model.eval()
        text = paddle.randint(1, SIZES["vocab_size"], [1, BEGINNING])
        for _ in range(options.rounds + 1):
            for form, context in forms.items():
                with context():
                    measured = timed(lambda model=model, text=text: model.generate(text, max_new_tokens=options.tokens))
                times[form].append(1000 * measured["processor_seconds"] / options.tokens / SIZES["num_hidden_layers"])
        rows.append({"attention": name, **{form: f"{min(of_form[1:]):.2f}" for form, of_form in times.items()}})
    report({"rows": rows}, as_markdown(rows), options.output)


if __name__ == "__main__":
    sys.exit(main())
