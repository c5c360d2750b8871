"""Tensors where libraries expect any array of the Array API: how they find its functions."""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

from treadle.tensor.annotations import DeviceLike
from treadle.tensor.info import ARRAY_API_VERSION

_VERSIONS = ("2021.12", "2022.12", "2023.12", ARRAY_API_VERSION)


class ForArrayApi:
    """What the standard has arrays have, besides what they are and the operators."""

    __slots__ = ()

    def __array_namespace__(self, *, api_version: str | None = None) -> ModuleType:
        """The module with the standard's functions, which is `treadle`.

        >>> import treadle as td
        >>> td.ones(3, device="cpu").__array_namespace__() is td
        True
        """
        if api_version is not None and api_version not in _VERSIONS:
            raise ValueError(
                f"treadle has the Array API {ARRAY_API_VERSION}, and what came before, but not "
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
