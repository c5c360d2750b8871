"""A server on a loopback port, with an engine that writes what a script says."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import openai

from tests.support.small_engine import SmallEncoder, SmallEngine, SmallModel
from treadle.models.serving.app import Settings, served
from treadle.models.serving.server import Server


def script(prompt: str) -> str:
    """What the engine answers: what follows the last colon, doubled."""
    last = prompt.rpartition(": ")[2]
    return last + last


class Running:
    """A server, its engine, and clients."""

    def __init__(self, server: Server, engine: SmallEngine) -> None:
        self.server, self.engine, self.url = server, engine, server.url
        self.clients: list[openai.OpenAI] = []

    def client(self, key: str = "none") -> openai.OpenAI:
        client = openai.OpenAI(
            base_url=f"{self.url}/v1", api_key=key, max_retries=0, timeout=20,
            http_client=openai.DefaultHttpxClient(verify=False),  # certificates are long to read
        )  # fmt: skip
        self.clients.append(client)
        return client

    def close(self) -> None:
        for client in self.clients:
            client.close()
        self.server.close()


# Servers that close while other tests run: uvicorn looks ten times a second whether it should end.
_closing: deque[threading.Thread] = deque()
_MOST_CLOSING = 8


@contextmanager
def starting_servers() -> Iterator[Callable[..., Running]]:
    """Starts servers, which end with the block."""
    running: list[Running] = []

    def starting(
        answer: Callable[[str], str] = script, slots: int = 16, delay: float = 0.0,
        template: str | None = "{{ tools }}", **settings: Any,
    ) -> Running:  # fmt: skip
        engine = SmallEngine(answer, slots, delay)
        given = Settings(**settings)
        models = served([(SmallModel("small", engine, template), engine)],
                        [SmallEncoder("letters")], given.most_queued)  # fmt: skip
        found = Running(Server(models, given), engine)
        found.server.start()
        running.append(found)
        return found

    try:
        yield starting
    finally:
        for each in running:
            thread = threading.Thread(target=each.close, name="test-closes-server")
            thread.start()
            _closing.append(thread)
        while len(_closing) > _MOST_CLOSING:
            _closing.popleft().join()
