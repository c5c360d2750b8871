"""Data parallel training of a small language model: what one process of several measures.

`treadle launch -n 2 -m benchmarks.data_parallel FILE`. Each process has the same number of
sequences, so with more processes a step has more of them. On a CPU each has one core. Rank 0 writes
the seconds of a step, those of the processor in it, and the losses.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import treadle as td

_WORDS, _WIDTH, _HEADS, _LAYERS = 2048, 192, 6, 4
_BATCH, _LENGTH = 4, 128
_WARM, _STEPS = 3, 9


class Block(td.nn.Module):
    """Attention and a perceptron, with norms before."""

    def __init__(self) -> None:
        super().__init__()
        self.before, self.between = td.nn.LayerNorm(_WIDTH), td.nn.LayerNorm(_WIDTH)
        self.qkv, self.out = td.nn.Linear(_WIDTH, 3 * _WIDTH), td.nn.Linear(_WIDTH, _WIDTH)
        self.up, self.down = td.nn.Linear(_WIDTH, 4 * _WIDTH), td.nn.Linear(4 * _WIDTH, _WIDTH)

    def forward(self, x: Any) -> Any:
        """Of sequences of vectors."""
        batch, length, _ = x.shape
        functional = td.nn.functional
        parts = self.qkv(self.before(x)).reshape((batch, length, 3, _HEADS, _WIDTH // _HEADS))
        y = functional.scaled_dot_product_attention(*parts.permute(2, 0, 3, 1, 4), is_causal=True)
        x = x + self.out(y.permute(0, 2, 1, 3).reshape((batch, length, _WIDTH)))
        return x + self.down(functional.gelu(self.up(self.between(x))))


class Decoder(td.nn.Module):
    """Scores of the next word."""

    def __init__(self) -> None:
        super().__init__()
        self.words = td.nn.Embedding(_WORDS, _WIDTH)
        self.places = td.nn.Embedding(_LENGTH, _WIDTH)
        self.blocks = td.nn.Sequential(*[Block() for _ in range(_LAYERS)])
        self.last = td.nn.LayerNorm(_WIDTH)
        self.scores = td.nn.Linear(_WIDTH, _WORDS)

    def forward(self, tokens: Any) -> Any:
        """Of sequences of words."""
        x = self.words(tokens) + self.places(td.arange(tokens.shape[1]))
        return self.scores(self.last(self.blocks(x)))


def measured() -> dict[str, Any]:
    """A step's time, on the slowest rank."""
    rank, size = td.distributed.rank(), td.distributed.size()
    if td.default_device().id == "cpu":
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[td.distributed.local_rank() % len(cores)]})
    td.manual_seed(0)
    model = td.distributed.DataParallel(Decoder())
    optimizer = td.optim.AdamW(model.parameters(), lr=1e-3)

    @td.compile
    def step(tokens: Any, target: Any) -> Any:
        optimizer.zero_grad()
        scores = model(tokens).reshape((-1, _WORDS))
        loss = td.nn.functional.cross_entropy(scores, target.reshape((-1,)))
        loss.backward()
        optimizer.step()
        return loss

    random = np.random.default_rng(rank)
    drawn = random.integers(0, _WORDS, (_BATCH, _LENGTH + 1)).astype(np.int32)
    tokens, target = td.asarray(drawn[:, :-1].copy()), td.asarray(drawn[:, 1:].copy())
    losses, times, processor = [], [], []
    for _ in range(_WARM + _STEPS):
        td.distributed.barrier()
        began, busy = time.perf_counter(), time.process_time()
        losses.append(step(tokens, target).item())
        model.module.scores.bias.numpy()  # the step has ended
        times.append(time.perf_counter() - began)
        processor.append(time.process_time() - busy)
    own = [statistics.median(each[_WARM:]) for each in (times, processor)]
    slowest = td.distributed.all_reduce(td.asarray(own, dtype=td.float64), "max").tolist()
    assert losses[-1] < losses[0], losses
    return {
        "seconds": slowest[0],
        "processor": slowest[1],
        "size": size,
        "tokens": _BATCH * _LENGTH,
    }


def main(file: Path) -> None:
    """Measure; rank 0 writes."""
    td.distributed.init()
    found = measured()
    if td.distributed.rank() == 0:
        file.write_text(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
