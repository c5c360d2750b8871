"""Moving the arrays of arguments and results between devices, and to NumPy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from treadle.runtime.devices import Device
from treadle.tensor.compiled.structure import assign, children, is_nested, with_leaves
from treadle.tensor.tensor import Tensor


def moved(
    args: tuple[Any, ...], kwargs: Mapping[str, Any], device: Device
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Arguments with copies of their tensors on a device; a tensor that is there twice has one."""
    move = _Moves(device)
    return (
        tuple([with_leaves(each, move, []) for each in args]),
        {name: with_leaves(each, move, []) for name, each in kwargs.items()},
    )


def on_device(result: Any, device: Device) -> Any:
    """A result with its tensors on a device."""
    return with_leaves(result, _Moves(device), [])


class _Moves:
    def __init__(self, device: Device) -> None:
        self._device = device
        self._made: dict[int, tuple[Any, Any]] = {}

    def __call__(self, leaf: Any) -> Any:
        if not isinstance(leaf, Tensor):
            return leaf
        known = self._made.get(id(leaf))
        if known is None:
            known = self._made[id(leaf)] = leaf, leaf.to(self._device)
        return known[1]


def numpy_leaves(result: Any) -> Any:
    """A result with NumPy arrays for its tensors."""
    if type(result) is Tensor:
        return result.numpy()
    if type(result) is tuple:
        return tuple([numpy_leaves(each) for each in result])
    return with_leaves(result, _as_numpy, [])


def _as_numpy(leaf: Any) -> Any:
    return leaf.numpy() if isinstance(leaf, Tensor) else leaf


def settle_containers(values: Iterable[Any]) -> None:
    """Put NumPy arrays in place of the tensors that a function has put into the lists, dicts and
    dataclasses among its arguments."""
    for value in values:
        if is_nested(value):
            own = [each for _, each in children(value)]
            settle_containers(own)
            if not isinstance(value, tuple) and any(isinstance(each, Tensor) for each in own):
                keys = list(value) if isinstance(value, dict) else None
                assign(value, [_as_numpy(each) for each in own], keys)
