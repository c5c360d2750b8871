"""Scores and losses of whole texts, for training: no cache, and everything has derivatives."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from typing import Any

import numpy as np

from treadle.core.dtypes import float32, int32
from treadle.core.errors import ShapeError
from treadle.models.decoder import Decoder
from treadle.models.whole_attention import Texts
from treadle.runtime.devices import Device
from treadle.tensor.creation import asarray
from treadle.tensor.functional.losses import cross_entropy
from treadle.tensor.tensor import Tensor

_WANTED = "tokens are whole numbers of shape (n,) or (texts, n), with texts of one length"

Ids = Sequence[int] | Sequence[Sequence[int]] | np.ndarray[Any, Any] | Tensor


def training_logits(decoder: Decoder, tokens: Ids, device: Device, context: int) -> Tensor:
    """Logits after each token: (n, vocabulary), or (texts, n, vocabulary)."""
    ids = _ids(decoder, tokens, device, context)
    logits: Tensor = decoder(Texts(ids.reshape(-1), ids.shape[-1]))
    return logits.reshape(*ids.shape, -1)


def loss_of(decoder: Decoder, tokens: Ids, mask: Any, device: Device, context: int) -> Tensor:
    """The mean cross-entropy of tokens given those before them."""
    ids = _ids(decoder, tokens, device, context)
    ids = ids.reshape(-1, ids.shape[-1])
    texts, length = ids.shape
    if length < 2:
        raise ShapeError("a loss needs texts of 2 tokens at least: the first one is only given")
    rows = decoder.hidden(Texts(ids.reshape(-1), length), None).reshape(texts, length, -1)
    given = rows[:, :-1].reshape(texts * (length - 1), -1)
    following = ids[:, 1:].reshape(-1)
    if mask is None:
        return cross_entropy(decoder.scores(given), following)
    if not isinstance(mask, Tensor):
        try:
            mask = np.asarray(mask)
        except ValueError:  # rows of different lengths
            raise ShapeError(f"mask has rows unlike the texts, which have {ids.shape}") from None
        if mask.dtype != bool and not (mask.dtype.kind in "iuf" and np.isin(mask, (0, 1)).all()):
            raise ValueError(
                "mask is of True and False, or 1 and 0: a token counts, or it does not"
            )
    if mask.size != ids.size:
        raise ShapeError(f"mask has shape {mask.shape}, and the texts have {ids.shape}")
    if isinstance(mask, np.ndarray):  # only the scores that count are computed
        counted = np.flatnonzero(mask.reshape(texts, length)[:, 1:] != 0).astype(np.int32)
        if not counted.size:
            raise ValueError("the mask leaves no token that counts: the first of a text does not")
        at = asarray(counted, device=device)
        return cross_entropy(decoder.scores(given[at]), following[at])
    weights = mask.to(device)
    counts = weights.reshape(texts, length)[:, 1:].reshape(-1).astype(float32)
    losses = cross_entropy(decoder.scores(given), following, reduction="none")
    mean: Tensor = (losses * counts).sum() / counts.sum()
    return mean


def _array(tokens: Any) -> np.ndarray[Any, Any]:
    try:
        return np.asarray(tokens)
    except ValueError:
        lengths = [len(each) if isinstance(each, Sized) else 0 for each in tokens]
        raise ShapeError(
            f"{_WANTED}, not lengths of {', '.join(map(str, lengths[:8]))}"
            f"{', …' if len(lengths) > 8 else ''}: fill shorter ones up at their ends, with a mask "
            "that leaves the filling out"
        ) from None


def _ids(decoder: Decoder, tokens: Ids, device: Device, context: int) -> Tensor:
    """Token ids on the device, of one or two axes. Those that come from the host are checked."""
    vocabulary = decoder.config.vocabulary
    if isinstance(tokens, Tensor):
        ids = tokens.to(device)
        whole = ids.dtype.kind in ("int", "uint")
    else:
        given = _array(tokens)
        whole = given.dtype.kind in "iu" and given.ndim in (1, 2) and bool(given.size)
        if whole and not 0 <= given.min() <= given.max() < vocabulary:
            wrong = given[(given < 0) | (given >= vocabulary)].flat[0]
            raise ValueError(f"token {wrong} is outside of the vocabulary of {vocabulary} tokens")
        if not whole:
            raise ShapeError(f"{_WANTED}, not {given.dtype} of shape {given.shape}")
        ids = asarray(given.astype(np.int32), device=device)
    if not whole or ids.ndim not in (1, 2) or not ids.size:
        raise ShapeError(f"{_WANTED}, not {ids.dtype} of shape {ids.shape}")
    if ids.shape[-1] > context:
        raise ValueError(f"texts of {ids.shape[-1]} tokens are longer than the context, {context}")
    return ids.astype(int32)
