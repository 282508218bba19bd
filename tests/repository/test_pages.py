"""What the README and the documents show: commands that exist, links that lead somewhere, both languages alike, the
headline numbers of docs/numbers.yaml and nothing that contradicts them."""

import ast
import importlib.util
import itertools
import posixpath
import re
import shlex
from functools import lru_cache

import yaml

from paddle_rope.tasks.commands.train import read_words
from paddle_rope.tasks.common.training.settings import resolve
from paddle_rope.tasks.experiments.plan import read_plan, resolved
from paddle_rope.tasks.recipes import get_arguments
from tests.conftest import REPOSITORY
from tests.repository.pages import CONFIGURATIONS, RECIPES, help_of, keys_of, made_pages
from tools.site.links import LINK, MADE, with_links

READMES = ["README.md", "README.zh.md"]
DOCS = sorted(str(path.relative_to(REPOSITORY)) for path in (REPOSITORY / "docs").rglob("*.md"))
PAGES = [*READMES, *DOCS]
ON_SITE = [*(page.removeprefix("docs/") for page in DOCS), *MADE]
ONCE = [page for page in PAGES if not page.endswith(".zh.md")]  # a Chinese page has the code of its twin
TWINS = [(page.replace(".zh.md", ".md"), page) for page in PAGES if page not in ONCE]
SYSTEM_COMMANDS = (
    *("git", "cd", "cat", "curl", "docker", "node", "java", "shuf", "head", "tail", "mkdir", "export", "done"),
    *(".venv/bin/pip", ".venv/bin/visualdl"),
)
FILE = re.compile(r"(?<![\w/])(?:configs|docs|paddle_rope|tasks|tests|tools)/[\w/.]+\.\w+")
VERBS_WITH_TASKS = ("demo", "benchmark")


def text_of(page):
    return (REPOSITORY / page).read_text(encoding="utf-8")


def blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", text_of(page), re.DOTALL)


def commands(page):
    """The commands of a page, each a list of words. A variable has its value, that of a loop its first."""
    found, values = [], {}
    for block in blocks(page, "bash"):
        block = re.sub(r"(^|\s)#.*", "", block.replace("\\\n", " "))
        for line in block.replace("; ", "\n").splitlines():
            line = re.sub(r"\$(\w+)", lambda match: values[match[1]], line)  # noqa: B023
            lexer = shlex.shlex(line, posix=True, punctuation_chars="|&<>")
            lexer.whitespace_split = True
            words = []
            for word in [*lexer, "|"]:
                if not set(word) <= set("|&"):
                    words.append(word)
                    continue
                words = words[words[:1] == ["do"] :]
                if words[:1] == ["for"]:
                    values[words[1]], words = words[3], []
                while words and re.match(r"\w+=", words[0]):  # of the process, or a variable
                    name, _, value = words.pop(0).partition("=")
                    values[name] = value
                if words:
                    found.append(words)
                words = []
    return found


@lru_cache
def check_plan(path, settings, only, cases):
    plan = read_plan(REPOSITORY / path, "runs/new", settings=dict(settings))
    known_cases, variants = plan.values("case"), plan.values("variant")
    assert set(only) <= set(variants) and set(cases) <= set(known_cases)
    groups = {(case, variant) for case in cases or known_cases for variant in only or variants}
    assert all(resolved(cell, cell.config) for cell in plan.cells if cell.group in groups)


def names_after(option, words):
    """The words between ``option`` and the next option; none if it is not given."""
    after = words[words.index(option) + 1 :] if option in words else []
    return tuple(itertools.takewhile(lambda word: not word.startswith("--"), after))


def check_command(words):
    """Raise an error if the command names no program, file, verb, option or key that exists."""
    program, *rest = words
    if program == ".venv/bin/paddle-rope":
        if rest[0] == "train" and rest[1] != "--resume":
            config = read_words([str(REPOSITORY / word) if word.endswith(".yaml") else word for word in rest[1:]])
            config.pop("seeds", None)
            resolve({**config, "device": "cpu"}, get_arguments(config["recipe"]))
        else:
            options = [word.partition("=")[0] for word in rest if word.startswith("--") and word != "--help"]
            verbs = rest[: 2 if rest[0] in VERBS_WITH_TASKS else 1]
            assert help_of(*verbs).strip()
            unknown = [option for option in options if f"{option} " not in f"{help_of(*verbs)} "]
            if verbs == ["experiment"]:  # other options are keys of the runs
                settings = tuple((option[2:], rest[rest.index(option) + 1]) for option in unknown)
                check_plan(rest[1], settings, names_after("--only", rest), names_after("--cases", rest))
                unknown = []
            assert unknown == []
    elif program == ".venv/bin/python" and rest[0] == "-m":
        assert importlib.util.find_spec(rest[1]) is not None
    elif program in (".venv/bin/python", "bash"):
        assert any((REPOSITORY / word).is_file() for word in rest if word.startswith("tools/"))
    else:
        assert program in SYSTEM_COMMANDS


def test_commands_are_accepted(monkeypatch):
    monkeypatch.setattr("paddle_rope.native.products.why_no_bfloat16", lambda: None)  # whatever this processor has
    given = [(page, words) for page in ONCE for words in commands(page)]
    for number in NUMBERS:
        words = itertools.dropwhile(lambda word: "=" in word, number["command"].split())  # variables of its process
        given.append((f"{number['name']} of numbers.yaml", list(words)))
    assert len(given) > 100
    for place, words in given:
        print(f"{place}: {shlex.join(words)}")  # pytest shows the one that is refused
        check_command(words)


