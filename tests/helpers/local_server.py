"""An HTTP server of this process: what it serves, how it fails, and what it was asked."""

import contextlib
import hashlib
import http.server
import json
import threading
from dataclasses import dataclass, field

COMMIT = "c0ffee" + "0" * 34


@dataclass
class LocalServer:
    """Serves ``files`` (path -> content, or the status of a refusal), also from the middle on. Every answer takes the
    next of ``cuts``: cut after so many bytes of body."""

    files: dict
    headers: dict = field(default_factory=dict)  # path -> more headers of its answers
    cuts: list = field(default_factory=list)
    statuses: list = field(default_factory=list)  # answered, one each, before anything is served
    asked: list = field(default_factory=list)  # paths, with the first byte if that is not 0
    url: str = ""

    def add_model(self, name, files):
        """Serve ``files`` (name -> content) as a model hub serves the model ``name``."""
        described = []
        for file, content in files.items():
            sums = {"size": len(content), "blobId": hashlib.sha1(b"blob %d\0%b" % (len(content), content)).hexdigest()}
            etag = sums["blobId"]
            if file.endswith((".bin", ".safetensors", ".pdparams")):  # large files
                etag = hashlib.sha256(content).hexdigest()
                sums["lfs"] = {"sha256": etag, "size": len(content), "pointerSize": 134}
            described.append({"rfilename": file, **sums})
            path = f"/{name}/resolve/{COMMIT}/{file}"
            self.files[path] = content
            self.headers[path] = {"ETag": f'"{etag}"', "X-Repo-Commit": COMMIT}
        about = {"id": name, "sha": COMMIT, "siblings": described, "cardData": {"license": "apache-2.0"}}
        self.files[f"/api/models/{name}?blobs=True"] = json.dumps(about).encode()


@contextlib.contextmanager
def serve(server):
    """Run a :class:`LocalServer` on a free port of this machine."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_HEAD(self):  # noqa: N802  named by the standard library
            content = server.files.get(self.path, 404)
            self.send_response(content if isinstance(content, int) else 200)
            self.send_headers(0 if isinstance(content, int) else len(content))

        def do_GET(self):  # noqa: N802
            start = int(self.headers.get("Range", "bytes=0-")[len("bytes=") : -1])
            server.asked.append((self.path, start) if start else self.path)
            if server.statuses:
                return self.send_error(server.statuses.pop(0))
            content = server.files.get(self.path, 404)
            if isinstance(content, int):
                self.send_response(content)
                return self.send_headers(0)
            self.send_response(206 if start else 200)
            content = content[start:]
            self.send_headers(len(content))
            cut = server.cuts.pop(0) if server.cuts else None
            self.wfile.write(content[:cut])
            self.close_connection = True

        def send_headers(self, length):
            for name, value in {"Content-Length": length, **server.headers.get(self.path, {})}.items():
                self.send_header(name, str(value))
            self.end_headers()

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
