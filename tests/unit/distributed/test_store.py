"""The store where ranks meet, within one process."""

from __future__ import annotations

import socket
import threading

import pytest

from treadle.core.errors import DistributedError
from treadle.distributed.client import Client
from treadle.distributed.store import KILLED, Store


@pytest.fixture
def store():
    made = Store(2, key="secret")
    yield made
    made.close()


def client(store, rank, ended=lambda progress: None, key="secret", size=2):
    return Client(("127.0.0.1", store.port), rank, size, key, 5.0, ended)


def test_values_are_waited_for(store):
    first, second = client(store, 0), client(store, 1)
    threading.Timer(0.05, lambda: first.set("a", [1, "two"])).start()
    assert second.get("a", 5.0) == [1, "two"]
    assert first.get("a", 5.0) == [1, "two"]
    with pytest.raises(TimeoutError):
        first.get("b", 0.05)
    first.drop("a")
    with pytest.raises(TimeoutError):
        first.get("a", 0.05)
    first.bye("")
    second.bye("")


def test_ends_are_known_to_the_others(store):
    heard = []
    arrived = threading.Event()

    def ended(progress):
        heard.append(progress)
        arrived.set()

    first, second = client(store, 0, ended), client(store, 1)
    second._socket.shutdown(socket.SHUT_RDWR)
    assert arrived.wait(5.0)
    assert (heard[0].rank, heard[0].ended) == (1, KILLED)
    assert [each.ended for each in first.where()] == [None, KILLED]
    first.bye("it is over")
    assert [each.ended for each in store.progress()] == ["it is over", KILLED]


@pytest.mark.parametrize(
    ("rank", "key", "size", "words"),
    [(1, "other", 2, "another job"), (1, "secret", 3, "counts 3"), (0, "secret", 2, "is rank 0")],
)
def test_strangers_are_not_let_in(store, rank, key, size, words):
    first = client(store, 0)
    with pytest.raises(DistributedError, match=words):
        client(store, rank, key=key, size=size)
    first.bye("")


def test_messages_that_are_no_messages(store):
    for text in (b"\n", b"{}\n", b"[1]\n", b'{"do": "set"}\n', b"\xff\xfe\n", b'{"do": "hello"}\n'):
        with socket.create_connection(("127.0.0.1", store.port)) as found:
            found.sendall(text)
            found.settimeout(5.0)
            assert found.recv(100) == b""
    client(store, 0).bye("")


def test_addresses_that_do_not_resolve():
    with pytest.raises(DistributedError, match="has no address"):
        Client(("no-such-host.invalid", 1), 0, 2, "", 1.0, lambda progress: None)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        with pytest.raises(DistributedError, match="no store answers"):
            Client(free.getsockname(), 0, 2, "", 0.1, lambda progress: None)
