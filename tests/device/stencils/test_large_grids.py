"""Grids whose indices have 64 bits: of more than 2³¹ cells, and what takes the same way."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td


@td.stencil(boundary=["wrap", "clamp"])
def cross(u: td.Array[td.u8, 2], out: td.Array[td.u8, 2], pos: td.GridPos):
    i, j = pos.index
    near = td.i32(pos.north(u)) + 2 * td.i32(pos.south(u)) + 3 * td.i32(pos.east(u))
    out[pos] = td.u8((near + td.i32(i % 7) + td.i32(j % 3)) & 127)


@td.stencil(boundary="mirror")
def pair(u: td.Array[td.u8, 1], out: td.Array[td.u8, 1], pos: td.GridPos):
    out[pos] = pos.at(u, -2) + pos.at(u, 3)


def crossed(u: np.ndarray, i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """The first stencil at some rows and columns."""
    rows, columns = u.shape
    near = u[(i - 1) % rows, j].astype(int) + 2 * u[(i + 1) % rows, j]
    return (near + 3 * u[i, np.minimum(j + 1, columns - 1)] + i % 7 + j % 3) & 127


def test_indices_of_64_bits(device: td.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("treadle.runtime.arrays.MOST_NARROW", 100)
    u = np.random.default_rng(0).integers(0, 9, (9, 37)).astype(np.uint8)
    out = td.full(u.shape, 200, dtype=td.uint8, device=device)
    cross(td.asarray(u, device=device), out)
    i, j = np.indices(u.shape)
    np.testing.assert_array_equal(out.numpy(), crossed(u, i, j))
    long, result = u.reshape(-1), td.full(u.size, 200, dtype=td.uint8, device=device)
    pair(td.asarray(long, device=device), result)
    whole = np.pad(long, 3, "reflect")
    np.testing.assert_array_equal(result.numpy(), whole[1:-5] + whole[6:])


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", ["cpu", pytest.param("cuda", marks=pytest.mark.cuda)])
def test_more_than_two_to_the_31_cells(name: str) -> None:
    if name == "cuda" and not td.is_available("cuda"):
        pytest.skip("there is no card")
    rows, columns = 65_540, 32_777
    line = (np.arange(columns) % 11).astype(np.uint8)
    u = td.asarray(np.tile(line, (rows, 1)), device=name)
    out = td.full(u.shape, 200, dtype=td.uint8, device=name)
    cross(u, out)
    host = np.broadcast_to(line, (rows, columns))
    i, j = np.indices((5, columns))
    for first in (0, rows // 2, rows - 5):
        got = out[first : first + 5].numpy()
        np.testing.assert_array_equal(got, crossed(host, i + first, j))
