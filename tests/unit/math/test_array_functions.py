"""Functions that arrays alone have, beside SciPy's. (Those that CUDA C++ has, too, are measured in
test_further.)"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy import special as scipy

import treadle as td
from treadle.lang.math.array_functions import OPERATIONS
from treadle.tensor.special import special

Function = Callable[..., Any]

ONE: dict[str, Function] = {
    "i0": scipy.i0, "i0e": scipy.i0e, "i1": scipy.i1, "i1e": scipy.i1e,
    "log_ndtr": scipy.log_ndtr, "modified_bessel_k0": scipy.k0, "modified_bessel_k1": scipy.k1,
    "scaled_modified_bessel_k0": scipy.k0e,
    "scaled_modified_bessel_k1": scipy.k1e,
    "spherical_bessel_j0": lambda x: scipy.spherical_jn(0, x),
}  # fmt: skip
TWO: dict[str, Function] = {
    "igamma": scipy.gammainc, "igammac": scipy.gammaincc, "zeta": scipy.zeta,
}  # fmt: skip


def _fourth(x: Any, n: Any) -> Any:
    """W_n(x) is V_n(-x), but for the sign."""
    return (-1.0) ** n * _third(-x, n)


def _third(x: Any, n: Any) -> Any:
    return scipy.eval_chebyu(n, x) - np.where(n > 0, scipy.eval_chebyu(np.maximum(n - 1, 0), x), 0)


POLYNOMIALS: dict[str, Function] = {
    "chebyshev_polynomial_t": lambda x, n: scipy.eval_chebyt(n, x),
    "chebyshev_polynomial_u": lambda x, n: scipy.eval_chebyu(n, x),
    "chebyshev_polynomial_v": _third,
    "chebyshev_polynomial_w": _fourth,
    "hermite_polynomial_h": lambda x, n: scipy.eval_hermite(n, x),
    "hermite_polynomial_he": lambda x, n: scipy.eval_hermitenorm(n, x),
    "laguerre_polynomial_l": lambda x, n: scipy.eval_laguerre(n, x),
    "legendre_polynomial_p": lambda x, n: scipy.eval_legendre(n, x),
}


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng()


# In f32 the code is the same: some of it is enough.
WIDTHS = [(np.float64, 1e-11, 99), (np.float32, 2e-4, 2)]


def close(name: str, given: list[np.ndarray], wanted: np.ndarray, tolerance: float) -> None:
    found = special(name, *[td.asarray(each, device="cpu") for each in given]).numpy()
    finite = np.isfinite(wanted) & (np.abs(wanted) < np.finfo(found.dtype).max)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(wanted), name)
    np.testing.assert_array_equal(found[~finite], wanted[~finite].astype(found.dtype), name)
    if not finite.any():
        return
    error = np.abs(found[finite] - wanted[finite]) / np.maximum(np.abs(wanted[finite]), 1e-2)
    worst = error.argmax()
    assert error[worst] < tolerance, (name, [x[finite][worst] for x in given], error[worst])


def test_all_are_tried() -> None:
    measured = {"bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "erfcx", "ndtri"}
    assert {*ONE, *TWO, *POLYNOMIALS, *measured} == set(OPERATIONS)


@pytest.mark.parametrize(("dtype", "tolerance", "count"), WIDTHS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_of_one_number(rng: np.random.Generator, dtype: Any, tolerance: float, count: int) -> None:
    ends = [0.0, 1.0, -1.0, 2.0, 8.0, 60.0, np.nan, 1e-10]
    x = np.concatenate([rng.uniform(-12, 12, 97), rng.uniform(0, 3, 50), ends]).astype(dtype)
    for name, function in list(ONE.items())[:count]:
        close(name, [x], function(x.astype(np.float64)), tolerance)
    infinite = np.array([np.inf, -np.inf], dtype)
    values = {"i0": [np.inf, np.inf], "i0e": [0, 0], "i1": [np.inf, -np.inf],
              "log_ndtr": [0, -np.inf], "modified_bessel_k1": [0, np.nan]}  # fmt: skip
    for name, wanted in list(values.items())[:count]:
        close(name, [infinite], np.array(wanted, np.float64), tolerance)


@pytest.mark.parametrize(("dtype", "tolerance", "count"), WIDTHS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_of_two_numbers(rng: np.random.Generator, dtype: Any, tolerance: float, count: int) -> None:
    a, x = (rng.uniform(0, 20, 101).astype(dtype) for _ in range(2))
    a[:7], x[:7] = [0, 0, 1, 2, np.nan, 3, -1], [0, 1, 0, 19, 1, 100, 1]
    for name in ("igamma", "igammac"):
        close(name, [a, x], TWO[name](a.astype(np.float64), x.astype(np.float64)), tolerance)
    s, q = (rng.uniform(1.02, 6, 101).astype(dtype), rng.uniform(0.01, 30, 101).astype(dtype))
    s[:4], q[:4] = [1, 0.5, 2, 3], [1, 1, 0, -2]
    s[10:20], q[10:20] = 3, -rng.uniform(0, 9, 10)
    close("zeta", [s, q], scipy.zeta(s.astype(np.float64), q.astype(np.float64)), tolerance)


@pytest.mark.parametrize(("dtype", "tolerance", "count"), WIDTHS)
def test_polynomials(rng: np.random.Generator, dtype: Any, tolerance: float, count: int) -> None:
    x = rng.uniform(-1.5, 1.5, 101).astype(dtype)
    n = rng.integers(-1, 9, 101)
    x[:2], x[2], n[2] = (1, -1), 0.3, 90
    for name, function in list(POLYNOMIALS.items())[:count]:
        degrees = np.where(n > 60, 7, n) if "cheb" not in name else n
        wanted = function(x.astype(np.float64), np.maximum(degrees, 0))
        wanted = np.where(degrees < 0, 0, wanted)
        close(name, [x, degrees.astype(dtype)], wanted, tolerance)
