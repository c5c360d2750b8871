"""Polynomials: coefficients as data, and Horner's rule that evaluates them."""

from __future__ import annotations

from types import FunctionType

from treadle.lang.math.formats import Float
from treadle.lang.math.generic import Generic, of_width, rebound

# The coefficients that `_horner` reads. Each polynomial binds these names to its own.
HIGHEST, SECOND, CONSTANT = 0.0, 0.0, 0.0
BETWEEN: tuple[float, ...] = ()


def _horner(x: Float) -> Float:
    """p(x), unrolled: a product and a sum for each coefficient except the first.

    Negative coefficients are subtracted: the same result, and more readable when printed.
    """
    p = HIGHEST * x - -SECOND if SECOND < 0.0 else HIGHEST * x + SECOND
    for c in BETWEEN:
        p = p * x - -c if c < 0.0 else p * x + c
    return p * x - -CONSTANT if CONSTANT < 0.0 else p * x + CONSTANT


class Polynomial(Generic):
    """The function p(x) = c[0] + c[1] x + c[2] x^2 + …: `f32` and `f64` are the coefficients for
    each width, three or more. (A width that is not needed is left out.)"""

    def __init__(self, name: str, **coefficients: tuple[float, ...]) -> None:
        super().__init__(name, dict.fromkeys(coefficients, _horner))
        self._coefficients = coefficients

    def _made(self, template: FunctionType, width: str, name: str) -> FunctionType:
        constant, *between, second, highest = self._coefficients[width]
        names = {
            "__name__": __name__,
            "Float": of_width(Float, width),
            "HIGHEST": highest,
            "SECOND": second,
            "BETWEEN": tuple(reversed(between)),
            "CONSTANT": constant,
        }
        return rebound(template, names, name)
