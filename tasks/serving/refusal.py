"""A request that is not served."""

from __future__ import annotations

import json


class Refusal(Exception):
    """HTTP status, reason in a line, and further headers of an answer that is an error."""

    def __init__(self, status: int, reason: str, headers: dict[str, str] | None = None):
        super().__init__(reason)
        self.status, self.reason, self.headers = status, reason, headers or {}


def error_body(reason: str) -> bytes:
    """The body of every answer that is an error."""
    return json.dumps({"error": reason}).encode()
