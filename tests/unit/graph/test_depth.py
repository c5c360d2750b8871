"""How much may be pending below a node."""

from __future__ import annotations

import treadle as td
from treadle.graph.node import is_deep


def grown(x, count):
    for _ in range(count):
        x = x + 1
    return x


def test_what_was_computed_since_does_not_count():
    """Else a computation would be cut where nothing is pending, and have other kernels there."""
    y = grown(td.zeros(4, device="cpu").realize(), 60)
    z = y * 2
    y.realize()
    z = grown(z, 60)
    assert z._node.array is None
    assert not is_deep(z._node)
    assert z._node.depth == 61
    assert z.tolist() == [180.0] * 4


def test_long_chains_are_computed_in_parts():
    x = td.zeros(4, device="cpu").realize()
    computed = 0
    for _ in range(300):
        x = x + 1
        computed += x._node.array is not None
    assert computed == 3
    assert x.tolist() == [300.0] * 4
