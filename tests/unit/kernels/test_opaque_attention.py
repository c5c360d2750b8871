"""Attention of float16 by opaque matrices, on the CPU, whose lanes exchange what they hold, and on
the PTX evaluator; which problems and devices take it."""

from __future__ import annotations

import logging
import math

import numpy as np
import pytest

import treadle as td
from tests.support.poison import poisoned
from tests.support.ptx_device import ptx_device
from treadle.kernels import attend as forward
from treadle.kernels import attention_tiles, matrix_check
from treadle.kernels.attention_tiles import _OPAQUE_TILES, opaque_tile_for, rows_of
from treadle.kernels.device_code.opaque_attention import (
    OpaqueAttending,
    OpaqueAttentionTile,
    _half,
    opaque_attender,
)

SMALL = OpaqueAttentionTile(32, 16)


@pytest.fixture
def small(monkeypatch):
    """Small tiles, that every problem takes, on every device."""
    made = []

    def noted(what, tile):
        made.append(what)
        return opaque_attender(what, tile)

    monkeypatch.setattr(forward, "serial_threads", lambda _: False)
    monkeypatch.setattr(forward, "takes_fragments", lambda *_: False)
    monkeypatch.setattr(forward, "opaque_tile_for", lambda *_: SMALL)
    monkeypatch.setattr(forward, "_split", lambda *_: (1, 0))
    monkeypatch.setattr(forward, "opaque_attender", noted)
    return made


def _drawn(rng, *shape):
    return rng.standard_normal(shape).astype(np.float16)


