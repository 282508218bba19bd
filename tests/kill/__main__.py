"""Kill works at random moments, resume them, and compare what they leave with undisturbed ones:

    python -m tests.kill --kills 30 --seed 0

Each work runs in a process of its own. What is killed, and when, follows from the seed: a moment is an event of
Python's profiler within a step, a save, an evaluation and so on. The exit status is 1 if anything differs.
"""

import argparse
import functools
import hashlib
import json
import multiprocessing
import os
import pkgutil
import random
import shutil
import signal
import sys
import tempfile
from pathlib import Path

os.environ["OMP_NUM_THREADS"] = "1"  # another number of threads adds up in another order

from paddle_rope.machine import import_paddle, prepare_process

FILE = random.Random(0).randbytes(1 << 20)  # what is downloaded
TRIES = 2  # of resuming


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m tests.kill", description=__doc__.split(":")[0] + ".")
    parser.add_argument("--kills", type=int, default=30, metavar="N", help="how many (default: 30)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of what is killed when (default: 0)")
    parser.add_argument("--works", metavar="NAME,NAME", help="only these")
    parser.add_argument("--keep", metavar="FOLDER", help="keep all files in this new folder")
    options = parser.parse_args(argv)
    prepare_process()
    import_paddle()
    from tests.helpers.local_server import LocalServer, serve
    from tests.kill.works import WORKS

    names = options.works.split(",") if options.works else list(WORKS)
    folder = Path(options.keep or tempfile.mkdtemp(prefix="kill_")).absolute()
    try:
        with serve(LocalServer({"/file": FILE})) as server:
            server.add_model("kill/encoder", {"config.json": b'{"model_type": "roformer"}', "model.safetensors": FILE})
            differing = run(names, options.kills, random.Random(options.seed), folder, server.url)
    finally:
        if not options.keep:
            shutil.rmtree(folder, ignore_errors=True)
    print(f"{options.kills} kills, seed {options.seed}: {differing} differ from undisturbed works")
    return int(differing > 0)


def run(names, kills, random, folder, url):
    """Kill works in turn; returns how many of them left something else than undisturbed ones."""
    from paddle_rope.tasks.recipes import get_recipe
    from tests.kill import works

    get_recipe("ner"), get_recipe("pretraining")  # imported once for all processes
    works.prepare(folder)
    wholes, events, differing = {}, {}, 0
    for name in names:
        work, place = works.WORKS[name], folder / f"whole_{name}"
        works.begin(work, place)
        status = do(place, work.words, url, work.zone, report=place / "events.json")
        if status:
            raise SystemExit(f"{name}: ended with {status} without a kill; --keep FOLDER keeps its log.txt")
        events[name] = json.loads((place / "events.json").read_text(encoding="utf-8"))
        wholes[name] = works.left(place)
    order = [names[number % len(names)] for number in range(kills)]
    random.shuffle(order)
    for number, name in enumerate(order, 1):
        work, place = works.WORKS[name], folder / f"kill_{number}"
        works.begin(work, place)
        call = random.randrange(len(events[name]))  # each is as likely as another, and so is each of its events
        moment = call, random.randrange(max(1, events[name][call]))
        status = do(place, work.words, url, work.zone, moment)
        outcome = take_up(work, place, url) if status == -signal.SIGKILL else f"not killed: ended with {status}"
        if not outcome and (found := works.left(place)) != (whole := wholes[name]):
            outcome = f"differs: {', '.join(name for name in {**whole, **found} if found.get(name) != whole.get(name))}"
        differing += bool(outcome)
        print(f"{number:3}  {name:12} call {moment[0]:3}, event {moment[1]:7}: {outcome or 'equal'}", flush=True)
    return differing


def take_up(work, place, url):
    """Resume a killed work; returns what went wrong, in words."""
    for _ in range(TRIES):
        goes_on = work.resume and any(place.glob("run/**/checkpoints/**/complete"))
        goes_on = goes_on or (work.resume and (place / "run" / "series.yaml").is_file())
        if work.resume and not goes_on:
            shutil.rmtree(place / "run", ignore_errors=True)  # as the message says
        status = do(place, work.resume if goes_on else work.words, url)
        if not status:
            return ""
    return f"ended with {status} when resumed: {(place / 'log.txt').read_text(encoding='utf-8').splitlines()[-1][:200]}"


def do(place, words, url, zone=None, target=None, report=None):
    """Do a work in the folder ``place`` in a process of its own; returns its exit status, below 0 for a signal. It is
    killed at the moment ``target`` of the function ``zone``, whose events are written to ``report``."""
    process = multiprocessing.get_context("fork").Process(target=_do, args=(place, words, url, zone, target, report))
    process.start()
    process.join()
    return process.exitcode


def _do(place, words, url, zone, target, report):
    os.chdir(place)
    log = os.open("log.txt", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(log, 1)
    os.dup2(log, 2)
    events = count_events(zone, target) if zone else []
    status = call(words, url)
    if report is not None:
        report.write_text(json.dumps(events), encoding="utf-8")
    sys.exit(status)


def call(words, url):
    """The command line, or the download of a data set; both download from the server of this process."""
    if words == ("download",):
        from paddle_rope.tasks.common.datasets import PublishedFile, fetch_dataset

        fetch_dataset([PublishedFile("file", f"{url}/file", sha256=hashlib.sha256(FILE).hexdigest())], "run")
        return 0
    import huggingface_hub

    from paddle_rope.tasks.commands.main import main

    huggingface_hub.HfApi = functools.partial(huggingface_hub.HfApi, endpoint=url)
    return main(words)


# ---- moments: the events that Python's profiler sees while a function works
def count_events(name, target=None):
    """A list of the profiler events in each call of the function ``name``, "module:Class.method": entries and ends of
    Python and C functions. This process kills itself at ``target``, (call, event) from 0; None only counts."""
    module, _, path = name.partition(":")
    owner, _, attribute = path.rpartition(".")
    owner = pkgutil.resolve_name(f"{module}:{owner}")
    function, events = getattr(owner, attribute), []

    def see(*_):
        events[-1] += 1
        if target == (len(events) - 1, events[-1] - 1):
            kill()

    @functools.wraps(function)
    def counted(*args, **kwargs):
        if sys.getprofile() is see:  # called by itself
            return function(*args, **kwargs)
        events.append(0)
        sys.setprofile(see)
        try:
            return function(*args, **kwargs)
        finally:
            sys.setprofile(None)
            if target is not None and target[0] == len(events) - 1:
                kill()  # the call had fewer events than in the undisturbed work

    setattr(owner, attribute, counted)
    return events


def kill():
    """End this process as ``kill -9`` does."""
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
