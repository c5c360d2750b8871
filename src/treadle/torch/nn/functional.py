"""`torch.nn.functional`: treadle's functions of layers, with PyTorch's arguments."""

from __future__ import annotations

from typing import Any

from treadle.tensor import functional as inner
from treadle.torch.adapting import public
from treadle.torch.lacking import within
from treadle.torch.operations import fractional, neural
from treadle.torch.operations.bounds import looking

_WITH_OUT = ("avg_pool2d", "avg_pool3d", "hardshrink")
# Functions of indices, which are looked at on the CPU.
_LOOKING = ("embedding", "embedding_bag")
# Names of treadle's that PyTorch has not.
_NOT_HERE = frozenset({"geglu", "packed_attention", "reglu", "swiglu", "swish"})
# What treadle's functions do not have, or with other arguments.
OWN = {name: module for module in (neural, fractional) for name in module.__all__}
__all__ = sorted({*inner.__all__, *OWN} - _NOT_HERE)


def __getattr__(name: str) -> Any:
    if name not in __all__:
        advice = within("nn.functional").get(name)
        more = "" if advice is None else f": {advice}"
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{more}")
    function = getattr(OWN.get(name, inner), name)
    function = looking(function) if name in _LOOKING else function
    found = globals()[name] = public(function, __name__, name, has_out=name in _WITH_OUT)
    return found
