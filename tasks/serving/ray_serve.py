"""The application of ``paddle-rope serve`` on Ray Serve, on one machine or a cluster.

serve run paddle_rope.tasks.serving.ray_serve:build model=runs/mine/model replicas=2
"""

from pydantic import ConfigDict, Field, create_model
from ray import serve

from paddle_rope.tasks.serving.settings import ServiceSettings, model_sources, options

MAX_ONGOING = 1024  # requests that a replica takes; its own queue refuses earlier
OF_RAY = ("host", "port", "workers")  # options that Ray handles itself

# The arguments of build, NAME=VALUE on the command line: the other options of ``paddle-rope serve``.
Arguments = create_model(
    "Arguments",
    __config__=ConfigDict(extra="forbid"),
    model=(str, Field(description="folder of a trained or exported model, or NAME=FOLDER, several between commas")),
    replicas=(int, Field(1, ge=1, description="processes, each with its own models")),
    threads=(int, Field(1, ge=1, description="of a replica")),
    **{one.name: (one.type, one.default) for one in options() if one.name not in OF_RAY},
)


def build(arguments: Arguments) -> serve.Application:
    """The application; raises InputError if a folder holds no model or an option is out of range."""
    given = arguments.model_dump()
    replicas, models = given.pop("replicas"), given.pop("model").split(",")
    settings = ServiceSettings(models=model_sources(models), **given)

    def open_in_replica():
        from paddle_rope.tasks.serving.application import open_application

        return open_application(settings)

    environment = {"env_vars": {"OMP_NUM_THREADS": str(settings.threads)}}
    deployment = serve.deployment(serve.ingress(open_in_replica)()).options(
        name="paddle_rope",
        num_replicas=replicas,
        max_ongoing_requests=MAX_ONGOING,
        ray_actor_options={"num_cpus": settings.threads, "runtime_env": environment},
    )
    return deployment.bind()
