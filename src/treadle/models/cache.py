"""The cache of keys and values, in pages of device memory, and which sequence has which page.

Each layer has one array (`paged_attention` says how it lies). A page holds the same number of
places in all layers, so one table of pages serves them all. Page 0 belongs to no sequence: tokens
that only fill up a batch may name it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from treadle.core.dtypes import DType, float16, float32, int8
from treadle.kernels.device_code.paged_heads import SCALED
from treadle.models.config import DecoderConfig
from treadle.runtime.devices import Device
from treadle.tensor.creation import zeros
from treadle.tensor.tensor import Tensor

Entries = Literal["f32", "f16", "q8_0"]
ENTRIES: dict[str, DType] = {"f32": float32, "f16": float16, "q8_0": int8}
PAGE = 32  # places of a page


def check_entries(name: str, entries: str) -> None:
    """ValueError for a kind of entries that there is not."""
    if entries not in ENTRIES:
        raise ValueError(f"{name} is one of {', '.join(ENTRIES)}, not {entries!r}")


@dataclass(eq=False)
class LayerCache:
    """The keys and values of one layer: `elements`, all keys first, and with 8 bits the scales of
    each 32 elements."""

    elements: Tensor
    scales: Tensor | None
    keys: int  # elements of all keys


class Cache:
    """Device memory for so many pages, of all layers."""

    def __init__(
        self, config: DecoderConfig, device: Device, pages: int, entries: Entries = "f16"
    ) -> None:
        self.config, self.device, self.entries = config, device, entries
        self.dtype = ENTRIES[entries]
        self.pages = pages
        self.layers = [self._layer(pages) for _ in range(config.layers)]

    @property
    def nbytes(self) -> int:
        """Bytes of device memory."""
        return self.pages * bytes_of_page(self.config, self.entries)

    def _layer(self, pages: int) -> LayerCache:
        keys = pages * PAGE * self.config.key_heads * self.config.depth
        elements = zeros(2 * keys, dtype=self.dtype, device=self.device)
        scales = None
        if self.dtype is int8:
            scales = zeros(2 * keys // SCALED, dtype=float16, device=self.device)
        return LayerCache(elements, scales, keys)

    def grow(self, pages: int) -> None:
        """More memory, with what is stored. Whatever was compiled for the old arrays is not valid
        for the new ones."""
        old, self.layers = self.layers, []
        for layer in old:
            made = self._layer(pages)
            for before, after in ((layer.elements, made.elements), (layer.scales, made.scales)):
                if before is not None and after is not None:
                    half, wide = before.shape[0] // 2, after.shape[0] // 2
                    after[:half] = before[:half]
                    after[wide : wide + half] = before[half:]
                    after.realize()
            self.layers.append(made)
        self.pages = pages


def bytes_of_page(config: DecoderConfig, entries: Entries) -> int:
    """Bytes of device memory that a page has, in all layers."""
    elements = 2 * PAGE * config.key_heads * config.depth * config.layers
    item = ENTRIES[entries].itemsize
    return elements * item + (elements // SCALED * 2 if entries == "q8_0" else 0)


class Pages:
    """Which pages are free, and how many sequences use each of the others.

    Pages of a prompt that are full may be shared: they are found by the tokens up to their end, and
    are kept, while no other memory is left, after the last sequence that used them."""

    def __init__(self, count: int) -> None:
        self.count = count
        self._free = list(range(count - 1, 0, -1))
        self._users: dict[int, int] = {}
        self._known: dict[bytes, int] = {}  # from the tokens up to a page's end to that page
        self._keys: dict[int, bytes] = {}
        self._idle: dict[int, None] = {}  # known pages without users, the oldest first

    @property
    def available(self) -> int:
        """How many can be taken."""
        return len(self._free) + len(self._idle)

    def grow(self, count: int) -> None:
        """Add pages up to this number."""
        self._free[:0] = range(count - 1, self.count - 1, -1)
        self.count = count

    def take(self) -> int:
        """A page for one sequence, whose contents are to be written. IndexError without any."""
        if not self._free:
            if not self._idle:
                raise IndexError("no page is free")
            oldest = next(iter(self._idle))
            del self._idle[oldest]
            del self._known[self._keys.pop(oldest)]
            self._free.append(oldest)
        page = self._free.pop()
        self._users[page] = 1
        return page

    def release(self, pages: Sequence[int]) -> None:
        """A sequence no longer uses these."""
        for page in pages:
            self._users[page] -= 1
            if self._users[page]:
                continue
            del self._users[page]
            if page in self._keys:
                self._idle[page] = None
            else:
                self._free.append(page)

    def shared(self, tokens: Sequence[int]) -> list[int]:
        """Pages that have the keys and values of the first of these tokens, taken for one more
        sequence. At least one token is left over, since its logits are wanted."""
        found: list[int] = []
        key = b""
        for end in range(PAGE, len(tokens), PAGE):
            key = _digest(key, tokens[end - PAGE : end])
            page = self._known.get(key)
            if page is None:
                break
            self._idle.pop(page, None)
            self._users[page] = self._users.get(page, 0) + 1
            found.append(page)
        return found

    def forget(self) -> None:
        """Share no page any more that has been filled: its keys and values would be others now."""
        self._free.extend(self._idle)
        for known in (self._idle, self._known, self._keys):
            known.clear()

    def publish(self, tokens: Sequence[int], pages: Sequence[int]) -> None:
        """Let other sequences use the pages that these tokens fill."""
        key = b""
        for index, page in enumerate(pages[: len(tokens) // PAGE]):
            key = _digest(key, tokens[index * PAGE : (index + 1) * PAGE])
            if key not in self._known and page not in self._keys:
                self._known[key] = page
                self._keys[page] = key


def _digest(before: bytes, tokens: Sequence[int]) -> bytes:
    """What names a page: its tokens and the pages before it. A collision would show a sequence the
    text of another one, so the digest is a cryptographic one."""
    return hashlib.sha256(before + np.asarray(tokens, np.int32).tobytes()).digest()
