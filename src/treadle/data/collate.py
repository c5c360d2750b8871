"""How items become a batch, and how a batch gets to a device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from treadle.core.errors import ShapeError
from treadle.runtime.devices import Device
from treadle.tensor.assembly import stack
from treadle.tensor.creation import asarray
from treadle.tensor.tensor import Tensor


def default_collate(batch: Sequence[Any], device: str | Device | None = None) -> Any:
    """Items as one batch: arrays and numbers get a new first axis, containers are kept.

    Tensors are stacked where they are, or go to `device`; NumPy arrays and numbers become tensors
    on `device`, or else on the default one. Python's floats become float32 and integers the
    device's default integer, as in `td.asarray`. Texts and bytes stay a list. Mappings and named
    tuples are batches of each of their fields, lists and tuples become a list of batches.
    ShapeError if items have different shapes or lengths; TypeError for anything else.

    >>> import treadle as td
    >>> batch = td.data.default_collate([{"x": 1.0, "name": "a"}, {"x": 2.0, "name": "b"}], "cpu")
    >>> batch["x"].tolist(), batch["name"]
    ([1.0, 2.0], ['a', 'b'])
    """
    first = batch[0]
    if isinstance(first, Tensor):
        made = stack(list(batch))
        return made if device is None else made.to(device=device)
    if isinstance(first, (np.ndarray, np.generic)) and first.dtype.kind not in "SUO":
        try:
            return asarray(np.stack(batch), device=device)
        except ValueError:
            shapes = sorted({np.shape(one) for one in batch})
            raise ShapeError(f"items of shapes {shapes} make no batch: {_ADVICE}") from None
    if isinstance(first, (bool, int, float, complex)):
        return asarray(list(batch), device=device)
    if isinstance(first, (str, bytes)):
        return list(batch)
    if isinstance(first, Mapping):
        return _like(
            first, {key: default_collate([one[key] for one in batch], device) for key in first}
        )
    if isinstance(first, Sequence):
        if len({len(one) for one in batch}) > 1:
            lengths = sorted({len(one) for one in batch})
            raise ShapeError(f"items of lengths {lengths} make no batch: {_ADVICE}")
        fields = [default_collate(field, device) for field in zip(*batch, strict=True)]
        return type(first)(*fields) if _is_named(first) else fields
    raise TypeError(
        f"items of type {type(first).__name__} make no batch: they are tensors, arrays, numbers, "
        f"texts, or containers of those; {_ADVICE}"
    )


# What a batch of the rows of arrays is, a dataset of arrays may make itself.
default_collate.makes_rows = True  # type: ignore[attr-defined]
_ADVICE = "give the DataLoader a collate_fn that makes one of them"


def default_convert(data: Any) -> Any:
    """NumPy arrays in an item become tensors; what a loader without batches does to each item."""
    return placed(data, None)


def placed(batch: Any, device: str | Device | None) -> Any:
    """A batch with its tensors and NumPy arrays on a device; containers and all else are kept."""
    if isinstance(batch, Tensor):
        return batch if device is None else batch.to(device=device)
    if isinstance(batch, (np.ndarray, np.generic)) and batch.dtype.kind not in "SUO":
        return asarray(batch, device=device)
    if isinstance(batch, Mapping):
        return _like(batch, {key: placed(value, device) for key, value in batch.items()})
    if _is_named(batch):
        return type(batch)(*(placed(one, device) for one in batch))
    if isinstance(batch, (list, tuple)):
        return type(batch)([placed(one, device) for one in batch])
    return batch


def realized(batch: Any) -> Any:
    """A batch whose tensors are computed, so that this is done by the thread that made it."""
    if isinstance(batch, Tensor):
        batch.realize()
    elif isinstance(batch, Mapping):
        for one in batch.values():
            realized(one)
    elif isinstance(batch, (list, tuple)):
        for one in batch:
            realized(one)
    return batch


def _is_named(value: Any) -> bool:
    return isinstance(value, tuple) and hasattr(value, "_fields")


def _like(mapping: Mapping[Any, Any], fields: dict[Any, Any]) -> Any:
    """Fields in a mapping of the same class, if that is made of a dictionary."""
    if type(mapping) is dict:
        return fields
    try:
        return type(mapping)(fields)  # type: ignore[call-arg]
    except TypeError:
        return fields
