"""Start a script in two processes of ``paddle.distributed.launch``, on the CPU."""

import contextlib
import os
import signal
import subprocess
import sys

# The launcher finds a free port, and the processes bind it seconds later. Outside of the range from which the system
# gives ports to connections nothing else takes it meanwhile.
PORTS = "20000:30000"


def launch(folder, script, *words):
    """Run ``script`` twice, with ``folder`` as working folder and for logs; no process is left behind."""
    command = [
        sys.executable, "-m", "paddle.distributed.launch", "--nproc_per_node", "2", "--log_dir", folder / "log",
        script, *words,
    ]  # fmt: skip
    # Paddle's store of addresses by libuv aborts where its port is taken; the other one raises an error that says so
    environment = {**os.environ, "PORT_RANGE": PORTS, "FLAGS_tcp_store_using_libuv": "0"}
    with subprocess.Popen(
        list(map(str, command)),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd=folder,
        env=environment,
        start_new_session=True,
    ) as process:
        try:
            printed, _ = process.communicate(timeout=400)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, printed.decode("utf-8", "replace")[-3000:]
