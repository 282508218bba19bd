"""Configuration keys of the language model, in addition to the keys of every recipe that trains an encoder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Optional

from tasks.common.errors import InputError
from tasks.common.training import arguments as common
from tasks.common.training.arguments import POSITIVE, of_encoder, option

# The held-out stretches have this many times the length of training: losses at 1, 2 and 4 times are of the same text.
LONGEST_TIMES = 4
# Keys of every recipe that have no meaning here.
UNUSED = ("pretrained", "dev_fraction")

BY_STEPS = common.TrainingPlan(
    defaults={
        "max_steps": 1000,
        "per_device_train_batch_size": 16,
        "learning_rate": 2e-3,
        "warmup_steps": 100,
        "weight_decay": 0.01,
        "max_grad_norm": 1.0,
        "logging_steps": 10,
        "eval_steps": 200,
        "seed": 42,
    },
    fixed={**common.FIXED_BY_STEPS, "save_strategy": "no"},
    closed=(*common.CLOSED_BY_STEPS, "save_steps", "lr_scheduler_type", "warmup_ratio"),
    reason="the recipe makes max_steps steps, evaluates and keeps a checkpoint every eval_steps; its last weights stay",
)


@dataclass
class LanguageModelArguments(common.EncoderArguments):
    """Keys of the text, the model and what is measured at the end."""

    PLAN = BY_STEPS
    HYPER_PARAMETERS = (*common.EncoderArguments.HYPER_PARAMETERS, "max_steps", "length", "position_embedding")

    recipe: str = option("language_model", "what is trained")
    text_files: Optional[str] = option(
        None, "plain text or JSON lines with 'text', between commas; demo: generated text"
    )
    vocab_min_count: int = option(100, "rarer characters become [UNK]")
    length: int = option(128, "characters of a text in training")
    held_out_windows: int = option(32, f"stretches of {LONGEST_TIMES} x length held out")
    version: int = of_encoder("version", 2)
    hidden_size: int = of_encoder("hidden_size", 128)
    intermediate_size: int = of_encoder("intermediate_size", 512)
    # no dropout: a short training sees its text about once
    hidden_dropout_prob: float = of_encoder("hidden_dropout_prob", 0.0)
    attention_probs_dropout_prob: float = of_encoder("attention_probs_dropout_prob", 0.0)
    rotary_learned: bool = option(False, "train the frequencies of RoPE")
    theta_rate: float = option(1.0, "their learning rate as a share of that of the weights")
    scale_embeddings: bool = option(False, "multiply embeddings by the root of their size; such a model is not saved")
    evaluation_times: Optional[str] = option(
        None, "at the end, losses in texts of so many times the length, such as 1,2,4"
    )
    scaling_factors: Optional[str] = option(None, "these also with frequencies scaled by NTK and YaRN, such as 2,4")

    REQUIRED = ("text_files", "output_dir")

    @property
    def held_out_length(self) -> int:
        return LONGEST_TIMES * self.length

    @property
    def files(self) -> list[str]:
        """``text_files`` as paths."""
        return _words(self.text_files)

    @property
    def times(self) -> list[int]:
        """``evaluation_times`` as numbers."""
        return [int(word) for word in _words(self.evaluation_times)]

    @property
    def factors(self) -> list[float]:
        """``scaling_factors`` as numbers."""
        return [float(word) for word in _words(self.scaling_factors)]

    @classmethod
    def normalized(cls, config):
        return common.with_commas(super().normalized(config), "text_files", "evaluation_times", "scaling_factors")

    def ranges(self):
        return {
            **super().ranges(),
            **dict.fromkeys(("vocab_min_count", "length", "held_out_windows", "theta_rate"), POSITIVE),
        }

    def check(self, config):
        for key in UNUSED:
            if config.get(key) is not None:
                raise InputError(f"key {key!r}: this recipe trains from scratch and holds stretches out; leave it out")
        for key, known in (("evaluation_times", {"1", "2", "4"}), ("scaling_factors", None)):
            for word in _words(getattr(self, key)):
                if not (word in known if known else word.replace(".", "", 1).isdigit() and float(word) >= 1):
                    wanted = "some of 1, 2, 4" if known else "numbers of 1 or more"
                    raise InputError(f"configuration: {key} must be {wanted} between commas, got {word}")
        head_dim = self.hidden_size // self.num_attention_heads
        if self.scaling_factors and head_dim < 4:
            raise InputError(f"configuration: heads of {head_dim} features: NTK scaling needs 4 or more")

    def unused_keys(self):
        return set(UNUSED)

    def model_options(self, config=None) -> dict:
        return {
            **super().model_options(config),
            "causal": True,
            "max_position_embeddings": self.length,
            "rotary": {"learned": True} if self.rotary_learned else None,
        }


def _words(text):
    return [word.strip() for word in (text or "").split(",") if word.strip()]
