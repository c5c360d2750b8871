"""Epilogues of products by groups of threads: their operands are loaded whether an element is in
the result or not, and what is not in it is not stored."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
from tests.support.poison import poisoned
from tests.support.ptx_device import ptx_device
from treadle.kernels import product, tiles
from treadle.kernels.device_code.group_product import GroupTile


@pytest.mark.parametrize(
    ("stack", "m", "n", "tile"),
    [
        ((), 41, 72, GroupTile(64, 64, 2)),
        ((2,), 8, 136, GroupTile(64, 64, 2)),
        ((), 66, 264, GroupTile(128, 256, 2)),
    ],
)
def test_operands_at_the_edges(monkeypatch, stack, m, n, tile):
    monkeypatch.setattr(tiles, "_group", lambda machine, problem: tile)
    monkeypatch.setattr(tiles, "_takes_groups", lambda machine, problem: problem.boxes)
    made = []
    real = product.group_multiplier
    monkeypatch.setattr(
        product, "group_multiplier", lambda *given: made.append(given) or real(*given)
    )
    rng = np.random.default_rng()
    x, y = rng.standard_normal((*stack, m, 72)), rng.standard_normal((*stack, 72, n))
    bias, rest = rng.standard_normal(n), rng.standard_normal((*stack, m, n))
    rest.flat[0] = np.nan  # what is loaded in place of elements that there are not
    x, y, bias = (each.astype(np.float16) for each in (x, y, bias))
    rest = rest.astype(np.float32)
    wanted = x.astype("f8") @ y.astype("f8")
    close = {"rtol": 4e-3, "atol": 4e-2}
    with ptx_device("sm_90") as device, td.use_device(device), poisoned(device):
        a, b, c, r = (td.asarray(each) for each in (x, y, bias, rest))
        found = ((a @ b + c).to(td.float32) + r).numpy()
        np.testing.assert_allclose(found, wanted + bias + rest, **close)
        assert np.isnan(found).sum() == 1
        column = td.asarray(rest[..., :1])  # the same for all columns
        np.testing.assert_allclose((a @ b * column).numpy(), wanted * rest[..., :1], **close)
        room = td.zeros((*stack, m + 1, n + 4), dtype=td.float16) + 7
        room[..., 1:, 4:] = a @ b + c  # a part of an array
        kept = room.numpy()
    assert (kept[..., :1, :] == 7).all()
    assert (kept[..., :4] == 7).all()
    np.testing.assert_allclose(kept[..., 1:, 4:], wanted + bias, **close)
    # Those of the largest tile have registers of a group that copies for float32 operands.
    assert {given[1].registers for given in made} == ({0, 240} if tile.columns == 256 else {0})
