#!/usr/bin/env python
"""Find the class of texts: the same as `paddle-rope predict classification`; see --help."""

from bootstrap import door

main = door("predict", "classification")

if __name__ == "__main__":
    raise SystemExit(main())
