"""A page in headless Chromium, driven by the DevTools protocol through a socket: with the standard library alone."""

import contextlib
import json
import shutil
import socket
import subprocess
import time

WIDTH, HEIGHT = 1280, 900  # of the window, pixels
WORDS = (
    *("--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
    *("--no-first-run", "--lang=en-US"),
    # what a browser asks of the internet by itself; pages may ask this machine alone
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
)


def chromium():
    """Path of Chromium; None where there is none."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@contextlib.contextmanager
def open_page(folder, seconds=120):
    """A :class:`Page` in a browser of its own, which keeps its files in ``folder`` and ends with the block; ``seconds``
    is how long to wait for anything."""
    ours, its = socket.socketpair()
    ours.settimeout(seconds)
    # the browser reads commands from 3 and answers on 4
    start = ["bash", "-c", f'exec "$@" 3<&{its.fileno()} 4>&{its.fileno()}', "bash", chromium(), *WORDS]
    start.append(f"--user-data-dir={folder}")
    with ours, its, subprocess.Popen(start, pass_fds=[its.fileno()], stderr=subprocess.DEVNULL) as process:
        its.close()
        try:
            yield Page(ours, seconds)
        finally:
            process.kill()


class Page:
    """One tab. Everything raises an error where the browser reports one or nothing comes in time; ``errors`` are the
    exceptions of the page's scripts that nothing caught."""

    def __init__(self, browser, seconds):
        self._browser, self._seconds = browser, seconds
        self._received, self._number, self._session = b"", 0, None
        self.errors = []
        target = self._call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self._call("Page.enable")
        self._call("Runtime.enable")
        self.resize(WIDTH)

    def resize(self, width):
        size = {"width": width, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
        self._call("Emulation.setDeviceMetricsOverride", **size)

    def open(self, url):
        answer = self._call("Page.navigate", url=url)
        assert "errorText" not in answer, f"{url}: {answer['errorText']}"
        self.wait_for("document.body !== null")

    def run(self, expression):
        """Value of a JavaScript expression, awaited if it is a promise."""
        answer = self._call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def wait_for(self, expression):
        """Value of a JavaScript expression, once it is true in JavaScript's sense."""
        end = time.monotonic() + self._seconds
        while not (value := self.run(expression)):
            if time.monotonic() > end:
                raise TimeoutError(f"never true: {expression}; the page: {self.text()[:2000]}")
            time.sleep(0.2)
        return value

    def text(self):
        """What the page shows as text."""
        return self.run("document.body ? document.body.innerText : ''")

    def _call(self, method, **parameters):
        self._number += 1
        session = {"sessionId": self._session} if self._session else {}
        message = {"id": self._number, "method": method, "params": parameters, **session}
        self._browser.sendall(json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("method") == "Runtime.exceptionThrown":
                details = answer["params"]["exceptionDetails"]
                self.errors.append(details.get("exception", {}).get("description") or details["text"])
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def _receive(self):
        """The next message."""
        while b"\0" not in self._received:
            part = self._browser.recv(1 << 16)
            if not part:
                raise EOFError("the browser has ended")
            self._received += part
        message, _, self._received = self._received.partition(b"\0")
        return json.loads(message)
