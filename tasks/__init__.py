"""Recipes around the library: training, prediction, serving, experiments."""

from paddle_rope.machine import quiet_paddle
from paddle_rope.tasks.common.process import ensure_home

quiet_paddle()
ensure_home()  # before importing paddle and PaddleNLP, which make folders in it
