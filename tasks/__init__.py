"""Recipes around the library: training, prediction, serving, experiments."""

from tasks.common.tool.home import ensure_home

ensure_home()  # before paddle and PaddleNLP are imported, which make folders there
