"""PyTorch's promotion of dtypes, and its default dtypes.

Tensors with axes come first, then tensors without axes, then Python's numbers: a later one changes
the dtype only if it is of a higher kind (bool, integers, floating, complex) than all before it.
The rules are those of PyTorch's notes on tensor attributes ("type promotion").
"""

from __future__ import annotations

from typing import Any

import treadle as td
from treadle.core.dtypes import DType, bool_, int64
from treadle.core.errors import DtypeError
from treadle.tensor.dtypes import RANK, promote
from treadle.tensor.tensor import Tensor as Inner

_COMPLEX_OF = {"float16": "complex64", "bfloat16": "complex64", "float32": "complex64",
               "float64": "complex128"}  # fmt: skip


class _Defaults:
    """The process's default floating dtype."""

    floating: DType = td.float32


_defaults = _Defaults()


def get_default_dtype() -> DType:
    """The dtype of floating numbers from Python: float32 unless `set_default_dtype` said another.

    >>> import treadle.torch as torch
    >>> torch.get_default_dtype()
    treadle.float32
    """
    return _defaults.floating


def set_default_dtype(d: DType) -> None:
    """Make a floating dtype that of floating numbers from Python. TypeError for other dtypes."""
    if not isinstance(d, DType) or d.kind != "float":
        raise TypeError(f"only floating-point types are supported as the default type, not {d}")
    _defaults.floating = d


def of_number(value: Any) -> DType:
    """The dtype of a Python number."""
    if isinstance(value, bool):
        return bool_
    if isinstance(value, int):
        return int64
    return complex_default() if isinstance(value, complex) else _defaults.floating


def complex_default() -> DType:
    """The complex dtype of the default floating dtype."""
    found: DType = getattr(td, _COMPLEX_OF[_defaults.floating.name])
    return found


def can_cast(source: DType, target: DType) -> bool:
    """Whether a result may be written into a tensor: not one of a higher kind.

    >>> import treadle as td
    >>> can_cast(td.float64, td.float16), can_cast(td.float32, td.int64)
    (True, False)
    """
    if target.kind == "bool":
        return source.kind == "bool"
    return RANK[source.kind] <= RANK[target.kind]


def _common(dtypes: list[DType]) -> DType | None:
    found: DType | None = None
    for each in dtypes:
        try:
            found = each if found is None else promote(found, each)
        except DtypeError as error:  # as uint64 with int64
            raise RuntimeError(str(error)) from None
    return found


def result_type(*operands: Any) -> DType:
    """The dtype that an operation on tensors and numbers computes in."""
    groups: tuple[list[DType], ...] = ([], [], [])
    for each in operands:
        if isinstance(each, Inner):
            groups[0 if each.shape else 1].append(each.dtype)
        elif isinstance(each, (bool, int, float, complex)):
            groups[2].append(of_number(each))
    found: DType | None = None
    for group in groups:
        dtype = _common(group)
        if dtype is None:
            continue
        if found is None:
            found = dtype
        elif RANK[dtype.kind] > RANK[found.kind]:
            is_widened = dtype.kind == "complex" and found.kind == "float"
            found = getattr(td, _COMPLEX_OF[found.name]) if is_widened else dtype
    assert found is not None, "an operation has operands"
    return found


def floating(dtype: DType) -> DType:
    """The dtype in which functions with floating results compute: integers are the default."""
    return dtype if dtype.kind in ("float", "complex") else _defaults.floating
