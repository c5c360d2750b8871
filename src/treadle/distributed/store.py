"""A small store of values that all ranks reach over TCP, which also knows how each rank is.

It is a thread of the launcher, or of rank 0 where another program has started the ranks. A message
is a line of JSON. A rank that is connected says from time to time which operation it has started
last; if its connection ends, all others are sent why.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from treadle.core import forks
from treadle.runtime import profiler

_MOST_BYTES = 1 << 20  # of a line
_BACKLOG = 1024
ABSENT = "it ended before it was connected to the others"
KILLED = "it ended without a word: it was killed, or ended itself past Python"


@dataclass(frozen=True, slots=True)
class Progress:
    """Where a rank is: how many operations of all ranks it has started, and of each group by its
    key, the last operation in words, and whether that is over. `ended` is why the rank is no longer
    there; "" if it has ended as it should."""

    rank: int
    started: int = 0
    last: str = ""
    is_done: bool = True
    ended: str | None = None
    age: float = 0.0  # seconds since it was last heard of
    is_initialized: bool = False
    groups: dict[str, int] = field(default_factory=dict)

    def count(self, key: str) -> int:
        """How many operations of a group it has started, or of all ranks for ""."""
        return self.groups.get(key, 0) if key else self.started

    def __str__(self) -> str:
        if self.ended:
            return f"rank {self.rank} has failed: {self.ended}"
        if self.ended is not None:
            return f"rank {self.rank} has ended, after {self.last or 'no operation'}"
        heard = f" (last heard of {self.age:.0f} s ago)" if self.age > 5 else ""
        if not self.is_initialized:
            return f"rank {self.rank} has not called td.distributed.init(){heard}"
        if not self.last:
            return f"rank {self.rank} has started no operation yet{heard}"
        return f"rank {self.rank} is {'after' if self.is_done else 'in'} {self.last}{heard}"


class _Connection:
    """One rank, as the store sees it."""

    def __init__(self, found: socket.socket) -> None:
        self.socket = found
        self.rank = -1
        self._sending = forks.lock()

    def send(self, message: dict[str, Any]) -> None:
        """Send a message; one that has gone raises nothing here."""
        with contextlib.suppress(OSError), self._sending:
            self.socket.sendall(json.dumps(message).encode() + b"\n")


class Store:
    """The server. `changed` is called, in a thread of the store, when a rank has ended."""

    def __init__(
        self,
        size: int,
        host: str = "127.0.0.1",
        port: int = 0,
        key: str = "",
        changed: Callable[[Progress], None] | None = None,
    ) -> None:
        self._size = size
        self._key = key
        self._changed = changed
        self._lock = forks.lock()
        self._values: dict[str, Any] = {}
        self._waiting: dict[str, list[tuple[_Connection, int]]] = {}
        self._connections: dict[int, _Connection] = {}
        self._welcomed: set[int] = set()
        self._progress = {rank: Progress(rank) for rank in range(size)}
        self._heard = dict.fromkeys(range(size), time.monotonic())
        self._socket = listening(host, port)
        self.port: int = self._socket.getsockname()[1]
        threading.Thread(target=self._accept, name="treadle store", daemon=True).start()

    def progress(self) -> list[Progress]:
        """Where each rank is."""
        now = time.monotonic()
        with self._lock:
            return [
                replace(each, age=now - self._heard[each.rank]) for each in self._progress.values()
            ]

    def ended(self, rank: int, reason: str) -> None:
        """Note that a rank is no longer there, and why; send that to the others. The first reason
        counts."""
        with self._lock:
            before = self._progress[rank]
            if before.ended is not None:
                return
            now = self._progress[rank] = replace(before, ended=reason)
            others = [each for each in self._connections.values() if each.rank != rank]
        for each in others:
            each.send({"ended": asdict(now)})
        if self._changed is not None:
            self._changed(now)

    def left(self, rank: int) -> None:
        """Note that a rank's process has ended, if it has not said so itself."""
        with self._lock:
            was_here = rank in self._welcomed
        self.ended(rank, KILLED if was_here else ABSENT)

    def close(self) -> None:
        """Answer no longer."""
        close_listening(self._socket)
        with self._lock:
            connections = [*self._connections.values()]
        for each in connections:
            _shut(each.socket)

    def _accept(self) -> None:
        while True:
            try:
                found, _ = self._socket.accept()
            except OSError:
                return
            _quick(found)
            threading.Thread(
                target=self._serve, args=(_Connection(found),), name="treadle store", daemon=True
            ).start()

    def _serve(self, connection: _Connection) -> None:
        try:
            with connection.socket.makefile("rb") as lines:
                while line := lines.readline(_MOST_BYTES):
                    if not self._answer(connection, json.loads(line)):
                        break
        except (OSError, ValueError, KeyError, TypeError):
            pass  # a connection that breaks, or is not a rank's
        finally:
            _shut(connection.socket)
            rank = connection.rank
            with self._lock:
                if self._connections.get(rank) is connection:
                    del self._connections[rank]
                else:
                    rank = -1
            if rank >= 0:
                self.ended(rank, KILLED)

    def _answer(self, connection: _Connection, message: dict[str, Any]) -> bool:
        """Do what a message says. False if the connection is to end."""
        what = message["do"]
        if connection.rank < 0:
            return what == "hello" and self._welcome(connection, message)
        self._heard[connection.rank] = time.monotonic()
        if what == "set":
            self._set(message["key"], message["value"])
        elif what == "get":
            with self._lock:
                known = message["key"] in self._values
                if not known:
                    waiting = self._waiting.setdefault(message["key"], [])
                    waiting.append((connection, message["id"]))
            if known:
                connection.send({"id": message["id"], "value": self._values[message["key"]]})
        elif what == "drop":
            with self._lock:
                self._values.pop(message["key"], None)
        elif what == "at":
            self._at(connection.rank, message)
        elif what == "clock":
            connection.send({"id": message["id"], "value": profiler.clock()})
        elif what == "where":
            found = [asdict(each) for each in self.progress()]
            connection.send({"id": message["id"], "value": found})
        elif what == "bye":
            self._at(connection.rank, message)
            self.ended(connection.rank, message["reason"])
            connection.send({"id": message["id"], "value": None})
        return True

    def _welcome(self, connection: _Connection, message: dict[str, Any]) -> bool:
        rank = message["rank"]
        with self._lock:
            wrong = None
            if message["key"] != self._key:
                wrong = "its key is another job's"
            elif message["size"] != self._size:
                wrong = f"it counts {message['size']} ranks, and rank 0 counts {self._size}"
            elif rank in self._connections:
                wrong = f"another process is rank {rank} already"
            else:
                connection.rank = rank
                self._connections[rank] = connection
                self._welcomed.add(rank)
            ended = [asdict(each) for each in self._progress.values() if each.ended is not None]
        connection.send({"id": message["id"], "value": wrong})
        for each in ended:
            connection.send({"ended": each})
        return wrong is None

    def _set(self, key: str, value: Any) -> None:
        with self._lock:
            self._values[key] = value
            waiting = self._waiting.pop(key, [])
        for connection, number in waiting:
            connection.send({"id": number, "value": value})

    def _at(self, rank: int, message: dict[str, Any]) -> None:
        with self._lock:
            self._progress[rank] = replace(
                self._progress[rank],
                started=message["started"], last=message["last"], is_done=message["is_done"],
                is_initialized=message["is_initialized"], groups=message["groups"],
            )  # fmt: skip


def listening(host: str, port: int) -> socket.socket:
    """A socket that listens; for port 0 at one that no other has had lately."""
    made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    try:
        if port:  # a job that ends leaves its port in TIME_WAIT
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind((host, port))
        made.listen(_BACKLOG)
    except BaseException:
        made.close()
        raise
    return made


def close_listening(found: socket.socket) -> None:
    """Close a socket on which another thread may be waiting: that alone would not wake it."""
    _shut(found)


def _quick(found: socket.socket) -> None:
    """Send small messages at once, and notice a host that has gone."""
    found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)


def _shut(found: socket.socket) -> None:
    with contextlib.suppress(OSError):
        found.shutdown(socket.SHUT_RDWR)
    found.close()
