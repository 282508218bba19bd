"""AdamW whose step, including clipping, is one call if native operators are enabled."""

import math

import numpy as np
import paddle
from paddle.base.layer_helper import LayerHelper
from paddle.nn import ClipGradByGlobalNorm

from paddle_rope.native.dispatch import is_enabled
from paddle_rope.native.library import call


class AdamW(paddle.optimizer.AdamW):
    """``paddle.optimizer.AdamW``: the same arguments, state and equations (Loshchilov and Hutter, arXiv 1711.05101).

    With native operators one call clips by the global norm and updates all weights. Cases that they do not support
    (parameter groups, other clipping, regularizers, AMSGrad, ...) are left to Paddle.
    """

    def _apply_optimize(self, loss, startup_program, params_grads, param_group_idx=0):
        if not self._is_native(params_grads):
            return super()._apply_optimize(loss, startup_program, params_grads, param_group_idx)
        weights, gradients = zip(*params_grads)
        self.helper = LayerHelper(type(self).__name__)  # makes the moving averages
        self._create_accumulators(paddle.static.default_main_program().global_block(), weights)
        names = self._moment1_acc_str, self._moment2_acc_str, self._beta1_pow_acc_str, self._beta2_pow_acc_str
        states = [[self._get_accumulator(name, weight) for weight in weights] for name in names]
        decays_weight = self._apply_decay_param_fun or (lambda name: True)
        decays = [self._weight_decay if decays_weight(weight.name) else 0.0 for weight in weights]
        rate = self.get_lr()
        rates = [rate * weight.optimize_attr["learning_rate"] for weight in weights]
        arrays = [
            np.array([math.prod(weight.shape) for weight in weights], "int64"),
            *(np.array(numbers, "float32") for numbers in (rates, decays)),
            *(np.array([tensor.data_ptr() for tensor in one], "uintp") for one in (weights, gradients, *states)),
        ]
        max_norm = 0.0 if self._grad_clip is None else self._grad_clip.clip_norm
        numbers = map(float, (self._beta1, self._beta2, self._epsilon, max_norm))
        call("adamw_step", len(weights), *arrays, *numbers)
        return None

    def _is_native(self, params_grads):
        if not isinstance(params_grads, list) or not params_grads or self._lr_ratio or getattr(self, "_amsgrad", False):
            return False
        numbers = self._beta1, self._beta2, self._epsilon, self._weight_decay
        if not all(isinstance(number, (int, float)) for number in numbers):
            return False
        clip = self._grad_clip
        if clip is not None and (type(clip) is not ClipGradByGlobalNorm or not clip.clip_norm):
            return False  # such as clipping across processes, or to 0
        if not is_enabled(*(tensor for pair in params_grads for tensor in pair)):
            return False
        return all(
            weight.regularizer is None
            and getattr(weight, "need_clip", True)
            and all(tensor.is_dense() and tensor.is_contiguous() for tensor in (weight, gradient))
            and weight.shape == gradient.shape
            for weight, gradient in params_grads
        )
