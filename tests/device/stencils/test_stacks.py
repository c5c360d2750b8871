"""Stacks of grids, `f[q][pos]`, and writes at neighbours, `pos.shifted(di, dj)`: beside NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.support.poison import poisoned

VALUES = {"constant": 3.0}
# Velocities in pairs of opposite ones, for one to three axes: a stack has 1 + 2 * pairs grids.
PAIRS = {1: ((1,), (2,)), 2: ((0, 1), (1, 0), (1, -1), (2, 1)), 3: ((1, 0, 0), (0, -1, 1))}


def numbers(*shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float32)


# --- reading -------------------------------------------------------------------------------------


def read_both(f, out, pos):
    out[1][pos] = pos.at(f[2], 1, -2) + 2.0 * f[0][pos]
    out[0][pos] = pos.north(f[1]) - pos.east(f[2]) + f[2][pos.shifted(0, -1)]


def read_each(a, b, c, out, other, pos):
    other[pos] = pos.at(c, 1, -2) + 2.0 * a[pos]
    out[pos] = pos.north(b) - pos.east(c) + pos.west(c)


def beyond(u, i, j):
    return td.f32(i + 10 * j) + u[0, 0]


@pytest.mark.parametrize("rule", ["wrap", "constant", "skip", beyond])
def test_reading_grids_of_a_stack(device: td.Device, rule: Any) -> None:
    value = VALUES.get(rule) if isinstance(rule, str) else None
    of_stack, of_arrays = (
        td.stencil(boundary=rule, value=value)(each) for each in (read_both, read_each)
    )
    shape = 5, 37
    f, start = numbers(3, *shape), np.full((2, *shape), 7, np.float32)
    grids = [td.asarray(each, device=device) for each in (*f, *start)]
    of_arrays(*grids)
    want = np.stack([each.numpy() for each in grids[3:]])
    with poisoned(device):
        out = td.asarray(start, device=device)
        of_stack(td.asarray(f, device=device), out)
        np.testing.assert_array_equal(out.numpy(), want)
        made = of_stack(td.asarray(f, device=device))  # as many grids as are written
    inside = np.s_[:, 1:-1, 2:-1] if rule == "skip" else np.s_[:]
    np.testing.assert_array_equal(made.numpy()[inside], want[inside])
    with td.interpret():
        of_stack(f, start)
    np.testing.assert_array_equal(start, want)
    if rule != "constant":
        return
    # A stack may be any view: its first axis last in memory, every second grid, some columns.
    for view in (
        td.asarray(np.moveaxis(f, 0, -1).copy(), device=device).permute_dims((2, 0, 1)),
        td.asarray(np.repeat(f, 2, axis=0), device=device)[::2],
        td.asarray(np.pad(f, ((0, 1), (0, 0), (2, 1))), device=device)[:3, :, 2:-1],
    ):
        of_stack(view, out)
        np.testing.assert_array_equal(out.numpy(), want)


@td.stencil(boundary="clamp")
def pairs_of_axes(f, out, pos):
    for q in td.static_range(2):
        out[q, 1 - q][pos] = pos.west(f[1, q]) + pos.index[0] * f[0, q][pos]


def test_stacks_of_two_axes(device: td.Device) -> None:
    f = numbers(2, 2, 9)
    made = pairs_of_axes(td.asarray(f, device=device)).numpy()
    assert made.shape == (2, 2, 9)
    west = np.concatenate([f[1, :, :1], f[1, :, :-1]], axis=1) + np.arange(9) * f[0]
    np.testing.assert_array_equal(made[[0, 1], [1, 0]], west)
    np.testing.assert_array_equal(made[[0, 1], [0, 1]], np.zeros((2, 9)))


@td.stencil(boundary="wrap")
def by_names(f, out, pos):
    mass, flow = f[0], out[1]
    first = out[0]
    there = pos.shifted(1)
    first[there] = 2.0 * mass[pos]
    first[there] += pos.west(f[1])
    grid = f[1]
    flow[pos] = grid[pos] - mass[pos]


def test_names_of_grids_and_of_places(device: td.Device) -> None:
    f = numbers(2, 9)
    want = [np.roll(2 * f[0] + np.roll(f[1], 1), 1), f[1] - f[0]]
    out = td.empty((2, 9), device=device)
    by_names(td.asarray(f, device=device), out)
    np.testing.assert_array_equal(out.numpy(), want)
    found = np.empty_like(f)
    with td.interpret():
        by_names(f, found)
    np.testing.assert_array_equal(found, want)


@td.stencil
def only_by_names(f, out, pos):
    grid, other = f[0], f[1]
    first = out[0]
    first[pos] = pos.east(grid) * other[pos]


def test_an_output_by_its_name(device: td.Device) -> None:
    f = numbers(2, 9)
    found = only_by_names(td.asarray(f, device=device)).numpy()
    np.testing.assert_array_equal(found, [np.append(f[0, 1:], f[0, -1]) * f[1]])


# --- writing in place ----------------------------------------------------------------------------


def exchange(ndim: int, odd: int, storage: Any = None) -> Any:
    """A step of streaming in place, without collisions."""
    pairs = PAIRS[ndim]

    @td.stencil(boundary="wrap", storage=storage)
    def line(f: td.Array[td.f32, 2], pos: td.GridPos):
        for q in td.static_range(2):
            one, other = f[2 * q + 1 + odd][pos], pos.at(f[2 * q + 2 - odd], pairs[q][0])
            f[2 * q + 2 - odd][pos.shifted(pairs[q][0])] = one
            f[2 * q + 1 + odd][pos] = other

    @td.stencil(boundary="wrap", storage=storage)
    def plane(f: td.Array[td.f32, 3], pos: td.GridPos):
        for q in td.static_range(4):
            one = f[2 * q + 1 + odd][pos]
            other = pos.at(f[2 * q + 2 - odd], pairs[q][0], pairs[q][1])
            f[2 * q + 2 - odd][pos.shifted(pairs[q][0], pairs[q][1])] = one
            f[2 * q + 1 + odd][pos] = other

    @td.stencil(boundary="wrap", storage=storage)
    def space(f: td.Array[td.f32, 4], pos: td.GridPos):
        for q in td.static_range(2):
            c = pairs[q]
            one, other = f[2 * q + 1 + odd][pos], pos.at(f[2 * q + 2 - odd], c[0], c[1], c[2])
            f[2 * q + 2 - odd][pos.shifted(c[0], c[1], c[2])] = one
            f[2 * q + 1 + odd][pos] = other

    return (line, plane, space)[ndim - 1]


def exchanged(f: np.ndarray[Any, Any], odd: int) -> np.ndarray[Any, Any]:
    """The same by NumPy."""
    found, axes = f.copy(), tuple(range(f.ndim - 1))
    for q, step in enumerate(PAIRS[f.ndim - 1]):
        one, other = 2 * q + 1 + odd, 2 * q + 2 - odd
        found[other] = np.roll(f[one], step, axes)
        found[one] = np.roll(f[other], [-each for each in step], axes)
    return found


@pytest.mark.parametrize("shape", [(2,), (0,), (13, 37), (5, 1), (3, 5, 19)], ids=str)
def test_streaming_in_place(device: td.Device, shape: tuple[int, ...]) -> None:
    ndim = len(shape)
    f = numbers(1 + 2 * len(PAIRS[ndim]), *shape)
    a, want = td.asarray(f, device=device), f
    for odd in (0, 1):
        exchange(ndim, odd)(a)
        want = exchanged(want, odd)
        np.testing.assert_array_equal(a.numpy(), want)
    both = [(exchange(ndim, odd), a) for odd in (0, 1)]
    td.stencil_loop(both, steps=35)  # enough to be recorded
    for _ in range(35):
        want = exchanged(exchanged(want, 0), 1)
    np.testing.assert_array_equal(a.numpy(), want)


def test_streaming_of_halves_and_interpreted(device: td.Device) -> None:
    f = numbers(9, 4, 21)
    for storage, dtype in ((td.float16, np.float16), (None, np.float32)):
        step, given = exchange(2, 1, storage), f.astype(dtype)
        a = td.asarray(given, device=device)
        step(a)
        np.testing.assert_array_equal(a.numpy(), exchanged(given, 1))
        with td.interpret():
            step(given)
        np.testing.assert_array_equal(given, a.numpy())


def pushed(u, out, count, pos):
    out[pos.shifted(1, -2)] = 2.0 * u[pos]
    out[pos.shifted(1, -2)] += 1.0
    td.atomic_add(count, pos.shifted(0, 1), 1)


@pytest.mark.parametrize("rule", ["skip", ["wrap", "zero"], ["constant", "wrap"]], ids=str)
def test_writing_at_neighbours(device: td.Device, rule: Any) -> None:
    value = [3.0, None] if "constant" in rule else None
    stencil = td.stencil(boundary=rule, value=value)(pushed)
    for shape in ((6, 35), (1, 3)):
        u, out, count = numbers(*shape), numbers(*shape, seed=1), np.zeros(shape, np.int32)
        want, counted = out.copy(), count.copy()
        rows, columns = shape
        each = [rule] * 2 if isinstance(rule, str) else rule
        for i, j in np.ndindex(shape):
            if rule == "skip" and (i + 1 >= rows or j < 2 or j + 1 >= columns):
                continue
            for array, at, value in (
                (want, (i + 1, j - 2), 2 * u[i, j] + 1),
                (counted, (i, j + 1), None),
            ):
                at = tuple(
                    k % n if one == "wrap" else k for k, n, one in zip(at, shape, each, strict=True)
                )
                if all(0 <= k < n for k, n in zip(at, shape, strict=True)):
                    array[at] = array[at] + 1 if value is None else value
        arrays = [td.asarray(one, device=device) for one in (u, out, count)]
        stencil(*arrays)
        np.testing.assert_array_equal(arrays[1].numpy(), want)
        np.testing.assert_array_equal(arrays[2].numpy(), counted)
        if shape == (1, 3):
            with td.interpret():
                stencil(u, out, count)
            np.testing.assert_array_equal(out, want)
            np.testing.assert_array_equal(count, counted)


# --- several steps in a launch -------------------------------------------------------------------


@td.stencil(boundary=["zero", "wrap"])
def collide(f, out, pos):
    total = pos.at(f[1], -1, 2) + 2.0 * pos.north(f[0]) + f[2][pos]
    for q in td.static_range(3):
        out[q][pos] = 0.25 * pos.at(f[q], q, 1 - q) + 0.125 * total


@td.stencil(boundary=["zero", "wrap"])
def push(out, f, pos):
    for q in td.static_range(3):
        f[q][pos.shifted(1 - q, q)] = 0.5 * pos.at(out[q], 2, 0) + out[2 - q][pos]


def test_several_steps_of_stacks(device: td.Device) -> None:
    """Steps in one launch are those one by one, to the last bit (on the CPU: there are bands)."""
    f = np.random.default_rng(0).random((9, 97, 21), np.float32)
    some = f[:3]
    for stencils, arrays in (
        ([collide], [some, 0 * some]),
        ([collide, push], [some, 0 * some]),
        ([exchange(2, 0), exchange(2, 1)], [f]),
    ):
        found = []
        for together in (1, 3):
            on = [td.asarray(each, device=device) for each in arrays]
            # `push` has the arrays in the other order.
            calls = [(each, *(on[::-1] if each is push else on)) for each in stencils]
            td.stencil_loop(calls, steps=13, steps_per_launch=together)
            found.append([each.numpy() for each in on])
        for one, other in zip(*found, strict=True):
            np.testing.assert_array_equal(one, other)
            assert 0 < np.abs(one).max() < 1e6


# --- as functions of arrays ----------------------------------------------------------------------


@td.stencil(boundary="wrap")
def mixed(f, k, out, pos):
    out[0][pos] = pos.west(f[1]) * k[0] + f[0][pos]
    out[2][pos.shifted(-1)] = f[2][pos] * f[1][pos]


def test_derivatives_of_stacks(device: td.Device) -> None:
    f, k = numbers(3, 8), td.asarray([2.0], device=device)
    a = td.asarray(f, device=device)
    want = [2 * np.roll(f[1], 1) + f[0], np.zeros(8), np.roll(f[2] * f[1], -1)]
    np.testing.assert_array_equal(mixed(a, k).numpy(), want)
    stacks = td.asarray(numbers(2, 3, 8, seed=1), device=device)
    each = td.vmap(mixed, in_dims=(0, None))(stacks, k).numpy()
    np.testing.assert_array_equal(each[1], mixed(stacks[1], k).numpy())
    found = td.grad(lambda f: (mixed(f, k) ** 2).sum())(a).numpy()
    back = np.roll(want[2], 1)  # a wrap is undone by the opposite one
    slopes = [
        2.0 * want[0],
        2.0 * (np.roll(2 * want[0], -1) + back * f[2]),
        2.0 * back * f[1],
    ]
    np.testing.assert_array_equal(found, slopes)


@td.stencil(boundary="zero")
def thrown(u, out, pos):
    out[pos.shifted(2)] = 3.0 * u[pos]


def test_the_derivative_of_a_write_that_is_dropped(device: td.Device) -> None:
    u = td.asarray(numbers(7), device=device)
    want = np.concatenate([[0, 0], 3 * u.numpy()[:-2]])
    np.testing.assert_array_equal(thrown(u).numpy(), want)
    value, back = td.vjp(thrown, u)
    np.testing.assert_array_equal(value.numpy(), want)
    (found,) = back(td.ones(7, device=device))
    np.testing.assert_array_equal(found.numpy(), [3.0] * 5 + [0.0] * 2)


# --- numbers -------------------------------------------------------------------------------------


@td.stencil
def heat(u, rate, out, pos):
    out[pos] = u[pos] + rate * (pos.west(u) + pos.east(u) - 2.0 * u[pos])


def test_numbers_that_are_mapped_and_differentiated(device: td.Device) -> None:
    u = td.asarray(numbers(3, 8), device=device)
    rates = td.asarray([0.5, 0.25, 2.0], device=device)
    found = td.vmap(heat)(u, rates).numpy()
    one = td.vmap(heat, in_dims=(None, 0))(u[0], rates).numpy()
    for at, rate in enumerate((0.5, 0.25, 2.0)):
        np.testing.assert_array_equal(found[at], heat(u[at], rate).numpy())
        np.testing.assert_array_equal(one[at], heat(u[0], rates[at]).numpy())
    out = td.empty_like(u[0])
    heat(u[0], rates[2], out)
    np.testing.assert_array_equal(out.numpy(), one[2])
    slope = td.grad(lambda rate: (heat(u[0], rate) ** 2).sum())(rates[0])
    x = np.pad(u[0].numpy(), 1, mode="edge")
    curve = x[:-2] + x[2:] - 2 * x[1:-1]
    assert slope.item() == 2 * (heat(u[0], 0.5).numpy() * curve).sum()
    compiled = td.compile(lambda u, rate: heat(2.0 * u, rate))
    for rate in rates:
        want = heat(2.0 * u[0], rate).numpy()
        np.testing.assert_array_equal(compiled(u[0], rate).numpy(), want)
