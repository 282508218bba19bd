#!/usr/bin/env python
"""Train a model of text matching: the same as `paddle-rope train matching`; see --help."""

from bootstrap import door

main = door("train", "matching")

if __name__ == "__main__":
    raise SystemExit(main())
