"""Stencils on every device: what a body may be, what its arrays may be, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import treadle as td
from treadle.stencils import launcher, launching

try:
    import torch
except ImportError:  # the tests do not ask for it
    torch = None


def random(*shape: int, seed: int = 0) -> np.ndarray:
    """Numbers with few bits, whose products and sums are exact."""
    return np.random.default_rng(seed).integers(-8, 9, shape).astype(np.float32)


def poisoned(device: td.Device, *shape: int) -> td.Tensor:
    return td.full(shape, float("nan"), dtype=td.float32, device=device)


def shifted(u: np.ndarray, *offsets: int) -> np.ndarray:
    """The neighbours of each element, with zeros outside."""
    halo = max(map(abs, offsets))
    whole = np.pad(u, halo)
    return whole[
        tuple(
            slice(halo + offset, halo + offset + extent)
            for offset, extent in zip(offsets, u.shape, strict=True)
        )
    ]


@td.stencil(boundary="zero")
def named_3d(u: td.Array[td.f32, 3], out: td.Array[td.f32, 3], pos: td.GridPos):
    out[pos] = (
        pos.up(u) + 2.0 * pos.down(u) + 3.0 * pos.north(u) + 4.0 * pos.south(u)
        + 5.0 * pos.west(u) + 6.0 * pos.east(u) - u[pos]
    )  # fmt: skip


def test_named_neighbours(device: td.Device) -> None:
    u = random(4, 5, 19)
    out = poisoned(device, *u.shape)
    named_3d(td.asarray(u, device=device), out)
    want = (
        shifted(u, -1, 0, 0) + 2 * shifted(u, 1, 0, 0) + 3 * shifted(u, 0, -1, 0)
        + 4 * shifted(u, 0, 1, 0) + 5 * shifted(u, 0, 0, -1) + 6 * shifted(u, 0, 0, 1) - u
    )  # fmt: skip
    np.testing.assert_array_equal(out.numpy(), want)


@td.func
def flux(u, k, pos):
    return k[pos] * (pos.east(u) - u[pos])


@td.stencil(boundary="zero")
def diffuse(u, k, scale, weights, out, change, pos: td.GridPos):
    i, j = pos.index
    step = scale * flux(u, k, pos) + weights[0] * td.f32(i) + weights[j % 3] * td.f32(j)
    out[pos] = u[pos] + step
    change[pos] = step


def test_several_arrays_numbers_and_functions(device: td.Device) -> None:
    u, k, weights = random(6, 21), random(6, 21, seed=1), np.float32([2, 3, 5])
    out, change = poisoned(device, 6, 21), poisoned(device, 6, 21)
    on = [td.asarray(each, device=device) for each in (u, k, weights)]
    diffuse(on[0], on[1], 0.5, on[2], out, change)
    i, j = np.indices(u.shape)
    step = 0.5 * k * (shifted(u, 0, 1) - u) + 2 * i + weights[j % 3] * j
    np.testing.assert_array_equal(change.numpy(), step.astype(np.float32))
    np.testing.assert_array_equal(out.numpy(), (u + step).astype(np.float32))


def test_arrays_of_numpy_are_copied_in_and_back(device: td.Device) -> None:
    u, out = random(3, 4, 5), np.full((3, 4, 5), np.nan, np.float32)
    named_3d(u, out)
    assert np.isfinite(out).all()


@td.stencil(boundary="wrap")
def four(u, out, pos):
    out[pos] = pos.north(u) + 2.0 * pos.south(u) + 3.0 * pos.west(u) + 4.0 * pos.east(u)


def four_by_numpy(u: np.ndarray) -> np.ndarray:
    return np.roll(u, 1, 0) + 2 * np.roll(u, -1, 0) + 3 * np.roll(u, 1, 1) + 4 * np.roll(u, -1, 1)


def test_views_of_larger_arrays(device: td.Device) -> None:
    whole = random(12, 40)
    source = td.asarray(whole, device=device)
    target = poisoned(device, 12, 40)
    four(source[1:6, 3:33:2], target[2:7, 1:16])
    got = target.numpy()
    np.testing.assert_array_equal(got[2:7, 1:16], four_by_numpy(whole[1:6, 3:33:2]))
    assert np.isnan(got).sum() == got.size - 5 * 15
    turned = poisoned(device, 40, 12)
    four(source.T, turned)
    np.testing.assert_array_equal(turned.numpy(), four_by_numpy(whole.T))
    # Two halves of one array are different elements.
    four(source[:6], source[6:])
    np.testing.assert_array_equal(source.numpy()[6:], four_by_numpy(whole[:6]))


@td.stencil
def decay(u, pos):
    u[pos] *= 0.5
    u[pos] += 1.0


def test_a_cell_by_itself_in_place(device: td.Device) -> None:
    u = random(5, 7)
    on = td.asarray(u, device=device)
    decay(on)
    np.testing.assert_array_equal(on.numpy(), u * 0.5 + 1)


@td.stencil(boundary="clamp")
def flow(u, mask, out, pos):
    if mask[pos]:
        out[pos] = 0.0
    else:
        total = 0.0
        count = 0
        for dj in td.static_range(-1, 2):
            if not pos.at(mask, 0, dj):
                total += pos.at(u, 0, dj)
                count += 1
        out[pos] = total / td.f32(count)


def test_obstacles(device: td.Device) -> None:
    u = random(5, 33)
    mask = np.random.default_rng(3).random(u.shape) < 0.4
    out = poisoned(device, *u.shape)
    flow(td.asarray(u, device=device), td.asarray(mask, device=device), out)
    far, hidden = np.pad(u, 1, "edge"), np.pad(mask, 1, "edge")
    parts = [(far[1:-1, 1 + d : 34 + d], ~hidden[1:-1, 1 + d : 34 + d]) for d in (-1, 0, 1)]
    total = sum(np.where(free, part, 0) for part, free in parts)
    count = sum(free.astype(np.float32) for _, free in parts)
    want = np.where(mask, 0, total / np.maximum(count, 1)).astype(np.float32)
    np.testing.assert_allclose(out.numpy(), want, rtol=1e-6)


@td.stencil(boundary="zero")
def gradient(p, vx, vy, pos):
    vx[pos] = p[pos] - pos.west(p)
    vy[pos] = p[pos] - pos.north(p)


@td.stencil
def divergence(vx, vy, out, pos):
    out[pos] = pos.east(vx) - vx[pos] + pos.south(vy) - vy[pos]


def test_staggered_grids(device: td.Device) -> None:
    p = random(6, 19)
    on = td.asarray(p, device=device)
    # Velocities lie between the cells: one more along their own axis.
    whole_x, whole_y = poisoned(device, 6, 21), poisoned(device, 8, 19)
    vx, vy = whole_x[:, :20], whole_y[:7]
    gradient(on, vx, vy)
    want_x = np.diff(np.pad(p, ((0, 0), (1, 1))), axis=1)
    want_y = np.diff(np.pad(p, ((1, 1), (0, 0))), axis=0)
    np.testing.assert_array_equal(vx.numpy(), want_x)
    np.testing.assert_array_equal(vy.numpy(), want_y)
    assert np.isnan(whole_x.numpy()[:, 20:]).all()
    assert np.isnan(whole_y.numpy()[7:]).all()
    out = poisoned(device, 6, 19)
    divergence(vx, vy, out)
    want = np.diff(want_x, axis=1) + np.diff(want_y, axis=0)
    np.testing.assert_array_equal(out.numpy(), want)


def test_staggered_grids_in_check_mode(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("treadle.runtime.settings.check", True)
    p = random(6, 19)
    vx, vy = np.zeros((6, 20), np.float32), np.zeros((7, 19), np.float32)
    with td.use_device("cpu"):
        gradient(p, vx, vy)
    np.testing.assert_array_equal(vx, np.diff(np.pad(p, ((0, 0), (1, 1))), axis=1))


@td.struct
class Fluid:
    density: td.f32
    kind: td.i32


@td.stencil(boundary="constant", value=3)
def spread(u: td.Array[Fluid, 2], out: td.Array[Fluid, 2], pos: td.GridPos):
    out[pos].density = pos.east(u).density + u[pos].density
    out[pos].kind = pos.south(u).kind


@td.stencil(boundary="constant", value=2.0)
def curl(e: td.Array[td.vec3[td.f32], 2], out: td.Array[td.vec3[td.f32], 2], pos: td.GridPos):
    out[pos] = pos.east(e) - pos.north(e)


def test_structs_and_vectors(device: td.Device) -> None:
    u = np.zeros((4, 18), Fluid.dtype)
    u["density"], u["kind"] = random(4, 18), random(4, 18, seed=1)
    out = np.zeros_like(u)
    spread(u, out)
    whole = np.pad(u["density"], 1, constant_values=3)
    np.testing.assert_array_equal(out["density"], whole[1:-1, 2:] + u["density"])
    kinds = np.pad(u["kind"], 1, constant_values=3)
    np.testing.assert_array_equal(out["kind"], kinds[2:, 1:-1])

    e = random(4, 18, 3)
    result = poisoned(device, 4, 18, 3)
    curl(td.asarray(e, device=device), result)
    whole = np.pad(e, ((1, 1), (1, 1), (0, 0)), constant_values=2)
    np.testing.assert_array_equal(result.numpy(), whole[1:-1, 2:] - whole[:-2, 1:-1])


@td.struct
class Parts:
    f: td.f32[3]
    flow: td.vec2[td.f32]


@td.stencil(boundary="wrap")
def move(u: td.Array[Parts, 2], out: td.Array[Parts, 2], pos: td.GridPos):
    for q in td.static_range(3):
        out[pos].f[q] = pos.at(u, 0, q - 1).f[q]
    out[pos].flow[1] = pos.north(u).flow.x
    out[pos].flow.x = 0.0
    out[pos].flow[0] += 1.0


def test_arrays_in_structs_are_written_part_by_part(device: td.Device) -> None:
    u = np.zeros((4, 18), Parts.dtype)
    u["f"], u["flow"] = random(4, 18, 3), random(4, 18, 2)
    a, b = td.asarray(u, device=device), td.zeros(u.shape, dtype=Parts, device=device)
    last = td.stencil_loop(move, a, b, steps=3, rotate=("u", "out"))
    assert last is b
    want = u.copy()
    for q in range(3):
        want["f"][..., q] = np.roll(u["f"][..., q], 3 * (1 - q), 1)
    want["flow"] = 1.0
    np.testing.assert_array_equal(b.numpy()["f"], want["f"])
    np.testing.assert_array_equal(b.numpy()["flow"], want["flow"])


def test_a_race_on_a_part_is_refused(device: td.Device) -> None:
    @td.stencil
    def smear(u: td.Array[Parts, 2], pos: td.GridPos):
        u[pos].f[1] = pos.west(u).f[0]  # the line

    u = td.zeros((3, 4), dtype=Parts, device=device)
    error = refused(td.errors.CompileError, "another cell", lambda: smear(u))
    assert "# the line" in str(error)


def test_a_part_outside_a_staggered_array_is_not_written(device: td.Device) -> None:
    @td.stencil(boundary="zero")
    def both(u, out: td.Array[Parts, 1], sides, pos: td.GridPos):
        out[pos].f[2] = u[pos]
        sides[pos] = u[pos]

    u = random(19)
    whole = td.zeros(21, dtype=Parts, device=device)
    sides = poisoned(device, 20)
    both(td.asarray(u, device=device), whole[:19], sides)
    got = whole.numpy()["f"]
    np.testing.assert_array_equal(got[:19, 2], u)
    assert not got[19:].any()
    assert not got[:, :2].any()
    np.testing.assert_array_equal(sides.numpy(), np.append(u, np.float32(0)))


@td.stencil(boundary="wrap")
def life(cells: td.Array[td.u8, 2], out: td.Array[td.u8, 2], pos: td.GridPos):
    count = 0
    for di in td.static_range(-1, 2):
        for dj in td.static_range(-1, 2):
            count += td.i32(pos.at(cells, di, dj))
    alive = td.i32(cells[pos])
    out[pos] = td.u8(1 if count == 3 or (count == 4 and alive == 1) else 0)


def test_integers(device: td.Device) -> None:
    cells = (np.random.default_rng(1).random((9, 35)) < 0.4).astype(np.uint8)
    out = td.full(cells.shape, 9, dtype=td.uint8, device=device)
    life(td.asarray(cells, device=device), out)
    turns = [(di, dj) for di in (-1, 0, 1) for dj in (-1, 0, 1)]
    count = sum(np.roll(cells.astype(int), turn, (0, 1)) for turn in turns)
    np.testing.assert_array_equal(out.numpy(), (count == 3) | ((count == 4) & (cells == 1)))


def test_a_captured_radius_changes_the_halo(device: td.Device) -> None:
    radius = 1

    @td.stencil(boundary="zero")
    def box(u, out, pos):
        total = 0.0
        for d in td.static_range(-radius, radius + 1):
            total += pos.at(u, d)
        out[pos] = total

    u = random(40)
    for radius in (1, 4, 2):
        out = poisoned(device, 40)
        box(td.asarray(u, device=device), out)
        want = np.convolve(u, np.ones(2 * radius + 1, np.float32), "same")
        np.testing.assert_array_equal(out.numpy(), want)


def test_tile(device: td.Device) -> None:
    @td.stencil(boundary="wrap", tile=(4, 8))
    def tiled(u, out, pos):
        out[pos] = pos.north(u) + 2.0 * pos.south(u) + 3.0 * pos.west(u) + 4.0 * pos.east(u)

    u = random(11, 37)
    out = poisoned(device, 11, 37)
    tiled(td.asarray(u, device=device), out)
    np.testing.assert_array_equal(out.numpy(), four_by_numpy(u))
    assert "@workgroup_size(8, 4, 1)" in tiled.source("wgsl", u, u.copy())


def test_rows_are_many_blocks(device: td.Device) -> None:
    u = random(70, 1030)
    out = poisoned(device, *u.shape)
    four(td.asarray(u, device=device), out)
    np.testing.assert_array_equal(out.numpy(), four_by_numpy(u))
    long = random(200_003)

    @td.stencil(boundary="wrap")
    def pair(u, out, pos):
        out[pos] = pos.west(u) + 2.0 * pos.at(u, 2)

    result = poisoned(device, 200_003)
    pair(td.asarray(long, device=device), result)
    np.testing.assert_array_equal(result.numpy(), np.roll(long, 1) + 2 * np.roll(long, -2))


@pytest.mark.parametrize(("shape", "cells"), [((11, 13, 40), 3), ((7, 3, 5), 2), ((2, 30, 3), 1)])
def test_parts_of_a_grid(
    device: td.Device, shape: tuple[int, ...], cells: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bands of rows, runs of planes and columns of cells, as large grids have them."""
    for name, least in (("_LEAST_THREADS", 2000), ("_CACHE_BYTES", 6000), ("_MOST_BYTES", 300)):
        monkeypatch.setattr(launching, name, least)
    form = launching.GpuForm(cells, (8, 4, 1), 6)
    monkeypatch.setattr(launcher, "gpu_form", lambda analysis, device, region: form)
    u = random(*shape)
    out = poisoned(device, *shape)
    named_3d(td.asarray(u, device=device), out)
    whole = np.pad(u, 1)
    want = (
        whole[:-2, 1:-1, 1:-1] + 2 * whole[2:, 1:-1, 1:-1] + 3 * whole[1:-1, :-2, 1:-1]
        + 4 * whole[1:-1, 2:, 1:-1] + 5 * whole[1:-1, 1:-1, :-2] + 6 * whole[1:-1, 1:-1, 2:] - u
    )  # fmt: skip
    np.testing.assert_array_equal(out.numpy(), want)


