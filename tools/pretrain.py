"""Pretrain a RoFormer as a masked language model: paddle-rope train --recipe pretraining."""

from bootstrap import door

main = door(__name__, "train", "--recipe", "pretraining")
