"""A decoder as GPT-2 is one, one token at a time, with caches of keys and values.

The text is the same for treadle and for PyTorch. What differs between the figures is how a
program keeps keys and values: in caches that `concat` grows, in caches of fixed room that are
written at an index that changes, and the latter in a function that `td.compile` made.
"""

from __future__ import annotations

import functools
import importlib
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from treadle.cli.bench.harness import Figure
from treadle.cli.bench.programs.first_use import first_uses
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

_COMPARED = 4  # tokens
_TOLERANCE = 2e-4
Cache = list[Any]  # keys and values
# From a cache, new keys and values and the index of the first: what attention reads, and its mask.
Keep = Callable[[Cache, Any, Any, Any], tuple[Any, Any, Any]]


def grown(cache: Cache, k: Any, v: Any, n: int) -> tuple[Any, Any, Any]:
    """Append to caches."""
    if cache:
        concat = importlib.import_module(type(k).__module__.partition(".")[0]).concat
        cache[:] = concat([cache[0], k], axis=2), concat([cache[1], v], axis=2)
    else:
        cache[:] = k, v
    return cache[0], cache[1], None


def written(cache: Cache, k: Any, v: Any, n: int) -> tuple[Any, Any, Any]:
    """Write into caches of fixed room, and read their filled part."""
    keys, values = cache
    end = n + k.shape[2]
    keys[:, :, n:end] = k
    values[:, :, n:end] = v
    return keys[:, :, :end], values[:, :, :end], None


def written_on_device(cache: Cache, k: Any, v: Any, n: Any) -> tuple[Any, Any, Any]:
    """Write one token at an index that is a scalar on the device, and read all, with a mask."""
    td = importlib.import_module("treadle")
    keys, values = cache
    keys[:, :, n] = k[:, :, 0]
    values[:, :, n] = v[:, :, 0]
    return keys, values, td.arange(keys.shape[2], dtype=td.int32, device=keys.device) <= n