@td.stencil(boundary="mirror")
def of_columns(u: td.Array[td.f32, 2], k: td.Array[td.vec2[td.f32], 2], v, out, pos):
    """Numbers, vectors, an array that is updated, a read that is not always made."""
    far = pos.at(u, 2, 1) + pos.at(k, -1, 0).y * k[pos].x
    if u[pos] > 0.0:
        far += pos.at(u, -2, 0)
    v[pos] += far
    out[pos] = v[pos] - pos.north(u)


def test_columns_of_cells(device: td.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    u, k, v = random(13, 21), random(13, 21, 2, seed=1), random(13, 21, seed=2)
    found = []
    for cells in (1, 4, 5):
        form = launching.GpuForm(cells, None, cells)
        monkeypatch.setattr(launcher, "gpu_form", lambda *_, form=form: form)
        out, updated = poisoned(device, 13, 21), td.asarray(v, device=device)
        of_columns(td.asarray(u, device=device), td.asarray(k, device=device), updated, out)
        found.append((out.numpy(), updated.numpy()))
    wide, above = np.pad(u, 2, "reflect"), np.pad(k[..., 1], 2, "reflect")[1:-3, 2:-2]
    far = wide[4:, 3:-1] + above * k[..., 0] + np.where(u > 0, wide[:-4, 2:-2], 0)
    for out, updated in found:
        np.testing.assert_array_equal(updated, v + far)
        np.testing.assert_array_equal(out, v + far - wide[1:-3, 2:-2])


# --- what is refused -----------------------------------------------------------------------------


def refused(error: type[Exception], match: str, call: Callable[[], Any]) -> Exception:
    """The error of a call, after which the next call works."""
    with pytest.raises(error, match=match) as found:
        call()
    u, out = np.ones((3, 3), np.float32), np.zeros((3, 3), np.float32)
    four(u, out)
    assert (out == 10).all()
    return found.value


def test_a_race_is_refused_with_its_line(device: td.Device) -> None:
    @td.stencil
    def smear(u, pos):
        u[pos] = pos.west(u)  # the line

    @td.stencil
    def smear_by_index(u, pos):
        (i,) = pos.index
        u[pos] = u[i - 1]  # the line

    u = td.zeros(8, device=device)
    for stencil in (smear, smear_by_index):
        error = refused(td.errors.CompileError, "another cell", lambda: stencil(u))  # noqa: B023
        assert "# the line" in str(error)
    whole = td.zeros((5, 4), device=device)
    refused(td.errors.LaunchError, "shares memory with u", lambda: four(whole[:4], whole[1:]))
    refused(td.errors.LaunchError, "shares memory with u", lambda: four(whole, whole))
    host = np.zeros((5, 4), np.float32)
    refused(td.errors.LaunchError, "shares memory with u", lambda: four(host[:4], host[1:]))


@td.stencil
def add(u, v, out, pos):
    out[pos] = u[pos] + v[pos]


def test_one_array_twice(device: td.Device) -> None:
    u = random(4, 6)
    on = td.asarray(u, device=device)
    add(on, on, on)
    np.testing.assert_array_equal(on.numpy(), 2 * u)
    host = u.copy()
    add(host, host, host)
    np.testing.assert_array_equal(host, 2 * u)
    refused(td.errors.LaunchError, "shares memory", lambda: add(on[:3], on[:3], on[1:]))


if torch is not None:

    def test_arrays_of_other_libraries() -> None:
        u = random(6, 9)
        x, out = torch.from_numpy(u.copy()), torch.zeros(6, 9)
        with td.use_device("cpu"):
            four(x, out)
            np.testing.assert_array_equal(out.numpy(), four_by_numpy(u))
            refused(td.errors.LaunchError, "shares memory with u", lambda: four(x[:-1], x[1:]))
            four(x[:3], x[3:])
        np.testing.assert_array_equal(x.numpy()[3:], four_by_numpy(u[:3]))


@td.stencil
def total(u, sum, pos):
    td.atomic_add(sum, 0, u[pos] + pos.west(u))


def test_a_sum_by_atomics(device: td.Device) -> None:
    u, sum = random(5, 40), td.zeros(1, device=device)
    total(td.asarray(u, device=device), sum)
    assert sum.item() == u.sum() + u[:, :-1].sum() + u[:, 0].sum()


@td.stencil(boundary="zero")
def by_index(u, out, pos):
    i, j = pos.index
    out[i, j] = pos.west(u) + u[i - 1, j]


def test_writes_by_index(device: td.Device) -> None:
    u, out = random(5, 18), poisoned(device, 5, 18)
    by_index(td.asarray(u, device=device), out)
    np.testing.assert_array_equal(out.numpy(), shifted(u, 0, -1) + shifted(u, -1, 0))


def test_shapes_that_do_not_match(device: td.Device) -> None:
    zeros = lambda *shape: td.zeros(shape, device=device)  # noqa: E731
    shapes = td.errors.ShapeError
    refused(shapes, "extents along axis 1", lambda: four(zeros(3, 4), zeros(3, 6)))
    refused(shapes, "extents along axis 0", lambda: four(zeros(0, 4), zeros(1, 4)))
    refused(td.errors.CompileError, "2 axes", lambda: four(zeros(3), zeros(3, 3)))
    refused(shapes, "1, 2 or 3 axes", lambda: four(zeros(2, 2, 2, 2), zeros(2, 2, 2, 2)))
    refused(td.errors.LaunchError, "3 dimensions", lambda: named_3d(zeros(3, 3), zeros(3, 3, 3)))
    refused(td.errors.LaunchError, "takes 2 arguments", lambda: four(zeros(3, 3), zeros(3, 3), 1.0))
    refused(
        shapes, "2 boundaries",
        lambda: td.stencil(boundary=["zero", "wrap"])(decay.__wrapped__)(zeros(3)),
    )  # fmt: skip


def test_offsets_are_constants(device: td.Device) -> None:
    @td.stencil
    def far(u, k, out, pos):
        out[pos] = pos.at(u, k[pos])  # the line

    u, k = td.zeros(8, device=device), td.zeros(8, dtype=td.int32, device=device)
    error = refused(td.errors.CompileError, "constant integers", lambda: far(u, k, td.zeros(8)))
    assert "# the line" in str(error)


def test_a_halo_that_is_declared_too_small(device: td.Device) -> None:
    @td.stencil(halo=(1, 0))
    def wide(u, out, pos):
        out[pos] = pos.north(u) + pos.east(u)  # the line

    u = td.zeros((3, 3), device=device)
    error = refused(td.errors.CompileError, "beyond its halo", lambda: wide(u, td.zeros_like(u)))
    assert "# the line" in str(error)


def test_what_a_decorator_refuses() -> None:
    def body(u, out, pos):
        out[pos] = pos.west(u)

    for options in (
        {"boundary": "repeat"}, {"boundary": 3}, {"boundary": "constant"}, {"value": 1.0},
        {"boundary": ["zero", "clamp"], "value": [1.0]}, {"halo": -1}, {"halo": 1.5},
    ):  # fmt: skip
        with pytest.raises(ValueError, match="stencil"):
            td.stencil(**options)(body)

    def without_position(u, out):
        out[0] = u[0]

    with pytest.raises(td.errors.CompileError, match=r"pos: td\.GridPos"):
        td.stencil(without_position)

    def with_default(u, out, pos, k=2.0):
        out[pos] = k * u[pos]

    with pytest.raises(td.errors.CompileError, match="without a default"):
        td.stencil(with_default)

    def with_result(u, out, pos):
        return u[pos]

    with pytest.raises(td.errors.CompileError, match="returns nothing"):
        td.stencil(with_result)


def test_bodies_that_are_none(device: td.Device) -> None:
    @td.stencil
    def nothing(u, pos):
        x = 3.0  # noqa: F841

    @td.stencil
    def unpacked(u, out, pos):
        i, j = pos
        out[i, j] = u[pos]

    @td.stencil
    def of_threads(u, out, pos):
        out[pos] = u[pos] + td.f32(td.thread_idx.x)  # the line

    @td.stencil
    def of_blocks(u, out, pos):
        part = td.shared(4, td.f32)
        part[0] = u[pos]
        td.sync_threads()
        out[pos] = part[0]

    u = td.zeros((3, 3), device=device)
    for stencil in (of_threads, of_blocks):
        refused(td.errors.CompileError, "differs from device", lambda: stencil(u, u + 1))  # noqa: B023
    refused(td.errors.CompileError, "nothing at its position", lambda: nothing(u))
    refused(td.errors.CompileError, r"pos\.index", lambda: unpacked(u, td.zeros_like(u)))
