"""Several steps in a launch: equal to step by step, to the last bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import treadle as td

RULES = ("clamp", "wrap", "mirror", "zero", "constant", "skip")


def options(*rules: str) -> dict[str, Any]:
    value = [2.5 if rule == "constant" else None for rule in rules]
    return {"boundary": list(rules), **({"value": value} if any(value) else {})}


def near(u, k, out, pos):
    out[pos] = u[pos] + 0.2 * (k * pos.west(u) - 1.7 * u[pos] + 0.7 * pos.at(u, 2))


def cross(u, k, out, pos):
    # Adjacent rows have products in common, which a compiler may compute once, or fuse with sums.
    sides = k * pos.north(u) + k * pos.south(u) + 1.3 * k * pos.east(u) + k * pos.at(u, 1, -1)
    out[pos] = 0.3 * u[pos] + (sides - k * u[pos])


def star(u, k, out, pos):
    i, j, m = pos.index
    sides = pos.north(u) + pos.south(u) + pos.east(u) + pos.west(u) + pos.up(u) + 0.7 * pos.down(u)
    out[pos] = u[pos] + k * (sides - 5.7 * u[pos]) + 0.01 * td.f32(i + 2 * j + 3 * m)


def start(*shape: int) -> np.ndarray:
    return np.random.default_rng(3).random(shape, np.float32)


def both(
    device: td.Device, kernel: Any, shape: tuple[int, ...], steps: int, several: int
) -> list[tuple[np.ndarray, np.ndarray]]:
    """The arrays after some steps, one by one and with several in a launch."""
    found = []
    for each in (1, several):
        a = td.asarray(start(*shape), device=device)
        b = td.full(shape, float("nan"), device=device)
        last = td.stencil_loop(kernel, a, 0.19, b, steps=steps, steps_per_launch=each)
        assert last is (b if steps % 2 else a)
        found.append((a.numpy(), b.numpy()))
    return found


def runs_together(device: td.Device, ndim: int) -> bool:
    """Whether a device computes several steps in a launch, if it is asked to."""
    return device.traits.serial_threads or ndim < 3


def assert_same(pair: Any) -> None:
    (a, b), (c, d) = pair
    np.testing.assert_array_equal(c.view(np.uint32), a.view(np.uint32))
    np.testing.assert_array_equal(d.view(np.uint32), b.view(np.uint32))


@pytest.mark.parametrize("rule", RULES)
def test_one_dimension(device: td.Device, rule: str) -> None:
    kernel = td.stencil(**options(rule))(near)
    for extent, steps, several in ((3, 7, 3), (41, 9, 3), (700, 23, 3), (1031, 12, 3)):
        assert_same(both(device, kernel, (extent,), steps, several))
    assert bool(kernel.loops) == runs_together(device, 1)


def test_products_that_are_kept(device: td.Device) -> None:
    @td.stencil(**options("constant"))
    def kept(u, k, out, pos):
        product = k * pos.west(u)
        other = 0.7 * pos.at(u, 2)
        out[pos] = u[pos] + product - other + 0.01 * other * product

    assert_same(both(device, kept, (700,), 12, 3))


@pytest.mark.parametrize(
    "rules",
    [("clamp", "wrap"), ("wrap", "mirror"), ("zero", "constant"), ("skip", "skip")],
    ids="-".join,
)
def test_two_dimensions(device: td.Device, rules: tuple[str, ...]) -> None:
    kernel = td.stencil(**options(*rules))(cross)
    for shape, steps, several in (((1, 5), 4, 3), ((3, 70), 8, 3), ((77, 45), 11, 3)):
        if "mirror" in rules and 1 in shape:
            continue
        assert_same(both(device, kernel, shape, steps, several))
    assert bool(kernel.loops) == runs_together(device, 2)


@pytest.mark.parametrize(
    "rules",
    [("clamp", "zero", "wrap"), ("wrap", "mirror", "skip"), ("skip", "wrap", "clamp")],
    ids="-".join,
)
def test_three_dimensions(device: td.Device, rules: tuple[str, ...]) -> None:
    kernel = td.stencil(**options(*rules))(star)
    for shape, steps, several in (((5, 3, 9), 5, 2), ((19, 26, 21), 7, 3)):
        assert_same(both(device, kernel, shape, steps, several))
    assert bool(kernel.loops) == runs_together(device, 3)


@td.stencil(boundary="zero")
def wave(before, now, speed, solid, after, pos):
    if solid[pos] > 0.9:
        after[pos] = 0.0
    else:
        sides = pos.north(now) + pos.south(now) + pos.east(now) + pos.west(now)
        speed_here = speed[pos] * pos.east(speed)
        after[pos] = 2.0 * now[pos] - before[pos] + speed_here * (sides - 4.0 * now[pos])


def test_three_arrays_and_coefficients(device: td.Device) -> None:
    found = []
    for several in (1, 4, 5):
        fields = [td.asarray(start(70, 33), device=device) for _ in range(2)]
        fixed = [td.asarray(0.4 * start(70, 33), device=device) for _ in range(2)]
        after = td.full((70, 33), float("nan"), device=device)
        td.stencil_loop(
            wave, *fields, *fixed, after, steps=13, rotate=("before", "now", "after"),
            steps_per_launch=several,
        )  # fmt: skip
        found.append([each.numpy().tobytes() for each in (*fields, *fixed, after)])
    assert found[0] == found[1] == found[2]


@td.stencil(boundary=["wrap", "zero"])
def update_h(h, e, pos):
    h[pos] += 0.5 * (pos.east(e) - e[pos]) + 0.25 * (pos.south(e) - e[pos])


@td.stencil(boundary=["wrap", "zero"])
def update_e(e, h, loss, pos):
    e[pos] = loss * e[pos] + 0.5 * (h[pos] - pos.west(h)) + 0.25 * (h[pos] - pos.north(h))


def test_several_stencils_in_turn(device: td.Device) -> None:
    found = []
    for several in (1, 3):
        e, h = (td.asarray(start(66, 19), device=device) for _ in range(2))
        td.stencil_loop(
            [(update_h, h, e), (update_e, e, h, 0.97)], steps=16, steps_per_launch=several
        )
        found.append((e.numpy().tobytes(), h.numpy().tobytes()))
    assert found[0] == found[1]


@td.stencil(boundary="mirror")
def flux(p, v, pos):
    v[pos] = 0.9 * v[pos] - 0.3 * (p[pos] - pos.north(p))


@td.stencil(boundary="mirror")
def pressure(v, p, pos):
    p[pos] = p[pos] - 0.3 * (pos.south(v) - v[pos])


def test_staggered_grids(device: td.Device) -> None:
    found = []
    for several in (1, 4):
        p, v = td.asarray(start(80, 7), device=device), td.zeros((81, 7), device=device)
        td.stencil_loop([(flux, p, v), (pressure, v, p)], steps=12, steps_per_launch=several)
        found.append((p.numpy().tobytes(), v.numpy().tobytes()))
    assert found[0] == found[1]


def test_structs_and_vectors(device: td.Device) -> None:
    @td.stencil(boundary="wrap")
    def turn(u: td.Array[td.vec2[td.f32], 2], out: td.Array[td.vec2[td.f32], 2], pos):
        out[pos] = (
            0.5 * pos.west(u) + 0.3 * pos.north(u) + 0.2 * td.vec2[td.f32](u[pos].y, u[pos].x)
        )

    found = []
    for several in (1, 3):
        a = td.asarray(start(61, 20, 2), device=device)
        b = td.zeros_like(a)
        td.stencil_loop(turn, a, b, steps=10, steps_per_launch=several)
        found.append((a.numpy().tobytes(), b.numpy().tobytes()))
    assert found[0] == found[1]


def test_halves(device: td.Device) -> None:
    kernel = td.stencil(boundary="clamp", storage=td.float16)(cross)
    found = []
    for several in (1, 3):
        a = td.asarray(start(61, 20).astype(np.float16), device=device)
        b = td.zeros_like(a)
        td.stencil_loop(kernel, a, 0.19, b, steps=10, steps_per_launch=several)
        found.append((a.numpy().tobytes(), b.numpy().tobytes()))
    assert found[0] == found[1]
    assert kernel.loops


def test_what_depends_on_far_cells_is_computed_step_by_step(device: td.Device) -> None:
    def outside(u, i):
        return u[u.shape[0] // 2]

    @td.stencil(boundary=outside)
    def from_far(u, out, pos):
        out[pos] = 0.5 * pos.west(u) + 0.5 * pos.east(u)

    u = start(400)
    a, b = td.asarray(u, device=device), td.zeros(400, device=device)
    last = td.stencil_loop(from_far, a, b, steps=9, steps_per_launch=4)
    for _ in range(9):
        whole = np.concatenate([u[200:201], u, u[200:201]])
        u = (np.float32(0.5) * whole[:-2] + np.float32(0.5) * whole[2:]).astype(np.float32)
    np.testing.assert_allclose(last.numpy(), u, rtol=1e-5)
    assert not from_far.loops


def test_the_choice_for_large_arrays() -> None:
    found = []
    rows = td.device("cpu").traits.serial_threads  # not in a page, where NumPy computes
    for chosen in (1, None):
        kernel = td.stencil(boundary="clamp")(cross)
        a = td.asarray(start(1700, 1500), device="cpu")
        last = td.stencil_loop(kernel, a, 0.1, td.zeros_like(a), steps=17, steps_per_launch=chosen)
        found.append(last.numpy().tobytes())
        assert bool(kernel.loops) == (chosen is None and rows)
    assert found[0] == found[1]


def test_callbacks_and_convergence_between_launches(device: td.Device) -> None:
    kernel = td.stencil(boundary="clamp")(cross)
    found = []
    for several in (1, 4):
        seen: list[Any] = []
        a, b = td.asarray(start(64, 16), device=device), td.zeros((64, 16), device=device)
        td.stencil_loop(
            kernel, a, 0.1, b, steps=60, every=7, steps_per_launch=several,
            callback=lambda step, new, seen=seen: seen.append((step, new.numpy().tobytes())),
            until=lambda new, old: td.max(td.abs(new - old)) < 0.01,
        )  # fmt: skip
        found.append(seen)
    assert found[0] == found[1]
    assert 1 < len(found[0]) < 9


@pytest.mark.parametrize("extent", [0, 1, 40])
def test_more_steps_than_there_are(device: td.Device, extent: int) -> None:
    kernel = td.stencil(boundary="clamp")(near)
    for steps in (0, 1, 12):
        a, b = td.ones(extent, device=device), td.zeros(extent, device=device)
        last = td.stencil_loop(kernel, a, 1.7, b, steps=steps, steps_per_launch=11)
        c, d = td.ones(extent, device=device), td.zeros(extent, device=device)
        single = td.stencil_loop(kernel, c, 1.7, d, steps=steps, steps_per_launch=1)
        np.testing.assert_array_equal(last.numpy(), single.numpy())


@pytest.mark.parametrize("wrong", [0, -1, 1.5, True])
def test_wrong_numbers_of_steps(wrong: Any) -> None:
    kernel = td.stencil(boundary="clamp")(near)
    a, b = td.ones(4, device="cpu"), td.zeros(4, device="cpu")
    with pytest.raises(ValueError, match="steps_per_launch is an integer from 1 on"):
        td.stencil_loop(kernel, a, 1.0, b, steps=2, steps_per_launch=wrong)
