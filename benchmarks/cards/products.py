"""Products of matrices, of the sizes of the speed table: large, middle and thin ones."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

import treadle as td
from benchmarks.cards import measurements_of
from benchmarks.cards.case import Arrays, Case, simple
from benchmarks.harness import Figure, about_device

__all__ = ["CASES", "about", "measurements"]

about = about_device
_ALL = ("cuda", "webgpu", "dawn")
_BOUNDS = {"float16": 1e-3, "bfloat16": 8e-3}


def measurements(spec: str) -> list[Callable[[], list[Figure]]]:
    """What this suite measures on a device."""
    return measurements_of("products", spec)


def _floats(m: int, n: int, k: int, turned: bool, rng: np.random.Generator) -> Arrays:
    second = (n, k) if turned else (k, n)
    return [rng.standard_normal(shape, np.float32) for shape in ((m, k), second)]


def _bytes(m: int, n: int, k: int, turned: bool, rng: np.random.Generator) -> Arrays:
    second = (n, k) if turned else (k, n)
    return [rng.integers(-100, 100, shape, np.int8) for shape in ((m, k), second)]


def _right(turned: bool) -> Callable[..., Any]:
    def multiply(torch: Any, x: Any, y: Any) -> Any:
        return x.double() @ (y.T if turned else y).double()

    return multiply


def _named(m: int, n: int, k: int) -> str:
    return f"{m}³" if m == n == k else f"{m} × {n} × {k}"


def _case(
    what: str, sizes: tuple[int, int, int], targets: dict[str, float] | None = None,
    devices: tuple[str, ...] = ("cuda",), turned: bool = False,
) -> Case:  # fmt: skip
    """The second factor lies along the inner axis if `turned`, as weights of linear layers do."""
    m, n, k = sizes
    how = ", second factor transposed" if turned else ""
    tf32, dtype = what == "TF32", "" if what in ("float32", "TF32") else what
    return Case(
        f"{what} {_named(*sizes)}{how}", functools.partial(_floats, *sizes, turned),
        simple(lambda x, y: x @ (y.mT if turned else y)),
        lambda torch, x, y: lambda: x @ (y.T if turned else y),
        _right(turned), 2.0 * m * n * k, dtype=dtype, devices=devices, targets=targets or {},
        precision="high" if tf32 else "highest",
        bound=1e-3 if tf32 else _BOUNDS.get(what, 2e-6),
    )  # fmt: skip


def _of_int8(sizes: tuple[int, int, int], targets: dict[str, float]) -> Case:
    m, n, k = sizes
    return Case(
        f"int8 in int32 {_named(*sizes)}, second factor transposed",
        functools.partial(_bytes, *sizes, True),
        simple(lambda x, y: td.matmul(x, y.mT, dtype=td.int32)),
        lambda torch, x, y: lambda: torch._int_mm(x, y.T), _right(True), 2.0 * m * n * k,
        targets=targets, bound=0.0,
    )  # fmt: skip


def _cube(n: int) -> tuple[int, int, int]:
    return n, n, n


_THIN = (16, 4096, 4096)
CASES = [
    _case("float16", _cube(8192), {"cuda": 0.95}),
    _case("bfloat16", _cube(8192), {"cuda": 0.95}),
    _case("float16", _cube(4096), {"cuda": 0.93, "dawn": 0.35}, _ALL),
    _case("bfloat16", _cube(4096), {"cuda": 0.93}),
    _case("bfloat16", _cube(4096), {"cuda": 0.93}, turned=True),
    _case("float16", _cube(2048)),
    _case("float16", _cube(1024), {"cuda": 0.9, "dawn": 0.3}, ("cuda", "dawn")),
    _case("float16", _THIN, {"cuda": 0.9, "dawn": 0.3}, ("cuda", "dawn")),
    _case("float16", (512, 512, 8192)),
    _of_int8(_cube(8192), {"cuda": 0.8}),
    _case("TF32", _cube(4096), turned=True),
    _case("TF32", _cube(4096)),
    _case("float32", _cube(4096), {"cuda": 0.95, "dawn": 0.88, "webgpu": 0.88}, _ALL),
    _case("float32", _cube(4096), turned=True),
    _case("float32", _cube(1024)),
    _case("float32", _THIN),
]  # fmt: skip
