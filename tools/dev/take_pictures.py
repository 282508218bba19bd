"""Takes the pictures of pages in docs/figures in headless Chromium, with the model and the log of a run:

    paddle-rope demo ner runs/demo_corpus
    paddle-rope train runs/demo_corpus/train.jsonl --dev_file runs/demo_corpus/dev.jsonl --output_dir runs/pictures
    python tools/dev/take_pictures.py runs/pictures

service_page.png is the page of ``paddle-rope serve``, entities.png that of ``predict --html``, and visualdl.png shows
three parts of VisualDL's pages. Axes of its curves end at 1, which VisualDL would take to 1.1 times the largest value.
"""

import base64
import io
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

from PIL import Image

from paddle_rope.tasks.ner.demo import UNSEEN_SENTENCES

FIGURES = Path(__file__).resolve().parents[2] / "docs" / "figures"
NAMES = ("chromium", "google-chrome", "chrome")
TEXTS = (
    "桃湖省卓维生物医药股份有限公司的总经理韩美妍昨天到了金原。",
    "槐浦大学附属医院与卓翔科技有限公司签约，由孟子航担任项目经理。",
    "周三下午，刘老师在秀原市图书馆做了报告。",
)
UP_TO_ONE = """(async () => {
  const echarts = await import("/app/__snowpack__/pkg/echarts.js")
  for (const node of document.querySelectorAll("[_echarts_instance_]"))
    echarts.getInstanceByDom(node).setOption({yAxis: {min: 0, max: 1, interval: 0.2}})
})()"""


class Browser:
    """A page of headless Chromium, by the DevTools protocol over pipes: zero bytes end the messages."""

    def __init__(self, width: int, height: int, scale: float = 1, mobile: bool = False) -> None:
        self.profile = tempfile.mkdtemp()
        (theirs_in, self.requests), (self.answers, theirs_out) = os.pipe(), os.pipe()

        def connect():
            os.dup2(theirs_in, 13)  # first away from 3 and 4
            os.dup2(theirs_out, 14)
            os.dup2(13, 3)
            os.dup2(14, 4)

        program = next(filter(None, map(shutil.which, NAMES)))
        words = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe"]
        command = [program, *words, f"--user-data-dir={self.profile}", "about:blank"]
        self.process = subprocess.Popen(command, close_fds=False, preexec_fn=connect, stderr=subprocess.DEVNULL)
        self.number, self.rest, self.session = 0, b"", None
        (target,) = (one for one in self("Target.getTargets")["targetInfos"] if one["type"] == "page")
        attached = self("Target.attachToTarget", targetId=target["targetId"], flatten=True)
        self.session = attached["sessionId"]
        metrics = {"width": width, "height": height, "deviceScaleFactor": scale, "mobile": mobile}
        self("Emulation.setDeviceMetricsOverride", **metrics)

    def __call__(self, method: str, **parameters: object) -> dict:
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        message |= {"sessionId": self.session} if self.session else {}
        os.write(self.requests, json.dumps(message).encode() + b"\0")
        while True:
            while b"\0" not in self.rest:
                self.rest += os.read(self.answers, 1 << 16)
            answer, _, self.rest = self.rest.partition(b"\0")
            answer = json.loads(answer)
            if answer.get("id") == self.number:
                return answer["result"]

    def open(self, url: str, ready: str, seconds: float = 30) -> None:
        """Open a page and wait until the expression ``ready`` is true there."""
        self("Page.navigate", url=url)
        self.wait(ready, seconds)

    def run(self, expression: str) -> object:
        answer = self("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        return answer["result"].get("value")

    def wait(self, ready: str, seconds: float = 30) -> None:
        until = time.monotonic() + seconds
        while not self.run(f"Boolean({ready})"):
            if time.monotonic() > until:
                raise TimeoutError(f"expected {ready} within {seconds} s")
            time.sleep(0.1)

    def picture(self, clip: dict | None = None) -> Image.Image:
        """The window, or a part of the page: ``x``, ``y``, ``width`` and ``height`` in pixels."""
        parts = {"clip": {**clip, "scale": 1}, "captureBeyondViewport": True} if clip else {}
        answer = self("Page.captureScreenshot", format="png", **parts)
        return Image.open(io.BytesIO(base64.b64decode(answer["data"]))).convert("RGB")

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)


