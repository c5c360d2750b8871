"""Blocks of GPUs that march through planes: equal to one cell a thread, to the last bit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import treadle as td
from treadle.ir import types as t
from treadle.stencils import march_plan, marching
from treadle.stencils.march_plan import March

RULES = ("clamp", "wrap", "mirror", "zero", "constant", "skip")
TURNED = [(a, RULES[(at + 1) % 6], RULES[(at + 2) % 6]) for at, a in enumerate(RULES)]
# A thread's rows, its cells as a vector, planes loaded ahead, an unrolled loop.
ONE, FOUR, PAIRS = March((8, 2), 2, 1, 1, 3), March((3, 4), 1, 4, 2, 2), March((3, 2), 2, 4)


def options(*rules: Any) -> dict[str, Any]:
    value = [2.5 if rule == "constant" else None for rule in rules]
    return {"boundary": list(rules), **({"value": value} if any(value) else {})}


def near(u, k, out, pos):
    i, j, m = pos.index
    sides = pos.north(u) + pos.south(u) + pos.east(u) + pos.west(u) + pos.at(u, 0, 1, -1)
    far = pos.up(u) + 0.7 * pos.at(u, 2, 0, 0)
    out[pos] = u[pos] + k * (sides + far - 5.7 * u[pos]) + 0.01 * td.f32(i + 2 * j + 3 * m)


def of_two(u, speed, k, v, out, pos):
    """Arrays with different neighbours, one that is updated, a read that is not always made."""
    v[pos] += speed[pos] * pos.at(u, 2, 0, 0) + pos.up(speed)
    if speed[pos] > 0.5:
        out[pos] = pos.at(u, 0, -2, 0) + k * pos.at(u, 0, 0, 3) * v[pos]
    else:
        out[pos] = pos.at(u, -1, 0, 0)


def start(*shape: int, seed: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).random(shape, np.float32)


@pytest.fixture
def forced(monkeypatch: pytest.MonkeyPatch) -> Callable[[March | None], list[March]]:
    """Have grids march as is said; which marches were launched."""

    def force(march: March | None) -> list[March]:
        found: list[March] = []

        def chosen(columns: Any, vectors: bool, *_: Any) -> March | None:
            if march is None or march.lanes == 1 or vectors:
                found.extend([march] if march else [])
                return march
            return replace(march, lanes=1)

        monkeypatch.setattr(marching, "march_of", chosen)
        monkeypatch.setattr(marching, "march_planes", lambda *_: 6)
        return found

    return force


def assert_same(found: list[list[np.ndarray]]) -> None:
    for other in found[1:]:
        for one, two in zip(found[0], other, strict=True):
            np.testing.assert_array_equal(two.view(np.uint8), one.view(np.uint8))


@pytest.mark.parametrize("at", range(6))
def test_boundaries(device: td.Device, at: int, forced: Any) -> None:
    rules = TURNED[at]
    kernel = td.stencil(**options(*rules))(near)
    found = []
    for march in (None, (ONE, FOUR, PAIRS)[at % 3]):
        launched = forced(march)
        found.append([])
        for shape in ((5, 4, 12), (13, 9, 20)):
            u = td.asarray(start(*shape), device=device)
            out = td.full(shape, float("nan"), device=device)
            kernel(u, 0.19, out)
            found[-1].append(out.numpy())
        if march and not device.traits.serial_threads:
            vectors = march.lanes == 1 or rules[2] != "skip"
            assert len(launched) == 2 * vectors
    assert_same(found)


@pytest.mark.parametrize(
    "rules", [("wrap", "skip", "clamp"), ("skip", "zero", "mirror")], ids="-".join
)
def test_several_arrays(device: td.Device, rules: tuple[str, ...], forced: Any) -> None:
    kernel = td.stencil(**options(*rules))(of_two)
    shape, found = (13, 9, 20), []
    for march in (None, ONE):
        forced(march)
        u, speed, v = (td.asarray(start(*shape, seed=at), device=device) for at in (1, 2, 4))
        out = td.full(shape, float("nan"), device=device)
        kernel(u, speed, 0.3, v, out)
        found.append([out.numpy(), v.numpy()])
    assert_same(found)


def test_rows_that_are_no_whole_vectors(device: td.Device, forced: Any) -> None:
    kernel = td.stencil(boundary="mirror")(near)
    for shape in ((3, 5, 7), (7, 1, 13), (4, 3, 4)):
        found = []
        for march in (None, FOUR):
            forced(march)
            whole = td.asarray(start(shape[0], shape[1], shape[2] + 1), device=device)
            for u in (whole[:, :, 1:], whole[:, :, 1:] * 1.0):  # strides, and none
                out = td.full(shape, float("nan"), device=device)
                kernel(u, 0.19, out)
                found.append([out.numpy()])
        assert_same(found)


def test_functions_at_the_boundary(device: td.Device, forced: Any) -> None:
    def outside(u, k, i, j):
        return 0.5 * u[0, 0, 0] + td.f32(i) - 2.0 * td.f32(j) + 3.0 * td.f32(k)

    kernel = td.stencil(boundary=["clamp", outside, "zero"])(near)
    found = []
    for march in (None, FOUR):
        forced(march)
        u, out = td.asarray(start(7, 6, 20), device=device), td.zeros((7, 6, 20), device=device)
        kernel(u, 0.19, out)
        found.append([out.numpy()])
    assert_same(found)


@pytest.mark.parametrize("kind", ["int32", "float16", "special"])
def test_elements(device: td.Device, kind: str, forced: Any) -> None:
    def sums(u, out, pos):
        out[pos] = 3 * pos.up(u) - pos.at(u, 0, 2, 0) + 2 * pos.west(u) + u[pos]

    kept: dict[str, Any] = {"storage": td.float16} if kind == "float16" else {}

    def halves(u: td.Array[td.f32, 3], out: td.Array[td.f32, 3], pos):
        out[pos] = 3.0 * pos.up(u) - pos.at(u, 0, 2, 0) + 2.0 * pos.west(u) + u[pos]

    kernel = td.stencil(boundary="wrap", **kept)(halves if kept else sums)
    u = start(7, 6, 20) * 100 - 50
    u = u.astype(np.int32 if kind == "int32" else np.float16 if kept else np.float32)
    if kind == "special":
        u.flat[::7], u.flat[3::11], u.flat[5::13] = np.inf, -0.0, 1e-40
    found = []
    for march in (None, FOUR if kind == "special" else ONE):
        forced(march)
        out = td.zeros(u.shape, dtype=td.asarray(u, device=device).dtype, device=device)
        kernel(td.asarray(u, device=device), out)
        found.append([out.numpy()])
    assert_same(found)


def test_what_does_not_march(device: td.Device, forced: Any) -> None:
    """Other columns of other planes, blocks that are asked for."""

    @td.stencil(boundary="clamp")
    def corner(u, out, pos):
        out[pos] = pos.at(u, 1, 1, 0) + u[pos]

    @td.stencil(boundary="clamp", tile=(2, 4))
    def tiled(u, out, pos):
        out[pos] = pos.at(u, 1, 0, 0) + pos.east(u)

    launched = forced(ONE)
    u = td.asarray(start(4, 5, 6), device=device)
    corner(u, td.zeros_like(u))
    tiled(u, td.zeros_like(u))
    assert launched == []


@pytest.mark.parametrize("rules", [("clamp", "mirror", "constant"), ("mirror", "zero", "clamp")])
def test_several_steps(device: td.Device, rules: tuple[str, ...]) -> None:
    @td.stencil(**options(*rules))
    def heat(u, k, out, pos):
        i, j, m = pos.index
        sides = pos.north(u) + pos.south(u) + pos.east(u) + pos.at(u, 0, -1, 1)
        sides += pos.up(u) + 0.7 * pos.down(u)
        out[pos] = u[pos] + k * (sides - 5.7 * u[pos]) + 0.01 * td.f32(i + 2 * j + 3 * m)

    steps_are_the_same(device, heat, (8, 14, 24))


def test_several_steps_of_columns_of_five_planes(device: td.Device) -> None:
    @td.stencil(**options("mirror", "constant", "clamp"))
    def far(u, k, out, pos):
        sides = pos.at(u, -2, 0, 0) + pos.down(u) + pos.at(u, 0, 2, 0) - pos.west(u)
        out[pos] = u[pos] + k * (sides + 0.3 * pos.north(u) + 0.1 * pos.at(u, 0, 1, 2))

    steps_are_the_same(device, far, (9, 13, 21))


def steps_are_the_same(device: td.Device, kernel: Any, shape: tuple[int, ...]) -> None:
    """Four steps, of which three are computed in one launch, beside four launches."""
    found = []
    for several in (1, 3):
        a = td.asarray(start(*shape), device=device)
        b = td.full(shape, float("nan"), device=device)
        td.stencil_loop(kernel, a, 0.19, b, steps=4, steps_per_launch=several)
        found.append([a.numpy(), b.numpy()])
    assert_same(found)
    assert kernel.loops


def test_the_choice_is_made_by_size_and_reads() -> None:
    class Card:
        class traits:
            software = on_host = slow_compiler = False

    def column(*planes: int) -> march_plan.Column:
        return march_plan.Column(0, "u", (planes[0], planes[1]), ((1, 1), (1, 1)), t.F32)

    shape = (400, 400, 400)
    for columns, least in ((column(-1, 1), True), (column(-4, 4), True), (column(-9, 9), False)):
        for vectors in (False, True):
            chosen: Any = march_plan.march_of([columns], vectors, Card, shape)  # type: ignore[arg-type]
            assert (chosen is not None) == least
            assert chosen is None or (chosen.lanes == 4) == vectors
    assert march_plan.march_of([column(-1, 1)], True, Card, (60, 60, 60)) is None  # type: ignore[arg-type]
