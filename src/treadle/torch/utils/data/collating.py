"""How items become a batch of PyTorch's tensors."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from treadle.core.dtypes import complex128, float64
from treadle.tensor.assembly import stack
from treadle.tensor.tensor import Tensor as Inner
from treadle.tensor.tensor import from_numpy
from treadle.torch.devices import place
from treadle.torch.tensors import Tensor, wrap


def _tensor(array: np.ndarray[Any, Any]) -> Tensor:
    return wrap(from_numpy(array, place("cpu")))


def _stacked(batch: Sequence[Tensor]) -> Tensor:
    inners = [each._inner for each in batch]
    if len({each.shape for each in inners}) > 1:
        shapes = [list(each.shape) for each in inners]
        one, other = next((a, b) for a, b in pairwise(shapes) if a != b)
        raise RuntimeError(
            f"stack expects each tensor to be equal size, but got {one} and {other} in a batch: "
            "give the DataLoader a collate_fn that pads them"
        )
    if all(_is_on_host(each) for each in inners):
        # Many small arrays are copied here sooner than a kernel of so many arguments is made.
        return _tensor(np.stack([each.numpy() for each in inners]))
    return wrap(stack(inners).realize())


def _is_on_host(inner: Inner) -> bool:
    return inner.device.id == "cpu" and not inner.requires_grad


def default_collate(batch: Sequence[Any]) -> Any:
    """Items as one batch: tensors, arrays and numbers get a new first axis, containers are kept.
    RuntimeError if shapes or lengths differ, TypeError for other items.

    >>> from treadle.torch.utils.data import default_collate
    >>> default_collate([(0, 1.5), (1, 2.5)])
    [tensor([0, 1]), tensor([1.5000, 2.5000], dtype=torch.float64)]
    """
    first = batch[0]
    if isinstance(first, Tensor):
        return _stacked(batch)
    if isinstance(first, (np.ndarray, np.generic)):
        if first.dtype.kind in "SUO":
            raise TypeError(
                f"default_collate: batch must contain tensors, numpy arrays, numbers, dicts or "
                f"lists; found {first.dtype}"
            )
        return _tensor(np.stack(batch))
    if isinstance(first, float):
        return _tensor(np.asarray(batch, float64.numpy))
    if isinstance(first, (bool, int)):
        return _tensor(np.asarray(batch))
    if isinstance(first, complex):
        return _tensor(np.asarray(batch, complex128.numpy))
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, Mapping):
        fields = {key: default_collate([one[key] for one in batch]) for key in first}
        try:
            return type(first)(fields)  # type: ignore[call-arg]
        except TypeError:
            return fields
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*map(default_collate, zip(*batch, strict=True)))
    if isinstance(first, Sequence):
        if len({len(one) for one in batch}) > 1:
            raise RuntimeError("each element in list of batch should be of equal size")
        return [default_collate(field) for field in zip(*batch, strict=True)]
    raise TypeError(
        "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found "
        f"{type(first)}"
    )


# Datasets of tensors make a batch of their rows themselves.
default_collate.makes_rows = True  # type: ignore[attr-defined]


def default_convert(data: Any) -> Any:
    """NumPy arrays in an item become tensors; what a loader without batches does to each item."""
    if isinstance(data, Tensor):
        return data
    if isinstance(data, (np.ndarray, np.generic)) and data.dtype.kind not in "SUO":
        return _tensor(np.asarray(data))
    if isinstance(data, Mapping):
        fields = {key: default_convert(value) for key, value in data.items()}
        try:
            return type(data)(fields)  # type: ignore[call-arg]
        except TypeError:
            return fields
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*map(default_convert, data))
    if isinstance(data, tuple):
        return [default_convert(each) for each in data]
    if isinstance(data, list):
        return type(data)(map(default_convert, data))
    return data
