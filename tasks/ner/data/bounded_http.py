"""HTTP that counts: every byte a server sends, of headers too, passes by before it is used."""

from __future__ import annotations

import http.client
import io
import urllib.error
import urllib.parse
import urllib.request


def bounded_opener(count):
    """``urllib.request.OpenerDirector`` for http and https, with the proxies of the environment.

    ``count`` is called with the bytes of each piece that arrives, and with 0 before each is waited for: of status line,
    headers and body, of redirections and proxies. What it raises ends the request.
    """
    return urllib.request.build_opener(_Http(count), _Https(count), _Redirects())


class _Counted(io.RawIOBase):
    """What a socket brings."""

    def __init__(self, raw, count):
        super().__init__()
        self._raw, self._count = raw, count

    def readable(self):
        return True

    def readinto(self, buffer):
        self._count(0)
        received = self._raw.readinto(buffer)
        self._count(received or 0)
        return received

    def close(self):
        self._raw.close()
        super().close()


class _CountingHandler:
    """Beside a handler of urllib: answers are read through :class:`_Counted`."""

    def __init__(self, count):
        super().__init__()
        self._count = count

    def do_open(self, http_class, req, **options):
        def response(sock, *words, **named):
            answer = http.client.HTTPResponse(sock, *words, **named)
            answer.fp = io.BufferedReader(_Counted(answer.fp.detach(), self._count))
            return answer

        def connection(*words, **named):
            made = http_class(*words, **named)
            made.response_class = response
            return made

        return super().do_open(connection, req, **options)


class _Http(_CountingHandler, urllib.request.HTTPHandler):
    pass


class _Https(_CountingHandler, urllib.request.HTTPSHandler):
    pass


class _Redirects(urllib.request.HTTPRedirectHandler):
    def http_error_302(self, req, fp, code, msg, headers):
        fp.read = lambda *_: b""  # the body, which nobody needs, may be of any length
        return super().http_error_302(req, fp, code, msg, headers)

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302

    def redirect_request(self, req, fp, code, msg, headers, newurl):
        if urllib.parse.urlsplit(newurl).scheme not in ("http", "https"):
            raise urllib.error.HTTPError(newurl, code, f"{msg} - to {newurl!r}, which is not http", headers, fp)
        return super().redirect_request(req, fp, code, msg, headers, newurl)
