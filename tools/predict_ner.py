#!/usr/bin/env python
"""Find entities in texts: the same as `paddle-rope predict ner`; see --help."""

from bootstrap import door

main = door("predict", "ner")

if __name__ == "__main__":
    raise SystemExit(main())
