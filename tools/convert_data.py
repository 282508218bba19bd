#!/usr/bin/env python
"""Convert labelled NER data: the same as `paddle-rope convert`; see --help."""

from bootstrap import door

main = door("convert")

if __name__ == "__main__":
    raise SystemExit(main())
