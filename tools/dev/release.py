"""Check that the package, CHANGELOG.md and CITATION.cff name one version; print what is new in it, or tag it.

python tools/dev/release.py             what is new in this version
python tools/dev/release.py v0.3.0      the same, if this is its tag
python tools/dev/release.py --tag       tag the last commit; git push origin v0.3.0 then starts the release
"""

import re
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


def check(repository: Path, tag: str = "") -> tuple[str, str]:
    """The version and the part of CHANGELOG.md on it; SystemExit with a line where the files name different ones."""

    def first(name, pattern):
        found = re.search(pattern, (repository / name).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
        if not found:
            raise SystemExit(f"error: {name}: expected {pattern}")
        return found.groups()

    (version,) = first("paddle_rope/__init__.py", r'^__version__ = "([\d.]+)"$')
    (cited,) = first("CITATION.cff", r"^version: (\S+)$")
    newest, _, notes = first("CHANGELOG.md", r"^## (\S+)( - \d{4}-\d\d-\d\d)\n(.+?)(?=^## |\Z)")
    named = {"CITATION.cff": cited, "CHANGELOG.md": newest, "the tag": tag.removeprefix("v") or version}
    for name, other in named.items():
        if other != version:
            raise SystemExit(f"error: {name}: expected {version}, the version of paddle_rope/__init__.py, got {other}")
    return version, notes.strip() + "\n"


def main(argv: list[str], repository: Path = REPOSITORY) -> None:
    def git(*words):
        return subprocess.run(["git", *words], cwd=repository, check=True, capture_output=True, text=True).stdout

    if argv != ["--tag"]:
        print(check(repository, *argv)[1], end="")
        return
    version, notes = check(repository)
    if git("status", "--porcelain") or git("tag", "--list", f"v{version}"):
        raise SystemExit(f"error: expected nothing uncommitted and no tag v{version}; see git status, git tag")
    git("tag", "--annotate", "--cleanup=verbatim", "--message", f"{version}\n\n{notes}", f"v{version}")
    print(f"tagged; to release: git push origin v{version}")


if __name__ == "__main__":
    main(sys.argv[1:])
