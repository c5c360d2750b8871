"""`ctc_loss`: the loss of sequences with labels but without their alignment."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from treadle.core.dtypes import int32
from treadle.core.errors import DtypeError, ShapeError
from treadle.core.limits import MOST_NARROW
from treadle.graph import history
from treadle.graph.calls import call_of_several
from treadle.graph.placeholders import record_composite
from treadle.kernels.ctc import align_forward
from treadle.runtime import settings
from treadle.tensor.annotations import ArrayLike
from treadle.tensor.creation import asarray
from treadle.tensor.elementwise_functions import clip, where
from treadle.tensor.functional.compute_dtype import widened_real
from treadle.tensor.functional.loss_reduction import reduced, reduction_of
from treadle.tensor.precision import cast_by_name
from treadle.tensor.ranges import arange
from treadle.tensor.scans import cumulative_sum
from treadle.tensor.tensor import Tensor, from_node

__all__ = ["ctc_loss"]

_MOST = 1e29  # a greater loss means probability 0


class Alignment(NamedTuple):
    """The number of states of an alignment, and the blank class."""

    states: int
    blank: int


@cast_by_name
def ctc_loss(
    log_probs: ArrayLike,
    targets: ArrayLike,
    input_lengths: ArrayLike,
    target_lengths: ArrayLike,
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """Connectionist temporal classification (Graves et al., 2006): -log of the probability of a
    sequence of labels, summed over all alignments with times.

    `log_probs` are log-probabilities of classes, of shape (T, N, C), as from `log_softmax`, and
    `targets` labels of shape (N, S), or all labels concatenated; without N both are of one
    sequence. The first `input_lengths` times and `target_lengths` labels of each are used. Each
    time has a label or `blank`; the same label at consecutive times counts once.

    "mean" is the mean of the losses divided by the targets' lengths (at least 1). If T is too short
    for a target, the loss is infinite and its gradient NaN; with `zero_infinity` both are 0. The
    gradient is that of `log_probs`; PyTorch adds exp(log_probs), which the gradient of
    `log_softmax` cancels. ShapeError for operands that don't fit, ValueError for lengths in the
    host's memory (or any, under TREADLE_CHECK=1) that are greater than T or S.

    >>> import treadle as td
    >>> log_probs = td.log(td.full((2, 1, 3), 1 / 3, device="cpu"))
    >>> labels = td.asarray([[1]], device="cpu")
    >>> loss = td.nn.functional.ctc_loss(log_probs, labels, [2], [1])  # 11, 01 and 10, of nine
    >>> round(td.exp(-loss).item(), 4)
    0.3333
    """
    reduction = reduction_of("ctc_loss", reduction)
    scores, dtype = widened_real("ctc_loss", log_probs)
    if scores.ndim not in (2, 3):
        raise ShapeError(f"ctc_loss takes log_probs of (T, N, C) or (T, C), not {scores.shape}")
    batched = scores.ndim == 3
    if not batched:
        scores = scores.reshape(scores.shape[0], 1, scores.shape[1])
    times, batch, classes = scores.shape
    if not 0 <= blank < classes:
        raise ValueError(f"ctc_loss: blank={blank} is not one of {classes} classes")
    lengths = _lengths("input_lengths", input_lengths, scores)
    sizes = _lengths("target_lengths", target_lengths, scores)
    _check_at_most("input_lengths", input_lengths, lengths, times)
    labels, starts, longest = _labels(targets, target_lengths, sizes, scores)
    states = 2 * longest + 1
    if max(scores.size, times * batch * states) >= MOST_NARROW:
        raise ShapeError(
            f"ctc_loss: log_probs of shape {scores.shape} and targets of {longest} labels are too "
            "many at once; take parts of the batch"
        )
    lengths, sizes = clip(lengths, 0, times), clip(sizes, 0, longest)
    found = _aligned(scores, labels, starts, lengths, sizes, Alignment(states, blank))
    losses = where(found > _MOST, 0.0 if zero_infinity else math.inf, found)
    if reduction == "mean":
        losses = losses / clip(sizes, 1, max(longest, 1)).to(losses.dtype)
    losses = reduced(losses, reduction, dtype)
    return losses if batched or reduction != "none" else losses[0]


def _aligned(
    scores: Tensor, labels: Tensor, starts: Tensor, lengths: Tensor, sizes: Tensor,
    alignment: Alignment,
) -> Tensor:  # fmt: skip
    """The losses of sequences. If gradients are recorded, what they need is kept."""
    times, batch, _ = scores.shape
    extra = [each._node for each in (labels, starts, lengths, sizes)]
    source, shape = scores._node, (times, batch, alignment.states)
    results = ((shape, scores.dtype), ((batch,), scores.dtype))
    with history.recorded(False):
        alpha, losses = call_of_several(align_forward, (source, *extra), results, tuple(alignment))
    if source.history is not None and history.recording.get():
        derivative = history.derivatives["aligned"]
        record_composite(derivative, [losses], [source], alignment, extra=[*extra, alpha])
    return from_node(losses)


def _lengths(what: str, given: Any, scores: Tensor) -> Tensor:
    """One length for each sequence of the batch, as int32."""
    found = given if type(given) is Tensor else asarray(_host(given), device=scores.device)
    if found.dtype.kind not in ("int", "uint"):
        raise DtypeError(f"ctc_loss: {what} are integers, not {found.dtype}")
    if found.size != scores.shape[1]:
        raise ShapeError(
            f"ctc_loss: {what} of shape {found.shape} are not one for each of {scores.shape[1]} "
            "sequences"
        )
    return found.reshape(-1).to(scores.device).to(int32)


def _host(given: Any) -> np.ndarray[Any, Any]:
    found = np.asarray(given)
    return found.astype(np.int32) if found.dtype.kind in "iu" else found


def _check_at_most(what: str, given: Any, lengths: Tensor, most: int) -> None:
    if type(given) is Tensor and not settings.check:
        return
    values = lengths.numpy() if type(given) is Tensor else _host(given)
    if values.size and not 0 <= values.min() <= values.max() <= most:
        raise ValueError(
            f"ctc_loss: {what} are from 0 to {most}, not from {values.min()} to {values.max()}"
        )


def _labels(
    targets: Any, target_lengths: Any, sizes: Tensor, scores: Tensor
) -> tuple[Tensor, Tensor, int]:
    """All labels concatenated, the start of each sequence, and the length of the longest one."""
    found = targets if type(targets) is Tensor else asarray(_host(targets), device=scores.device)
    batch = scores.shape[1]
    if found.dtype.kind not in ("int", "uint"):
        raise DtypeError(f"ctc_loss: targets are integers, not {found.dtype}")
    if found.device is not scores.device:
        raise ValueError(
            f"ctc_loss: log_probs are on {scores.device.id}, targets on {found.device.id}: move "
            f'one, as in targets.to("{scores.device.id}")'
        )
    flat = found.reshape(-1).to(int32)
    if found.ndim == 2 and found.shape[0] == batch:
        longest = found.shape[1]
        _check_at_most("target_lengths", target_lengths, sizes, longest)
        return flat, arange(batch, dtype=int32, device=scores.device) * longest, longest
    if found.ndim != 1:
        raise ShapeError(
            f"ctc_loss: targets of shape {found.shape} are no (N, S) for log_probs of shape "
            f"{scores.shape}, nor all labels one after the other"
        )
    # The lengths have to be read, since the number of states depends on them.
    values = np.asarray(sizes.numpy())
    if values.size and (values.min() < 0 or values.sum() > flat.size):
        raise ValueError(
            f"ctc_loss: target_lengths {values.tolist()} are more than {flat.size} labels"
        )
    starts = cumulative_sum(sizes, axis=0).to(int32) - sizes
    return flat, starts, int(values.max(initial=0))
