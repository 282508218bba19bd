"""The optimizer of every recipe."""

from paddle.nn import ClipGradByGlobalNorm

from paddle_rope.native.adamw import AdamW


def new_optimizer(training, learning_rate, parameters, decays):
    """AdamW with clipping by the global norm, by the keys of a run.

    Args:
        training: PaddleNLP's ``TrainingArguments``.
        learning_rate: a number, or a schedule of ``paddle.optimizer.lr``.
        parameters: a list of parameters, or of groups of them.
        decays: function of a parameter's own name; whether ``weight_decay`` is for it.

    Returns:
        :class:`~paddle_rope.native.adamw.AdamW`; its state, two moving averages, has the shapes and dtype of the
        parameters.
    """
    return AdamW(
        learning_rate=learning_rate,
        beta1=training.adam_beta1,
        beta2=training.adam_beta2,
        epsilon=training.adam_epsilon,
        parameters=parameters,
        weight_decay=training.weight_decay,
        apply_decay_param_fun=decays,
        grad_clip=ClipGradByGlobalNorm(training.max_grad_norm) if training.max_grad_norm > 0 else None,
        multi_precision=training.fp16_opt_level == "O2",
    )
