"""A rank's connection to the store."""

from __future__ import annotations

import contextlib
import itertools
import json
import socket
import threading
import time
from collections.abc import Callable
from typing import Any

from treadle.core import forks
from treadle.core.errors import DistributedError
from treadle.distributed.store import Progress
from treadle.runtime import profiler

_RETRY = 0.05  # seconds between trials to connect
_HEARTBEAT = 0.25
_QUESTIONS = 8  # for the store's clock


class Client:
    """One rank's end. `ended` is called, in a thread of the connection, with the progress of each
    rank that has ended, and with None if the store itself has gone."""

    def __init__(
        self,
        address: tuple[str, int],
        rank: int,
        size: int,
        key: str,
        timeout: float,
        ended: Callable[[Progress | None], None],
    ) -> None:
        self._ended = ended
        self._sending = forks.lock()
        self._numbers = itertools.count()
        self._answers: dict[int, Any] = {}
        self._arrived = threading.Condition(forks.lock())
        self._is_closed = False
        # Says where this rank is, when that is to be sent.
        self.progress: Callable[[], Progress] = lambda: Progress(rank)
        self._socket = _connected(address, timeout)
        threading.Thread(target=self._read, name="treadle store client", daemon=True).start()
        hello = {"do": "hello", "rank": rank, "size": size, "key": key}
        wrong = self._ask(hello, timeout, "the store does not answer")
        if wrong:
            self._is_closed = True
            self._socket.close()
            raise DistributedError(f"this process is not let in as rank {rank}: {wrong}")
        threading.Thread(target=self._beat, name="treadle heartbeat", daemon=True).start()

    def tell(self) -> None:
        """Send where this rank is, which otherwise happens every quarter of a second."""
        self._send({"do": "at", **_fields(self.progress())})

    def set(self, key: str, value: Any) -> None:
        """Give a value to all ranks."""
        self._send({"do": "set", "key": key, "value": value})

    def drop(self, key: str) -> None:
        """Let the store forget a value that every rank has had."""
        self._send({"do": "drop", "key": key})

    def get(self, key: str, timeout: float) -> Any:
        """A value, when a rank has given it. TimeoutError if none does."""
        return self._ask({"do": "get", "key": key}, timeout, key)

    def where(self, timeout: float = 5.0) -> list[Progress]:
        """Where each rank is; an empty list if the store does not answer."""
        try:
            return [Progress(**each) for each in self._ask({"do": "where"}, timeout, "where")]
        except (TimeoutError, DistributedError):
            return []

    def clock(self, timeout: float = 5.0) -> float:
        """What to add to this process's clock of profiles for the store's: from the fastest of some
        questions, with an error of half its time at most."""
        best = None
        for _ in range(_QUESTIONS):
            before = profiler.clock()
            there = self._ask({"do": "clock"}, timeout, "the store's clock")
            after = profiler.clock()
            if best is None or after - before < best[0]:
                best = after - before, there - (before + after) / 2
        assert best is not None
        return float(best[1])

    def bye(self, reason: str, timeout: float = 5.0) -> None:
        """Say that this rank ends, and why if it has failed."""
        if self._is_closed:
            return
        with contextlib.suppress(TimeoutError, DistributedError):
            self._ask({"do": "bye", "reason": reason, **_fields(self.progress())}, timeout, "bye")
        self._is_closed = True

    # ------------------------------------------------------------------ the connection

    def _send(self, message: dict[str, Any]) -> None:
        try:
            with self._sending:
                self._socket.sendall(json.dumps(message).encode() + b"\n")
        except OSError:
            pass  # the reader notices

    def _ask(self, message: dict[str, Any], timeout: float, what: str) -> Any:
        number = next(self._numbers)
        self._send({**message, "id": number})
        until = time.monotonic() + timeout
        with self._arrived:
            while number not in self._answers:
                if self._is_closed:
                    raise DistributedError("the connection to the store has ended")
                left = until - time.monotonic()
                if left <= 0:
                    raise TimeoutError(what)
                self._arrived.wait(left)
            return self._answers.pop(number)

    def _read(self) -> None:
        try:
            with self._socket.makefile("rb") as lines:
                for line in lines:
                    message = json.loads(line)
                    if "ended" in message:
                        self._ended(Progress(**message["ended"]))
                        continue
                    with self._arrived:
                        self._answers[message["id"]] = message.get("value")
                        self._arrived.notify_all()
        except (OSError, ValueError):
            pass
        self._socket.close()
        with self._arrived:
            self._is_closed = True
            self._arrived.notify_all()
        self._ended(None)

    def _beat(self) -> None:
        while not self._is_closed:
            time.sleep(_HEARTBEAT)
            self.tell()


def _fields(progress: Progress) -> dict[str, Any]:
    return {
        "started": progress.started, "last": progress.last, "is_done": progress.is_done,
        "is_initialized": progress.is_initialized, "groups": progress.groups,
    }  # fmt: skip


def _connected(address: tuple[str, int], timeout: float) -> socket.socket:
    """A connection, tried again until the store is there."""
    host, port = address
    until = time.monotonic() + timeout
    while True:
        try:
            found = socket.create_connection(address, max(until - time.monotonic(), 0.1))
            found.settimeout(None)
            found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            return found
        except socket.gaierror as error:
            raise DistributedError(
                f"the host {host!r}, where the ranks meet, has no address: {error.strerror}. Is "
                "MASTER_ADDR (or --hosts) spelled right?"
            ) from None
        except OSError as error:
            if time.monotonic() >= until:
                raise DistributedError(
                    f"no store answers at {host}:{port} within {timeout:g} s ({error}): rank 0 has "
                    "not called td.distributed.init() there, or a firewall is between"
                ) from None
            time.sleep(_RETRY)
