"""Every boundary, in one to three dimensions, with several halos, beside NumPy's padding."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import treadle as td

PADDING = {"clamp": "edge", "wrap": "wrap", "mirror": "reflect", "zero": "constant"}
VALUE = 7.0
# Neighbours with weights, by dimensions and halo: along each axis, and a corner.
Weights = dict[tuple[int, ...], float]


def star(ndim: int, halo: int) -> Weights:
    """The weights of a star with a corner, all different."""
    found: Weights = {(0,) * ndim: 1.0}
    for axis in range(ndim):
        for step in (-halo, -1, 1, halo):
            offsets = tuple(step if each == axis else 0 for each in range(ndim))
            found.setdefault(offsets, float(len(found) + 1))
    found.setdefault((halo,) * ndim, 30.0)
    found.setdefault((-1,) * (ndim - 1) + (halo,), 40.0)
    return found


def weighted(weights: Weights, **options: Any) -> Any:
    """A stencil that sums neighbours with weights."""
    ndim = len(next(iter(weights)))
    # Offsets are captured numbers, as in a user's loop over constants.
    taps = tuple((*offsets, weight) for offsets, weight in weights.items())
    count = len(taps)

    def one(u, out, pos):
        total = 0.0
        for tap in td.static_range(count):
            total += taps[tap][1] * pos.at(u, taps[tap][0])
        out[pos] = total

    def two(u, out, pos):
        total = 0.0
        for tap in td.static_range(count):
            total += taps[tap][2] * pos.at(u, taps[tap][0], taps[tap][1])
        out[pos] = total

    def three(u, out, pos):
        total = 0.0
        for tap in td.static_range(count):
            total += taps[tap][3] * pos.at(u, taps[tap][0], taps[tap][1], taps[tap][2])
        out[pos] = total

    return td.stencil(**options)((one, two, three)[ndim - 1])


def padded(u: np.ndarray, rules: tuple[str, ...], halo: int) -> np.ndarray:
    """An array with its halo, by NumPy. Beyond several axes, the first one's constant counts."""
    for axis, rule in reversed(list(enumerate(rules))):
        width = [(halo, halo) if each == axis else (0, 0) for each in range(u.ndim)]
        if rule == "constant":
            u = np.pad(u, width, "constant", constant_values=VALUE)
        elif rule == "skip":
            u = np.pad(u, width, "constant", constant_values=np.nan)
        else:
            u = np.pad(u, width, PADDING[rule])
    return u


def expected(u: np.ndarray, weights: Weights, rules: tuple[str, ...], halo: int) -> np.ndarray:
    """The stencil by NumPy; NaN in cells that are not computed."""
    whole = padded(u, rules, halo)
    total = np.zeros_like(u)
    for offsets, weight in weights.items():
        part = tuple(
            slice(halo + offset, halo + offset + extent)
            for offset, extent in zip(offsets, u.shape, strict=True)
        )
        total += np.float32(weight) * whole[part]
    return total


def integers(shape: tuple[int, ...], seed: int = 0) -> np.ndarray:
    """Small integers, whose weighted sums are exact."""
    return np.random.default_rng(seed).integers(-9, 10, shape).astype(np.float32)


def computed(stencil: Any, u: np.ndarray, device: td.Device) -> np.ndarray:
    """The stencil on a device, into an output full of NaN."""
    out = td.full(u.shape, float("nan"), dtype=td.float32, device=device)
    stencil(td.asarray(u, device=device), out)
    return out.numpy()


SHAPES = {
    1: [(67,), (5,), (4,), (1,), (0,)],
    2: [(7, 37), (5, 4), (1, 9), (9, 1), (1, 1), (0, 5), (5, 0)],
    3: [(5, 4, 19), (4, 7, 5), (1, 5, 6), (5, 1, 1), (4, 0, 4)],
}


@pytest.mark.parametrize("ndim", [1, 2, 3])
@pytest.mark.parametrize("rule", [*PADDING, "constant"])
def test_each_boundary(device: td.Device, rule: str, ndim: int) -> None:
    for halo in (1, 3) if device.backend == "cpu" else (3,):
        weights = star(ndim, halo)
        stencil = weighted(weights, boundary=rule, value=VALUE if rule == "constant" else None)
        for shape in SHAPES[ndim]:
            u = integers(shape)
            if u.size == 0:
                assert computed(stencil, u, device).shape == shape
                continue
            got = computed(stencil, u, device)
            np.testing.assert_array_equal(
                got, expected(u, weights, (rule,) * ndim, halo), str(shape)
            )


@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_skipped_cells_keep_what_they_had(device: td.Device, ndim: int) -> None:
    for halo in (1, 2):
        offsets = {(0,) * ndim: 2.0}
        for axis in range(ndim):
            for step in (-halo, halo):
                offsets[tuple(step if each == axis else 0 for each in range(ndim))] = 3.0
        stencil = weighted(offsets, boundary="skip")
        for shape in SHAPES[ndim]:
            u = integers(shape)
            got = computed(stencil, u, device)
            want = np.full(shape, np.nan, np.float32)
            inner = tuple(slice(halo, max(extent - halo, halo)) for extent in shape)
            if u.size:
                want[inner] = expected(u, offsets, ("skip",) * ndim, halo)[inner]
            np.testing.assert_array_equal(got, want, str(shape))


RULES = ("clamp", "wrap", "mirror", "zero", "constant")


