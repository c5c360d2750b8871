"""Dense products by cuBLASLt, where its packages are installed.

`nvmath-python` binds the library, `nvidia-cublas` is the library. cuBLASLt counts matrices by
columns: what lies row by row is to it the transposed matrix, so it is asked for the transposed
product, right^T times left^T, whose columns are our rows.
"""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from treadle.core.errors import LaunchError
from treadle.core.once import once
from treadle.drivers.dense import DenseProduct, Operand, PreparedProduct

if TYPE_CHECKING:
    from treadle.drivers.cuda.device import CudaDevice

_MOST_WORKSPACE = 32 << 20  # bytes: what NVIDIA advises for Hopper
_MOST_BATCH = 65535
_MOST_EXTENT = (1 << 31) - 1


class _Type(NamedTuple):
    """How cuBLASLt names a dtype: cudaDataType, the one that sums have, and what computes."""

    data: int
    scale: int
    compute: str
    one: str  # NumPy's dtype of the factors


_TYPES = {
    "f16": _Type(2, 0, "COMPUTE_32F", "float32"),
    "bf16": _Type(14, 0, "COMPUTE_32F", "float32"),
    "f32": _Type(0, 0, "COMPUTE_32F", "float32"),
    "f64": _Type(1, 1, "COMPUTE_64F", "float64"),
    "c64": _Type(4, 4, "COMPUTE_32F", "complex64"),
    "c128": _Type(5, 5, "COMPUTE_64F", "complex128"),
}


class _Plan(NamedTuple):
    """cuBLASLt's own objects for one product: descriptor, layouts (first, second, result), the
    algorithm, and the factors 1 and 0."""

    descriptor: int
    layouts: tuple[int, int, int]
    algorithm: Any
    factors: np.ndarray[Any, Any]


class Blas:
    """The library on one card. It lives as long as the process: its plans are few."""

    def __init__(self, device: CudaDevice, library: Any) -> None:
        self._library = library
        self._device = device
        self._handle = library.create()
        self._plans: dict[DenseProduct, PreparedProduct | None] = {}

    def prepared(self, product: DenseProduct) -> PreparedProduct | None:
        """How to compute a product; None for what the library does not do."""
        if product not in self._plans:
            self._plans[product] = self._prepare(product)
        return self._plans[product]

    def multiply(
        self, prepared: PreparedProduct, places: Sequence[int], scratch: int, stream: int
    ) -> None:
        """Append a product to a stream. `places` are the addresses of left, right and result."""
        left, right, out = places
        plan = prepared.plan
        assert isinstance(plan, _Plan)
        first, second, result = plan.layouts
        one = plan.factors.ctypes.data
        with self._device.current():
            self._library.matmul(
                self._handle, plan.descriptor, one, right, first, left, second,
                one + plan.factors.itemsize, out, result, out, result,
                plan.algorithm.ptr, scratch, prepared.workspace, stream,
            )  # fmt: skip

    # --- plans -----------------------------------------------------------------------------------

    def _prepare(self, product: DenseProduct) -> PreparedProduct | None:
        type = _TYPES.get(product.dtype)
        made = _TYPES.get(product.result, type)
        extents = (product.rows, product.columns, product.depth)
        if (
            type is None
            or made is None
            or product.batch > _MOST_BATCH
            or max(extents) > _MOST_EXTENT
        ):
            return None
        library = self._library
        name = type.compute + ("_FAST_TF32" if product.rounded else "")
        compute = _enumeration("cublas", "ComputeType")[name]
        descriptor = library.matmul_desc_create(compute, type.scale)
        for name, operand in (("TRANSA", product.right), ("TRANSB", product.left)):
            if operand.transposed:
                self._set("matmul_desc", "MatmulDescAttribute", descriptor, name, 1, np.int32)
        batch = product.batch
        layouts = (
            self._layout(type, product.columns, product.depth, product.right, batch),
            self._layout(type, product.depth, product.rows, product.left, batch),
            self._layout(
                made, product.columns, product.rows,
                Operand(False, product.columns, product.rows * product.columns), batch,
            ),
        )  # fmt: skip
        algorithm = self._algorithm(descriptor, layouts)
        if algorithm is None:
            return None
        plan = _Plan(descriptor, layouts, algorithm, np.asarray([1, 0], type.one))
        return PreparedProduct(int(algorithm.workspace_size), plan, product)

    def _layout(self, type: _Type, rows: int, columns: int, operand: Operand, batch: int) -> int:
        """A matrix as the library counts it; the pitch is from one of its columns to the next."""
        if operand.transposed:
            rows, columns = columns, rows
        made: int = self._library.matrix_layout_create(type.data, rows, columns, operand.pitch)
        if batch > 1:
            attributes = "matrix_layout", "MatrixLayoutAttribute", made
            self._set(*attributes, "BATCH_COUNT", batch, np.int32)
            self._set(*attributes, "STRIDED_BATCH_OFFSET", operand.step, np.int64)
        return made

    def _algorithm(self, descriptor: int, layouts: tuple[int, int, int]) -> Any:
        library = self._library
        preference = library.matmul_preference_create()
        found = library.MatmulHeuristicResult()
        count = ctypes.c_int32()
        first, second, result = layouts
        try:
            self._set(
                "matmul_preference", "MatmulPreferenceAttribute", preference,
                "MAX_WORKSPACE_BYTES", _MOST_WORKSPACE, np.uint64,
            )  # fmt: skip
            library.matmul_algo_get_heuristic(
                self._handle, descriptor, first, second, result, result, preference, 1,
                found.ptr, ctypes.addressof(count),
            )  # fmt: skip
        except library.cuBLASLtError as error:
            if "NOT_SUPPORTED" in str(error):
                return None
            raise LaunchError(f"{self._device.info.id}: cuBLASLt failed: {error}") from None
        finally:
            library.matmul_preference_destroy(preference)
        return found if count.value else None

    def _set(
        self, kind: str, names: str, of: int, name: str, value: int, type: Callable[[int], Any]
    ) -> None:
        number = np.asarray(type(value))
        attribute = _enumeration("cublasLt", names)[name]
        setter = getattr(self._library, f"{kind}_set_attribute")
        setter(of, attribute, number.ctypes.data, number.nbytes)


def _enumeration(module: str, name: str) -> Any:
    return getattr(importlib.import_module(f"nvmath.bindings.{module}"), name)


@once
def load() -> Any:
    """The library's bindings, or why there are none: a sentence."""
    try:
        library: Any = importlib.import_module("nvmath.bindings.cublasLt")
    except ImportError:
        return 'cuBLASLt is not installed: pip install "treadle[cublas]"'
    try:
        library.get_version()
    except Exception as error:  # noqa: BLE001  # whatever the package raises where it finds no library
        return f"cuBLASLt could not be loaded: {error}"
    return library
