"""Count typical words of the patterns that our English leaves behind, in the documents and in docstrings.

    python tools/dev/plain_words.py                 now
    python tools/dev/plain_words.py c425fb1         at that commit
    python tools/dev/plain_words.py --show stranger where a word is, now

Words are a hint and no proof: "stands for" has honest uses. The last row counts connectives, which should be many.
"""

import ast
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PATTERNS = {
    "headless clauses": r"\b(?:whoever|that which|what (?:is|are|has) no|what is not|those that|who \w+s, )",
    "those of, that of, of its own": r"\b(?:those of|that of|of (?:its|their|one's|your|my|his) own|as one\b(?! of))",
    "things that want, stand, heed, bring": r"\b(?:wants?|stand|stands|stood|heeds?|brings?|brought)\b",
    "beside, trailing too, under, ahead": r"\bbeside\b|, too\b|\bis under\b|\bahead\b",
    "metaphors": r"\b(?:rooms?|floors?|doors?|holes?|mends?|mended|strangers?|takes? home|by hand|lives of)\b",
}
CONNECTIVES = r"\b(?:because|so that|so|for example|however|therefore|otherwise)\b"
MADE = ("command-line.md", "configuration-keys", "equations.md")  # pages that come from the code


def files(revision):
    """``{path: text}`` of the documents and the code, at a revision or as they are now."""
    listed = ["git", "ls-tree", "-r", "--name-only", revision] if revision else ["git", "ls-files"]
    names = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\n")
    found = {}
    for name in names:
        document = name.endswith(".md") and not name.endswith(".zh.md") and not any(one in name for one in MADE)
        if document or name.endswith(".py") and name.startswith(("paddle_rope/", "tasks/")):
            if revision:
                show = ["git", "show", f"{revision}:{name}"]
                found[name] = subprocess.run(show, cwd=ROOT, capture_output=True, text=True, check=True).stdout
            elif (ROOT / name).is_file():
                found[name] = (ROOT / name).read_text(encoding="utf-8")
    return found


def prose(name, text):
    """The prose of a document, or the docstrings of a file of Python."""
    if name.endswith(".md"):
        return re.sub(r"```.*?```|`[^`\n]*`|\]\([^)]*\)", " ", text, flags=re.DOTALL)
    kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
    return "\n".join(ast.get_docstring(node) or "" for node in ast.walk(ast.parse(text)) if isinstance(node, kinds))


def main(revision=None):
    texts = {name: prose(name, text) for name, text in files(revision).items()}
    groups = {"documents": ".md", "docstrings": ".py"}
    joined = {one: "\n".join(text for name, text in texts.items() if name.endswith(end)) for one, end in groups.items()}
    print("| pattern | documents | docstrings |\n|---|---|---|")
    print("| words |", " | ".join(f"{len(text.split()):,}" for text in joined.values()), "|")
    for pattern, words in {**PATTERNS, "connectives": CONNECTIVES}.items():
        print(f"| {pattern} |", " | ".join(str(len(re.findall(words, text, re.I))) for text in joined.values()), "|")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--show"]:
        for name, text in files(None).items():
            for line in prose(name, text).splitlines():
                if re.search(sys.argv[2], line, re.I):
                    print(f"{name}: {line.strip()}")
    else:
        main(*sys.argv[1:])
