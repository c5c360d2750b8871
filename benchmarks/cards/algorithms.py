"""What is no product of matrices, or many of them one after the other: sorting, running sums,
counting, transforms, factorizations, losses."""

from __future__ import annotations

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
_MANY = 16 << 20
_MATRIX = 1024
_FEW = 512  # rows of a matrix whose singular values are found


def measurements(spec: str) -> list[Callable[[], list[Figure]]]:
    """What this suite measures on a device."""
    return measurements_of("algorithms", spec)


def _floats(*shape: int) -> Callable[[np.random.Generator], Arrays]:
    return lambda rng: [rng.standard_normal(shape, np.float32)]


def _complex(*shape: int) -> Callable[[np.random.Generator], Arrays]:
    def draw(rng: np.random.Generator) -> Arrays:
        return [rng.standard_normal((*shape, 2), np.float32).view(np.complex64)[..., 0]]

    return draw


def _scores(rows: int, length: int) -> Callable[[np.random.Generator], Arrays]:
    def draw(rng: np.random.Generator) -> Arrays:
        classes = rng.integers(0, length, rows, np.int64).astype(np.int32)
        return [rng.standard_normal((rows, length), np.float32), classes]

    return draw


def _places(count: int, below: int) -> Callable[[np.random.Generator], Arrays]:
    def draw(rng: np.random.Generator) -> Arrays:
        return [
            rng.standard_normal(count, np.float32),
            rng.integers(0, below, count, np.int64).astype(np.int32),
        ]

    return draw


# --- one pass, or a few, over memory -------------------------------------------------------------


def _rate(
    name: str, draw: Callable[..., Arrays], ours: Callable[..., Any], theirs: Callable[..., Any],
    count: int, bound: float = 1e-5, right: Callable[..., Any] | None = None, **more: Any,
) -> Case:  # fmt: skip
    """A million elements in a second."""
    return Case(
        name, draw, simple(ours), lambda torch, *x: lambda: theirs(torch, *x),
        right or (lambda torch, x, *rest: theirs(torch, x.double(), *rest)), float(count), "M/s",
        bound=bound, devices=more.pop("devices", _ALL), **more,
    )  # fmt: skip


_MEMORY = [
    _rate("sort of 16 M float32", _floats(_MANY), td.sort,
          lambda torch, x: torch.sort(x)[0], _MANY, 0.0, targets={"cuda": 1.0}),
    _rate("the 10 greatest of 16 M float32", _floats(_MANY), lambda x: td.topk(x, 10).values,
          lambda torch, x: torch.topk(x, 10)[0], _MANY, 0.0),
    _rate("running sum of 16 M float32", _floats(_MANY), td.cumulative_sum,
          lambda torch, x: torch.cumsum(x, 0), _MANY, 1e-4, targets={"cuda": 1.0}),
    _rate("bincount of 4 M int32 in 1024", _places(4 << 20, 1024),
          lambda x, at: td.bincount(at, minlength=1024),
          lambda torch, x, at: torch.bincount(at, minlength=1024), 4 << 20, 0.0, waits=True,
          targets={"cuda": 1.0}),
    _rate("scatter_add of 4 M float32 to 1 M", _places(4 << 20, 1 << 20),
          lambda x, at: td.scatter_add(td.zeros(1 << 20), 0, at, x),
          lambda torch, x, at: torch.zeros(1 << 20, device=x.device, dtype=x.dtype).index_add_(
              0, at, x), 4 << 20),
    _rate("mean(gelu(x)) of 64 M float32", _floats(64 << 20),
          lambda x: td.nn.functional.gelu(x).mean(),
          lambda torch, x: torch.nn.functional.gelu(x).mean(), 64 << 20),
    _rate("cross-entropy of 4096 × 8192 float32", _scores(4096, 8192),
          lambda x, at: td.nn.functional.cross_entropy(x, at),
          lambda torch, x, at: torch.nn.functional.cross_entropy(x, at.long()), 4096 * 8192),
    _rate("softmax of 4096 × 8192 float32", _floats(4096, 8192),
          lambda x: td.nn.functional.softmax(x, -1),
          lambda torch, x: torch.softmax(x, -1), 4096 * 8192),
]  # fmt: skip


# --- transforms ----------------------------------------------------------------------------------


def _transform(name: str, draw: Callable[..., Arrays], function: str, count: int) -> Case:
    return Case(
        name, draw, simple(getattr(td.fft, function)),
        lambda torch, x: lambda: getattr(torch.fft, function)(x),
        lambda torch, x: getattr(torch.fft, function)(
            x.to(torch.complex128 if x.is_complex() else torch.float64)
        ),
        float(count), "M/s", bound=1e-6, devices=_ALL, targets={"cuda": 1.0},
    )  # fmt: skip


