#!/usr/bin/env python
"""Pretrain a RoFormer as a masked language model: the same as `paddle-rope train pretraining`; see --help."""

from bootstrap import door

main = door("train", "pretraining")

if __name__ == "__main__":
    raise SystemExit(main())
