"""The site of the documents in a browser: each language finds the right page, its links stay on the site, and no
formula widens a page on a phone."""

import json
import queue
import shutil
import subprocess
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.conftest import REPOSITORY

pytestmark = pytest.mark.slow

MKDOCS = REPOSITORY / ".venv-docs" / "bin" / "mkdocs"  # tools/docs.sh makes it
BROWSER = next(filter(None, map(shutil.which, ("chromium", "google-chrome", "chrome"))), None)
PATH = "/below/a/path/"  # of the site on its server
QUERIES = {  # language -> query -> the page that must come first
    "": {
        "linear attention": "concepts/linear-attention/",
        "rotary": "concepts/rope/",
        "few labels": "guides/few-labels/",
        "long documents": "guides/long-documents/",
        "batch size": "guides/training/",
        "learning rate": "guides/training/",
        "resume training": "guides/training/",
        "data formats": "guides/data-formats/",
        "deploy": "guides/deployment/",
        "http service": "guides/serving/",
        "docker": "guides/serving/",
        "annotation": "guides/annotation/",
        "label studio": "guides/annotation/",
        "threshold": "guides/evaluation/",
        "distillation": "guides/few-labels/",
        "pretraining": "guides/pretraining/",
        "matching": "guides/matching/",
        "classification": "guides/classification/",
        "bert4keras": "help/coming-from/",
        "security": "reference/security/",
    },
    "zh/": {
        "线性注意力": "concepts/linear-attention/",
        "旋转位置编码": "concepts/rope/",
        "小样本": "guides/few-labels/",
        "长文本": "guides/long-documents/",
        "批大小": "guides/training/",
        "继续训练": "guides/training/",
        "数据格式": "guides/data-formats/",
        "部署": "guides/deployment/",
        "HTTP 服务": "guides/serving/",
        "词典": "guides/dictionaries/",
        "标注": "guides/annotation/",
        "阈值": "guides/evaluation/",
        "集成": "guides/evaluation/",
        "知识蒸馏": "guides/few-labels/",
        "掩码语言模型": "guides/pretraining/",
        "窗口切分": "guides/long-documents/",
        "文本匹配": "guides/matching/",
        "文本分类": "guides/classification/",
        "配置项": "reference/configuration-keys/",
        "术语": "concepts/glossary/",
    },
}
WIDTH = 390  # of a phone, in pixels
RUNNER = """<!DOCTYPE html><meta charset="utf-8"><iframe id="frame" style="border: 0; height: 800px"></iframe><script>
const frame = document.getElementById("frame")
const wait = milliseconds => new Promise(resolve => setTimeout(resolve, milliseconds))
const path = url => url.split("#")[0].split("?")[0].replace(location.origin, "")

async function until(found) {
  for (let left = 200; left; left--) {
    const value = frame.contentDocument && found(frame.contentDocument)
    if (value) return value
    await wait(50)
  }
  return null
}

async function open(url, width) {
  frame.style.width = `${width}px`
  await new Promise(resolve => { frame.onload = resolve; frame.src = url })
}

async function search(home, query) {
  await open(`${home}?q=${encodeURIComponent(query)}`, 1200)
  const link = await until(page => page.querySelector("a.md-search-result__link"))
  return link && path(link.href)
}

async function run({home, languages, narrow, width}) {
  const report = {found: {}, switched: {}, wide: {}}
  for (const [language, queries] of Object.entries(languages)) {
    for (const query of queries) report.found[query] = await search(home + language, query)
    await open(home + language, 1200)
    const links = [...frame.contentDocument.querySelectorAll("a[hreflang]")]
    report.switched[language] = links.map(link => path(link.href))
  }
  for (const page of narrow) {
    await open(home + page, width)
    report.wide[page] = frame.contentDocument.documentElement.scrollWidth
  }
  await fetch("/report", {method: "POST", body: JSON.stringify(report)})
}
fetch("/task").then(answer => answer.json()).then(run)
</script>"""


class Handler(SimpleHTTPRequestHandler):
    """Serves the site below PATH, and a page that runs ``task`` in the browser and posts its ``report``."""

    def __init__(self, *args, task, reports, **kwargs):
        self.task, self.reports = task, reports
        super().__init__(*args, **kwargs)

    def translate_path(self, path):
        return super().translate_path("/" + path.removeprefix(PATH) if path.startswith(PATH) else "/none")

    def do_GET(self):
        made = {"/": ("text/html", RUNNER), "/task": ("application/json", json.dumps(self.task))}
        if self.path not in made:
            super().do_GET()
            return
        kind, text = made[self.path]
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write(text.encode())

    def do_POST(self):
        self.reports.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(204)
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """What the browser found."""
    if not MKDOCS.exists() or BROWSER is None:
        pytest.skip("NOT TESTED: search and formulas of the site; it takes bash tools/docs.sh, and Chromium or Chrome")
    site, profile = tmp_path_factory.mktemp("site"), tmp_path_factory.mktemp("browser")
    subprocess.run([MKDOCS, "build", "--quiet", "--site-dir", site], cwd=REPOSITORY, check=True)
    narrow = [page.parent.relative_to(site).as_posix() + "/" for page in sorted(site.rglob("index.html"))]
    narrow = [page for page in narrow if "<math" in (site / page / "index.html").read_text(encoding="utf-8")]
    languages = {language: list(queries) for language, queries in QUERIES.items()}
    task = {"home": PATH, "languages": languages, "narrow": narrow, "width": WIDTH}
    reports = queue.Queue()
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=site, task=task, reports=reports))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    words = ["--headless=new", "--no-sandbox", "--disable-gpu", f"--user-data-dir={profile}"]
    browser = subprocess.Popen([BROWSER, *words, f"http://127.0.0.1:{server.server_port}/"], stderr=subprocess.DEVNULL)
    try:
        return reports.get(timeout=240)
    finally:
        browser.kill()
        browser.wait()
        server.shutdown()


@pytest.mark.parametrize(("language", "query"), [(one, query) for one, found in QUERIES.items() for query in found])
def test_search_shows_the_right_page_first(language, query, report):
    assert report["found"][query] == PATH + language + QUERIES[language][query]


def test_switch_of_languages_stays_on_the_site(report):
    assert report["switched"] == {language: [PATH, f"{PATH}zh/"] for language in QUERIES}


def test_formulas_do_not_widen_a_page_on_a_phone(report):
    assert len(report["wide"]) > 10
    assert {page: width for page, width in report["wide"].items() if width > WIDTH} == {}
