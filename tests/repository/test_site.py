"""The site of the documents in a browser: each language finds the right page, its links stay on the site, and no
formula widens a page on a phone."""

import subprocess
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.conftest import REPOSITORY
from tests.helpers.browser import chromium, open_page

pytestmark = pytest.mark.slow

MKDOCS = REPOSITORY / ".venv-docs" / "bin" / "mkdocs"  # tools/docs.sh makes it
PATH = "/below/a/path/"  # of the site on its server
PHONE = 390  # pixels
FOUND = {  # page -> the queries that show it first, in English and in Chinese
    "concepts/linear-attention/": ("linear attention", "线性注意力"),
    "concepts/rope/": ("rotary", "旋转位置编码"),
    "concepts/glossary/": ("", "术语"),
    "guides/few-labels/": ("few labels, distillation", "小样本, 知识蒸馏"),
    "guides/long-documents/": ("long documents", "长文本, 窗口切分"),
    "guides/training/": ("batch size, learning rate, resume training", "批大小, 继续训练"),
    "guides/data-formats/": ("data formats", "数据格式"),
    "guides/deployment/": ("deploy", "部署"),
    "guides/dictionaries/": ("", "词典"),
    "guides/serving/": ("http service, docker", "HTTP 服务"),
    "guides/annotation/": ("annotation, label studio", "标注"),
    "guides/evaluation/": ("threshold", "阈值, 集成"),
    "guides/pretraining/": ("pretraining", "掩码语言模型"),
    "guides/matching/": ("matching", "文本匹配"),
    "guides/classification/": ("classification", "文本分类"),
    "help/coming-from/": ("bert4keras", ""),
    "reference/security/": ("security", ""),
    "reference/configuration-keys/": ("", "配置项"),
}
LANGUAGES = ("", "zh/")
SOURCES = ("docs", "paddle_rope", "tasks", "tools")


class Handler(SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The folder of the site: the one that tools/docs.sh has built where nothing is newer."""
    if not MKDOCS.exists() or chromium() is None:
        pytest.skip("NOT TESTED: search and formulas of the site; it takes bash tools/docs.sh, and Chromium or Chrome")
    last = REPOSITORY / "site" / "zh" / "search" / "search_index.json"  # what is written last
    sources = [path for name in SOURCES for path in (REPOSITORY / name).rglob("*.*")]
    sources += [REPOSITORY / "mkdocs.yml", *REPOSITORY.glob("*.md")]
    if last.exists() and last.stat().st_mtime > max(path.stat().st_mtime for path in sources if path.suffix != ".pyc"):
        return last.parents[2]
    site = tmp_path_factory.mktemp("site")
    subprocess.run([MKDOCS, "build", "--quiet", "--site-dir", site], cwd=REPOSITORY, check=True)
    return site


@pytest.fixture(scope="module")
def browser(site, tmp_path_factory):
    """A browser; ``home`` is the address of the site."""
    root = tmp_path_factory.mktemp("root")
    (root / PATH.strip("/")).parent.mkdir(parents=True)
    (root / PATH.strip("/")).symlink_to(site)
    with (
        ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=root)) as server,
        open_page(tmp_path_factory.mktemp("browser")) as browser,
    ):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser.home = f"http://127.0.0.1:{server.server_port}{PATH}"
        yield browser
        server.shutdown()


@pytest.mark.parametrize("language", LANGUAGES)
def test_search_shows_the_right_page_first_and_the_switch_stays_on_the_site(browser, language):
    found, expected = {}, {}
    for page, queries in FOUND.items():
        for query in filter(None, queries[LANGUAGES.index(language)].split(", ")):
            browser.open(f"{browser.home}{language}?q={query}")
            found[query] = browser.wait_for("document.querySelector('a.md-search-result__link')?.pathname")
            expected[query] = PATH + language + page
    assert found == expected and len(found) == 20
    browser.open(browser.home + language)
    links = "[...document.querySelectorAll('a[hreflang]')].map(link => link.pathname)"
    assert browser.run(links) == [PATH + one for one in LANGUAGES]


def test_formulas_do_not_widen_a_page_on_a_phone(browser, site):
    pages = [path for path in site.rglob("index.html") if "<math" in path.read_text(encoding="utf-8")]
    browser.resize(PHONE)
    wide = {}
    for page in pages:
        browser.open(browser.home + page.parent.relative_to(site).as_posix() + "/")
        browser.wait_for("document.readyState == 'complete'")
        wide[page] = browser.run("document.documentElement.scrollWidth")
    assert len(wide) > 10 and [page for page, width in wide.items() if width > PHONE] == []
