"""An HTTP server of this process: what it serves, how it fails, and what it was asked."""

import contextlib
import http.server
import socketserver
import threading
from dataclasses import dataclass, field


@dataclass
class LocalServer:
    """Serves ``files`` (path -> content). Every answer takes the next of ``cuts``: cut after so many bytes of body."""

    files: dict
    ranges: bool = True  # whether it answers Range with a part
    cuts: list = field(default_factory=list)
    statuses: list = field(default_factory=list)  # answered, one each, before anything is served
    after_cut: dict = field(default_factory=dict)  # path -> content from the first cut on
    asked: list = field(default_factory=list)  # (path, Range or None)
    url: str = ""

    @property
    def ranges_asked(self):
        return [range for _, range in self.asked]


@contextlib.contextmanager
def serve(server):
    """Run a :class:`LocalServer` on a free port of this machine."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):  # noqa: N802  named by the standard library
            asked = self.headers.get("Range")
            server.asked.append((self.path, asked))
            if server.statuses:
                return self.send_error(server.statuses.pop(0))
            content = server.files.get(self.path)
            if content is None:
                return self.send_error(404)
            start = int(asked.removeprefix("bytes=").removesuffix("-")) if asked and server.ranges else 0
            if start and start >= len(content):
                self.send_response(416)
                self.send_header("Content-Range", f"bytes */{len(content)}")
                self.send_header("Content-Length", "0")
                return self.end_headers()
            self.send_response(206 if start else 200)
            if start:
                self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
            self.send_header("Content-Length", str(len(content) - start))
            self.end_headers()
            cut = server.cuts.pop(0) if server.cuts else None
            if cut is not None:
                server.files.update(server.after_cut)
                content = content[: start + cut]
            self.wfile.write(content[start:])
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


@contextlib.contextmanager
def serve_bytes(answer):
    """Run a server that need not speak HTTP; gives its address and the list of what it was asked.

    ``answer(request)`` yields the bytes that are sent, piece by piece as long as the client listens.
    """
    asked = []

    class Handler(socketserver.StreamRequestHandler):
        def handle(self):
            lines = list(iter(self.rfile.readline, b"\r\n"))
            asked.append(b"".join(lines).decode("latin-1"))
            with contextlib.suppress(OSError):
                for piece in answer(asked[-1]):
                    self.request.sendall(piece)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as listener:
        listener.daemon_threads = True
        thread = threading.Thread(target=listener.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.server_address[1]}", asked
        finally:
            listener.shutdown()
            thread.join()
