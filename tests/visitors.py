"""A visitor of the page without a browser, over HTTP."""

from __future__ import annotations

import base64
import json
from typing import Any
from urllib.request import Request, urlopen

import numpy as np
from benchmarks.page import Client


class Answer:
    """Of a server, as Flask's own client gives it."""

    def __init__(self, status_code: int, content: bytes) -> None:
        self.status_code, self.content = status_code, content

    def get_data(self, as_text: bool = True) -> str:
        return self.content.decode()

    def get_json(self) -> Any:
        return json.loads(self.content or b"{}")


class Loopback:
    """Requests to a server at an address."""

    def __init__(self, address: str) -> None:
        self.address = address.rstrip("/")

    def get(self, path: str) -> Answer:
        with urlopen(self.address + path, timeout=120) as answer:
            return Answer(answer.status, answer.read())

    def post(self, path: str, json: Any) -> Answer:
        request = Request(self.address + path, dumped(json), {"Content-Type": "application/json"})
        with urlopen(request, timeout=120) as answer:
            # where nothing is to be updated there is no content
            return Answer(200, answer.read() or dumped({"response": {}}))


class Visitor(Client):
    """Who asks the callbacks of a server over HTTP."""

    def __init__(self, address: str) -> None:
        self.client, self.seconds = Loopback(address), 0.0
        self.callbacks = self.client.get("/_dash-dependencies").get_json()


def dumped(value: Any) -> bytes:
    return json.dumps(value).encode()


def values(sent) -> list[float]:
    """Numbers as Plotly sends them."""
    if isinstance(sent, list):
        return sent
    return np.frombuffer(base64.b64decode(sent["bdata"]), sent["dtype"]).tolist()