def anchors(page):
    """The anchors of the headings of a page, as GitHub makes them."""
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_links_lead_somewhere_and_files_that_are_named_exist():
    for page in PAGES:
        text = re.sub(r"```.*?```", "", text_of(page), flags=re.DOTALL)
        links = re.findall(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)", text)
        assert links, page
        root = REPOSITORY / "tests" if page.endswith("contributing/equations.md") else REPOSITORY
        assert [path for path in FILE.findall(text_of(page)) if not (root / path).is_file()] == [], page
        for path, anchor in links:
            target = (REPOSITORY / page).parent / path if path else REPOSITORY / page
            assert target.exists(), f"{page}: {path}"
            assert not anchor or anchor in anchors(target), f"{page}: {path}#{anchor}"


def test_links_of_the_site_lead_to_its_files_or_to_the_repository():
    for page in ON_SITE:
        text = re.sub(r"```.*?```", "", text_of(MADE.get(page, f"docs/{page}")), flags=re.DOTALL)
        found = with_links(text, page, repository="https://host/owner/name")
        for name in re.findall(r"\]\(https://host/owner/name/blob/HEAD/([^)]+)\)", found):
            assert not name.startswith("docs/") and (REPOSITORY / name).is_file(), f"{page}: {name}"
        for _, path, _ in LINK.findall(found):
            name = posixpath.normpath(posixpath.join(posixpath.dirname(page), path))
            assert name in MADE or (REPOSITORY / "docs" / name).is_file(), f"{page}: {path}"
    assert not LINK.search(with_links("[code](../../.github/SECURITY.md)", "guides/training.md", repository=None))


def test_every_page_is_in_the_navigation_of_the_site():
    navigation = text_of("mkdocs.yml").partition("\nnav:")[2]
    pages = [page.removeprefix("docs/") for page in DOCS if page in ONCE]
    assert [page for page in pages if not re.search(rf"[ \[]{page}\n", navigation)] == []


def shape_of(page):
    """What a page and its twin have alike: numbers of lines of each kind, commands, and blocks."""
    kinds = (r"^#+ ", r"^\|", r"^```", r"^!\[", r"^- ")
    shape = {kind: len(re.findall(kind, text_of(page), re.MULTILINE)) for kind in kinds}
    shape |= {language: blocks(page, language) for language in ("text", "json")}
    return {**shape, "python": [ast.dump(ast.parse(one)) for one in blocks(page, "python")], "bash": commands(page)}


def test_both_languages_have_the_same_sections_tables_and_blocks():
    assert len(TWINS) > 10
    for pages in TWINS:
        english, chinese = map(shape_of, pages)
        assert [kind for kind in english if english[kind] != chinese[kind]] == [], pages


def test_both_readmes_are_short_and_have_the_same_scores():
    scores = [re.findall(r"\d\.\d{4}", text_of(page)) for page in READMES]
    assert len(scores[0]) > 20 and scores[0] == scores[1]
    assert max(len(text_of(page).splitlines()) for page in [*READMES, "docs/results/scores.md"]) <= 120


def test_pages_that_are_made_from_the_code_are_up_to_date():
    made = made_pages().items()  # versions of argparse break lines differently
    old = [page.name for page, text in made if page.read_text(encoding="utf-8").split() != text.split()]
    assert old == [], "run python -m tests.repository.pages"


def test_chinese_meanings_are_those_of_the_keys_that_are_shown():
    meanings = yaml.safe_load(text_of("docs/keys.zh.yaml"))
    own = {name: set(meanings.pop(name)) for name in [*RECIPES, *CONFIGURATIONS] if name != "ner"}
    assert set(meanings) == {key for name in ("ner", "shared") for key, _, _ in keys_of(name)}
    for name, given in own.items():
        keys = {key for key, _, _ in keys_of(name)}
        assert given <= keys <= given | set(meanings)


def test_chinese_paragraphs_are_one_line_with_chinese_punctuation():
    """A browser shows a line break within a paragraph as a gap between two characters."""
    prose = re.compile(r"(?![#|<!]|- |\d+\. |\s|$)")
    for _, page in TWINS:
        lines = re.sub(r"```.*?```", "\n", text_of(page), flags=re.DOTALL).splitlines()
        assert [line for before, line in zip(lines, lines[1:]) if before.strip() and prose.match(line)] == [], page
        plain = [re.sub(r"`[^`]*`", "", line) for line in lines]
        assert [line for line in plain if re.search(r"[\u4e00-\u9fff][,;!?]", line)] == [], page


# ---- numbers

NUMBERS = yaml.safe_load(text_of("docs/numbers.yaml"))["numbers"]
KEYS = {"name", "value", "command", "data", "machine", "seeds", "shown", "pages"}


def test_pages_show_each_number_as_it_was_measured_and_none_that_is_outdated():
    for number in NUMBERS:
        name = number["name"]
        assert KEYS <= number.keys() <= KEYS | {"outdated"}, name
        assert [(page, one) for page in number["pages"] for one in number["shown"] if one not in text_of(page)] == []
        outdated = [(page, pattern) for page in PAGES for pattern in number.get("outdated", [])]
        assert [(name, page) for page, pattern in outdated if re.search(pattern, text_of(page))] == []


def test_badges_name_the_versions_of_the_package():
    project = text_of("pyproject.toml")
    minors = re.findall(r"Python :: (3\.\d+)", project)
    (first, last), *_ = re.findall(r'"paddlepaddle>=([\d.]+),<=([\d.]+)"', project)
    for page in ("README.md", "README.zh.md"):
        assert f"badge/python-{minors[0]}_to_{minors[-1]}-" in text_of(page)
        assert f"badge/paddlepaddle-{first}_to_{last}-" in text_of(page)
    assert 'license = "Apache-2.0 AND' in project
