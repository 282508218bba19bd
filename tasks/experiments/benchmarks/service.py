"""Load on a service of this machine, from several connections; see ``paddle-rope benchmark service --help``."""

from __future__ import annotations

import asyncio
import contextlib
import json
import math
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field

from paddle_rope.machine import machine_in_words
from tasks.common.errors import InputError
from tasks.common.files import check_output_file, write_json
from tasks.common.model_folder import check_least
from tasks.common.reports.tables import as_markdown
from tasks.common.texts.documents import read_plain_texts

SERVE = (sys.executable, "-m", "paddle_rope", "serve")
MOST_CONNECTIONS = 1000
LOST_SECONDS = 60  # without an answer
HEALTH_SECONDS = 0.1  # between two questions for /health
WARM_SECONDS = 2
COLUMNS = ("load", "sent", "answered", "refused", "lost", "p50", "p95", "p99", "refused_p99", "health_p99")
LEGEND = """\
sent, answered and refused (503): requests a second; lost: requests without an answer; p50, p95, p99: milliseconds from
sending a request to its whole answer, of those answered; refused_p99: of those refused; health_p99: of GET /health."""


def measure_service(folder, input_file, output=None, seconds=10.0, connections=64, texts=1, seed=0, options=()):
    """Start ``paddle-rope serve``, find its capacity, and load it with half of it and with ten times as much.

    Args:
        folder: of a model.
        input_file: texts, one a line, which requests take in turn.
        output: JSON file to write, or None.
        seconds: of each load.
        connections: that send one request after the other, for the capacity.
        texts: texts, or pairs of two texts, of a request.
        seed: of the times at which requests are sent (a Poisson process).
        options: further words for ``paddle-rope serve``.

    Raises:
        InputError: a file cannot be read or written, or the service does not start.
    """
    check_least("connections", connections)
    check_least("texts", texts)
    if not seconds > 0:
        raise InputError(f"--seconds {seconds}: must be more than 0")
    if output is not None:
        check_output_file(output, [input_file])
    lines = read_plain_texts(input_file)
    result = {
        "machine": machine_in_words(),
        "settings": {
            "folder": str(folder),
            "input": str(input_file),
            "seconds": seconds,
            "connections": connections,
            "texts": texts,
            "seed": seed,
            "options": list(options),
        },
    }
    with _service(folder, options) as port:
        result["loads"] = asyncio.run(_measure(port, lines, texts, seconds, connections, random.Random(seed)))
    if output is not None:
        write_json(output, result)
    print(f"{result['machine']}\n\n{as_markdown(result['loads'], COLUMNS)}\n{LEGEND}")


