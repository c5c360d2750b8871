"""The types of parameters in the public functions' signatures: arrays, shapes, dtypes, devices.

Type checkers and editors show these names; `docs/design/typing.md` says what they see of the rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, Union

import numpy as np

from treadle.core.dtypes import DType
from treadle.runtime.devices import Device

if TYPE_CHECKING:
    from treadle.tensor.tensor import Tensor


class SupportsDLPack(Protocol):
    """An array of any library that supports DLPack."""

    def __dlpack__(self, *arguments: Any, **keywords: Any) -> Any:
        """The array as a DLPack capsule."""


Number: TypeAlias = bool | int | float | complex | np.generic
"""A Python number, or a scalar of NumPy; beside arrays it takes their dtype."""

Array: TypeAlias = Union["Tensor", np.ndarray[Any, Any], list[Any], tuple[Any, ...], SupportsDLPack]
"""A tensor, an array of NumPy or of a library that speaks DLPack, nested lists of numbers."""

ArrayLike: TypeAlias = Union[Array, Number]  # noqa: UP007 - of a string `|` is not defined
"""What functions of arrays take."""

DTypeLike: TypeAlias = DType | np.dtype[Any] | str | type[Any]
"""A dtype: `td.float32`, `"float32"`, NumPy's dtype or scalar class, `bool`, `int`, `float`,
`complex`, or a class made by `@td.struct`."""

DeviceLike: TypeAlias = Device | str
"""A device or its id, such as `"cuda:0"`."""

Shape: TypeAlias = int | Sequence[int]
"""The extents of an array's axes; one number for an array of one axis."""

Axes: TypeAlias = int | Sequence[int]
"""One axis or several; -1 is the last one."""
