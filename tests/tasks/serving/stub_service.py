"""``paddle-rope serve`` with a model that does what its texts say, without paddle; workers are started from it, too.

echo      the text comes back
gate:F    the thread that computes waits until the file F exists
fail      an error that nobody expected
refuse    what the user sent is wrong

Where the variable STUB_OPENS is set, a model opens when the file of that name exists; with STUB_NOBODY_READS, standard
error is a pipe whose reader has left; STUB_BOUNDS is a JSON object of constants, such as server.ANSWER_SECONDS.
"""

import importlib
import json
import multiprocessing
import os
import sys
import time
from pathlib import Path

from paddle_rope.tasks.commands.main import main
from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.serving import application
from paddle_rope.tasks.serving.models import Work

GATE_SECONDS = 60


def wait_for(file):
    Path(f"{file}.reached").touch()
    until = time.monotonic() + GATE_SECONDS
    while not Path(file).exists() and time.monotonic() < until:
        time.sleep(0.01)


def compute(texts):
    for text in texts:
        kind, _, file = text.partition(":")
        if kind == "gate":
            wait_for(file)
        elif kind == "fail":
            raise RuntimeError("a defect")
        elif kind == "refuse":
            raise InputError("this text cannot be computed")
    records = [{"text": text, "entities": [], "process": os.getpid()} for text in texts]
    return [json.dumps(record, ensure_ascii=False).encode() for record in records]


def open_works(settings):
    open_works.lock = multiprocessing.RLock()  # as tqdm makes one when PaddleNLP is imported
    if any(source.name == "broken" for source in settings.models):
        raise InputError("the model is broken")
    if "STUB_OPENS" in os.environ:
        wait_for(os.environ["STUB_OPENS"])
    return {(source.name, "predict"): Work(source.name, "predict", compute) for source in settings.models}


application.open_works = open_works
for place, value in json.loads(os.environ.get("STUB_BOUNDS", "{}")).items():
    module, name = place.split(".")
    setattr(importlib.import_module(f"paddle_rope.tasks.serving.{module}"), name, value)

if __name__ == "__main__":
    if "STUB_NOBODY_READS" in os.environ:
        reader, writer = os.pipe()
        os.close(reader)
        os.dup2(writer, 2)
    sys.exit(main(["serve", *sys.argv[1:]]))