_TRANSFORMS = [
    _transform("FFT of 2²⁰ complex64", _complex(1 << 20), "fft", 1 << 20),
    _transform("FFT of 4096 × 1024 complex64", _complex(4096, 1024), "fft", 4 << 20),
    _transform("FFT of 1,000,000 complex64", _complex(1000000), "fft", 1000000),
    _transform("FFT of 1,000,003 (a prime) complex64", _complex(1000003), "fft", 1000003),
    _transform("FFT of 4096 × 1000 complex64", _complex(4096, 1000), "fft", 4096000),
    _transform("FFT of 64 × 1009 complex64", _complex(64, 1009), "fft", 64 * 1009),
    _transform("FFT of 2²⁴ float32", _floats(1 << 24), "rfft", 1 << 24),
]


# --- matrices ------------------------------------------------------------------------------------


def _general(n: int, columns: int = 0) -> Callable[[np.random.Generator], Arrays]:
    """A matrix that is well conditioned, and perhaps right-hand sides."""

    def draw(rng: np.random.Generator) -> Arrays:
        a = (rng.standard_normal((n, n)) / np.sqrt(n) + 2 * np.eye(n)).astype(np.float32)
        return [a, rng.standard_normal((n, columns), np.float32)] if columns else [a]

    return draw


def _definite(n: int) -> Callable[[np.random.Generator], Arrays]:
    def draw(rng: np.random.Generator) -> Arrays:
        (a,) = _general(n)(rng)
        return [a @ a.T]

    return draw


def _factors(
    name: str, draw: Callable[..., Arrays], ours: Callable[..., Any], theirs: Callable[..., Any],
    bound: float = 1e-4, target: float | None = None, devices: tuple[str, ...] = ("cuda",),
) -> Case:  # fmt: skip
    """The seconds of a call, which waits for the device where singular matrices are refused."""

    def right(torch: Any, *x: Any) -> Any:
        found = theirs(torch, *(each.double() for each in x))
        return found[0] if isinstance(found, tuple) else found

    return Case(
        f"{name}, a call", draw, simple(ours), lambda torch, *x: lambda: theirs(torch, *x), right,
        unit="s", bound=bound, waits=True, devices=devices,
        targets={} if target is None else {"cuda": target},
    )  # fmt: skip


def _triangle_first(a: Any) -> Any:
    """Both factors; only of the second one the absolute values are known."""
    q, r = td.linalg.qr(a)
    return abs(r), q


def _values_first(a: Any) -> Any:
    u, values, v = td.linalg.svd(a)
    return values, u, v


_MATRICES = [
    _factors(f"solve of {_MATRIX}², 64 columns", _general(_MATRIX, 64), td.linalg.solve,
             lambda torch, a, b: torch.linalg.solve(a, b), target=1.0, devices=_ALL),
    _factors(f"cholesky of {_MATRIX}²", _definite(_MATRIX), td.linalg.cholesky,
             lambda torch, a: torch.linalg.cholesky(a), target=1.0, devices=_ALL),
    _factors(f"inverse of {_MATRIX}²", _general(_MATRIX), td.linalg.inv,
             lambda torch, a: torch.linalg.inv(a), target=1.0, devices=_ALL),
    _factors(f"log of the determinant of {_MATRIX}²", _general(_MATRIX),
             lambda a: td.linalg.slogdet(a)[1], lambda torch, a: torch.linalg.slogdet(a)[1]),
    _factors(f"QR of {_MATRIX}²", _general(_MATRIX),
             _triangle_first,
             lambda torch, a: torch.linalg.qr(a)[1].abs(), target=1.0, devices=_ALL),
    _factors(f"singular values of {_FEW}²", _floats(_FEW, _FEW), td.linalg.svdvals,
             lambda torch, a: torch.linalg.svdvals(a), target=1.0),
    _factors(f"SVD of {_FEW}²", _floats(_FEW, _FEW), _values_first,
             lambda torch, a: torch.linalg.svd(a)[1], target=1.0),
    _factors(f"eigenvalues of a symmetric {_FEW}²", _definite(_FEW), td.linalg.eigvalsh,
             lambda torch, a: torch.linalg.eigvalsh(a), target=1.0),
    _factors(f"eigenvectors of a symmetric {_FEW}²", _definite(_FEW),
             lambda a: tuple(td.linalg.eigh(a)), lambda torch, a: torch.linalg.eigh(a)[0],
             target=1.0),
]  # fmt: skip

CASES = [*_MEMORY, *_TRANSFORMS, *_MATRICES]
