"""A server on a loopback port, with an engine that writes what a script says."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.support.small_server import Running, starting_servers


@pytest.fixture
def start() -> Iterator[Callable[..., Running]]:
    """Starts servers, which end with the test."""
    with starting_servers() as starting:
        yield starting


@pytest.fixture(scope="module")
def shared() -> Iterator[Running]:
    """A server for all tests of a file, none of which changes it."""
    with starting_servers() as starting:
        yield starting()


@pytest.fixture
def server(start: Callable[..., Running]) -> Running:
    return start()
