"""What the tests of all recipes and verbs share."""

import pytest


@pytest.fixture
def write(tmp_path):
    """Write a file of text or bytes: ``write(content, name)`` -> its path."""

    def write(content, name="sample.txt"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        return path

    return write
