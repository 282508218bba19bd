"""What MkDocs does to a page so that one Markdown file reads well on GitHub and on the site.

- Links lead to pages of the site, or to the files of the repository (links.py).
- Formulas, ``$...$`` and blocks of ``math``, become MathML: browsers show it without a script.
- ``<!-- api: NAME ... -->`` becomes the docstrings of these names, by mkdocstrings.
- The line of links under the title goes: the site has a menu and a switch of languages.
- Each language has an index of its own to search, in which guides come before lists such as the reference.
- The switch of languages is a relative link on the home page too.
- Headings of a Chinese page also have the anchors of its English twin, so links from either language arrive.
- CONTRIBUTING.md and CHANGELOG.md, which are outside of docs/, and the notebook become pages.
"""

import json
import re
from pathlib import Path

import latex2mathml.converter
from links import MADE, with_links
from mkdocs.plugins import event_priority
from mkdocs.structure.files import File
from mkdocs.utils import write_file
from pymdownx.slugs import slugify

ROOT = Path(__file__).resolve().parents[2]
CODE = re.compile(r"^( *)(`{3,})(?!math).*?^\1\2$|`[^`\n]+`", re.MULTILINE | re.DOTALL)
FORMULA = re.compile(
    r"^( *)```math\n(.*?)^ *```$"  # a block
    r"|\$\$(.+?)\$\$"
    r"|(?<![\\$])\$(?![\s$])([^$]+?)(?<![\s\\])\$",  # in a line
    re.MULTILINE | re.DOTALL,
)
HEADING = re.compile(r"^(#{1,6}) +(.*?) *$", re.MULTILINE)
API = re.compile(r"<!-- api: (.*?) -->", re.DOTALL)
ANSI = re.compile(r"\x1b\[[0-9;]*m")
LISTS = ("reference/", "guides/configurations", "changelog", "contributing")
CHINESE = "zh/"
HAN = re.compile("[\u4e00-\u9fff]+")  # a word, because jieba has put U+200B between words
INDEX = "search/search_index.json"
slug = slugify(case="lower")
formulas = {}  # page -> MathML of its formulas, in their order


def on_files(files, config, **_):
    """Add the pages of MADE, as if they were files in docs/."""
    for page in MADE:
        files.append(File(page, config.docs_dir, config.site_dir, config.use_directory_urls))
    return files


def on_page_read_source(page, **_):
    """The text of a page of MADE; other pages are read as always."""
    name = MADE.get(page.file.src_uri)
    if not name:
        return None
    text = (ROOT / name).read_text(encoding="utf-8")
    if name.endswith(".ipynb"):
        return "\n\n".join(cell_as_markdown(cell) for cell in json.loads(text)["cells"])
    return text


def cell_as_markdown(cell):
    """A cell of a notebook with what it printed."""
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return source
    outputs = [output.get("text") or output["data"].get("text/plain", []) for output in cell["outputs"]]
    printed = ANSI.sub("", "".join("".join(lines) for lines in outputs)).strip("\n")
    return f"```python\n{source}\n```" + (f"\n\n```text\n{printed}\n```" if printed else "")


def on_page_markdown(markdown, page, config, **_):
    """The Markdown of a page as Python-Markdown and the plugins understand it."""
    path = page.file.src_uri
    if path.startswith(LISTS):
        page.meta["search"] = {"boost": 0.5}
    markdown = without_code(markdown, lambda text: with_blank_lines(without_menu(with_links(text, path))))
    if path.endswith(".zh.md"):
        markdown = with_anchors_of(Path(config.docs_dir) / path.replace(".zh.md", ".md"), markdown)
    markdown = API.sub(lambda m: "\n\n".join(f"::: {name}" for name in m[1].split()), markdown)
    found = formulas[page.url] = []

    def placed(match):
        indent, block, display, inline = match.groups()
        latex = (block or display or inline).strip()
        kind = "inline" if inline else "block"
        found.append(latex2mathml.converter.convert(latex, display=kind))
        return f"{indent or ''}FORMULA{len(found) - 1}END"

    return without_code(markdown, lambda text: FORMULA.sub(placed, text))


