"""Pretrain a RoFormer as a masked language model: paddle-rope train --recipe pretraining."""

from bootstrap import main_of

main = main_of(__name__, "train", "--recipe", "pretraining")