@pytest.mark.parametrize("rules", [("wrap", "clamp"), ("constant", "zero"), ("mirror", "constant")])
def test_each_axis_has_its_own(device: td.Device, rules: tuple[str, str]) -> None:
    weights = star(2, 2)
    values = [VALUE if rule == "constant" else None for rule in rules]
    given: Any = values if "constant" in rules else None
    stencil = weighted(weights, boundary=list(rules), value=given)
    u = integers((9, 21))
    np.testing.assert_array_equal(computed(stencil, u, device), expected(u, weights, rules, 2))


def test_three_axes_with_a_skipped_one(device: td.Device) -> None:
    weights = star(3, 1)
    stencil = weighted(weights, boundary=["wrap", "skip", "zero"])
    u = integers((4, 6, 19))
    got = computed(stencil, u, device)
    want = np.full(u.shape, np.nan, np.float32)
    want[:, 1:-1] = expected(u, weights, ("wrap", "skip", "zero"), 1)[:, 1:-1]
    np.testing.assert_array_equal(got, want)


def outside(u: td.Array[td.f32, 2], i: td.i32, j: td.i32) -> td.f32:
    """Minus the element nearest to indices outside (an odd reflection at rows), 100 beyond
    columns."""
    if j < 0 or j >= u.shape[1]:
        return 100.0
    return -u[min(max(i, 0), u.shape[0] - 1), j]


def test_a_function_of_the_users(device: td.Device) -> None:
    @td.stencil(boundary=outside)
    def cross(u, out, pos):
        out[pos] = pos.north(u) + 2.0 * pos.south(u) + 3.0 * pos.west(u) + 4.0 * pos.east(u)

    u = integers((5, 19))
    whole = np.pad(u, 1)
    whole[0, 1:-1], whole[-1, 1:-1] = -u[0], -u[-1]
    whole[:, 0] = whole[:, -1] = 100.0
    want = whole[:-2, 1:-1] + 2 * whole[2:, 1:-1] + 3 * whole[1:-1, :-2] + 4 * whole[1:-1, 2:]
    np.testing.assert_array_equal(computed(cross, u, device), want)


def test_in_the_interpreter() -> None:
    stencils: list[tuple[Callable[..., Any], tuple[str, str]]] = [
        (
            weighted(
                star(2, 2),
                boundary=list(rules),
                value=[VALUE if rule == "constant" else None for rule in rules]
                if "constant" in rules
                else None,
            ),
            rules,
        )
        for rules in itertools.pairwise((*RULES, "clamp"))
    ]
    u = integers((4, 5))
    for stencil, rules in stencils:
        out = np.full_like(u, np.nan)
        with td.interpret():
            stencil(u, out)
        np.testing.assert_array_equal(out, expected(u, star(2, 2), rules, 2), str(rules))


@td.stencil(boundary="skip")
def from_the_west(u, out, pos):
    out[pos] = pos.at(u, -2)


def test_the_last_cell_of_a_staggered_grid(device: td.Device) -> None:
    u = integers((9,))
    out = td.full(12, float("nan"), device=device)
    from_the_west(td.asarray(u, device=device), out[:10])
    # The last cell has its neighbour, though it is outside the array itself.
    np.testing.assert_array_equal(out.numpy(), [np.nan, np.nan, *u[:8], np.nan, np.nan])
    weights: Weights = {(-2,): 1.0, (0,): 2.0, (2,): 3.0}
    for rule, least in (("wrap", 3), ("mirror", 4)):
        stencil = weighted(weights, boundary=rule)
        u = integers((least,))
        out = td.full(least + 1, float("nan"), device=device)
        stencil(td.asarray(u, device=device), out)
        at = np.arange(least + 1)[None] + np.array([[-2], [0], [2]])
        if rule == "mirror":
            at = np.abs(at % (2 * least - 2))
            at = np.minimum(at, 2 * least - 2 - at)
        np.testing.assert_array_equal(out.numpy(), [1, 2, 3] @ u[at % least])
        u = integers((least - 1,))
        with pytest.raises(td.errors.ShapeError, match=f"needs at least {least}"):
            stencil(td.asarray(u, device=device), out[:least])


def test_a_halo_wider_than_the_array(device: td.Device) -> None:
    for rule, least in (("wrap", 3), ("mirror", 4)):
        stencil = weighted(star(1, 3), boundary=rule)
        with pytest.raises(td.errors.ShapeError, match=f"needs at least {least}"):
            computed(stencil, integers((2,)), device)
        u = integers((least,))
        got = computed(stencil, u, device)
        np.testing.assert_array_equal(got, expected(u, star(1, 3), (rule,), 3))


def doubled(u: td.Array[td.f32, 2], i: td.i32, j: td.i32) -> td.f32:
    """Twice the element of the edge in the same row."""
    return 2.0 * u[i, min(max(j, 0), u.shape[1] - 1)]


@pytest.mark.parametrize("rule", ["clamp", "wrap", "mirror"])
def test_a_function_of_one_axis_has_the_others_inside(device: td.Device, rule: str) -> None:
    @td.stencil(boundary=[rule, doubled])
    def corners(u, out, pos):
        out[pos] = pos.at(u, -1, -1) + 3.0 * pos.at(u, 1, 1) + 5.0 * pos.at(u, 1, 0)

    u = integers((5, 18))
    whole = np.pad(np.pad(u, ((0, 0), (1, 1)), "edge"), ((1, 1), (0, 0)), PADDING[rule])
    whole[:, [0, -1]] *= 2
    want = whole[:-2, :-2] + 3 * whole[2:, 2:] + 5 * whole[2:, 1:-1]
    np.testing.assert_array_equal(computed(corners, u, device), want)
    out = np.full_like(u, np.nan)
    with td.interpret():
        corners(u, out)
    np.testing.assert_array_equal(out, want)
