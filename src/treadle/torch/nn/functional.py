"""`torch.nn.functional`: treadle's functions of layers, with PyTorch's arguments."""

from __future__ import annotations

from typing import Any

from treadle.tensor import functional as inner
from treadle.torch.adapting import adapted
from treadle.torch.operations import fractional, neural

# Names of treadle's that PyTorch has not.
_NOT_HERE = frozenset({"geglu", "packed_attention", "reglu", "swiglu", "swish"})
_HERE = {name: module for module in (neural, fractional) for name in module.__all__}
__all__ = sorted({*inner.__all__, *_HERE} - _NOT_HERE)


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    function = getattr(_HERE.get(name, inner), name)
    found = globals()[name] = adapted(function)
    return found
