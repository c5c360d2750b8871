"""What complex functions should give, in more digits; numbers to try them on; and a kernel around
them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import treadle as td
from treadle.core.dtypes import as_dtype
from treadle.ir.definition import KernelOptions
from treadle.lang.decorators import Kernel
from treadle.lang.math.complex import COMPLEX
from treadle.lang.source import function_from_text

Numbers = np.ndarray[Any, Any]
REAL = {"c64": np.float32, "c128": np.float64}


def kernel_of(names: tuple[str, ...], type: str, arity: int, result: str | None = None) -> Kernel:
    """A kernel that puts the value of each function into a row of its last argument."""
    parameters = "zw"[:arity]
    takes = ", ".join(f"{p}: td.Array[td.{type}]" for p in parameters)
    values = ", ".join(f"{p}[i]" for p in parameters)
    text = f"def apply({takes}, out: td.Array[td.{result or type}, 2]):\n    i = td.grid(1)\n"
    text += "    if i < z.size:\n"
    for row, name in enumerate(names):
        text += f"        out[{row}, i] = {name}_({values})\n"
    scope = {"td": td, **{f"{name}_": COMPLEX[f"{name}_{type}"] for name in names}}
    return Kernel(function_from_text(text, None, scope), KernelOptions(), None)


def launch(
    names: tuple[str, ...], type: str, *arguments: Numbers, result: str | None = None
) -> Any:
    """The functions' values on the default device, a row for each function."""
    out = td.zeros((len(names), arguments[0].size), dtype=result or type)
    kernel = kernel_of(names, type, len(arguments), result)
    kernel.launch(arguments[0].size, *(td.asarray(z) for z in arguments), out)
    return out.numpy()


def pairs(x: Any, y: Any, type: str) -> Numbers:
    """x + iy, signs of zeros and infinities kept."""
    x, y = np.broadcast_arrays(np.asarray(x, REAL[type]), np.asarray(y, REAL[type]))
    return np.stack([x, y], axis=-1).reshape(-1).view(as_dtype(type).numpy)


def points(type: str, count: int, rng: np.random.Generator) -> Numbers:
    """Numbers of every size, on the axes and the unit circle, and close to the branch points."""
    limits = np.finfo(REAL[type])

    def powers(low: float, high: float) -> Numbers:
        return np.exp2(rng.uniform(low, high, count)) * rng.choice([-1, 1], count)

    def middle() -> Numbers:
        return powers(-limits.nmant, 7)

    def wide() -> Numbers:
        return powers(limits.minexp + 2, limits.maxexp - 2)

    turn = rng.uniform(-np.pi, np.pi, count)
    parts = [
        (rng.normal(size=count), rng.normal(size=count)),
        (middle(), middle()),
        (wide(), wide()),
        (wide(), rng.normal(size=count)),
        (rng.normal(size=count), wide()),
        (np.cos(turn), np.sin(turn)),
    ]
    for point in (1, -1, 1j, -1j, 0):
        near = [powers(-limits.nmant - 4, 0) * rng.integers(0, 2, count) for _ in "xy"]
        parts.append((point.real + near[0], point.imag + near[1]))
    for exact in (0.0, 1.0, -1.0, 2.0):
        parts += [(np.full(count, exact), middle()), (middle(), np.full(count, exact))]
    return pairs(*(np.concatenate(part) for part in zip(*parts, strict=True)), type)


def _expm1(z: Numbers) -> Numbers:
    half = np.sin(z.imag / 2)
    return (
        np.expm1(z.real) * np.cos(z.imag) - 2 * half * half + 1j * np.exp(z.real) * np.sin(z.imag)
    )


def _log1p(z: Numbers) -> Numbers:
    x, y = z.real, z.imag
    size = np.hypot(1 + x, y)
    near = (size > 0.5) & (size < 2)
    close = 0.5 * np.log1p(np.where(near, x * (2 + x) + y * y, 0))
    return np.where(near, close, np.log(size)) + 1j * np.arctan2(y, 1 + x)


def _sign(z: Numbers) -> Numbers:
    return z / np.where(z == 0, 1, np.abs(z))


UNARY: dict[str, Callable[[Numbers], Numbers]] = {
    "square": lambda z: z * z, "reciprocal": lambda z: 1 / z, "sign": _sign, "sqrt": np.sqrt,
    "rsqrt": lambda z: 1 / np.sqrt(z), "sigmoid": lambda z: 1 / (1 + np.exp(-z)),
    "exp2": lambda z: np.exp(z * np.log(np.longdouble(2))),
    "exp": np.exp, "expm1": _expm1, "log": np.log, "log1p": _log1p,
    "log2": lambda z: np.log(z) / np.log(np.longdouble(2)),
    "log10": lambda z: np.log(z) / np.log(np.longdouble(10)),
    "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh, "sin": np.sin, "cos": np.cos,
    "tan": np.tan, "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan,
    "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
}  # fmt: skip
BINARY: dict[str, Callable[[Numbers, Numbers], Numbers]] = {
    "mul": lambda z, w: z * w, "div": lambda z, w: z / w,
    "pow": lambda z, w: np.exp(w * np.log(z)),
}  # fmt: skip


def reference(name: str, *arguments: Numbers) -> Numbers:
    """The value in extended precision."""
    wide = [argument.astype(np.clongdouble) for argument in arguments]
    with np.errstate(all="ignore"):
        return (UNARY[name] if len(wide) == 1 else BINARY[name])(*wide)


def errors(got: Numbers, wanted: Numbers) -> Numbers:
    """|got - wanted| / |wanted| in machine epsilons; 0 where the result is beyond the range (or the
    reference). What is below it counts as 0, as some devices have it."""
    limits = np.finfo(got.dtype)
    with np.errstate(all="ignore"):
        size = np.abs(wanted)
        found = np.abs(got.astype(np.clongdouble) - wanted) - 2 * limits.tiny
        found = np.maximum(found, 0) / np.maximum(size, limits.tiny)
        inside = np.isfinite(wanted) & (size < 0.7 * limits.max)
        found = np.where(np.isnan(found), np.inf, found) / limits.eps
    return np.where(inside, found, 0.0)
