"""Forward and backward variables of CTC: alignments of sequences with shorter targets."""

from __future__ import annotations

from treadle.core.dtypes import DType
from treadle.kernels.device_code import ctc
from treadle.kernels.launching import flat, new, serial_threads
from treadle.runtime.arrays import DeviceArray

_THREADS = 64  # of a block, which makes the states of a sequence


def align_forward(
    scores: DeviceArray, targets: DeviceArray, starts: DeviceArray, lengths: DeviceArray,
    sizes: DeviceArray, states: int, blank: int,
) -> tuple[DeviceArray, DeviceArray]:  # fmt: skip
    """For log-probabilities of shape (times, batch, classes) the logarithms of the probabilities of
    each state at each time with all before, of shape (times, batch, states), and -log of those of
    the targets.

    A target is `sizes` labels of the flat `targets` from `starts` on, to be aligned with the first
    `lengths` times; all are int32. It has 2 * size + 1 states, of which the even ones are the class
    `blank`.

    >>> import numpy as np, treadle as td
    >>> scores = td.asarray(np.log([[[0.5, 0.5]], [[0.5, 0.5]]]), device="cpu")._array
    >>> one, start = (td.asarray([x], dtype=td.int32, device="cpu")._array for x in (1, 0))
    >>> two = td.asarray([2], dtype=td.int32, device="cpu")._array
    >>> _, losses = align_forward(scores, one, start, two, one, 3, 0)
    >>> np.exp(-losses.to_host()).round(4).tolist()  # label and label, or a blank beside it
    [0.75]
    """
    dtype = _dtype(scores)
    times, batch, classes = scores.shape
    alpha, losses = new(scores, dtype, times, batch, states), new(scores, dtype, batch)
    if batch:
        threads = _threads(scores)
        ctc.forward(dtype, threads)[batch, threads](
            flat(scores), targets, starts, lengths, sizes, flat(alpha), losses, times, batch,
            classes, states, blank,
        )  # fmt: skip
    return alpha, losses


def align_backward(
    scores: DeviceArray, targets: DeviceArray, starts: DeviceArray, lengths: DeviceArray,
    sizes: DeviceArray, states: int, blank: int,
) -> DeviceArray:  # fmt: skip
    """The logarithms of the probabilities of all that comes after each state at each time;
    arguments are those of `align_forward`."""
    dtype = _dtype(scores)
    times, batch, classes = scores.shape
    beta = new(scores, dtype, times, batch, states)
    if beta.size:
        threads = _threads(scores)
        ctc.backward(dtype, threads)[batch, threads](
            flat(scores), targets, starts, lengths, sizes, flat(beta), times, batch, classes,
            states, blank,
        )  # fmt: skip
    return beta


def _threads(scores: DeviceArray) -> int:
    """On the CPU one thread makes all states of a sequence."""
    return 1 if serial_threads(scores.device) else _THREADS


def _dtype(scores: DeviceArray) -> DType:
    assert isinstance(scores.dtype, DType)
    return scores.dtype
