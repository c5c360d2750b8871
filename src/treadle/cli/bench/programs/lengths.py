"""Texts of many lengths through a decoder: what is planned, compiled and kept for one more length.

A prompt is read at once and one token follows it. What is counted should stay as it is after the
first lengths.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Iterable
from typing import Any

import numpy as np

from treadle.cli.bench.harness import Figure
from treadle.cli.bench.programs.decoder import Cache, decoder, grown, model_of, reference
from treadle.cli.bench.programs.setting import (
    Array,
    DecoderSizes,
    Library,
    Measurement,
    Setting,
    compare,
    drawn,
    numbers,
    shapes_of,
)
from treadle.runtime import counters

_COMPARED = 5  # words of a prompt
_TOLERANCE = 2e-4


def measurements(setting: Setting) -> list[Measurement]:
    """Time of a text, and what is added after the first of them."""
    return [functools.partial(_lengths, setting)]


def _lengths(setting: Setting) -> list[Figure]:
    sizes, (first, more) = setting.sizes.any_length, setting.sizes.lengths
    ours, peer = setting.ours, setting.peer
    model = decoder(ours, sizes)
    state = drawn(shapes_of(model))
    ours.load(model, state)
    prompts = _prompts(sizes, first + more)
    short = prompts[0][:, :_COMPARED]
    right = reference(state, sizes, [*map(int, short[0])])[-1]
    compare("decoder, a prompt", numbers(_read(ours, model, sizes, short))[0], right, _TOLERANCE)
    peers = None
    if peer is not None:
        theirs = model_of(peer, sizes, state)
        _seconds(peer, theirs, sizes, prompts[:first])
        peers = _seconds(peer, theirs, sizes, prompts[first:]) / more
    _seconds(ours, model, sizes, prompts[:first])
    before, used = counters.counts(), setting.device.memory_stats()["used"]
    took = _seconds(ours, model, sizes, prompts[first:]) / more
    added = counters.counts() - before
    grew = setting.device.memory_stats()["used"] - used
    name = f"decoder, {more} lengths after {first}"
    return [
        Figure(
            setting.suite, f"{name}: a prompt and a token", "s", took,
            peer="PyTorch" if peers else "", peers=peers,
        ),
        Figure(setting.suite, f"{name}: plans added", "plans", added.plans),
        Figure(setting.suite, f"{name}: kernels added", "kernels", added.kernels),
        Figure(setting.suite, f"{name}: memory added", "MiB", max(grew, 0) / 2**20),
    ]  # fmt: skip


def _prompts(sizes: DecoderSizes, count: int) -> list[Array]:
    """Prompts of lengths that are all different, if there are as many."""
    rng = np.random.default_rng(1)
    lengths = np.resize(1 + rng.permutation(sizes.room - 1), count)
    return [rng.integers(0, sizes.words, (1, int(n)), np.int32) for n in lengths]


def _seconds(library: Library, model: Any, sizes: DecoderSizes, prompts: Iterable[Array]) -> float:
    began = time.perf_counter()
    for prompt in prompts:
        _read(library, model, sizes, prompt)
    return time.perf_counter() - began


def _read(library: Library, model: Any, sizes: DecoderSizes, prompt: Array) -> Any:
    """The scores after a prompt; a token follows it."""
    caches: list[Cache] = [[] for _ in range(sizes.layers)]
    with library.module.no_grad():
        scores = model(library.array(prompt), 0, caches, grown)
        token = np.array([[int(scores.argmax(-1))]], np.int32)
        int(model(library.array(token), prompt.shape[1], caches, grown).argmax(-1))
    return scores
