"""Start paddle-rope serve on a model, and load it from several connections of this machine: as fast as it answers, then
with half and with ten times as many requests at random times. Arguments after -- go to paddle-rope serve:

    .venv/bin/python -m tools.benchmarks.service MODEL_DIR --input FILE -- --workers 2
"""

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
from collections.abc import Iterator
from typing import Any

import aiohttp  # comes with PaddleNLP
import numpy as np

from paddle_rope.tasks.commands.benchmark import add_counts
from paddle_rope.tasks.commands.options import MODEL_DIR
from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.common.output import on_terminal
from paddle_rope.tasks.common.reports.tables import as_markdown
from paddle_rope.tasks.common.texts.documents import read_plain_texts
from paddle_rope.tasks.experiments.worker import report
from tools.benchmarks.command import new_parser, parse

SERVE = (sys.executable, "-m", "paddle_rope", "serve")
MOST_CONNECTIONS = 1000
LOST_SECONDS = 60  # without an answer
HEALTH_SECONDS = 0.1  # between two requests for /health
WARM_SECONDS = 2
LEGEND = """\
sent, answered and refused (503): requests a second; lost: requests without an answer; p50, p99: milliseconds from
sending a request to its whole answer, of those answered; health_p99: of GET /health."""


@on_terminal
def main(argv: list[str] | None = None) -> None:
    """Start ``paddle-rope serve``, find its capacity, and load it with half and ten times that rate. Raises
    InputError if the file cannot be read, the service does not start, or it answers nothing."""
    parser, argv = new_parser(__doc__), sys.argv[1:] if argv is None else argv
    parser.add_argument("folder", metavar="MODEL_DIR", help=MODEL_DIR)
    parser.add_argument("--input", dest="data", required=True, metavar="FILE", help="texts, one a line, or JSON lines")
    parser.add_argument("--seconds", type=float, default=10.0, help="of each load (default: 10)")
    add_counts(parser, connections=(64, "connections for the capacity"))
    end = argv.index("--") if "--" in argv else len(argv)
    options, served = parse(parser, argv[:end]), argv[end + 1 :]
    if not options.seconds > 0:
        raise InputError(f"--seconds {options.seconds}: must be more than 0")
    lines = read_plain_texts(options.data)
    with _service(options.folder, served) as port:
        loads = asyncio.run(_measure(port, lines, options))
    settings = {**vars(options), "served": served, "output": str(options.output)}
    report({"settings": settings, "loads": loads}, f"{as_markdown(loads)}\n{LEGEND}", options.output)


@contextlib.contextmanager
def _service(folder, served) -> Iterator[int]:
    """The port of a service that is ready; it is stopped at the end."""
    command = [*SERVE, str(folder), "--port", "0", *served]
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


async def _measure(port, lines, options):
    bounds = {"connector": aiohttp.TCPConnector(limit=MOST_CONNECTIONS), "timeout": aiohttp.ClientTimeout(LOST_SECONDS)}
    address = f"http://127.0.0.1:{port}"
    async with aiohttp.ClientSession(address, **bounds) as session, aiohttp.ClientSession(address) as probe:
        models = await (await session.get("/models")).json()
        bodies = [{"texts": [line]} for line in lines]
        if models["models"][0]["recipe"] == "matching":
            bodies = [{"pairs": [pair]} for pair in zip(lines, lines[1:] + lines[:1])]
        load = Load(session, probe, [json.dumps(body, ensure_ascii=False) for body in bodies])
        await load.send_always(options.connections, WARM_SECONDS)
        rows = [await load.measure("capacity", load.send_always, options.connections, options.seconds)]
        answered = rows[0]["answered"]
        if not answered:
            raise InputError("no request was answered; look at the texts of --input, and at the bounds of the service")
        for name, times in (("50 %", 0.5), ("10 times", 10)):
            rows.append(await load.measure(name, load.send_at_random, times * answered, options.seconds))
    return rows


class Load:
    """Sends requests to a service and keeps the milliseconds of each answer, by its status or ``"health"``. GET /health
    has a separate connection, the ``probe``, as a supervisor would have."""

    def __init__(self, session: aiohttp.ClientSession, probe: aiohttp.ClientSession, bodies: list[str]):
        self.session, self.probe, self.bodies, self.generator = session, probe, bodies, random.Random(0)
        self.milliseconds: dict = {}
        self.sent = self.lost = 0

    async def measure(self, name: str, send: Any, number: float, seconds: float) -> dict[str, Any]:
        """The row ``name`` of the table: runs ``send(number, seconds)`` and sends GET /health all the while."""
        self.milliseconds, self.lost = {200: [], 503: [], "health": []}, 0
        asking = asyncio.create_task(self._ask_for_health())
        took = await send(number, seconds)
        asking.cancel()
        answered, refused = (len(self.milliseconds[status]) for status in (200, 503))
        counts = {"sent": answered + refused + self.lost, "answered": answered, "refused": refused}
        return {
            "load": name,
            **{kind: round(count / took, 1) for kind, count in counts.items()},
            "lost": self.lost,
            **{f"p{share}": percentile(self.milliseconds[200], share) for share in (50, 99)},
            "health_p99": percentile(self.milliseconds["health"], 99),
        }

    async def send_always(self, connections: int, seconds: float) -> float:
        """Send requests as fast as they are answered, on each connection one after the other; returns the seconds."""
        start = time.perf_counter()

        async def send_in_turn():
            while time.perf_counter() < start + seconds:
                await self._send()

        await asyncio.gather(*(send_in_turn() for _ in range(connections)))
        return time.perf_counter() - start

    async def send_at_random(self, rate: float, seconds: float) -> float:
        """Send ``rate`` requests a second at random times, answered or not; returns the seconds."""
        start = due = time.perf_counter()
        end, sent = start + seconds, []
        while (due := due + self.generator.expovariate(rate)) < end and time.perf_counter() < end:
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            sent.append(asyncio.create_task(self._send()))
        took = time.perf_counter() - start
        await asyncio.gather(*sent)
        return took

    async def _send(self):
        self.sent += 1
        body, headers = self.bodies[self.sent % len(self.bodies)], {"Content-Type": "application/json"}
        await self._note(None, self.session.post("/predict", data=body, headers=headers))

    async def _ask_for_health(self):
        while True:
            await self._note("health", self.probe.get("/health"))
            await asyncio.sleep(HEALTH_SECONDS)

    async def _note(self, kind, request):
        start = time.perf_counter()
        try:
            async with request as response:
                await response.read()
            self.milliseconds.setdefault(kind or response.status, []).append(1000 * (time.perf_counter() - start))
        except (aiohttp.ClientError, asyncio.TimeoutError):  # noqa: UP041
            self.lost += 1


def percentile(values: list[float], share: float) -> float | None:
    """The smallest value that ``share`` % of the values do not exceed, rounded to 0.1; None if there are none."""
    return round(float(np.percentile(values, share, method="inverted_cdf")), 1) if values else None


if __name__ == "__main__":
    sys.exit(main())
