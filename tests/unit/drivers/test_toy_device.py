"""A device that treadle does not know computes with arrays and kernels: it is a driver, a target's
record and two lines in tables (`tests/support/toy`), and nothing else is asked what it is."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest

import treadle as td
from tests.support.toy import add_toy
from treadle.cli.listing import describe


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> td.Device:
    return add_toy(monkeypatch)


@td.kernel
def saxpy(a: td.f32, x: td.Array[td.f32], y: td.Array[td.f32]):
    i = td.grid(1)
    if i < y.size:
        y[i] = a * x[i] + y[i]


@td.kernel
def reversed_blocks(x: td.Array[td.i32]):
    held = td.shared(8, td.i32)
    i = td.thread_idx.x
    held[i] = x[td.grid(1)]
    td.sync_threads()
    x[td.grid(1)] = held[7 - i]


def test_it_is_a_device_like_others(toy: td.Device) -> None:
    assert toy in td.devices()
    assert td.default_device() is not toy  # it is found by its name only
    assert td.arange(3, device=toy).dtype is td.int32  # a trait
    assert describe(toy)["through"] == "toy"  # it has no API and no version of a driver


def test_kernels_run_on_it(toy: td.Device) -> None:
    x, y = (td.asarray(np.arange(20, dtype=np.float32), device=toy) for _ in range(2))
    saxpy.launch(20, 2.0, x, y)
    assert y.tolist() == [3.0 * i for i in range(20)]
    z = td.arange(16, device=toy).realize()
    reversed_blocks[2, 8](z)
    assert z.tolist() == [*range(7, -1, -1), *range(15, 7, -1)]


def test_arrays_compute_on_it(toy: td.Device) -> None:
    rng = np.random.default_rng(1)
    a, b = (rng.standard_normal((5, 6)).astype(np.float32) for _ in range(2))
    x, y = td.asarray(a, device=toy), td.asarray(b, device=toy)
    np.testing.assert_allclose((x * 2 + td.exp(y)).numpy(), a * 2 + np.exp(b), rtol=1e-5)
    np.testing.assert_allclose(td.mean(x, axis=1).numpy(), a.mean(1), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose((x @ y.T).numpy(), a @ b.T, rtol=1e-5, atol=1e-5)
    assert td.sort(x[0]).tolist() == sorted(a[0].tolist())
    assert td.cumulative_sum(td.arange(7, device=toy)).tolist() == [0, 1, 3, 6, 10, 15, 21]


def test_gradients_and_other_devices(toy: td.Device) -> None:
    x = td.asarray([1.0, 3.0], device=toy).requires_grad_()
    (x * x).sum().backward()
    assert x.grad is not None
    assert x.grad.device is toy
    assert x.grad.to("cpu").tolist() == [2.0, 6.0]
    assert td.asarray([4, 5], device="cpu").to(toy).tolist() == [4, 5]


def test_source_is_printed_for_it(toy: td.Device) -> None:
    text = saxpy.source("toy", block=8)
    assert text.startswith("kernel saxpy block(8, 1, 1) {")
    assert "thread_idx.x" in text


def test_nothing_above_the_drivers_compares_backends() -> None:
    """What decides by a device's kind asks for its traits."""
    package = Path(td.__file__).parent
    found = []
    for path in package.rglob("*.py"):
        if path.is_relative_to(package / "drivers"):
            continue
        text = path.read_text(encoding="utf-8")
        if ".backend" not in text:  # most files, which take long to parse
            continue
        for node in ast.walk(ast.parse(text)):
            sides = [node.left, *node.comparators] if isinstance(node, ast.Compare) else []
            if any(isinstance(one, ast.Attribute) and one.attr == "backend" for one in sides):
                found.append(f"{path.relative_to(package)}:{node.lineno}")
    assert found == []
