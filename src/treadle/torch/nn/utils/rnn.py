"""`torch.nn.utils.rnn`: sequences of several lengths, padded or packed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from treadle.core.dtypes import int32, int64
from treadle.tensor.assembly import concat
from treadle.tensor.creation import asarray, full
from treadle.tensor.dtypes import supports
from treadle.tensor.elementwise_functions import where
from treadle.tensor.manipulation import swapaxes
from treadle.tensor.searching import take
from treadle.tensor.tensor import Tensor as Inner
from treadle.torch.nn.sequences import PackedSequence
from treadle.torch.tensors import Tensor, unwrapped, wrap

__all__ = [
    "PackedSequence", "invert_permutation", "pack_padded_sequence", "pack_sequence",
    "pad_packed_sequence", "pad_sequence", "unpack_sequence", "unpad_sequence",
]  # fmt: skip


def _numbers(lengths: Any) -> np.ndarray[Any, Any]:
    if isinstance(lengths, Tensor):
        lengths = lengths._inner.numpy()
    return np.asarray(lengths, np.int64)


def _indices(values: Any, like: Inner) -> Inner:
    kind = int64 if supports(like.device, int64) else int32
    return asarray(np.asarray(values), dtype=kind, device=like.device)


def _on_cpu(values: Any) -> Tensor:
    return wrap(asarray(np.asarray(values, np.int64), device="cpu"))


def invert_permutation(permutation: Tensor | None) -> Tensor | None:
    """Where each number is."""
    if permutation is None:
        return None
    inverse = np.argsort(permutation._inner.numpy())
    return wrap(_indices(inverse, permutation._inner))


def pack_padded_sequence(
    input: Tensor, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack padded sequences, (T, B, …), or (B, T, …) with `batch_first`, whose lengths are known to
    the host. RuntimeError if they do not fall, unless `enforce_sorted` is False.

    >>> import treadle.torch as torch
    >>> rnn = torch.nn.utils.rnn
    >>> packed = rnn.pack_padded_sequence(torch.tensor([[1, 3], [2, 0]]), [2, 1])
    >>> packed.data.tolist(), packed.batch_sizes.tolist()
    ([1, 3, 2], [2, 1])
    """
    x = input._inner
    x = swapaxes(x, 0, 1) if batch_first else x
    many = _numbers(lengths)
    count, batch = x.shape[:2]
    if many.shape != (batch,):
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {many.size} (batch_size="
            f"{batch})"
        )
    if batch == 0 or many.min() <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' "
            "that is <= 0"
        )
    if many.max() > count:
        raise RuntimeError(f"a sequence of {many.max()} places does not fit into {count}")
    order = None
    if not enforce_sorted:
        order = np.argsort(-many, kind="stable")
        many = many[order]
    elif np.any(np.diff(many) > 0):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You "
            "can pass `enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to "
            "sidestep this requirement"
        )
    columns = np.arange(batch) if order is None else order
    is_there = np.arange(many[0])[:, None] < many
    places = (np.arange(many[0])[:, None] * batch + columns)[is_there]
    flat = x.reshape((count * batch, *x.shape[2:]))
    data = wrap(take(flat, _indices(places, x), axis=0))
    sizes = _on_cpu(is_there.sum(axis=1))
    if order is None:
        return PackedSequence(data, sizes)
    indices = wrap(_indices(order, x)), wrap(_indices(np.argsort(order), x))
    return PackedSequence(data, sizes, *indices)


def pad_packed_sequence(
    sequence: PackedSequence,
    batch_first: bool = False,
    padding_value: float = 0.0,
    total_length: int | None = None,
) -> tuple[Tensor, Tensor]:
    """The sequences padded, and their lengths: what `pack_padded_sequence` was given."""
    data = sequence.data._inner
    sizes = _numbers(sequence.batch_sizes)
    count, batch = len(sizes), int(sizes[0])
    wanted = count if total_length is None else total_length
    if wanted < count:
        raise ValueError(
            f"Expected total_length to be at least the length of the longest sequence in input, "
            f"but got total_length={total_length} and max sequence length being {count}"
        )
    columns = np.arange(batch)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    is_there = columns < sizes[:, None]
    places = np.where(is_there, starts[:, None] + columns, 0)
    lengths = is_there.sum(axis=0)
    if sequence.unsorted_indices is not None:
        back = sequence.unsorted_indices._inner.numpy()
        places, is_there, lengths = places[:, back], is_there[:, back], lengths[back]
    more = ((0, wanted - count), (0, 0))
    places, is_there = np.pad(places, more), np.pad(is_there, more)
    found = take(data, _indices(places.ravel(), data), axis=0)
    found = found.reshape((wanted, batch, *data.shape[1:]))
    mask = asarray(is_there, device=data.device).reshape(
        (wanted, batch, *([1] * (len(data.shape) - 1)))
    )
    padding = full((), padding_value, dtype=data.dtype, device=data.device)
    found = where(mask, found, padding)
    return wrap(swapaxes(found, 0, 1) if batch_first else found), _on_cpu(lengths)


def pad_sequence(
    sequences: Tensor | Sequence[Tensor],
    batch_first: bool = False,
    padding_value: float = 0.0,
    padding_side: str = "right",
) -> Tensor:
    """Sequences of shapes (L, …) as one tensor (T, B, …), the shorter ones padded.

    >>> import treadle.torch as torch
    >>> rows = [torch.tensor([1, 2]), torch.tensor([3])]
    >>> torch.nn.utils.rnn.pad_sequence(rows, batch_first=True).tolist()
    [[1, 2], [3, 0]]
    """
    if padding_side not in ("left", "right"):
        raise ValueError(f'padding_side is "left" or "right", not {padding_side!r}')
    rows = [each._inner for each in sequences]
    if not rows:
        raise RuntimeError("received an empty list of sequences")
    longest = max(each.shape[0] for each in rows)
    padded = []
    for each in rows:
        shape = (longest - each.shape[0], *each.shape[1:])
        padding = full(shape, padding_value, dtype=each.dtype, device=each.device)
        both = [each, padding] if padding_side == "right" else [padding, each]
        padded.append(concat(both)[None])
    found = concat(padded)
    return wrap(found if batch_first else swapaxes(found, 0, 1))


def unpad_sequence(
    padded_sequences: Tensor, lengths: Any, batch_first: bool = False
) -> list[Tensor]:
    """The sequences of a padded tensor."""
    x = padded_sequences._inner
    x = x if batch_first else swapaxes(x, 0, 1)
    return [wrap(x[at, :length]) for at, length in enumerate(_numbers(lengths).tolist())]


def pack_sequence(sequences: Iterable[Tensor], enforce_sorted: bool = True) -> PackedSequence:
    """Sequences of shapes (L, …), packed.

    >>> import treadle.torch as torch
    >>> rows = [torch.tensor([1, 2]), torch.tensor([3])]
    >>> torch.nn.utils.rnn.pack_sequence(rows).data.tolist()
    [1, 3, 2]
    """
    rows = list(sequences)
    lengths = [unwrapped(each).shape[0] for each in rows]
    return pack_padded_sequence(pad_sequence(rows), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Tensor]:
    """The sequences."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
