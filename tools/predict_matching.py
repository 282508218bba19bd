#!/usr/bin/env python
"""Score pairs or triples of texts: the same as `paddle-rope predict matching`; see --help."""

from bootstrap import door

main = door("predict", "matching")

if __name__ == "__main__":
    raise SystemExit(main())