@event_priority(-200)  # after mkdocs-static-i18n has set them
def on_page_context(context, page, config, **_):
    """The links to the page in other languages, relative: mkdocs-static-i18n makes those of the home page absolute."""
    for language in config.extra.alternate:
        language["link"] = page.file.alternates[language["lang"]].url


def on_post_page(output, page, **_):
    """For a page in Chinese, zh/ is the base of the site, in which the theme looks for search/search_index.json."""
    return output.replace('"base": "..', '"base": ".', 1) if page.url.startswith(CHINESE) else output


@event_priority(-200)  # after mkdocs-static-i18n has joined the entries of its languages
def on_post_build(config, **_):
    """An index to search for each language."""
    site = Path(config.site_dir)
    index = json.loads((site / INDEX).read_text(encoding="utf-8"))
    index["config"]["fields"]["beginnings"] = {"boost": 0.001}
    entries = {"": [], CHINESE: []}
    for entry in index["docs"]:
        language = CHINESE if entry["location"].startswith(CHINESE) else ""
        own = {"location": entry["location"].removeprefix(language), "beginnings": beginnings(entry)}
        entries[language].append(entry | own)
    for language, docs in entries.items():
        write_file(json.dumps(index | {"docs": docs}).encode(), str(site / language / INDEX))


def beginnings(entry):
    """The beginnings of the Chinese words of an entry. The theme cuts a query into words of the index and never takes
    the last one whole, so it forgets 匹配 in 文本匹配 unless 匹 is a word of the index."""
    words = set(HAN.findall(entry["title"] + " " + entry["text"]))
    return " ".join(sorted({word[:end] for word in words for end in range(1, len(word))}))


def on_page_content(html, page, **_):
    """The HTML of a page with its formulas."""
    found = formulas.pop(page.url, [])
    return re.sub(r"FORMULA(\d+)END", lambda m: found[int(m[1])], html)


def without_code(markdown, change):
    """``markdown`` with ``change`` applied to what is not code."""
    kept = []

    def away(match):
        kept.append(match[0])
        return f"\0{len(kept) - 1}\0"

    changed = change(CODE.sub(away, markdown))
    return re.sub("\0(\\d+)\0", lambda m: kept[int(m[1])], changed)


def without_menu(markdown):
    """Without the line of links under the title, and without links between the languages."""
    markdown = re.sub(r"\A(# [^\n]*\n\n)\[(?:[^\n]|\n(?!\n))*\]\([^)]*\)\n\n", r"\1", markdown)
    return re.sub(r"(?: · |, ?|，)?\[(?:中文|English)\]\([^)]*\)", "", markdown)


def with_blank_lines(markdown):
    """With the blank line before a list or table that Python-Markdown needs and GitHub does not."""
    markdown = re.sub(r"(^(?![-|\s]|\d+\. )[^\n]+\n)(?=- |\d+\. |\|)", r"\1\n", markdown, flags=re.MULTILINE)
    return re.sub(r"^ {2}(?=\S)", "    ", markdown, flags=re.MULTILINE)


def with_anchors_of(english, markdown):
    """A Chinese page whose headings have the anchors of the English page, which has as many."""
    if not english.is_file():
        return markdown
    titles = []
    without_code(english.read_text(encoding="utf-8"), lambda text: titles.extend(HEADING.findall(text)) or text)
    anchors = iter([slug(title.replace("`", ""), "-") for _, title in titles])

    def anchored(match):
        anchor = next(anchors, None)
        title = match[1] == "#"  # MkDocs takes the title from the first line
        return match[0] if title or anchor is None else f'<a id="{anchor}"></a>\n\n{match[0]}'

    return without_code(markdown, lambda text: HEADING.sub(anchored, text))
