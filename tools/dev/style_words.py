"""Counts words that are typical of the writing we leave behind, and words that connect sentences.

    python tools/dev/style_words.py                  # documents, README and docstrings as they are
    python tools/dev/style_words.py --commit 17d55b4 # as they were
    python tools/dev/style_words.py --show metaphors # where

A count is a hint, not a verdict: "differs as one seed differs from another" is found as well. Code blocks and generated
pages are left out.
"""

import argparse
import ast
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GENERATED = ("mathematics-tests.md", "command-line.md", "python-api.md", "configuration-keys.md")
PATTERNS = {
    "headless clauses": r"\b(whoever|that which|who never|what is (not|left|given)|what stands)\b",
    "those of, of its own": r"\b(those of|that of|as one|of its own|of their own|of one's own)\b",
    "things that want or say": r"\b(wants?|heeds?|stands?|stand|is asked for)\b",
    "beside, ahead, too": r"\b(beside|besides|ahead|is under)\b|, too\b",
    "metaphors": r"\b(rooms?|floors?|doors?|holes?|mend|take .{1,20} home|strangers?|by hand)\b",
    "connectives": r"\b(because|so|therefore|for example|however|if you|otherwise)\b",
}


def files(commit):
    """(path, text) of the English documents and of the Python of the package, at a commit or in the folder."""
    listed = (
        ["git", "ls-tree", "-r", "--name-only", commit] if commit else ["git", "ls-files", "-co", "--exclude-standard"]
    )
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    for name in names:
        is_page = name.endswith(".md") and not name.endswith(".zh.md") and name.startswith(("docs/", "README", "CONTR"))
        is_code = name.endswith(".py") and name.startswith(("paddle_rope/", "tasks/"))
        if (is_page and not name.endswith(GENERATED)) or is_code:
            if commit:
                show = ["git", "show", f"{commit}:{name}"]
                yield name, subprocess.run(show, cwd=ROOT, capture_output=True, text=True, check=True).stdout
            elif (ROOT / name).is_file():
                yield name, (ROOT / name).read_text(encoding="utf-8")


def prose(name, text):
    """The sentences of a page, or the docstrings of a module."""
    if name.endswith(".md"):
        return re.sub(r"```.*?```|`[^`\n]*`|\]\([^)]*\)", " ", text, flags=re.DOTALL)
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    found = [ast.get_docstring(node) for node in ast.walk(ast.parse(text)) if isinstance(node, kinds)]
    return re.sub(r"``.*?``", " ", "\n".join(filter(None, found)))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commit", help="count at this commit instead of in the folder")
    parser.add_argument("--show", metavar="PATTERN", help="print the lines of one pattern")
    given = parser.parse_args()
    counts = {pattern: [0, 0] for pattern in PATTERNS}
    lines = [0, 0]
    for name, text in files(given.commit):
        kind = int(name.endswith(".py"))
        told = prose(name, text)
        lines[kind] += len(told.splitlines())
        for pattern, expression in PATTERNS.items():
            found = [line for line in told.splitlines() if re.search(expression, line, re.IGNORECASE)]
            counts[pattern][kind] += len(found)
            if pattern == given.show:
                print(*(f"{name}: {line.strip()}" for line in found), sep="\n", end="\n" * bool(found))
    if not given.show:
        print("| lines with | documents | docstrings |\n|---|---|---|")
        for pattern, (pages, docstrings) in counts.items():
            print(f"| {pattern} | {pages} | {docstrings} |")
        print(f"| all lines | {lines[0]} | {lines[1]} |")


if __name__ == "__main__":
    main()