@contextlib.contextmanager
def _service(folder, options):
    """The port of a service that is ready; it is stopped at the end."""
    command = [*SERVE, str(folder), "--port", "0", *options]
    with (
        tempfile.TemporaryFile("w+") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        try:
            told = []
            for line in process.stdout:
                told.append(line)
                if line == "ready\n":
                    break
            else:
                errors.seek(0)
                *_, reason = ["the service did not start", *errors.read().splitlines()]
                raise InputError(reason.removeprefix("error: "))
            print("".join(told[:1]), end="", flush=True)
            yield int(re.match(r"\S+:(\d+) ", told[0])[1])
            process.send_signal(signal.SIGTERM)
            print(f"stopped with status {process.wait(LOST_SECONDS)}\n")
        finally:
            process.kill()


async def _measure(port, lines, texts, seconds, connections, generator):
    client = Client(port)
    recipe = json.loads((await client.send(client.request("GET", "/models"))).body)["models"][0]["recipe"]
    requests = list(_requests(client, lines, texts, recipe == "matching"))
    await _saturate(client, requests, WARM_SECONDS, connections)
    rows = [await _saturate(client, requests, seconds, connections)]
    if not rows[0].answered:
        raise InputError("no request was answered; look at the texts of --input, and at the bounds of the service")
    capacity = rows[0].answered / rows[0].seconds
    for times, name in ((0.5, "50 %"), (10, "10 times")):
        rows.append(await _load(client, requests, seconds, capacity * times, name, generator))
    client.close()
    return [row.as_record() for row in rows]


def _requests(client, lines, texts, is_pairs):
    """A request beginning at each line; its texts follow each other in the file."""
    for start in range(len(lines)):
        items = [lines[(start + place) % len(lines)] for place in range(texts + is_pairs)]
        body = {"pairs": list(zip(items, items[1:]))} if is_pairs else {"texts": items}
        yield client.request("POST", "/predict", json.dumps(body, ensure_ascii=False).encode("utf-8"))


@dataclass
class Load:
    """What came of the requests of a load."""

    name: str
    seconds: float = 0.0
    milliseconds: dict[str, list[float]] = field(default_factory=lambda: {"200": [], "503": [], "health": []})
    lost: int = 0

    @property
    def answered(self):
        return len(self.milliseconds["200"])

    def note(self, kind, answer):
        if answer is None or kind not in ("health", answer.status):
            self.lost += 1
        else:
            self.milliseconds[kind].append(answer.milliseconds)

    def as_record(self):
        refused = len(self.milliseconds["503"])
        rates = {"sent": self.answered + refused + self.lost, "answered": self.answered, "refused": refused}
        shares = {f"p{share}": percentile(self.milliseconds["200"], share) for share in (50, 95, 99)}
        others = {f"{name}_p99": percentile(self.milliseconds[kind], 99) for name, kind in OTHERS.items()}
        rates = {name: round(count / self.seconds, 1) for name, count in rates.items()}
        return {"load": self.name, **rates, "lost": self.lost, **shares, **others}


OTHERS = {"refused": "503", "health": "health"}


def percentile(values, share):
    """The smallest value that ``share`` % of the values do not exceed, rounded to 0.1; None of no values."""
    return round(sorted(values)[max(0, math.ceil(len(values) * share / 100) - 1)], 1) if values else None


async def _saturate(client, requests, seconds, connections):
    """As many requests as the service answers: each connection sends its next one when it has its answer."""
    load, start = Load(f"capacity, {connections} connections"), time.perf_counter()

    async def send(place):
        while time.perf_counter() < start + seconds:
            answer = await client.send(requests[place % len(requests)])
            load.note(answer.status if answer else None, answer)
            place += connections

    async with _health(client, load):
        await asyncio.gather(*map(send, range(connections)))
    load.seconds = time.perf_counter() - start
    return load


async def _load(client, requests, seconds, rate, name, generator):
    """Requests at random times, ``rate`` a second, whether or not those before them have their answers."""
    load, start, due, sent = Load(name), time.perf_counter(), 0.0, []

    async def send(request):
        answer = await client.send(request)
        load.note(answer.status if answer else None, answer)

    async with _health(client, load):
        while True:
            due += generator.expovariate(rate)
            if due > seconds or time.perf_counter() > start + seconds:
                break
            await asyncio.sleep(max(0.0, start + due - time.perf_counter()))
            sent.append(asyncio.create_task(send(requests[len(sent) % len(requests)])))
        load.seconds = time.perf_counter() - start
        await asyncio.gather(*sent)
    return load


@contextlib.asynccontextmanager
async def _health(client, load):
    """Ask for /health all the time."""

    async def ask():
        while True:
            load.note("health", await client.send(client.request("GET", "/health")))
            await asyncio.sleep(HEALTH_SECONDS)

    asking = asyncio.create_task(ask())
    yield
    asking.cancel()


@dataclass
class Answer:
    status: str
    body: bytes
    milliseconds: float


class Client:
    """Sends requests to a port of this machine, through connections that stay."""

    def __init__(self, port):
        self.port = port
        self._idle = []
        self._places = asyncio.Semaphore(MOST_CONNECTIONS)

    def request(self, method, path, body=b""):
        """The bytes of a request."""
        head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n"
        return f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body

    async def send(self, request):
        """The :class:`Answer`, or None if the connection broke or nothing came for a long time."""
        async with self._places:
            start = time.perf_counter()
            connection = None
            try:
                async with asyncio.timeout(LOST_SECONDS):
                    connection = self._idle.pop() if self._idle else await self._connect()
                    reader, writer = connection
                    writer.write(request)
                    head = await reader.readuntil(b"\r\n\r\n")
                    length = re.search(rb"\r\ncontent-length: (\d+)", head, re.IGNORECASE)
                    body = await reader.readexactly(int(length[1]))
            except (OSError, EOFError, TimeoutError):
                if connection is not None:
                    connection[1].close()
                return None
            self._idle.append(connection)
            return Answer(head.split(b" ", 2)[1].decode(), body, 1000 * (time.perf_counter() - start))

    async def _connect(self):
        return await asyncio.open_connection("127.0.0.1", self.port)

    def close(self):
        for _, writer in self._idle:
            writer.close()
