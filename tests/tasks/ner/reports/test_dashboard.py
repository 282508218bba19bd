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


@pytest.fixture
def show(dashboard, pictured, tmp_path):
    """Open a page of VisualDL and wait: ``show(name, expression)`` -> what it shows as text. Keeps a picture."""
    folder = Path(os.environ.get("SCREENSHOTS") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    with open_page(tmp_path / "browser", SECONDS) as browser:

        def show(name, expression):
            browser.open(f"{dashboard}/{name}")
            try:
                browser.wait_for(expression)
            finally:
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


def test_each_page_shows_what_the_log_holds(show, log, pictured):
    types, groups = pictured.model_config["types"], {}
    for tag in log.get_tags()["scalar"]:
        groups.setdefault(tag.split("/")[0], []).append(tag)
    text = show("scalar", f"{DRAWN} == {len(groups['1_train'])}")  # the first group is open
    assert {"1_train", "dev"} <= set(groups) and groups["1_train"][0] == "1_train/loss"
    assert all(has_group(text, group, len(tags)) for group, tags in groups.items())

    text = show("pr-curve", f"document.querySelectorAll('canvas').length == {len(types)} && {DRAWN}")
    last = max(record.id for record in log.get_data("pr_curve", f"dev/{types[0]}"))
    assert has_group(text, "dev", len(types)) and f"Step {last}" in text

    text = show("sample/image", f"{PICTURES}.filter(width => width > 100).length == 2")
    assert "dev/scores" in text and "dev/reliability" in text and has_group(text, "dev_history", 2)
    assert re.findall(r"Step: (\d+)", text) == [str(last)] * 2  # the newest ones

    text = show("sample/text", "document.body.innerText.includes('output_dir')")
    assert has_group(text, "dev", 8) and all(f"{key}:" in text for key in pictured.config)

    shown = set(show("hyper-parameter", "document.body.innerText.includes('dev/f1')").split("\n"))
    assert {"hidden_size", str(pictured.config["hidden_size"]), "learning_rate", str(pictured.folder / "vdl")} <= shown
    assert not {"output_dir", "max_grad_norm"} & shown
    assert all(str(log.get_data("scalar", f"dev/{name}")[-1].value) in shown for name in ("precision", "recall", "f1"))


def has_group(text, name, count):
    """Whether a page lists a group with so many tags."""
    return re.search(rf"^{name}\n+{count}$", text, re.MULTILINE) is not None
