"""What is drawn among given things: how often, and what is never drawn."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
from treadle.core.errors import ShapeError


def test_choice(device):
    g = td.Generator(5)
    x = td.asarray([[1, 2, 3], [4, 5, 6]])
    found = td.random.choice(x, (2, 2), axis=1, generator=g)
    assert found.shape == (2, 2, 2)
    assert (found[1] - found[0]).tolist() == [[3, 3], [3, 3]]
    drawn = td.random.choice(4, 4000, p=[0.1, 0.0, 0.6, 0.3], generator=g).numpy()
    counts = np.bincount(drawn, minlength=4)
    assert counts[1] == 0
    np.testing.assert_allclose(counts / 4000, [0.1, 0, 0.6, 0.3], atol=0.04)
    assert sorted(td.random.choice(7, 7, False, generator=g).tolist()) == list(range(7))
    some = td.random.choice(5, 2, False, [0, 0.5, 0, 0, 0.5], generator=g)
    assert sorted(some.tolist()) == [1, 4]
    assert td.random.choice(3, generator=g).shape == ()
    assert td.random.choice(td.zeros(0), 0).shape == (0,)
    for wrong in ({"p": [1.0, -1.0]}, {"p": [0.0, 0.0]}, {"p": [1.0, 0.0], "replace": False}):
        with pytest.raises(ValueError, match="probabilit"):
            td.random.choice(2, 2, **wrong)
    with pytest.raises(ShapeError, match="cannot be drawn"):
        td.random.choice(2, 3, False)


def test_multinomial(device):
    g = td.Generator(7)
    weights = td.asarray([[1.0, 0.0, 3.0], [0.0, 0.0, 0.0], [0.0, 5.0, 0.0]])
    found = td.random.multinomial(weights, 2000, True, generator=g).numpy()
    assert set(found[0]) == {0, 2}
    assert abs((found[0] == 2).mean() - 0.75) < 0.05
    assert set(found[1]) == {-1}
    assert set(found[2]) == {1}
    rows = td.random.multinomial(weights, 2, generator=g).tolist()
    assert sorted(rows[0]) == [0, 2]
    assert rows[1:] == [[-1, -1], [1, -1]]
    many = td.random.multinomial(td.broadcast_to(weights[0], (2000, 3)), 1, generator=g)
    assert abs((many.numpy() == 2).mean() - 0.75) < 0.05
    with pytest.raises(ShapeError, match="cannot be drawn"):
        td.random.multinomial(weights, 4)


def test_shuffle(device):
    x = td.arange(13)
    td.random.shuffle(x, generator=td.Generator(3))
    assert sorted(x.tolist()) == list(range(13))
    assert x.tolist() != list(range(13))
    rows = td.asarray([[1, 2, 3], [4, 5, 6]])
    td.random.shuffle(rows, axis=1, generator=td.Generator(3))
    assert (rows[1] - rows[0]).tolist() == [3, 3, 3]
    with pytest.raises(TypeError, match="in place"):
        td.random.shuffle([1, 2])
    normal = td.random.standard_normal(5000, generator=td.Generator(1)).numpy()
    assert abs(normal.std() - 1) < 0.05