@contextmanager
def server(*words: object, path: str = "/"):
    """The address of a server that is started by ``words`` and the port."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen([sys.executable, "-m", *map(str, words), "--port", str(port)])
    address = f"http://127.0.0.1:{port}"
    try:
        for _ in range(240):
            try:
                urlopen(address + path)
                break
            except OSError:
                time.sleep(0.25)
        yield address
    finally:
        process.terminate()
        process.wait()


def save(image: Image.Image, name: str) -> None:
    image.quantize(256, dither=Image.Dither.NONE).save(FIGURES / name, optimize=True)


def service_page(model: Path) -> None:
    browser = Browser(1280, 660)
    with server("paddle_rope", "serve", model, path="/ready") as address:
        browser.open(address, "document.querySelector('#types input')")
        browser.run(f"at('text').value = {json.dumps(chr(10).join(TEXTS))}; document.forms[0].requestSubmit()")
        browser.wait("document.querySelector('#results mark')")
        save(browser.picture(), "service_page.png")
    browser.close()


def entities_page(model: Path) -> None:
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "texts.txt").write_text("\n".join(UNSEEN_SENTENCES), encoding="utf-8")
        words = [
            "predict",
            str(model.resolve()),
            "--input",
            "texts.txt",
            "--output",
            "found.jsonl",
            "--html",
            "page.html",
        ]
        subprocess.run([sys.executable, "-m", "paddle_rope", *words], check=True, cwd=folder)
        browser = Browser(930, 539, scale=2)
        browser.open(Path(folder, "page.html").as_uri(), "document.querySelector('mark')")
        save(browser.picture(), "entities.png")
        browser.close()


def card(browser: Browser, tag: str) -> Image.Image:
    """The frame with the curve of a tag, which is searched for in VisualDL's page."""
    chart = "document.querySelector('[_echarts_instance_]')"
    browser.wait(chart)
    browser.run(f"""(() => {{
      const input = document.querySelector("input[type=text], input:not([type])")
      Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set.call(input, "^{tag}$")
      input.dispatchEvent(new Event("input", {{bubbles: true}}))
    }})()""")
    time.sleep(4)  # for the search, and the animation
    browser.run(UP_TO_ONE)
    time.sleep(1)
    return browser.picture(
        browser.run(f"""(() => {{
          let frame = {chart}
          while (frame.clientHeight < 330) frame = frame.parentElement
          const {{x, y, width, height}} = frame.getBoundingClientRect()
          return {{x, y, width, height}}
        }})()""")
    )


def visualdl(log: Path) -> None:
    browser = Browser(1500, 1400)
    with server("visualdl.server.app", "--disable-telemetry", "--language", "en", "--logdir", log) as address:
        browser.open(f"{address}/app/scalar", "document.querySelector('input')")
        f1, header = card(browser, "dev/f1"), browser.picture({"x": 0, "y": 0, "width": 1180, "height": 60})
        browser.open(f"{address}/app/pr-curve", "document.querySelector('input')")
        curve = card(browser, "dev/organization")
        picture = "document.querySelector('img[src^=blob]')"
        browser.open(f"{address}/app/sample/image", f"{picture}?.naturalWidth")
        browser.run(f"document.body.replaceChildren(Object.assign({picture}, {{style: 'width: 700px; height: auto'}}))")
        height = browser.run("document.querySelector('img').height")
        scores = browser.picture({"x": 0, "y": 0, "width": 700, "height": height})
    browser.close()
    image = Image.new("RGB", (header.width, 72 + max(2 * f1.height + 12, height)), "white")
    for part, place in ((header, (0, 0)), (f1, (10, 72)), (curve, (10, 84 + f1.height)), (scores, (460, 72))):
        image.paste(part, place)
    save(image, "visualdl.png")


if __name__ == "__main__":
    run = Path(sys.argv[1])
    service_page(run / "model")
    entities_page(run / "model")
    visualdl(run / "vdl")
