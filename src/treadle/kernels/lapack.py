"""Linear algebra by NumPy's LAPACK, on the host.

On the CPU it works in place. For other devices there are only the functions of singular values and
eigenvalues, whose elements are copied to the host and back.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from treadle.core.dtypes import DType, complex64, complex128
from treadle.kernels.launching import new
from treadle.runtime.arrays import DeviceArray, numpy_dtype

Matrix = np.ndarray[Any, Any]
LinAlgError = np.linalg.LinAlgError


# --- in place, on the CPU ------------------------------------------------------------------------


def cholesky(a: DeviceArray, out: DeviceArray, status: DeviceArray) -> None:
    """Write the lower factor of each matrix; NaN, and a status of 1, where there is none."""

    def work() -> None:
        factors, found = host(out), host(status)
        _each(np.linalg.cholesky, (host(a),), factors, found)
        found[np.isnan(np.diagonal(factors, 0, 1, 2)).any(-1)] = 1  # not every LAPACK refuses NaN

    _on_host(work, a, out, status)


def solve(a: DeviceArray, b: DeviceArray, x: DeviceArray, status: DeviceArray) -> None:
    """Write the solutions; NaN, and a status of 1, where a matrix is singular."""
    _on_host(
        lambda: _each(np.linalg.solve, (host(a), host(b)), host(x), host(status)), a, b, x, status
    )


def det(a: DeviceArray, out: DeviceArray) -> None:
    """Write the determinants."""

    def work() -> None:
        with np.errstate(all="ignore"):
            host(out)[...] = np.linalg.det(host(a))

    _on_host(work, a, out)


def slogdet(a: DeviceArray, sign: DeviceArray, logs: DeviceArray) -> None:
    """Write the determinants' signs, and the logarithms of their magnitudes."""

    def work() -> None:
        with np.errstate(all="ignore"):
            host(sign)[...], host(logs)[...] = np.linalg.slogdet(host(a))

    _on_host(work, a, sign, logs)


def qr(a: DeviceArray, q: DeviceArray, r: DeviceArray, complete: bool) -> None:
    """Write the factors."""
    mode: Any = "complete" if complete else "reduced"

    def work() -> None:
        host(q)[...], host(r)[...] = np.linalg.qr(host(a), mode)

    _on_host(work, a, q, r)


def _each(
    function: Callable[..., Matrix], sources: Sequence[Matrix], out: Matrix, status: Matrix
) -> None:
    """A function of all matrices, or where one of them has no result of each by itself."""
    status[...] = 0
    try:
        out[...] = function(*sources)
    except LinAlgError:
        for m in range(len(out)):
            try:
                out[m] = function(*[source[m] for source in sources])
            except LinAlgError:
                out[m] = np.nan
                status[m] = 1


def _on_host(work: Callable[[], None], *arrays: DeviceArray) -> None:
    stream = arrays[0].device.default_stream.handle
    stream.call_host(work, [array.buffer for array in arrays])


def host(array: DeviceArray) -> Matrix:
    """A contiguous array on the CPU as NumPy's, without a copy."""
    memory = array.buffer.memory
    dtype = numpy_dtype(array.dtype)
    start = array.offset * dtype.itemsize
    flat = np.frombuffer(memory[start : start + array.size * dtype.itemsize], dtype)
    return flat.reshape(array.shape)


# --- for every device ----------------------------------------------------------------------------


def svd(a: DeviceArray, full: bool) -> tuple[DeviceArray, DeviceArray, DeviceArray]:
    """U, the singular values and V^H of each matrix."""
    found = np.linalg.svd(a.to_host(), full_matrices=full)
    return _uploaded(a, found[0]), _uploaded(a, found[1]), _uploaded(a, found[2])


def svdvals(a: DeviceArray) -> DeviceArray:
    """The singular values of each matrix."""
    return _uploaded(a, np.linalg.svd(a.to_host(), compute_uv=False))


def eigh(a: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
    """Eigenvalues and eigenvectors of each matrix, of which the lower triangle is read."""
    values, vectors = np.linalg.eigh(a.to_host())
    return _uploaded(a, values), _uploaded(a, vectors)


def eigvalsh(a: DeviceArray) -> DeviceArray:
    """The eigenvalues of each matrix, of which the lower triangle is read."""
    return _uploaded(a, np.linalg.eigvalsh(a.to_host()))


def eig(a: DeviceArray) -> tuple[DeviceArray, DeviceArray]:
    """Eigenvalues and eigenvectors of each matrix, which are complex."""
    values, vectors = np.linalg.eig(a.to_host())
    return _uploaded(a, values, True), _uploaded(a, vectors, True)


def eigvals(a: DeviceArray) -> DeviceArray:
    """The eigenvalues of each matrix, which are complex."""
    return _uploaded(a, np.linalg.eigvals(a.to_host()), True)


def _uploaded(like: DeviceArray, data: Matrix, is_complex: bool = False) -> DeviceArray:
    assert isinstance(like.dtype, DType)
    dtype = like.dtype.component
    if is_complex or data.dtype.kind == "c":
        dtype = complex64 if dtype.itemsize == 4 else complex128
    made = new(like, dtype, *data.shape)
    made.upload(data)
    return made
