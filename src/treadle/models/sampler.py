"""Choosing the next tokens of several sequences on the device.

Each sequence has a row in arrays of fixed shapes: its parameters, its seed, how many tokens it has,
and, once a sequence needs them, the biases, the counts of its tokens and the mask of its grammar.
`sample` reads these arrays, so a compiled step is replayed whatever the parameters are; only
`Stages`, which of the steps any sequence needs at all, is part of the trace.

One of the kept tokens is drawn by adding a number of Gumbel's distribution to each logit and taking
the greatest sum: this needs no sum over the vocabulary. The random number of a token is a function
of the sequence's seed, of how many tokens it has drawn before, and of the token's number, by the
counter-based generator Philox. So the same seed draws the same tokens on every device and in every
batch where the logits agree, however many candidates the other sequences of the batch ask for.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from treadle.core.dtypes import float32, int32, uint32
from treadle.core.errors import ShapeError
from treadle.kernels.device_code.decode_state import advance, count_tokens
from treadle.kernels.device_code.gumbel import gumbel
from treadle.models.sampling import MOST_CANDIDATES, MOST_WINDOW, Sampling
from treadle.runtime.devices import Device
from treadle.tensor.creation import asarray, zeros
from treadle.tensor.elementwise_decorator import elementwise
from treadle.tensor.elementwise_functions import where
from treadle.tensor.ranges import arange
from treadle.tensor.reductions import argmax, logsumexp
from treadle.tensor.reductions import max as greatest
from treadle.tensor.scans import cumulative_sum
from treadle.tensor.searching import take_along_axis
from treadle.tensor.sorting import topk
from treadle.tensor.tensor import Tensor

_FEW_CANDIDATES = 64  # enough for the usual top_k of 40, and much cheaper than all of them
_WHOLE_TEXT = 2**30  # a window that no token leaves
_NONE = -float("inf")
# Columns of the parameters.
_TEMPERATURE, _TOP_P, _MIN_P, _REPEAT, _PRESENCE, _FREQUENCY = range(6)
_TOP_K, _WINDOW, _SEED_LOW, _SEED_HIGH, _DRAWN, _LENGTH = range(6)


@dataclass(frozen=True)
class Stages:
    """Which steps of sampling any sequence of a batch needs. It is hashable, and an argument of
    compiled functions: there are few different ones in practice."""

    bias: bool = False
    penalties: bool = False
    mask: bool = False
    candidates: int = 0  # that top-k and top-p choose among; 0 if no sequence has them
    all_tokens: bool = False  # whether a sequence draws among all tokens


def stages_of(samplings: Iterable[Sampling]) -> Stages:
    """The steps that sequences with these parameters need.

    >>> stages_of([Sampling(), Sampling(temperature=1.0, top_k=40)])
    Stages(bias=False, penalties=False, mask=False, candidates=64, all_tokens=False)
    """
    given = list(samplings)
    drawn = [each for each in given if not each.is_greedy]
    counts = [_candidates_of(each) for each in drawn]
    return Stages(
        bias=any(each.logit_bias for each in given),
        penalties=any(each.has_penalties for each in given),
        mask=any(each.is_constrained for each in given),
        candidates=max(counts, default=0),
        all_tokens=0 in counts,
    )


def _candidates_of(sampling: Sampling) -> int:
    if not sampling.top_k and sampling.top_p == 1:
        return 0
    return _FEW_CANDIDATES if 0 < sampling.top_k <= _FEW_CANDIDATES else MOST_CANDIDATES


class Sampler:
    """The rows of up to `rows` sequences on a device, for models with `vocabulary` tokens."""

    def __init__(self, rows: int, vocabulary: int, device: Device) -> None:
        self.rows, self.vocabulary, self.device = rows, vocabulary, device
        self.numbers = zeros((rows, 6), dtype=float32, device=device)
        self.integers = zeros((rows, 6), dtype=int32, device=device)
        # Made when a sequence first needs them: each is as large as all logits.
        self.bias: Tensor | None = None
        self.mask: Tensor | None = None
        self.counts: Tensor | None = None
        self.recent: Tensor | None = None

    def begin(
        self, row: int, sampling: Sampling, tokens: Sequence[int] = (), drawn: int = 0
    ) -> None:
        """Give a row to a sequence. Its penalties count its tokens until now, also the prompt's;
        `drawn` of these were drawn, for one that had a row before and goes on as it would have."""
        seed = secrets.randbits(64) if sampling.seed is None else sampling.seed
        seed %= 2**64
        window = _WHOLE_TEXT if sampling.penalty_window == -1 else sampling.penalty_window
        self.numbers[row] = np.array(
            [sampling.temperature, sampling.top_p, sampling.min_p, sampling.repeat_penalty,
             sampling.presence_penalty, sampling.frequency_penalty], np.float32,
        )  # fmt: skip
        words = np.array([seed % 2**32, seed >> 32], np.uint32).view(np.int32)
        self.integers[row] = np.array(
            [sampling.top_k, window, *words, drawn, len(tokens)], np.int32
        )
        if sampling.has_penalties:
            self._count(row, np.asarray(tokens, np.int64), window)
        if sampling.biases:
            self._set_bias(row, sampling.biases)
        elif self.bias is not None:
            self.bias[row] = 0.0
        if self.mask is not None:
            self.mask[row] = -1

    def advance(self, tokens: Tensor, places: Tensor, chosen: Tensor) -> None:
        """Go on to the chosen tokens: write them and the next positions to where the next step of
        decoding reads them, and count them. `places` has positions, then the sequences' rows."""
        count = tokens.shape[0]
        advance.launch(count, tokens, places, chosen, self.integers, _DRAWN, _LENGTH, count)

    def _count(self, row: int, tokens: np.ndarray, window: int) -> None:
        if self.counts is None or self.recent is None:
            self.counts = zeros((self.rows, self.vocabulary), dtype=int32, device=self.device)
            self.recent = zeros((self.rows, MOST_WINDOW), dtype=int32, device=self.device)
        seen = np.bincount(tokens[max(0, len(tokens) - window) :], minlength=self.vocabulary)
        self.counts[row] = seen.astype(np.int32)
        last = np.arange(max(0, len(tokens) - MOST_WINDOW), len(tokens))
        ring = np.zeros(MOST_WINDOW, np.int32)
        ring[last % MOST_WINDOW] = tokens[last]
        self.recent[row] = ring

    def _set_bias(self, row: int, biases: Iterable[tuple[int, float]]) -> None:
        values = np.zeros(self.vocabulary, np.float32)
        for token, bias in biases:
            if token >= self.vocabulary:
                raise ValueError(
                    f"logit_bias: the model has no token {token}: the last one is "
                    f"{self.vocabulary - 1}"
                )
            values[token] = bias
        if self.bias is None:
            self.bias = zeros((self.rows, self.vocabulary), dtype=float32, device=self.device)
        self.bias[row] = values

    def allow(self, row: int, words: np.ndarray) -> None:
        """Let a row choose only tokens whose bits are set: bit j of word i is token 32 i + j."""
        count = -(-self.vocabulary // 32)
        if self.mask is None:
            self.mask = asarray(np.full((self.rows, count), -1, np.int32), device=self.device)
        given = np.zeros(count, np.int32)
        given[: len(words)] = words[:count].view(np.int32)
        self.mask[row] = given


def sample(
    logits: Tensor,
    sampler: Sampler,
    stages: Stages,
    rows: Tensor | None = None,
    *,
    counted: bool = True,
) -> Tensor:
    """The next token of each sequence, as int32 of shape (b,), for logits of shape (b, vocabulary).

    rows are the sequences' rows in the sampler, by default the first b ones. The counts of what the
    sequences have drawn are updated, unless `Sampler.advance` does that (counted=False). Where no
    token is allowed, the first one is returned: a grammar's owner tests for that before.
    """
    if logits.ndim != 2 or logits.shape[1] != sampler.vocabulary:
        raise ShapeError(
            f"sample takes logits of shape (sequences, {sampler.vocabulary}), not {logits.shape}"
        )
    count = logits.shape[0]

    def of(array: Tensor) -> Tensor:
        return array[:count] if rows is None else array[rows]

    numbers, integers = of(sampler.numbers), of(sampler.integers)
    if rows is None:
        rows = arange(count, dtype=int32, device=logits.device)
    values = logits.to(float32)
    if stages.bias and sampler.bias is not None:
        values = values + of(sampler.bias)
    if stages.penalties and sampler.counts is not None:
        values = _penalized(values, of(sampler.counts), numbers)
    if stages.mask and sampler.mask is not None:
        values = where(_bits(of(sampler.mask), sampler.vocabulary), values, _NONE)
    if stages.candidates or stages.all_tokens:
        tokens = _drawn(values, stages, numbers, integers)
    else:
        tokens = argmax(values, axis=-1).to(int32)
    if stages.penalties:
        _remember(sampler, tokens, rows, integers)
    if counted:
        count_tokens.launch(count, sampler.integers, rows, _DRAWN, _LENGTH, count)
    return tokens


def _penalized(values: Tensor, counts: Tensor, numbers: Tensor) -> Tensor:
    repeat = numbers[:, _REPEAT : _REPEAT + 1]
    presence = numbers[:, _PRESENCE : _PRESENCE + 1]
    frequency = numbers[:, _FREQUENCY : _FREQUENCY + 1]
    occurred = counts > 0
    scaled = where(values > 0, values / repeat, values * repeat)
    return where(occurred, scaled - counts.to(float32) * frequency - presence, values)


def _bits(words: Tensor, vocabulary: int) -> Tensor:
    count = words.shape[-1]
    bits = (words.reshape(-1, count, 1) >> arange(32, dtype=int32, device=words.device)) & 1
    return bits.reshape(-1, count * 32)[:, :vocabulary] != 0


def _drawn(values: Tensor, stages: Stages, numbers: Tensor, integers: Tensor) -> Tensor:
    """A token of each row: drawn, or the most probable one where the temperature is 0."""
    best = ids = None
    if stages.candidates:
        best, ids = topk(values, min(stages.candidates, values.shape[-1]))
    if best is None or stages.all_tokens:
        first = greatest(values, axis=-1, keepdims=True)
    else:
        first = best[:, :1]
    first = where(first > _NONE, first, 0.0)
    temperature = numbers[:, _TEMPERATURE : _TEMPERATURE + 1]
    is_drawn = temperature > 0
    divisor = where(is_drawn, temperature, 1.0)
    least = first + numbers[:, _MIN_P : _MIN_P + 1].log()
    low, high, drawn_before = (
        integers[:, at : at + 1].to(uint32) for at in (_SEED_LOW, _SEED_HIGH, _DRAWN)
    )

    def place(given: Tensor, kept: Tensor, tokens: Tensor) -> Tensor:
        """Where the token is among some. Logits are relative to the greatest, so that a tiny
        temperature makes the others -inf, and never several of them inf."""
        noise = where(is_drawn, _gumbel(tokens.to(uint32), drawn_before, low, high), 0.0)
        scores = where(kept, (given - first) / divisor, _NONE) + noise
        return argmax(scores, axis=-1, keepdims=True)

    filtered = among_all = None
    if best is not None and ids is not None:
        kept = _kept(best, values, stages, numbers, integers) & (best >= least)
        filtered = take_along_axis(ids, place(best, kept, ids), axis=-1)[:, 0].to(int32)
    if stages.all_tokens:
        tokens = arange(values.shape[-1], dtype=int32, device=values.device)
        among_all = place(values, values >= least, tokens)[:, 0].to(int32)
    if filtered is not None and among_all is not None:
        has_filters = (integers[:, _TOP_K] > 0) | (numbers[:, _TOP_P] < 1)
        return where(has_filters, filtered, among_all)
    found = among_all if filtered is None else filtered
    assert found is not None
    return found


def _kept(
    best: Tensor, values: Tensor, stages: Stages, numbers: Tensor, integers: Tensor
) -> Tensor:
    """Which of the sorted candidates top-k and top-p keep."""
    rank = arange(best.shape[-1], dtype=int32, device=best.device)
    top_k, top_p = integers[:, _TOP_K : _TOP_K + 1], numbers[:, _TOP_P : _TOP_P + 1]
    kept = (top_k <= 0) | (rank < top_k)
    remaining = where(kept, best, _NONE)
    # Probabilities among what top-k kept, as llama.cpp's; among all tokens where it kept all, for
    # which there are always many candidates.
    total = logsumexp(remaining, axis=-1, keepdims=True)
    if stages.candidates > _FEW_CANDIDATES:
        total = where(top_k > 0, total, logsumexp(values, axis=-1, keepdims=True))
    probabilities = (remaining - total).exp()
    before = cumulative_sum(probabilities, axis=-1) - probabilities
    return kept & ((rank == 0) | (top_p >= 1) | (before < top_p))


_gumbel = elementwise(gumbel)


def _remember(sampler: Sampler, tokens: Tensor, rows: Tensor, integers: Tensor) -> None:
    """For penalties: count the chosen tokens, and no longer those that leave the window."""
    if sampler.counts is None or sampler.recent is None:
        return
    length, window = integers[:, _LENGTH], integers[:, _WINDOW]
    leaving = sampler.recent[rows, (length - window) % MOST_WINDOW]
    sampler.recent[rows, length % MOST_WINDOW] = tokens
    leaves = ((window > 0) & (length >= window)).to(int32)
    sampler.counts[rows, leaving] = sampler.counts[rows, leaving] - leaves
    sampler.counts[rows, tokens] = sampler.counts[rows, tokens] + 1


class LogProbabilities(NamedTuple):
    """Of each row: that of the chosen token, and the most probable tokens with theirs."""

    chosen: Tensor
    tokens: Tensor
    values: Tensor


def log_probabilities(logits: Tensor, tokens: Tensor, count: int) -> LogProbabilities:
    """The log-probabilities of chosen tokens, and of the `count` most probable ones, as the model
    gives them: before penalties, temperature and filters."""
    values = logits.to(float32)
    total = logsumexp(values, axis=-1, keepdims=True)
    best, ids = topk(values, count)
    chosen = take_along_axis(values, tokens[:, None], axis=-1)
    return LogProbabilities((chosen - total)[:, 0], ids.to(int32), best - total)