def decoder(library: Library, sizes: DecoderSizes) -> Any:
    """The model, in either library."""
    nn, functional, device = library.module.nn, library.module.nn.functional, library.device
    width, heads = sizes.width, sizes.heads

    class Block(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.norm1 = nn.LayerNorm(width, device=device)
            self.qkv = nn.Linear(width, 3 * width, device=device)
            self.out = nn.Linear(width, width, device=device)
            self.norm2 = nn.LayerNorm(width, device=device)
            self.up = nn.Linear(width, 4 * width, device=device)
            self.down = nn.Linear(4 * width, width, device=device)

        def forward(self, x: Any, n: Any, cache: Cache, keep: Keep) -> Any:
            count = x.shape[1]
            parts = self.qkv(self.norm1(x)).reshape(1, count, 3, heads, width // heads)
            q, k, v = parts.permute(2, 0, 3, 1, 4)
            keys, values, mask = keep(cache, k, v, n)
            y = functional.scaled_dot_product_attention(
                q, keys, values, attn_mask=mask, is_causal=count > 1
            )
            x = x + self.out(y.permute(0, 2, 1, 3).reshape(1, count, width))
            return x + self.down(functional.gelu(self.up(self.norm2(x))))

    class Decoder(nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.words = nn.Embedding(sizes.words, width, device=device)
            self.places = nn.Embedding(sizes.room, width, device=device)
            self.blocks = nn.ModuleList([Block() for _ in range(sizes.layers)])
            self.norm = nn.LayerNorm(width, device=device)

        def forward(self, tokens: Any, n: Any, caches: list[Cache], keep: Keep) -> Any:
            """Scores of the word after some tokens, of which the first is the n-th of a text."""
            if isinstance(n, int):
                places = self.places.weight[n : n + tokens.shape[1]]
            else:
                places = self.places(n)
            x = self.words(tokens) + places
            for block, cache in zip(self.blocks, caches, strict=True):
                x = block(x, n, cache, keep)
            return functional.linear(self.norm(x[:, -1]), self.words.weight)

    return Decoder()


def model_of(
    library: Library, sizes: DecoderSizes, state: Mapping[str, Array] | None = None
) -> Any:
    """The model with parameters that are the same in either library."""
    model = decoder(library, sizes)
    return library.load(model, drawn(shapes_of(model)) if state is None else state)


class Generation:
    """A text that a model goes on with, from one token on, again and again."""

    def __init__(self, library: Library, model: Any, sizes: DecoderSizes, keep: Keep) -> None:
        self.library, self.model, self.sizes, self.keep = library, model, sizes, keep
        self.n = 0
        self.token = 1
        self.caches = self._empty()
        self.next = self._eager()

    def compiled(self) -> Generation:
        """The same with a step that `td.compile` made."""
        self.next = self.library.module.compile(self.next)
        return self

    def _eager(self) -> Callable[[Any, Any], tuple[Any, Any]]:
        model, caches, keep = self.model, self.caches, self.keep

        def following(tokens: Any, n: Any) -> tuple[Any, Any]:
            """Scores of the next word, and the likeliest."""
            scores = model(tokens, n, caches, keep)
            return scores, scores.argmax(-1)

        return following

    def _empty(self) -> list[Cache]:
        if self.keep is grown:
            return [[] for _ in range(self.sizes.layers)]
        shape = 1, self.sizes.heads, self.sizes.room, self.sizes.width // self.sizes.heads
        zeros = functools.partial(self.library.module.zeros, shape, device=self.library.device)
        return [[zeros(), zeros()] for _ in range(self.sizes.layers)]

    def scores(self, token: int) -> Any:
        """Those of the word after a token, the next of the text."""
        return self._after(token)[0]

    def _after(self, token: int) -> tuple[Any, Any]:
        if self.n == self.sizes.room:
            self.n = 0
            if self.keep is grown:
                for cache in self.caches:
                    cache.clear()
        dtype = np.int32
        n: Any = self.n
        if self.keep is written_on_device:
            n = self.library.array(np.array(n, dtype))
        with self.library.module.no_grad():
            found = self.next(self.library.array(np.array([[token]], dtype)), n)
        self.n += 1
        return found

    def step(self) -> None:
        """Make one token and read it, as a program that shows it does."""
        self.token = int(self._after(self.token)[1])


def reference(state: Mapping[str, Array], sizes: DecoderSizes, tokens: list[int]) -> Array:
    """Scores after each token, by NumPy in float64."""
    count, heads = len(tokens), sizes.heads
    x = state["words.weight"][tokens].astype(np.float64)
    x = x + state["places.weight"][:count]
    hidden = np.triu(np.full((count, count), -np.inf), 1)

    def linear(name: str, x: Array) -> Array:
        return x @ state[f"{name}.weight"].astype(np.float64).T + state[f"{name}.bias"]

    def norm(name: str, x: Array) -> Array:
        x = x - x.mean(-1, keepdims=True)
        x = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5)
        return np.asarray(x * state[f"{name}.weight"] + state[f"{name}.bias"])

    for number in range(sizes.layers):
        name = f"blocks.{number}"
        parts = linear(f"{name}.qkv", norm(f"{name}.norm1", x)).reshape(count, 3, heads, -1)
        q, k, v = parts.transpose(1, 2, 0, 3)
        weights = np.exp(q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[-1]) + hidden)
        y = weights / weights.sum(-1, keepdims=True) @ v
        x = x + linear(f"{name}.out", y.transpose(1, 0, 2).reshape(count, -1))
        up = linear(f"{name}.up", norm(f"{name}.norm2", x))
        x = x + linear(f"{name}.down", up * (0.5 + 0.5 * _erf(up * np.sqrt(0.5))))
    return norm("norm", x) @ state["words.weight"].astype(np.float64).T


def _erf(x: Array) -> Array:
    return np.asarray(np.vectorize(math.erf, [np.float64])(x))


# --- figures -------------------------------------------------------------------------------------


def measurements(setting: Setting) -> list[Measurement]:
    """A figure for each way of keeping keys and values, and the first token of a process."""
    return [
        functools.partial(tokens, setting),
        functools.partial(first_uses, setting, "decoder", "decoder, first token"),
    ]


def tokens(setting: Setting) -> list[Figure]:
    """Seconds of a token."""
    sizes = setting.sizes.decoder
    model = decoder(setting.ours, sizes)
    state = drawn(shapes_of(model))
    setting.ours.load(model, state)
    texts: list[tuple[str, Generation, Keep]] = []
    eager: list[tuple[str, Keep]] = [("growing caches", grown), ("caches of fixed room", written)]
    for name, keep in eager:
        texts.append((f"{name}, eager", Generation(setting.ours, model, sizes, keep), keep))
    compiled: list[tuple[str, Keep]] = [("a number", written), ("on the device", written_on_device)]
    for name, keep in compiled:
        text = Generation(setting.ours, model, sizes, keep).compiled()
        texts.append((f"caches of fixed room, compiled, index {name}", text, written))
    right = reference(state, sizes, [k + 1 for k in range(_COMPARED)])
    peer = setting.peer
    theirs = None if peer is None else model_of(peer, sizes, state)
    figures = []
    for name, text, keep in texts:
        for number in range(_COMPARED):
            compare(
                f"decoder, {name}", numbers(text.scores(number + 1))[0], right[number], _TOLERANCE
            )
        other = None
        if peer is not None:
            other = Generation(peer, theirs, sizes, keep).step
        shown = f"decoder, {sizes.layers} layers of {sizes.width}, a token: {name}"
        figures.append(setting.figure(shown, text.step, other))
    return figures


def first_step(setting: Setting, program: str) -> Callable[[], object]:
    """The first token of a process."""
    sizes = setting.sizes.decoder
    return Generation(setting.ours, model_of(setting.ours, sizes), sizes, grown).step
