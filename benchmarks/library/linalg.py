"""Factors and spectra of matrices: a large one, and many small ones."""

from __future__ import annotations

import numpy as np

import treadle as td
from benchmarks.library.case import Arrays, Case

_LARGE, _COLUMNS = 1024, 64
_MANY, _SMALL = 10_000, 8


def _general(*shape: int) -> Arrays:
    """Matrices that are well conditioned: with a strong diagonal."""
    rng = np.random.default_rng(0)
    n = shape[-1]
    a = rng.standard_normal(shape) / np.sqrt(n) + 2 * np.eye(n)
    return [a.astype(np.float32)]


def _system(*shape: int, columns: int) -> Arrays:
    rng = np.random.default_rng(1)
    right = rng.standard_normal((*shape[:-1], columns)).astype(np.float32)
    return [*_general(*shape), right]


def _definite(*shape: int) -> Arrays:
    (a,) = _general(*shape)
    return [a @ a.swapaxes(-1, -2)]


def _triangle(a: np.ndarray) -> np.ndarray:
    return np.linalg.qr(a.astype(np.float64))[1]


def _cases(name: str, count: int, n: int, columns: int) -> list[Case]:
    shape = (n, n) if count == 1 else (count, n, n)
    cube = float(count) * n**3
    return [
        Case(
            "linalg", f"cholesky of {name}", lambda: _definite(*shape), td.linalg.cholesky,
            cube / 3, "GFLOP/s", torch=lambda torch, a: torch.linalg.cholesky(a),
            numpy=np.linalg.cholesky, tolerance=1e-4,
        ),
        Case(
            "linalg", f"solve of {name}, {columns} columns",
            lambda: _system(*shape, columns=columns), td.linalg.solve,
            cube * 2 / 3 + 2.0 * count * n * n * columns, "GFLOP/s",
            torch=lambda torch, a, b: torch.linalg.solve(a, b), numpy=np.linalg.solve,
            tolerance=1e-4,
        ),
        Case(
            "linalg", f"inverse of {name}", lambda: _general(*shape), td.linalg.inv,
            cube * 2, "GFLOP/s", torch=lambda torch, a: torch.linalg.inv(a),
            numpy=np.linalg.inv, tolerance=1e-4,
        ),
        Case(
            "linalg", f"QR of {name}", lambda: _general(*shape),
            lambda a: td.linalg.qr(a)[::-1], cube * 8 / 3, "GFLOP/s",
            torch=lambda torch, a: torch.linalg.qr(a), numpy=np.linalg.qr, reference=_triangle,
            tolerance=1e-4,
        ),
    ]  # fmt: skip


def _symmetric(*shape: int) -> Arrays:
    a = np.random.default_rng(2).standard_normal(shape)
    return [(a + a.swapaxes(-1, -2)).astype(np.float32)]


def _spectra(name: str, *shape: int) -> list[Case]:
    devices = ("cuda", "webgpu", "dawn")  # on the CPU they are NumPy's
    cube = float(np.prod(shape)) * shape[-1]
    return [
        Case(
            "linalg", f"eigenvectors of {name}", lambda: _symmetric(*shape),
            td.linalg.eigh, cube * 9, "GFLOP/s", devices,
            torch=lambda torch, a: torch.linalg.eigh(a)[0], numpy=lambda a: np.linalg.eigh(a)[0],
            reference=lambda a: np.linalg.eigvalsh(a.astype(np.float64)), tolerance=1e-4,
        ),
        Case(
            "linalg", f"singular vectors of {name}", lambda: _general(*shape),
            lambda a: td.linalg.svd(a)[1::-1], cube * 21, "GFLOP/s", devices,
            torch=lambda torch, a: torch.linalg.svd(a)[1], numpy=lambda a: np.linalg.svd(a)[1],
            reference=lambda a: np.linalg.svdvals(a.astype(np.float64)), tolerance=1e-4,
        ),
    ]  # fmt: skip


CASES = [
    *_cases("1024 × 1024 float32", 1, _LARGE, _COLUMNS),
    *_cases("10,000 of 8 × 8 float32", _MANY, _SMALL, 1),
    *_spectra("1024 × 1024 float32", _LARGE, _LARGE),
    *_spectra("1,000 of 32 × 32 float32", 1000, 32, 32),
    Case(
        "linalg", "norm of 4096 rows of 4096 float32",
        lambda: [np.random.default_rng(0).standard_normal((4096, 4096)).astype(np.float32)],
        lambda x: td.linalg.vector_norm(x, axis=1), 4.0 * 4096 * 4096, "GB/s",
        torch=lambda torch, x: torch.linalg.vector_norm(x, dim=1),
        numpy=lambda x: np.linalg.vector_norm(x, axis=1),
    ),
]  # fmt: skip
