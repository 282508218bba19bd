#!/usr/bin/env python
"""Write the demo corpus for NER: the same as `paddle-rope demo ner`; see --help."""

from bootstrap import door

main = door("demo", "ner")

if __name__ == "__main__":
    raise SystemExit(main())
