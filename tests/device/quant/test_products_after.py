"""Products with quantized matrices that compute their activations themselves."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.device.quant.test_quantized_products import error, in_eight_bits, matrix
from tests.support.poison import poisoned
from treadle.kernels import quantized_products
from treadle.kernels.device_code.activation_prologues import Prologue
from treadle.quant.products import can_follow, product_after

N = 512
EPSILON = 1e-3
ROWS = 2


@pytest.fixture(params=[True, False], ids=["fused", "packed"])
def fused(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether a product's kernel computes its activations, or another one before it."""
    monkeypatch.setattr(quantized_products, "is_fused", lambda *_: request.param)
    return bool(request.param)


def check(
    rows: np.ndarray, prologue: Prologue, arrays: list[Any], matrices: list[Any], kind: Any,
    stream: np.ndarray | None = None,
) -> None:  # fmt: skip
    """The results of matrices (with their elements) for rows, beside those of the formula."""
    weights = [w for w, _ in matrices]
    device, count = weights[0].device, len(rows)
    if device.traits.serial_threads:  # processors read one matrix at a time
        assert not can_follow(device, weights, kind, count, prologue.columns)
        return
    assert can_follow(device, weights, kind, count, prologue.columns)
    rows = rows.astype(np.float32)
    exact = (in_eight_bits(rows) if kind == "int8" else rows).astype(np.float64)
    with poisoned(device):
        given = [td.asarray(array.astype(np.float32)) for array in arrays]
        found, summed = product_after(prologue, given, count, weights, kind, EPSILON)
        assert error(found, exact @ np.concatenate([each for _, each in matrices]).T) < 2e-3
    assert (summed is None) == (stream is None)
    if summed is not None and stream is not None:
        np.testing.assert_allclose(summed.numpy(), stream, rtol=1e-5, atol=1e-6)


def normed(x: np.ndarray) -> np.ndarray:
    return x / np.sqrt((x.astype(np.float64) ** 2).mean(-1, keepdims=True) + EPSILON)


@pytest.mark.parametrize(
    ("added", "scaled", "kind"),
    [(False, False, "int8"), (True, False, "float"), (True, True, "int8")],
)
def test_norms_of_a_stream(device, rng, fused, added, scaled, kind):
    """Three matrices in two launches, of which the first has two formats."""
    formats = (("q5_0", 37), ("q8_0", 21), ("q4_k", 10)) if scaled else (("q4_k", 37),)
    matrices = [matrix(name, rows, N, rows) for name, rows in formats]
    x, more = rng.standard_normal((2, ROWS, N), dtype=np.float32)
    weight, other = rng.standard_normal((2, N), dtype=np.float32)
    stream = x.astype(np.float64)
    arrays = [x, weight]
    if added:
        stream = stream + (normed(more) * other if scaled else more)
        arrays.insert(1, more)
    if scaled:
        arrays.append(other)
    prologue = Prologue("normed", N, added, scaled)
    rows = normed(stream) * weight
    check(rows, prologue, arrays, matrices, kind, stream if added else None)


@pytest.mark.parametrize("gate", ["silu", "gelu_tanh"])
def test_gates(device, rng, fused, gate):
    x = rng.standard_normal((ROWS, 2 * N), dtype=np.float32)
    a, b = x[:, :N].astype(np.float64), x[:, N:]
    if gate == "silu":
        rows = a / (1 + np.exp(-a)) * b
    else:
        rows = a * 0.5 * (np.tanh((a + 0.044715 * a**3) * np.sqrt(2 / np.pi)) + 1) * b
    check(rows, Prologue("gated", N, gate=gate), [x], [matrix("q6_k", 19, N)], "int8")


def test_parts_of_keys(device, rng, fused):
    """Two heads, whose keys are in three parts; the second has seen no key at all in one."""
    parts, depth, heads = 3, N // 2, 2
    sums = rng.standard_normal((ROWS, heads, parts, depth), dtype=np.float32)
    tops = rng.standard_normal((ROWS, heads, parts, 2), dtype=np.float32)
    tops[..., 1] = np.abs(tops[..., 1]) + 1
    sums[:, 1, 2], tops[:, 1, 2] = 0.0, (-np.inf, 0.0)
    powers = np.exp2(tops[..., 0].astype(np.float64))[..., None]
    totals = (tops[..., 1:] * powers).sum(2)
    rows = ((sums * powers).sum(2) / totals).reshape(ROWS, N)
    prologue = Prologue("joined", N, parts=parts, depth=depth)
    check(rows, prologue, [sums, tops], [matrix("q4_0", 23, N)], "float")


def test_neighbours_in_memory_are_one_matrix(device, rng, fused):
    """Rows of one matrix, and of another one after them."""
    w, elements = matrix("q4_1", 40, N)
    pieces = [(w[:16], elements[:16]), (w[16:28], elements[16:28]), (w[30:], elements[30:])]
    x = rng.standard_normal((ROWS, N), dtype=np.float32)
    check(x, Prologue("rows", N), [x], pieces, "int8")


def test_many_long_rows(device, rng):
    """More rows than a block has sums for, whose packing takes several blocks."""
    n, count = 1152, 11
    x, more = rng.standard_normal((2, count, n), dtype=np.float32)
    weight = rng.standard_normal(n, dtype=np.float32)
    stream = x.astype(np.float64) + more
    matrices = [matrix("q8_0", 37, n), matrix("q5_0", 5, n)]
    rows = normed(stream) * weight
    check(rows, Prologue("normed", n, True), [x, more, weight], matrices, "int8", stream)


def test_blocks_go_on_to_more_rows(device, rng, monkeypatch):
    """Few blocks, each of which computes the activations once for many rows of its matrix."""
    for name in ("_FUSED_BLOCKS", "_SOFTWARE_BLOCKS"):
        monkeypatch.setattr(quantized_products, name, 2)
    monkeypatch.setattr(quantized_products, "is_fused", lambda *_: True)
    matrices = [matrix("q8_0", 75, N), matrix("q5_0", 30, N)]
    x = rng.standard_normal((ROWS, N), dtype=np.float32)
    check(x, Prologue("rows", N), [x], matrices, "int8")
