#!/usr/bin/env python
"""Download a public NER data set: the same as `paddle-rope download`; see --help."""

from bootstrap import door

main = door("download")

if __name__ == "__main__":
    raise SystemExit(main())
