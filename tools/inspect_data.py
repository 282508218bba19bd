#!/usr/bin/env python
"""Look at labelled NER data: the same as `paddle-rope inspect`; see --help."""

from bootstrap import door

main = door("inspect")

if __name__ == "__main__":
    raise SystemExit(main())
