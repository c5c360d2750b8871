"""The Array API's own methods of tensors, and what `__array_namespace_info__` returns."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

from treadle.core.dtypes import ALL_DTYPES, DType, complex64, float32
from treadle.runtime.devices import Device, default_device, devices
from treadle.runtime.devices import device as find_device
from treadle.tensor.annotations import DeviceLike
from treadle.tensor.dtypes import default_integer, isdtype, supports

__array_api_version__ = "2024.12"
_VERSIONS = ("2021.12", "2022.12", "2023.12", __array_api_version__)
# The standard does not know float16 and bfloat16, so they are not listed.
_STANDARD = tuple(dtype for dtype in ALL_DTYPES if dtype.name not in ("float16", "bfloat16"))
_MAX_DIMENSIONS = 64  # NumPy's arrays have no more


class NamespaceInfo:
    """What `td.__array_namespace_info__()` returns."""

    def capabilities(self) -> dict[str, Any]:
        """Whether boolean indexing and data-dependent shapes are supported, and the most axes.

        >>> NamespaceInfo().capabilities()["boolean indexing"]
        True
        """
        return {
            "boolean indexing": True,
            "data-dependent shapes": True,
            "max dimensions": _MAX_DIMENSIONS,
        }

    def default_device(self) -> Device:
        """The device used where none is named."""
        return default_device()

    def devices(self) -> list[Device]:
        """Every usable device, best first."""
        return devices()

    def default_dtypes(self, *, device: str | Device | None = None) -> dict[str, DType]:
        """The dtypes of results where none is named; integers and indices are 32 bits on webgpu.

        >>> NamespaceInfo().default_dtypes(device="cpu")["real floating"]
        treadle.float32
        """
        integer = default_integer(find_device(device))
        return {
            "real floating": float32,
            "complex floating": complex64,
            "integral": integer,
            "indexing": integer,
        }

    def dtypes(
        self, *, device: str | Device | None = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, DType]:
        """The standard's dtypes that a device has, by name; only those of `kind`, as for `isdtype`.

        >>> list(NamespaceInfo().dtypes(device="cpu", kind="complex floating"))
        ['complex64', 'complex128']
        """
        where = find_device(device)
        return {
            dtype.name: dtype
            for dtype in _STANDARD
            if (kind is None or isdtype(dtype, kind)) and supports(where, dtype)
        }

    def __repr__(self) -> str:
        return f"<treadle: Array API {__array_api_version__}>"


def __array_namespace_info__() -> NamespaceInfo:
    """The Array API's inspection of this library: devices and dtypes.

    >>> import treadle as td
    >>> td.__array_namespace_info__().dtypes(device="cpu", kind="bool")
    {'bool': treadle.bool}
    """
    return NamespaceInfo()


class ArrayApiMethods:
    """The methods of the standard besides attributes and operators."""

    __slots__ = ()

    def __array_namespace__(self, *, api_version: str | None = None) -> ModuleType:
        """The module with the standard's functions, which is `treadle`.

        >>> import treadle as td
        >>> td.ones(3, device="cpu").__array_namespace__() is td
        True
        """
        if api_version is not None and api_version not in _VERSIONS:
            raise ValueError(
                f"treadle has the Array API {__array_api_version__}, and what came before, but not "
                f"{api_version!r}"
            )
        return importlib.import_module("treadle")

    def to_device(self, device: DeviceLike, /, *, stream: None = None) -> Any:
        """The tensor on a device: itself if it is there, else a copy. As `x.to(device=…)`.

        >>> import treadle as td
        >>> x = td.asarray([[1.0, 2.0], [3.0, 4.0]], device="cpu")
        >>> x.to_device("cpu") is x
        True
        """
        if stream is not None:
            raise ValueError("to_device: treadle orders its streams by itself: leave stream out")
        return self.to(device=device)  # type: ignore[attr-defined]
