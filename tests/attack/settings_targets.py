"""Configurations of runs, plans of experiments, the folder of an interrupted run or series, and the bodies of requests
to the service, which are given to its application without a network."""

import asyncio
import contextlib
import functools
import hashlib
import json
import os
from pathlib import Path

import httpx

from paddle_rope.tasks.common.errors import InputError
from tests.attack.mutators import OF_BYTES, OF_JSON, OF_LINES, change_yaml, mutator
from tests.attack.tensor_targets import change_files
from tests.attack.watchdog import SilentLossError, Target, json_bytes, target_of_folder

CONFIGS = Path(__file__).resolve().parents[2] / "configs"
NAME = "mutant.yaml"
RECIPES = ("ner", "matching", "classification")
STEP = 2
STATE, COMPLETE = (f"checkpoints/checkpoint-{STEP}/{name}" for name in ("trainer_state.json", "complete"))
REQUESTS = [{NAME: json_bytes({"texts": texts})} for texts in (["浙商银行", "", "😀 a"], ["a"])]
SERVICE = {"max_texts": 8, "max_characters": 500, "max_body_bytes": 20_000, "max_seconds": 5.0, "max_wait_ms": 0}


def read_configuration(folder: Path) -> None:
    """A configuration file up to the arguments of the first recipe that takes it."""
    from paddle_rope.tasks.common.process import quiet_paddlenlp
    from paddle_rope.tasks.common.run_config import read_run_config
    from paddle_rope.tasks.common.training.settings import resolve
    from paddle_rope.tasks.recipes import get_arguments

    quiet_paddlenlp()
    config = read_run_config(folder / NAME)
    for name in RECIPES:
        try:
            resolve({"output_dir": "unused", **config}, get_arguments(name))
            return
        except InputError as error:
            refused = error
    raise refused


def read_plan(folder: Path) -> None:
    """A plan up to the configuration of each of its runs."""
    from paddle_rope.tasks.experiments.plan import check_kept_keys, read_plan

    check_kept_keys(read_plan(folder / NAME, output_dir=folder / "output").cells[:3])


@functools.cache
def _run():
    """The files of an interrupted run, and of a series."""
    import yaml
    from paddlenlp.trainer import TrainerState

    ner, matching = (yaml.safe_load((CONFIGS / recipe / "demo.yaml").read_bytes()) for recipe in ("ner", "matching"))
    config = {**ner, "train_file": "train.jsonl", "dev_file": "dev.jsonl"}
    of_series = {**matching, "train_file": "train.tsv", "dev_file": None, "folds": 2}
    history = [{"loss": 1.0, "epoch": 1.0, "step": 1}, {"dev_f1": 0.5, "epoch": 1.0, "step": STEP}]
    state = TrainerState(epoch=1.0, global_step=STEP, max_steps=4, num_train_epochs=2, log_history=history)
    best = {"best_metric": 0.5, "best_model_checkpoint": f"run/checkpoints/checkpoint-{STEP}"}
    content = json_bytes({**vars(state), **best})
    return {
        "config.yaml": yaml.safe_dump(config, allow_unicode=True).encode(),
        "inputs.json": json_bytes({}),
        "series.yaml": yaml.safe_dump({"recipe": "matching", "seeds": [1, 2], "config": of_series}).encode(),
        STATE: content,
        COMPLETE: f"{hashlib.sha256(content).hexdigest()}  {Path(STATE).name}\n".encode(),
    }


def read_run(folder: Path) -> None:
    """A run, and a series of it, up to where they would go on."""
    from paddle_rope.tasks.common.process import quiet_paddlenlp
    from paddle_rope.tasks.common.run_config import read_run_config
    from paddle_rope.tasks.common.training.checkpoints import last_checkpoint
    from paddle_rope.tasks.common.training.data import NO_DATA
    from paddle_rope.tasks.common.training.run import CHECKPOINTS_FOLDER, CONFIG_FILE, Run
    from paddle_rope.tasks.common.training.series import begun_series
    from paddle_rope.tasks.common.training.settings import resolve
    from paddle_rope.tasks.recipes import get_arguments, get_recipe

    quiet_paddlenlp()
    checkpoint = last_checkpoint(folder / CHECKPOINTS_FOLDER)
    config = {**read_run_config(folder / CONFIG_FILE), "output_dir": str(folder)}
    with contextlib.ExitStack() as stack:
        Run(*resolve(config, get_arguments("ner")), None, stack, NO_DATA, checkpoint, is_begun=True).claim()
    for cell in begun_series(folder, get_recipe).cells[-1:]:  # they differ in seed and fold
        resolve(cell.config, cell.recipe.arguments)


# ---- the service
def started(settings, works):
    """(event loop, application, task that computes) of a service."""
    from paddle_rope.tasks.serving.application import Service, build_application

    service, loop = Service(settings), asyncio.new_event_loop()
    service.works = works
    return loop, build_application(service), loop.create_task(service.batcher.run())


@functools.cache
def _service(process):
    """A service whose model gives the texts back; one for a process, as threads do not survive a fork."""
    from paddle_rope.tasks.serving.models import Work
    from paddle_rope.tasks.serving.settings import ModelSource, ServiceSettings

    def echo(texts):
        return [json.dumps({"text": text, "entities": []}, ensure_ascii=False).encode() for text in texts]

    settings = ServiceSettings(models=(ModelSource("echo", "unused", "ner"),), **SERVICE)
    return started(settings, {("echo", "predict"): Work("echo", "predict", echo)})


async def answer(application, body, path="/predict"):
    """(status, content) of a POST."""
    headers, transport = {"content-type": "application/json"}, httpx.ASGITransport(application)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
        response = await client.post(path, content=body, headers=headers)
    return response.status_code, response.content


def read_request(folder: Path) -> None:
    """One request: an answer of 200 has the texts that were sent; all others are JSON with an error of one line."""
    loop, application, _ = _service(os.getpid())
    body = (folder / NAME).read_bytes()
    status, content = loop.run_until_complete(answer(application, body))
    if status >= 500:
        raise SilentLossError(f"status {status}: {content[:300]!r}")
    if status == 200:
        if [result["text"] for result in json.loads(content)["results"]] != json.loads(body)["texts"]:
            raise SilentLossError("results of other texts than were sent")
    else:
        reason = json.loads(content)["error"]
        if "\n" in reason or "Traceback" in reason or not reason:
            raise SilentLossError(f"status {status}: {reason[:300]!r}")


def _target(name, read, *files):
    change = mutator(*OF_BYTES, *OF_LINES, *[change_yaml] * 30)
    return Target(name, lambda: [{NAME: (CONFIGS / f).read_bytes()} for f in files], change, read, (InputError,))


TARGETS = [
    _target("configuration", read_configuration, "ner/cluener.yaml", *(f"{name}/demo.yaml" for name in RECIPES)),
    _target("plan", read_plan, *(f"experiments/{one}.yaml" for one in ("demo", "scm", "few_texts", "positions"))),
    target_of_folder("run", _run, lambda case, rng: change_files(*sorted(case))(case, rng), read_run, InputError),
    Target("request", lambda: REQUESTS, mutator(*OF_BYTES, *OF_LINES, *OF_JSON * 3), read_request, ()),
]
