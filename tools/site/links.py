"""Where the links of a page lead on the site. Knows no MkDocs, so that tests of the links need none."""

import os
import posixpath
import re

MADE = {  # page -> the file of the repository that it is made of
    "contributing.md": "CONTRIBUTING.md",
    "changelog.md": "CHANGELOG.md",
    "guides/tutorial.md": "docs/guides/tutorial.ipynb",
    "results/small.md": "paddle_rope/roformer/encoders/small/README.md",
}
PAGES = {"README.md": "index.md", "README.zh.md": "index.zh.md"} | {name: page for page, name in MADE.items()}
LINK = re.compile(r"\[([^]]+)\]\((?!https?:|#)([^)#\s]+)(#[^)\s]*)?\)")
REPOSITORY = None  # its address, which is that of the workflow of GitHub that builds the site
if "GITHUB_REPOSITORY" in os.environ:
    REPOSITORY = "{GITHUB_SERVER_URL}/{GITHUB_REPOSITORY}".format_map(os.environ)


def with_links(markdown: str, page: str, repository: str | None = REPOSITORY) -> str:
    """``markdown`` of a page with links that work on the site: to pages and files of docs/ as they are there, and to
    other files of the repository at its address. If that is unknown, their text has no link."""
    folder = posixpath.dirname(page)
    source = posixpath.dirname(MADE.get(page, f"docs/{page}"))

    def placed(match):
        text, link, anchor = match.groups()
        name = posixpath.normpath(posixpath.join(source, link))
        if name not in PAGES and not name.startswith("docs/"):
            return f"[{text}]({repository}/blob/HEAD/{name})" if repository else text
        target = PAGES.get(name, name.removeprefix("docs/"))
        return f"[{text}]({posixpath.relpath(target, folder or '.')}{anchor or ''})"

    return LINK.sub(placed, markdown)