def _exact(q, k, v, left, right, scale=None):
    """The result, and the logarithms of the sums of exponentials, in float64."""
    q, k, v = (x.astype("f8") for x in (q, k, v))
    groups = q.shape[1] // k.shape[1]
    k, v = (np.repeat(x, groups, axis=1) for x in (k, v))
    scores = q @ k.swapaxes(-1, -2) * (q.shape[-1] ** -0.5 if scale is None else scale)
    i, j = np.arange(q.shape[2])[:, None], np.arange(k.shape[2])
    seen = (left is None or j >= i - left) & (right is None or j <= i + right)
    scores = np.where(seen, scores, -np.inf)
    most = scores.max(axis=-1, keepdims=True)
    most = np.where(most == -np.inf, 0.0, most)
    powers = np.exp(scores - most)
    total = powers.sum(axis=-1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        weights = np.where(total == 0, 0.0, powers / total)
        return weights @ v, (most + np.log(total))[..., 0]


def _check(arrays, left=None, right=None, device="cpu", grow=0, **options):
    given = [td.asarray(x, device=device) for x in arrays]
    with poisoned(given[0]._array.device):
        found = td.nn.functional.scaled_dot_product_attention(
            *given, window=(left, right), enable_gqa=True, **options
        )
        assert found.dtype == td.float16
        found = found.numpy().astype("f8")
    wanted, _ = _exact(*arrays, left, right, options.get("scale"))
    np.testing.assert_allclose(found, wanted, 0, 3e-3 * max(1, np.abs(wanted).max()))


@pytest.mark.parametrize(
    ("shared", "queries", "keys", "depth", "width", "left", "right"),
    [
        (2, 37, 53, 40, 24, None, 0),  # a part of a matrix's columns, grouped heads
        (1, 70, 17, 16, 48, 5, 3),  # queries that see nothing
        (1, 3, 1, 8, 8, None, None),
    ],
)
def test_shapes_and_windows(small, shared, queries, keys, depth, width, left, right):
    rng = np.random.default_rng()
    q = _drawn(rng, 2, 2, queries, depth)
    k, v = _drawn(rng, 2, 2 // shared, keys, depth), _drawn(rng, 2, 2 // shared, keys, width)
    k[:, :, 16:40] *= 9  # so that bases change
    k[:, :, 40:] *= 30
    _check((q, k, v), left, right)
    assert len(small) == 1


def test_parts_of_the_keys_on_a_card(small, monkeypatch):
    """Joined afterwards; with a scale that is negative, and operands in one array."""
    monkeypatch.setattr(forward, "_split", lambda *_: (2, 2))
    rng = np.random.default_rng()
    whole = _drawn(rng, 1, 35, 3, 1, 16)
    with ptx_device("sm_90") as device, td.use_device(device), poisoned(device):
        x = td.asarray(whole)
        given = [td.permute_dims(x[:, :, i], (0, 2, 1, 3)) for i in range(3)]
        found = td.nn.functional.scaled_dot_product_attention(*given, scale=-0.5).numpy()
    wanted, _ = _exact(*(whole[:, :, i].transpose(0, 2, 1, 3) for i in range(3)), None, None, -0.5)
    np.testing.assert_allclose(found, wanted, 0, 3e-3)
    assert small[0].split


def test_special_values_and_norms(small):
    """NaN stays in the rows that see it; hidden rows have zeros and -infinity; scores of 10,000."""
    rng = np.random.default_rng()
    q, k, v = (_drawn(rng, 1, 1, 40, 16) for _ in range(3))
    q[0, 0, 5] = np.nan
    q[0, 0, 6] = 200
    k[0, 0, 20:] *= 3
    leaves = [td.asarray(x, device="cpu") for x in (q, k, v)]
    laid = forward.Laid((640, 16), 0)
    p = forward.Problem(
        (1,), (1,), 40, 35, 16, 16, laid, laid, laid, None, 0.25, 2, 0, 0.0
    )  # fmt: skip
    out, norms = forward.attend(*(x._array for x in leaves), p)
    wanted, tops = _exact(q, k[:, :, :35], v[:, :, :35], 2, 0)
    found, lines = out.to_host()[0], norms.to_host()[0]
    assert np.isnan(found[5]).all()
    assert np.isnan(lines[5])
    assert np.isnan(found).sum() == 16
    rest = np.arange(40) != 5
    np.testing.assert_allclose(found[rest], wanted[0, 0][rest], 0, 5e-3)
    np.testing.assert_allclose(lines[rest], tops[0, 0][rest], 1e-4, 1e-4)
    assert not found[37:].any()
    assert (lines[37:] == -np.inf).all()
    assert small


def test_weights_as_halves():
    @td.kernel
    def halves(x: td.Array[td.f32], out: td.Array[td.u32]):
        i = td.grid(1)
        if i < x.size:
            out[i] = _half(x[i])

    rng = np.random.default_rng()
    x = np.exp2(rng.uniform(-40, 8, 500)).astype(np.float32)
    ends = [0.0, 2.0**-14, np.nextafter(np.float32(2.0**-14), np.float32(0)), 256.0, 2.0**-25]
    ties = (np.arange(1, 60) * 2 + 1) * 2.0**-25
    x = np.concatenate([x, ends, ties, 1 + np.arange(1, 60, 2) * 2.0**-11]).astype(np.float32)
    given, out = td.asarray(x, device="cpu"), td.zeros(x.shape, dtype=td.uint32, device="cpu")
    halves.launch(x.size, given, out)
    np.testing.assert_array_equal(out.numpy(), x.astype(np.float16).view("u2"))
    halves.launch(1, td.asarray(np.float32([np.nan]), device="cpu"), out)
    assert np.isnan(out.numpy()[:1].astype("u2").view("f2")).all()


def test_the_trial(monkeypatch, caplog):
    """A device is tried once for each kernel, and left out with a warning."""
    rows = rows_of(td.float16, 24, ())
    what = OpaqueAttending(rows, rows_of(td.float16, 16, ()), False)
    device = td.device("cpu")
    error = matrix_check._attention_error(device, what, SMALL)
    assert error < matrix_check._LARGEST_ERROR / 2
    calls = []
    monkeypatch.setattr(matrix_check, "_attentions", {})
    for wrong in (0.1, math.inf):
        monkeypatch.setattr(
            matrix_check, "_attention_error", lambda *_, wrong=wrong: calls.append(0) or wrong
        )
        matrix_check._attentions.clear()
        with caplog.at_level(logging.WARNING, "treadle"):
            assert not matrix_check.attends_rightly(device, what, SMALL)
            assert not matrix_check.attends_rightly(device, what._replace(split=True), SMALL)
    assert len(calls) == 2
    assert caplog.text.count("computes attention by small matrices of float16 wrongly") == 2


def test_who_takes_it(monkeypatch):
    device = td.device("cpu")
    monkeypatch.setattr(attention_tiles, "_has_room", lambda *_: True)
    monkeypatch.setattr(attention_tiles, "attends_rightly", lambda *_: True)
    rows = {n: rows_of(td.float16, n, ()) for n in (20, 64, 128, 136)}

    def tile(queries, query, value=64, dtype=td.float16):
        return opaque_tile_for(
            device, dtype, queries, OpaqueAttending(rows[query], rows[value], False)
        )

    assert tile(1000, 64) is None  # the device has no such matrices
    monkeypatch.setattr(attention_tiles, "opaque_products", lambda _: True)
    assert tile(1000, 64) == tile(65, 128, 128) == _OPAQUE_TILES[0]
    assert tile(64, 64) == _OPAQUE_TILES[1]
    assert tile(32, 64) is None  # few queries
    assert tile(1000, 136) is None
    assert tile(1000, 20) is None  # not aligned
    assert tile(1000, 64, dtype=td.bfloat16) is None
    monkeypatch.setattr(attention_tiles, "attends_rightly", lambda *_: False)
    assert tile(1000, 64) is None


@pytest.mark.parametrize("tile", _OPAQUE_TILES, ids=str)
def test_tiles_of_the_table(tile):
    """As devices of WebGPU have them: 256 threads, and 48 KiB of shared memory."""
    rows = rows_of(td.float16, 128, ())
    assert tile.threads <= 256
    assert tile.bytes(rows, rows) <= 48 << 10
    assert tile.keys % 16 == tile.queries % 16 == 0
