"""paddle-rope serve: trained models over HTTP."""

import importlib.util
import os

from paddle_rope.machine import physical_cores
from paddle_rope.tasks.commands.options import add_option, new_parser
from paddle_rope.tasks.common.errors import InputError
from paddle_rope.tasks.serving.settings import ServiceSettings, model_sources, options

SERVE = """\
Serve trained or exported models over HTTP: NER, classification and matching.

    paddle-rope serve runs/mine/model
    curl http://127.0.0.1:8080/predict --json '{"texts": ["浙商银行企业信贷部叶老桂博士"]}'

Several models have names: serve entities=FOLDER topics=FOLDER answers /predict/entities and /predict/topics; the
first is the default, which /predict means as well. The page /docs describes all paths and tries them.
docs/guides/serving.md has the rest. Each option is also a variable of the environment, such as PADDLE_ROPE_SERVE_PORT
for --port; give --api_key in this way. SIGTERM or Ctrl-C: what was accepted is answered, then the service ends; a
second time: at once."""
VARIABLES = "PADDLE_ROPE_SERVE_"  # of the environment: PADDLE_ROPE_SERVE_PORT is --port
NEEDED = ("fastapi", "fastapi_offline", "uvicorn", "prometheus_client")


def serve(argv):
    parser = new_parser("serve", SERVE)
    models = "folder of a trained or exported model, or NAME=FOLDER"
    parser.add_argument("models", metavar="FOLDER", nargs="+", help=models)
    for option in options():
        add_option(parser, option, option.metadata["help"])
        parser.set_defaults(**{option.name: _variable(option.name, option.default)})
    given = vars(parser.parse_args(argv))
    models = model_sources(given.pop("models"))
    if not os.environ.get("OMP_NUM_THREADS", "").isdigit():  # which numerical libraries read
        os.environ["OMP_NUM_THREADS"] = str(max(1, physical_cores() // max(1, given["workers"])))
    settings = ServiceSettings(models=models, **given, threads=int(os.environ["OMP_NUM_THREADS"]))
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise InputError(f"{missing[0]} is not installed; pip install 'paddle_rope[serve]'")
    from paddle_rope.tasks.serving.server import serve

    return serve(settings)


def _variable(name, default):
    value = os.environ.get(f"{VARIABLES}{name.upper()}")
    value = default if value is None else value.strip()  # a file with a secret often ends with a line end
    return {"true": True, "false": False}.get(value, value) if default is False else value
