"""Scales of quantized numbers: searched so that what is rounded with them is as close as it can be.

The scale that maps the greatest number to the greatest integer is seldom the best one. ggml's
reference (ggml-quants.c) tries scales around it, rounds with each, and fits the scale to the
rounded integers by weighted least squares; the weights are greater for large numbers. The functions
here do the same for many groups at once: arrays are (elements of a group, groups), so that sums
over a group add whole rows.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

Array = np.ndarray[Any, Any]
_TINY = np.float32(1e-15)  # a group whose numbers are all smaller is zero


class Affine(NamedTuple):
    """Numbers as integers * scale - minimum: scale and minimum (groups), and the integers."""

    scale: Array
    minimum: Array
    integers: Array


class Linear(NamedTuple):
    """Numbers as integers * scale: scale (groups), and the integers, which are signed."""

    scale: Array
    integers: Array


def rounded(x: Array, least: int, most: int) -> Array:
    """Numbers rounded to integers within bounds, as float32."""
    found: Array = np.clip(np.rint(x), np.float32(least), np.float32(most))
    return found


def inverse(x: Array) -> Array:
    """1 / x in float32, and 0 where that is not finite."""
    with np.errstate(divide="ignore", over="ignore"):
        found = np.float32(1) / x
    return np.where(np.isfinite(found), found, np.float32(0))


def divided(x: Array, y: Array) -> Array:
    """The quotient x / y, and 0 where y is 0."""
    found: Array = np.divide(x, y, out=np.zeros_like(x), where=y != 0)
    return found


def largest(x: Array) -> Array:
    """The number of greatest magnitude of each group, with its sign; the first one of equals."""
    found: Array = np.take_along_axis(x, np.abs(x).argmax(0)[None], 0)[0]
    return found


# --- integers from 0, with a minimum --------------------------------------------------------------


def fit_affine(
    x: Array, weights: Array, most: int, first: float, steps: int, *, absolute: bool
) -> Affine:
    """Scales and minimums for integers from 0 to `most`, with minimums of 0 and above.

    It tries `steps` + 1 divisors of the range, from `most + first` on in steps of 0.1. The error
    that decides is the sum of squares, or of `absolute` differences.
    """
    lowest = np.minimum(x.min(0), 0)
    span = x.max(0) - lowest
    per_unit = inverse(span)
    shifted = x - lowest
    weighted = weights * x
    sum_w, sum_x = weights.sum(0), weighted.sum(0)
    sum_xx = None if absolute else (weighted * x).sum(0)

    def error(scale: Array, minimum: Array, integers: Array, sums: tuple[Array, ...]) -> Array:
        found: Array
        if sum_xx is None:
            found = (weights * np.abs(scale * integers + minimum - x)).sum(0)
        else:
            sum_l, sum_ll, sum_xl = sums
            by_scale = scale * (scale * sum_ll + 2 * (minimum * sum_l - sum_xl))
            found = by_scale + minimum * (minimum * sum_w - 2 * sum_x) + sum_xx
        return found

    def sums_of(integers: Array) -> tuple[Array, ...]:
        products = weights * integers
        return products.sum(0), (products * integers).sum(0), (weighted * integers).sum(0)

    best_integers = rounded(per_unit * np.float32(most) * shifted, 0, most)
    best_scale, best_minimum = span / np.float32(most), lowest
    best = error(best_scale, best_minimum, best_integers, sums_of(best_integers))
    for step in range(steps + 1):
        integers = rounded(per_unit * np.float32(most + first + 0.1 * step) * shifted, 0, most)
        sums = sum_l, sum_ll, sum_xl = sums_of(integers)
        determinant = sum_w * sum_ll - sum_l * sum_l
        scale = divided(sum_w * sum_xl - sum_x * sum_l, determinant)
        minimum = divided(sum_ll * sum_x - sum_l * sum_xl, determinant)
        above = minimum > 0
        scale = np.where(above, divided(sum_xl, sum_ll), scale)
        minimum = np.where(above, np.float32(0), minimum)
        found = error(scale, minimum, integers, sums)
        better = (determinant > 0) & (found < best)
        best = np.where(better, found, best)
        best_scale = np.where(better, scale, best_scale)
        best_minimum = np.where(better, minimum, best_minimum)
        np.copyto(best_integers, integers, where=better)
    return Affine(best_scale, -best_minimum, best_integers)


# --- signed integers ------------------------------------------------------------------------------


def fit_linear(x: Array, most: int) -> Linear:
    """Scales for integers from -`most` to `most` - 1, of 19 divisors of the greatest number the one
    with the least sum of squares, weighted by the squares of the numbers."""
    squares = x * x
    weighted = squares * x
    per_unit = -inverse(_known(largest(x)))

    def attempt(step: int) -> tuple[Array, Array, Array]:
        integers = rounded(per_unit * np.float32(most + 0.1 * step) * x, -most, most - 1)
        return integers, (weighted * integers).sum(0), (squares * integers * integers).sum(0)

    best_integers, sum_xl, sum_ll = attempt(0)
    best_scale = divided(sum_xl, sum_ll)
    best = best_scale * sum_xl
    for step in (*range(-9, 0), *range(1, 10)):
        integers, sum_xl, sum_ll = attempt(step)
        better = (sum_ll > 0) & (sum_xl * sum_xl > best * sum_ll)
        scale = divided(sum_xl, sum_ll)
        best_scale = np.where(better, scale, best_scale)
        best = np.where(better, scale * sum_xl, best)
        np.copyto(best_integers, integers, where=better)
    return Linear(best_scale, best_integers)


def fit_in_order(x: Array, most: int) -> Linear:
    """Scales for few integers, from -`most` to `most` - 1: the integers of a group are
    chosen anew, one after the other, for the scale that the others give, up to five times."""
    squares = x * x
    weighted = squares * x
    per_unit = -np.float32(most) * inverse(_known(largest(x)))
    integers = rounded(per_unit * x, -most, most - 1)
    sum_xl = (weighted * integers).sum(0)
    sum_ll = (squares * integers * integers).sum(0)
    for _ in range(5):
        changed = False
        for row, square, product, old in zip(x, squares, weighted, integers, strict=True):
            others_xl = sum_xl - product * old
            others_ll = sum_ll - square * old * old
            new = rounded(row * divided(others_ll, others_xl), -most, most - 1)
            new_xl = others_xl + product * new
            new_ll = others_ll + square * new * new
            better = (others_xl > 0) & (new != old) & (new_ll > 0)
            better &= new_xl * new_xl * sum_ll > sum_xl * sum_xl * new_ll
            if better.any():
                changed = True
                np.copyto(old, new, where=better)
                np.copyto(sum_xl, new_xl, where=better)
                np.copyto(sum_ll, new_ll, where=better)
        if not changed:
            break
    return Linear(divided(sum_xl, sum_ll), integers)


def _known(peak: Array) -> Array:
    return np.where(np.abs(peak) < _TINY, np.float32(0), peak)


# --- values of a table ----------------------------------------------------------------------------


class Nearest:
    """The nearest of increasing integers: of two that are as near, the greater one."""

    def __init__(self, values: tuple[int, ...]) -> None:
        self.values = np.array(values, np.float32)
        self._least = 2 * values[0]
        # Between two integers the choice changes at a multiple of one half.
        halves = np.arange(self._least, 2 * values[-1] + 1) / 2
        middles = (self.values[1:] + self.values[:-1]) / 2
        self._indices = np.searchsorted(middles, halves, side="right").astype(np.uint8)
        self._nearest = self.values[self._indices]

    def indices(self, x: Array) -> Array:
        """The index of the value that is nearest to each number."""
        return self._indices.take(self._halves(x), mode="clip")

    def nearest(self, x: Array) -> Array:
        """The value that is nearest to each number."""
        return self._nearest.take(self._halves(x), mode="clip")

    def _halves(self, x: Array) -> Array:
        halves: Array = np.floor(x + x).astype(np.int32)
        return halves - self._least


def fit_nearest(x: Array, nearest: Nearest, tries: int = 7) -> Array:
    """Scales for the values of a table, of 2 * `tries` + 2 divisors of the greatest number the one
    with the least sum of squares, weighted by the squares of the numbers."""
    squares = x * x
    weighted = squares * x
    peak = _known(largest(x))
    per_unit = inverse(peak)
    least = nearest.values[0]

    def attempt(divisor: float) -> tuple[Array, Array]:
        values = nearest.nearest(np.float32(divisor) * per_unit * x)
        return (weighted * values).sum(0), (squares * values * values).sum(0)

    sum_xv, sum_vv = attempt(-least)
    best_scale = divided(sum_xv, sum_vv)
    best = best_scale * sum_xv
    for step in range(-tries, tries + 1):
        sum_xv, sum_vv = attempt(least + step)
        better = (sum_vv > 0) & (sum_xv * sum_xv > best * sum_vv)
        scale = divided(sum_xv, sum_vv)
        best_scale = np.where(better, scale, best_scale)
        best = np.where(better, scale * sum_xv, best)
    return np.where(peak == 0, np.float32(0), best_scale)
