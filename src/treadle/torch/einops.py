"""einops on tensors of `treadle.torch`: its functions, and its layers as modules.

`from treadle.torch.einops import rearrange, Rearrange` stands in the place of `from einops import
rearrange` and `from einops.layers.torch import Rearrange`. Once this is imported, einops' own
functions take these tensors too, in all modules of the program. ModuleNotFoundError if einops is
not installed.
"""

from __future__ import annotations

from typing import Any

from einops import (
    EinopsError,
    asnumpy,
    einsum,
    pack,
    parse_shape,
    rearrange,
    reduce,
    repeat,
    unpack,
)
from einops._backends import AbstractBackend
from einops.layers import RearrangeMixin, ReduceMixin

import treadle.torch
from treadle.torch.nn.module import Module
from treadle.torch.tensors import Tensor

__all__ = [
    "EinopsError", "Rearrange", "Reduce", "asnumpy", "einsum", "pack", "parse_shape", "rearrange",
    "reduce", "repeat", "unpack",
]  # fmt: skip


class _Backend(AbstractBackend):  # type: ignore[misc]
    """What einops calls; it finds its subclasses by itself."""

    framework_name = "treadle.torch"

    def is_appropriate_type(self, tensor: Any) -> bool:
        return isinstance(tensor, Tensor)

    def from_numpy(self, x: Any) -> Any:
        return treadle.torch.from_numpy(x)

    def to_numpy(self, x: Any) -> Any:
        return x.detach().cpu().numpy()

    def arange(self, start: int, stop: int) -> Any:
        return treadle.torch.arange(start, stop)

    def transpose(self, x: Any, axes: Any) -> Any:
        return x.permute(axes)

    def reduce(self, x: Any, operation: str, axes: Any) -> Any:
        name = {"min": "amin", "max": "amax"}.get(operation, operation)
        if operation in ("any", "all", "prod"):  # of one axis each
            for axis in sorted(axes, reverse=True):
                x = getattr(x, operation)(dim=axis)
            return x
        return getattr(x, name)(dim=axes)

    def stack_on_zeroth_dimension(self, tensors: list[Any]) -> Any:
        return treadle.torch.stack(tensors)

    def add_axis(self, x: Any, new_position: int) -> Any:
        return x.unsqueeze(new_position)

    def add_axes(self, x: Any, n_axes: int, pos2len: dict[int, int]) -> Any:
        extents = [-1] * n_axes
        for position, length in pos2len.items():
            x = x.unsqueeze(position)
            extents[position] = length
        return x.expand(extents)

    def tile(self, x: Any, repeats: Any) -> Any:
        return x.repeat(repeats)

    def concat(self, tensors: Any, axis: int) -> Any:
        return treadle.torch.cat(tensors, dim=axis)

    def is_float_type(self, x: Any) -> bool:
        return bool(x.is_floating_point())

    def einsum(self, pattern: str, *x: Any) -> Any:
        return treadle.torch.einsum(pattern, *x)


class Rearrange(RearrangeMixin, Module):  # type: ignore[misc]
    """`rearrange` with a pattern, as a module."""

    def forward(self, x: Any) -> Any:
        """The tensor with its axes rearranged."""
        return self._apply_recipe(x)  # type: ignore[no-untyped-call]


class Reduce(ReduceMixin, Module):  # type: ignore[misc]
    """`reduce` with a pattern, as a module."""

    def forward(self, x: Any) -> Any:
        """The tensor reduced along axes."""
        return self._apply_recipe(x)  # type: ignore[no-untyped-call]
