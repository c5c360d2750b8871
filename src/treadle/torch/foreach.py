"""`torch._foreach_…`: a function of each tensor of a list. PyTorch's optimizers and moving averages
are written so; here each is a lazy operation, of which many become one kernel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

START = "_foreach_"
_NAMES = (
    "abs acos add addcdiv addcmul asin atan ceil clamp_max clamp_min copy_ cos cosh div erf erfc "
    "exp expm1 floor frac lerp lgamma log log10 log1p log2 max maximum minimum mul neg norm pow "
    "reciprocal round rsqrt sigmoid sign sin sinh sqrt sub tan tanh trunc zero_"
)
_KNOWN = frozenset(_NAMES.split())
# Methods of other names that do it.
_METHODS = {"maximum": "clamp_min", "minimum": "clamp_max"}


def foreach(name: str) -> Callable[..., Any] | None:
    """`torch._foreach_add`, or `torch._foreach_add_` that writes; None if there is none."""
    method = name.removeprefix(START)
    plain = method.removesuffix("_")
    if not {plain, method} & _KNOWN:
        return None
    writes = method.endswith("_")
    method = _METHODS.get(plain, plain) + "_" * writes

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        tensors = list(self)
        rows = [_spread(name, each, len(tensors)) for each in args]
        named = {key: _spread(name, each, len(tensors)) for key, each in kwargs.items()}
        made = tuple(
            getattr(tensor, method)(
                *[row[at] for row in rows], **{key: row[at] for key, row in named.items()}
            )
            for at, tensor in enumerate(tensors)
        )
        return None if writes else made

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"`{plain}` of each tensor of a list; other lists have one element a tensor."
    return call


def _spread(name: str, value: Any, count: int) -> list[Any]:
    if not isinstance(value, (list, tuple)):
        return [value] * count
    if len(value) != count:
        raise RuntimeError(
            f"{name}: lists of one length are needed, and these have {count} and {len(value)}"
        )
    return list(value)
