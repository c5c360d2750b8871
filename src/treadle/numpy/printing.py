"""The text of arrays: NumPy's own. Of a large array only the corners are read."""

from __future__ import annotations

from typing import Any

import numpy as np

from treadle.tensor.representation import _corners
from treadle.tensor.tensor import Tensor as Inner


def _seen(inner: Inner) -> tuple[np.ndarray[Any, Any], dict[str, Any]]:
    """The elements that are shown, and how to say that there are more."""
    options = np.get_printoptions()
    edge, threshold = options["edgeitems"], options["threshold"]
    if inner.size <= threshold or not inner.shape:
        return inner.numpy(), {}
    corners: np.ndarray[Any, Any] = _corners(inner, edge)
    return corners, {"threshold": 0, "edgeitems": edge}


def text(inner: Inner, **keywords: Any) -> str:
    """As `str` of NumPy's array."""
    if not inner.shape:
        return str(inner.numpy()[()])
    data, more = _seen(inner)
    return np.array2string(data, **{**more, **keywords})


def representation(inner: Inner, is_element: bool = False) -> str:
    """As `repr` of NumPy's array, or of its scalar."""
    if is_element:
        return repr(inner.numpy()[()])
    data, more = _seen(inner)
    if not more:
        return repr(data)
    with np.printoptions(**more):
        shown = repr(data)
    return shown.replace(f"shape={data.shape}", f"shape={inner.shape}")
