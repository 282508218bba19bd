#!/usr/bin/env python
"""Train a classifier of documents: the same as `paddle-rope train classification`; see --help."""

from bootstrap import door

main = door("train", "classification")

if __name__ == "__main__":
    raise SystemExit(main())
