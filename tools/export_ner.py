#!/usr/bin/env python
"""Export a NER model for deployment: the same as `paddle-rope export ner`; see --help."""

from bootstrap import door

main = door("export", "ner")

if __name__ == "__main__":
    raise SystemExit(main())
