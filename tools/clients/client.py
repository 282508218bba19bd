"""A client of ``paddle-rope serve``, which needs only Python:

    python tools/clients/client.py http://127.0.0.1:8080/predict 浙商银行企业信贷部叶老桂博士

The key is taken from the variable API_KEY.
"""

import json
import os
import sys
import time
from urllib.error import HTTPError
from urllib.request import Request, urlopen


def predict(url, texts, key="", tries=5, **options):
    """The results of a list of texts, with ``options`` such as ``top_k=5``. Waits while the queue is full, and raises
    RuntimeError with the service's own message for all other errors."""
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {key}"}
    request = Request(url, json.dumps({"texts": texts, **options}).encode(), headers)
    for left in reversed(range(tries)):
        try:
            with urlopen(request, timeout=60) as response:
                return json.load(response)["results"]
        except HTTPError as error:
            if error.code != 503 or not left:
                raise RuntimeError(f"{error.code}: {json.load(error)['error']}") from None
            time.sleep(float(error.headers.get("Retry-After", 1)))


if __name__ == "__main__":
    for result in predict(sys.argv[1], sys.argv[2:], os.environ.get("API_KEY", "")):
        for entity in result["entities"]:
            print(entity["type"], entity["text"], entity["start"], entity["end"])
