"""Start a script in two processes of ``paddle.distributed.launch``, on the CPU."""

import contextlib
import os
import signal
import socket
import subprocess
import sys


def launch(folder, script, *words):
    """Run ``script`` twice, with ``folder`` as working folder and for logs; no process is left behind."""
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        port = server.getsockname()[1]
    command = [
        sys.executable, "-m", "paddle.distributed.launch", "--nproc_per_node", "2", "--log_dir", folder / "log",
        "--start_port", port, script, *words,
    ]  # fmt: skip
    with subprocess.Popen(
        list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=folder, start_new_session=True
    ) as process:
        try:
            printed, _ = process.communicate(timeout=400)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == 0, printed.decode("utf-8", "replace")[-3000:]
