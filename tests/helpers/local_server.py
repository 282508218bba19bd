"""An HTTP server of this process: what it serves, how it fails, and what it was asked."""

import contextlib
import http.server
import threading
from dataclasses import dataclass, field


@dataclass
class LocalServer:
    """Serves ``files`` (path -> content). Every answer takes the next of ``cuts``: cut after so many bytes of body."""

    files: dict
    cuts: list = field(default_factory=list)
    statuses: list = field(default_factory=list)  # answered, one each, before anything is served
    asked: list = field(default_factory=list)  # paths
    url: str = ""


@contextlib.contextmanager
def serve(server):
    """Run a :class:`LocalServer` on a free port of this machine."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):  # noqa: N802  named by the standard library
            server.asked.append(self.path)
            if server.statuses:
                return self.send_error(server.statuses.pop(0))
            content = server.files.get(self.path)
            if content is None:
                return self.send_error(404)
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            cut = server.cuts.pop(0) if server.cuts else None
            if cut is not None:
                content = content[:cut]
            self.wfile.write(content)
            self.close_connection = True

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listener:
        thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        server.url = f"http://127.0.0.1:{listener.server_port}"
        try:
            yield server
        finally:
            listener.shutdown()
            thread.join()
