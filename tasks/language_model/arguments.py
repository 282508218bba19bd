"""Configuration keys of the language model, in addition to the keys of every recipe that trains an encoder."""

from dataclasses import dataclass
from typing import Optional

from paddle_rope.options import POSITIVE, Kind
from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.training import arguments as common
from paddle_rope.tasks.common.training.arguments import (
    CLOSED_BY_STEPS,
    FIXED_BY_STEPS,
    TrainingPlan,
    of_encoder,
    option,
)

# Held-out stretches are this many times as long as training texts, so losses at 1, 2 and 4 times are on the same text.
LONGEST_TIMES = 4
UNSCALED = "none"  # name in measurements of frequencies that are not scaled

BY_STEPS = TrainingPlan(
    fixed={**FIXED_BY_STEPS, "save_strategy": "no"},
    closed=(*CLOSED_BY_STEPS, "save_steps", "lr_scheduler_type", "warmup_ratio"),
    reason="the recipe makes max_steps steps, evaluates and keeps a checkpoint every eval_steps; its last weights stay",
)

TIMES = Kind("some of 1, 2, 4", {1, 2, 4}.issuperset)
FACTORS = Kind("numbers of 1 or more", lambda values: all(1 <= value < float("inf") for value in values))


@dataclass
class LanguageModelArguments(common.EncoderArguments):
    """Keys of the text, the model and what is measured at the end."""

    MODEL = "paddle_rope.roformer:RoFormerForCausalLM"
    SCORES = ("loss",)
    LENGTH_KEY = "length"
    NEXT_STEP = "use it:   RoFormerForCausalLM.from_pretrained({path!r}).generate(...) in Python"
    PLAN = BY_STEPS
    DEFAULTS = {
        **{"max_steps": 1000, "eval_steps": 200, "logging_steps": 10, "per_device_train_batch_size": 16},
        **{"learning_rate": 2e-3, "warmup_steps": 100},
    }
    UNUSED = ("pretrained", "dev_fraction")
    WHY_UNUSED = "this recipe trains from scratch and holds stretches out"
    HYPER_PARAMETERS = (*common.EncoderArguments.HYPER_PARAMETERS, "max_steps", "length", "position_embedding")

    recipe: str = option("language_model", "what is trained")
    text_files: Optional[list[str]] = option(
        None, "plain text or JSON lines with 'text', between commas; additions: generated sums"
    )
    vocab_min_count: int = option(100, "rarer characters become [UNK]", POSITIVE)
    length: int = option(128, "characters of a text in training", POSITIVE)
    held_out_windows: int = option(32, f"stretches of {LONGEST_TIMES} x length held out", POSITIVE)
    version: int = of_encoder("version", 2)
    share_kv: bool = of_encoder("share_kv")
    num_key_value_heads: Optional[int] = of_encoder("num_key_value_heads")
    hidden_size: int = of_encoder("hidden_size", 128)
    intermediate_size: int = of_encoder("intermediate_size", 512)
    # no dropout: a short training sees its text about once
    hidden_dropout_prob: float = of_encoder("hidden_dropout_prob", 0.0)
    attention_probs_dropout_prob: float = of_encoder("attention_probs_dropout_prob", 0.0)
    scale_embeddings: bool = option(False, "multiply embeddings by the root of their size; such a model is not saved")
    evaluation_times: Optional[list[int]] = option(
        None,
        "at the end, losses in texts of so many times the length, such as 1,2,4",
        TIMES,
    )
    scaling_factors: Optional[list[float]] = option(
        None, "these also with frequencies scaled by NTK and YaRN, such as 2,4", FACTORS
    )

    REQUIRED = ("text_files", "output_dir")

    def check(self, config):
        steps = config.get("max_steps")
        if steps not in (None, "") and int(steps) <= 0:
            raise InputError(f"configuration: max_steps must be greater than 0, got {steps}")
        can_be_scaled = (
            set(self.position_embedding) <= set("qkvo")
            and not (self.rotary or {}).get("learned")
            and "linear" not in self.attention
            and self.hidden_size >= 4 * self.num_attention_heads
        )
        if self.scaling_factors and not (can_be_scaled and self.evaluation_times):
            needs = "evaluation_times, softmax attention, heads of 4 features or more, and RoPE that is not learned"
            raise InputError(f"configuration: scaling_factors need {needs}")
        if self.scale_embeddings and self.position_embedding not in ("sinusoidal", "learned"):
            raise InputError("configuration: scale_embeddings is for positions that are added: sinusoidal or learned")

    def model_options(self, config=None) -> dict:
        return {**super().model_options(config), "causal": True}
