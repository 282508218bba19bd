#!/usr/bin/env python
"""Score a trained model on labelled data: the same as `paddle-rope evaluate matching`; see --help."""

from bootstrap import door

main = door("evaluate", "matching")

if __name__ == "__main__":
    raise SystemExit(main())
