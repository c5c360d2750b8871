"""Running the application: with uvicorn, in the main thread or in one of its own."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import threading
from collections.abc import Callable
from dataclasses import replace
from types import TracebackType

import uvicorn

from treadle.models.serving.app import Served, Settings, application


class Server:
    """A server on an address. It listens once it is made; `run` or `start` answers."""

    def __init__(
        self, models: Served, settings: Settings, host: str = "127.0.0.1", port: int = 0
    ) -> None:
        self._models = models
        self._socket = _listen(host, port)
        self.host, self.port = host, self._socket.getsockname()[1]
        settings = replace(settings, only_local=settings.only_local and is_loopback(host))
        config = uvicorn.Config(
            application(models, settings), log_level="warning", access_log=False,
            timeout_graceful_shutdown=5, lifespan="off", server_header=False,
            http="h11", ws="none", loop="asyncio",
        )  # fmt: skip
        self._server = _Uvicorn(config, models.close)
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """Where it answers."""
        name = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{name}:{self.port}"

    def run(self) -> None:
        """Answer until the process is interrupted."""
        self._server.run(sockets=[self._socket])
        self._models.close()

    def start(self) -> None:
        """Answer in a thread, until `close`."""
        self._thread = threading.Thread(target=self.run, name="treadle-server", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the thread: generations stop, and open connections are closed."""
        self._server.should_exit = True
        if self._thread is not None:
            self._thread.join(timeout=30)
        self._models.close()
        self._socket.close()

    def __enter__(self) -> Server:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:  # fmt: skip
        self.close()


class _Uvicorn(uvicorn.Server):
    """Ends the generations before it waits for their connections."""

    def __init__(self, config: uvicorn.Config, end: Callable[[], None]) -> None:
        super().__init__(config)
        self._end = end

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await asyncio.to_thread(self._end)
        await super().shutdown(sockets)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        found = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        raise OSError(f"{host} is not an address of this machine: {error}") from None
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
        found.listen(512)
    except OSError as error:
        found.close()
        raise OSError(
            f"port {port} of {host} cannot be used ({error.strerror}): choose another with --port"
        ) from None
    found.set_inheritable(False)
    return found
