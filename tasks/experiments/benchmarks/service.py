"""Load on a service of this machine, from several connections: ``benchmark service``."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import aiohttp  # comes with PaddleNLP
import numpy as np

from tasks.common.errors import InputError
from tasks.common.texts.documents import read_plain_texts

SERVE = (sys.executable, "-m", "paddle_rope", "serve")
MOST_CONNECTIONS = 1000
LOST_SECONDS = 60  # without an answer
HEALTH_SECONDS = 0.1  # between two requests for /health
WARM_SECONDS = 2
COLUMNS = ("load", "sent", "answered", "refused", "lost", "p50", "p95", "p99", "refused_p99", "health_p99")
LEGEND = """\
sent, answered and refused (503): requests a second; lost: requests without an answer; p50, p95, p99: milliseconds from
sending a request to its whole answer, of those answered; refused_p99: of those refused; health_p99: of GET /health."""


def measure_service(
    folder: str | Path,
    data: str | Path,
    seconds: float = 10.0,
    connections: int = 64,
    texts: int = 1,
    seed: int = 0,
    options: Sequence[str] = (),
) -> list[dict[str, Any]]:
    """Start ``paddle-rope serve``, find its capacity, and load it with half of it and with ten times as much.

    Args:
        folder: of a model.
        data: file of texts, one a line, which requests take in turn.
        seconds: of each load.
        connections: that send one request after the other, for the capacity.
        texts: texts, or pairs of two texts, of a request.
        seed: of the times at which requests are sent (a Poisson process).
        options: further arguments of ``paddle-rope serve``.

    Returns:
        A dict with ``COLUMNS`` for each of the three loads.

    Raises:
        InputError: the file cannot be read, the service does not start, or it answers nothing.
    """
    lines = read_plain_texts(data)
    with _service(folder, options) as port:
        return asyncio.run(_measure(port, lines, texts, seconds, connections, random.Random(seed)))


@contextlib.contextmanager
def _service(folder, options) -> Iterator[int]:
    """The port of a service that is ready; it is stopped at the end."""
    command = [*SERVE, str(folder), "--port", "0", *options]
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        try:
            address, ready = process.stdout.readline(), process.stdout.readline()
            if ready != "ready\n":
                process.wait(LOST_SECONDS)
                errors.seek(0)
                *_, reason = ["the service did not start", *errors.read().splitlines()]
                raise InputError(reason.removeprefix("error: "))
            print(address, end="", flush=True)
            yield int(re.match(r"\S+:(\d+) ", address)[1])
            process.send_signal(signal.SIGTERM)
            print(f"stopped with status {process.wait(LOST_SECONDS)}\n")
        finally:
            process.kill()


async def _measure(port, lines, texts, seconds, connections, generator):
    connector = aiohttp.TCPConnector(limit=MOST_CONNECTIONS)
    timeout = aiohttp.ClientTimeout(LOST_SECONDS)
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}", connector=connector, timeout=timeout) as session:
        models = await (await session.get("/models")).json()
        bodies = list(_bodies(lines, texts, models["models"][0]["recipe"] == "matching"))
        await Load(session, bodies).run(_always(connections), WARM_SECONDS)
        capacity = Load(session, bodies, f"capacity, {connections} connections")
        rows = [await capacity.run(_always(connections), seconds)]
        answered = len(capacity.milliseconds[200])
        if not answered:
            raise InputError("no request was answered; look at the texts of --input, and at the bounds of the service")
        for times, name in ((0.5, "50 %"), (10, "10 times")):
            at_random = _at_random(times * answered / capacity.seconds, generator)
            rows.append(await Load(session, bodies, name).run(at_random, seconds))
    return rows


def _bodies(lines, texts, is_matching):
    """The body of a request beginning at each line; its texts follow each other in the file."""
    for start in range(len(lines)):
        items = [lines[(start + place) % len(lines)] for place in range(texts + is_matching)]
        body = {"pairs": list(zip(items, items[1:]))} if is_matching else {"texts": items}
        yield json.dumps(body, ensure_ascii=False)


class Load:
    """Requests sent to a service in one way, and their answers.

    Attributes:
        milliseconds: of each answer, by its status, or by ``"health"``.
        lost: requests without an answer.
        seconds: from the first request to the last.
    """

    def __init__(self, session: aiohttp.ClientSession, bodies: list[str], name: str = ""):
        self.session, self.bodies, self.name = session, bodies, name
        self.milliseconds: dict = {200: [], 503: [], "health": []}
        self.lost, self.seconds, self.sent = 0, 0.0, 0

    async def run(self, send_all: Callable, seconds: float) -> dict[str, Any]:
        """A row of the table, after so many seconds of requests and of GET /health all the while."""
        start = time.perf_counter()
        asking = asyncio.create_task(self._ask_for_health())
        await send_all(self, start + seconds)
        asking.cancel()
        answered, refused = (len(self.milliseconds[status]) for status in (200, 503))
        counts = {"sent": answered + refused + self.lost, "answered": answered, "refused": refused}
        return {
            "load": self.name,
            **{name: round(count / self.seconds, 1) for name, count in counts.items()},
            "lost": self.lost,
            **{f"p{share}": percentile(self.milliseconds[200], share) for share in (50, 95, 99)},
            "refused_p99": percentile(self.milliseconds[503], 99),
            "health_p99": percentile(self.milliseconds["health"], 99),
        }

    async def send(self) -> None:
        """The next request."""
        self.sent += 1
        body, headers = self.bodies[self.sent % len(self.bodies)], {"Content-Type": "application/json"}
        await self._note(None, self.session.post("/predict", data=body, headers=headers))

    async def _ask_for_health(self):
        while True:
            await self._note("health", self.session.get("/health"))
            await asyncio.sleep(HEALTH_SECONDS)

    async def _note(self, kind, request):
        start = time.perf_counter()
        try:
            async with request as response:
                await response.read()
            self.milliseconds[kind or response.status].append(1000 * (time.perf_counter() - start))
        except (aiohttp.ClientError, asyncio.TimeoutError, KeyError):  # noqa: UP041  KeyError: another status
            self.lost += 1


def _always(connections):
    """As many requests as the service answers: each connection sends its next one when it has its answer."""

    async def send_all(load, end):
        start = time.perf_counter()

        async def send_in_turn():
            while time.perf_counter() < end:
                await load.send()

        await asyncio.gather(*(send_in_turn() for _ in range(connections)))
        load.seconds = time.perf_counter() - start

    return send_all


def _at_random(rate, generator):
    """``rate`` requests a second at random times, whether or not those before them have their answers."""

    async def send_all(load, end):
        start = due = time.perf_counter()
        sent = []
        while (due := due + generator.expovariate(rate)) < end and time.perf_counter() < end:
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            sent.append(asyncio.create_task(load.send()))
        load.seconds = time.perf_counter() - start
        await asyncio.gather(*sent)

    return send_all


def percentile(values: list[float], share: float) -> float | None:
    """The smallest value that ``share`` % of the values do not exceed, rounded to 0.1; None of no values."""
    return round(float(np.percentile(values, share, method="inverted_cdf")), 1) if values else None
