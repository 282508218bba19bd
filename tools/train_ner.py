#!/usr/bin/env python
"""Train a NER model: the same as `paddle-rope train ner`; see --help."""

from bootstrap import door

main = door("train", "ner")

if __name__ == "__main__":
    raise SystemExit(main())
