"""paddle-rope serve: trained models over HTTP."""

import os

from paddle_rope.machine import physical_cores, prepare_process
from tasks.commands.options import add_bf16, new_parser
from tasks.serving.settings import Settings, model_sources

SERVE = """\
Serve trained or exported models over HTTP: NER, classification and matching.

    paddle-rope serve runs/mine/model
    curl http://127.0.0.1:8080/predict --json '{"texts": ["浙商银行企业信贷部叶老桂博士"]}'

Several models have names: serve entities=FOLDER topics=FOLDER answers /predict/entities and /predict/topics; the first
is the default, which /predict means, too. The page /docs describes all paths and tries them. docs/serving.md has the
rest. SIGTERM or Ctrl-C: what was accepted is answered, then the service ends; a second time: at once."""
OPTIONS = {  # name of the option and of the field of Settings -> (type, help)
    "host": (str, "address to listen at; 0.0.0.0 for all of this machine"),
    "port": (int, "port to listen at; 0 for a free one, which is told"),
    "workers": (int, "processes; each has its own models and the cores // workers threads"),
    "batch_size": (int, "texts computed together"),
    "max_wait_ms": (float, "milliseconds that a text waits for others to be computed with"),
    "max_queue": (int, "texts of a worker that may wait, of each request at most a batch; then 503"),
    "max_queue_characters": (int, "characters of a worker that may wait; then 503"),
    "max_texts": (int, "texts or pairs of a request"),
    "max_characters": (int, "characters of a text"),
    "max_request_characters": (int, "characters of a request of several texts"),
    "max_body_bytes": (int, "bytes of a request's body"),
    "max_seconds": (float, "from a request to its answer; later it is refused with 503"),
    "stop_seconds": (float, "for the requests in work when the service is told to stop"),
}


def serve(words):
    parser = new_parser("serve", SERVE)
    models = "folder of a trained or exported model, or NAME=FOLDER"
    parser.add_argument("models", metavar="FOLDER", nargs="+", help=models)
    for name, (kind, meaning) in OPTIONS.items():
        default = getattr(Settings, name)
        parser.add_argument(f"--{name}", type=kind, default=default, help=f"{meaning} (default: {default})")
    parser.add_argument("--device", help="cpu, gpu, ... (default: a GPU where there is one)")
    add_bf16(parser)
    options = vars(parser.parse_args(words))
    models = model_sources(options.pop("models"))
    if not os.environ.get("OMP_NUM_THREADS", "").isdigit():  # which the libraries that compute read
        os.environ["OMP_NUM_THREADS"] = str(max(1, physical_cores() // max(1, options["workers"])))
    settings = Settings(models, **options, threads=int(os.environ["OMP_NUM_THREADS"]))
    prepare_process()
    from tasks.serving.workers import serve

    return serve(settings)
