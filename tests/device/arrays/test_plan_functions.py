"""Plans that come up again are functions: what they compute, and what they let go of."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import treadle as td
from treadle.cli.bench.arrays import peak_beyond
from treadle.core.errors import LaunchError
from treadle.drivers.cpu import launches
from treadle.drivers.cpu_numpy.kernels import CompiledKernel
from treadle.graph import realize, recipes

# What runs a launch on the device `cpu`, by what its kernels are printed as.
_RUNS = {"llvm": (launches, "run"), "numpy": (CompiledKernel, "launch")}


@pytest.fixture(autouse=True)
def functions(monkeypatch):
    """Functions are made as soon as a plan comes up again; the list has one entry for each run."""
    found = []
    function_for = recipes.function_for

    def noted(*arguments):
        function = function_for(*arguments)
        if function is not None:
            found.append(function)
        return function

    monkeypatch.setattr(recipes, "PLAIN_RUNS", 0)
    monkeypatch.setattr(realize, "function_for", noted)
    return found


def _drawn(rng, *shape):
    return rng.standard_normal(shape).astype(np.float32)


def test_numbers_are_taken_anew(device, rng, functions):
    x = _drawn(rng, 5, 7)
    t = td.asarray(x, device=device)
    for number in (2.0, -3.5, 0.25, 7.0):
        found = td.exp(t / number).sum(axis=1) + number
        right = np.exp(x.astype(np.float64) / number).sum(1) + number
        np.testing.assert_allclose(found.numpy(), right, rtol=1e-4)
    assert len(functions) == 3


def test_complex_numbers(device, rng, functions):
    x = (_drawn(rng, 6) + 1j * _drawn(rng, 6)).astype(np.complex64)
    for number in (1 + 2j, -3j, 0.5 + 0j):
        found = td.asarray(x, device=device) * number + number
        np.testing.assert_allclose(found.numpy(), x * number + number, rtol=1e-5)
    assert len(functions) == 2


@pytest.mark.parametrize("number", [0.0, -0.0, 3.0])
def test_materialized_constants(device, functions, number):
    for _ in range(3):
        x = td.full((3, 5), number, device=device)
        x[1] = 1.0
        right = np.full((3, 5), number, np.float32)
        right[1] = 1.0
        np.testing.assert_array_equal(x.numpy(), right)
        assert np.array_equal(np.signbit(x.numpy()), np.signbit(right))
    assert functions


def test_sizes_change_and_come_back(device, rng, functions):
    for rows in (4, 9, 0, 33, 1, 4, 9, 64, 2):
        x = _drawn(rng, rows, 6)
        t = td.asarray(x, device=device)
        joined = td.concat([t, t[: rows // 2]]) * 2.0
        found = joined.sum(axis=0), td.nn.functional.softmax(t, -1), t @ t.T
        wide = x.astype(np.float64)
        e = np.exp(wide - wide.max(-1, keepdims=True))
        right = np.concatenate([wide, wide[: rows // 2]]).sum(0) * 2, e / e.sum(-1, keepdims=True)
        for one, other in zip(found, (*right, wide @ wide.T), strict=True):
            np.testing.assert_allclose(one.numpy(), other, rtol=1e-4, atol=1e-4)
    assert functions


def test_writes_and_what_reads_before_them(device, rng, functions):
    x = _drawn(rng, 8, 3)
    for start in (0, 2, 5, 1):
        t, right = td.asarray(x, device=device), x.copy()
        before = t[1:] * 2.0
        t[start : start + 3] = t[start : start + 3] + 1.0
        total = t.sum()
        np.testing.assert_array_equal(before.numpy(), x[1:] * 2)
        right[start : start + 3] += 1
        np.testing.assert_allclose(float(total), right.sum(dtype=np.float64), rtol=1e-5)
        np.testing.assert_array_equal(t.numpy(), right)
    assert functions


def test_one_array_as_several_arguments(device, rng, functions):
    x = _drawn(rng, 12)
    for _ in range(3):
        t = td.asarray(x, device=device)
        flat = t.reshape(3, 4)
        np.testing.assert_array_equal((t[:6] + t[6:]).numpy(), x[:6] + x[6:])
        flat[0] = flat[1] * flat[2]
        right = x.reshape(3, 4).copy()
        right[0] = right[1] * right[2]
        np.testing.assert_array_equal(t.numpy(), right.reshape(-1))
    assert functions


def test_several_results_of_one_call(device, rng, functions):
    x = _drawn(rng, 4, 9)
    for _ in range(3):
        values, places = td.topk(td.asarray(x, device=device) + 0.0, 3)
        right = -np.sort(-x, axis=-1)[:, :3]
        np.testing.assert_array_equal(values.numpy(), right)
        np.testing.assert_array_equal(np.take_along_axis(x, places.numpy(), -1), right)
    assert functions


def test_memory_goes_back_after_the_last_reader(device, rng, functions):
    gc.collect()  # what earlier tests have left is not freed meanwhile
    x = td.asarray(_drawn(rng, 1 << 16), device=device).realize()

    def chain():
        y = x
        for _ in range(6):
            y = td.sort(y * 2.0)
        y.realize()

    def peak():
        pool = device.pool
        pool._peak_bytes = before = pool.used
        chain()
        return pool._peak_bytes - before

    plain = peak()
    again = peak()
    assert again <= plain  # repeated calls free their scratch memory at its last use
    assert len(functions) == 1
    assert plain == peak_beyond(device, chain)  # of tasks


def test_a_write_that_fails_says_so(functions, monkeypatch):
    def double(t):
        t *= 2.0
        return t

    with td.use_device("cpu"):
        for _ in range(3):
            double(td.asarray(np.ones(5, np.float32))).realize()
        assert functions
        t = td.asarray(np.ones(5, np.float32)).realize()
        double(t)

        def refuse(*arguments):
            raise LaunchError("no launch today")

        with monkeypatch.context() as broken:
            broken.setattr(*_RUNS[td.device("cpu").info.traits.targets[0]], refuse)
            with pytest.raises(LaunchError, match="no launch today"):
                t.realize()
        np.testing.assert_array_equal(t.numpy(), np.ones(5, np.float32))


def test_profiles_and_graphs_see_each_launch(device, rng, functions):
    x = td.asarray(_drawn(rng, 16), device=device).realize()
    for _ in range(3):
        (td.sort(x) + 1.0).realize()
    count = len(functions)
    assert count
    with td.profile() as profile:
        (td.sort(x) + 1.0).realize()
    assert len(functions) == count
    assert sum(row.count for row in profile.table().rows if row.kind == "kernel") >= 2


def test_single_operations_are_found_by_what_they_are(device, rng, functions, monkeypatch):
    graphs = []
    made = realize.Graph

    def noted(nodes):
        graphs.append(nodes)
        return made(nodes)

    x, y = _drawn(rng, 24), _drawn(rng, 24)
    t, u = (td.asarray(each, device=device).realize() for each in (x, y))
    cases = {
        "two arrays": (lambda: t + u, x + y),
        "one array twice": (lambda: t + t, x + x),
        "a number": (lambda: t * 3.0, x * np.float32(3)),
        "another number": (lambda: t * -0.5, x * np.float32(-0.5)),
        "two parts of one array": (lambda: t[:12].realize() + t[12:].realize(), x[:12] + x[12:]),
        "another dtype": (lambda: td.astype(t, td.float16), x.astype(np.float16)),
        "a comparison": (lambda: t < u, x < y),
    }
    for _ in range(3):
        for name, (compute, right) in cases.items():
            np.testing.assert_array_equal(compute().numpy(), right, err_msg=name)
        total = td.sum(t, axis=0)
        np.testing.assert_allclose(float(total), x.sum(dtype=np.float64), rtol=1e-4, atol=1e-5)
    monkeypatch.setattr(realize, "Graph", noted)
    for name, (compute, right) in cases.items():
        np.testing.assert_array_equal(compute().numpy(), right, err_msg=name)
        if name != "two parts of one array":
            assert not graphs, name
        graphs.clear()


def test_two_equal_numbers_are_not_one_operation(device, functions):
    for first, second in ((1.0, 1.0), (1.0, 2.0), (3.0, 3.0), (4.0, 5.0)):
        t = td.asarray(np.array([True, False]), device=device).realize()
        found = td.where(
            t, td.full((2,), first, device=device), td.full((2,), second, device=device)
        )
        np.testing.assert_array_equal(found.numpy(), np.array([first, second], np.float32))
