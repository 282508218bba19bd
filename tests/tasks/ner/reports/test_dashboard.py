"""The log of a finished run in VisualDL's pages, as a browser shows them. The pictures stay in the folder that the
variable SCREENSHOTS names, or else in pytest's temporary folder."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

import pytest
from visualdl import LogReader

from tests.helpers.browser import chromium, open_page

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(chromium() is None, reason="no browser: apt-get install chromium"),
]
SECONDS = 120
# canvases with a line in the color of the first run, blue, that is wider than the turning arc of a chart that loads
DRAWN = """[...document.querySelectorAll('canvas')].filter(canvas => {
    const pixels = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data
    const columns = new Set()
    for (let i = 0; i < pixels.length; i += 4)
        if (pixels[i + 3] > 100 && pixels[i + 2] - pixels[i] > 80) columns.add(i / 4 % canvas.width)
    return columns.size > canvas.width / 3
}).length"""
PICTURES = "[...document.images].filter(image => image.src.startsWith('blob:')).map(image => image.naturalWidth)"


@pytest.fixture(scope="module")
def dashboard(pictured):
    """Address of VisualDL, which shows the run."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = ["--logdir", pictured.folder, "--host", "127.0.0.1", "--port", str(port), "--disable-telemetry"]
    start = [sys.executable, "-c", "from visualdl.server.app import main; main()", *words]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(start, **quiet, start_new_session=True) as process:
        try:
            end = time.monotonic() + SECONDS
            while not answers(f"http://127.0.0.1:{port}/alive"):
                assert process.poll() is None and time.monotonic() < end, "VisualDL does not answer"
                time.sleep(0.2)
            yield f"http://127.0.0.1:{port}/app"
        finally:
            os.killpg(process.pid, signal.SIGKILL)


def answers(address):
    try:
        urllib.request.urlopen(address, timeout=SECONDS).close()
    except urllib.error.URLError:
        return False
    return True


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with open_page(tmp_path_factory.mktemp("browser"), SECONDS) as page:
        yield page


@pytest.fixture
def show(dashboard, browser, pictured, request, tmp_path):
    """Open a page of VisualDL and wait: ``show(name, expression)`` -> what it shows as text. Keeps a picture."""

    def show(name, expression):
        browser.open(f"{dashboard}/{name}")
        try:
            browser.wait_for(expression)
        finally:
            folder = Path(os.environ.get("SCREENSHOTS") or tmp_path)
            folder.mkdir(parents=True, exist_ok=True)
            browser.keep_picture(folder / f"visualdl_{name.replace('/', '_')}.png")
        text = browser.text()
        assert str(pictured.folder / "vdl") in text, "the page does not name the run"
        return text

    yield show
    assert browser.errors == []


@pytest.fixture(scope="module")
def log(pictured):
    (path,) = (pictured.folder / "vdl").glob("*.log")
    return LogReader(file_path=str(path))


def test_scalars_are_drawn_by_groups(show, log):
    groups = {}
    for tag in log.get_tags()["scalar"]:
        groups.setdefault(tag.split("/")[0], []).append(tag)
    assert {"1_train", "dev"} <= set(groups)
    text = show("scalar", f"{DRAWN} == {len(groups['1_train'])}")  # the first group is open
    assert text.index("\n1_train\n") < text.index("\ndev\n") and groups["1_train"][0] == "1_train/loss"
    for group, tags in groups.items():
        assert re.search(rf"^{group}\n+{len(tags)}$", text, re.MULTILINE), f"{group} is not there with {len(tags)}"


def test_each_type_has_a_curve_of_the_last_evaluation(show, log, pictured):
    types = pictured.model_config["types"]
    text = show("pr-curve", f"document.querySelectorAll('canvas').length == {len(types)} && {DRAWN}")
    last = max(record.id for record in log.get_data("pr_curve", f"dev/{types[0]}"))
    assert re.search(rf"^dev\n+{len(types)}$", text, re.MULTILINE) and f"Step {last}" in text


def test_pictures_of_the_newest_step_are_shown(show, log, browser):
    text = show("sample/image", f"{PICTURES}.filter(width => width > 100).length == 2")
    assert "dev/scores" in text and "dev/reliability" in text
    newest = max(record.id for record in log.get_data("image", "dev_history/scores"))
    assert re.findall(r"Step: (\d+)", text) == [str(newest)] * 2
    assert re.search(r"^dev_history\n+2$", text, re.MULTILINE)


def test_texts_show_the_configuration_of_the_run_a_key_a_line(show, browser, pictured):
    text = show("sample/text", "document.body.innerText.includes('output_dir')")
    assert re.search(r"^dev\n+8$", text, re.MULTILINE), "the texts of dev are not there"
    places = browser.run(
        """(() => {
            const node = document.querySelector('.text').firstChild, range = document.createRange()
            return [...node.textContent.matchAll(/[a-z_0-9]+:/g)].map(({index}) => {
                range.setStart(node, index)
                range.setEnd(node, index + 2)
                const {left, top} = range.getBoundingClientRect()
                return [Math.round(left), Math.round(top)]
            })
        })()"""
    )
    lefts, tops = zip(*places)
    assert len(tops) >= len(pictured.config) and len(set(tops)) == len(tops) and len(set(lefts)) == 1


def test_the_hyper_parameters_that_matter_stand_beside_the_scores(show, log, pictured):
    text = show("hyper-parameter", "document.body.innerText.includes('dev/f1')")
    shown = set(text.split("\n"))
    assert {"hidden_size", str(pictured.config["hidden_size"]), "learning_rate", str(pictured.folder / "vdl")} <= shown
    assert not {"output_dir", "max_grad_norm"} & shown
    for name in ("precision", "recall", "f1"):
        assert str(log.get_data("scalar", f"dev/{name}")[-1].value) in shown
