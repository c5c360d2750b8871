"""What threads of a warp do together: shuffles, votes, matches, reductions.

On hardware these wait for every thread that the member mask names. Here threads at one instruction
are there together or never will be: structured code meets again before it goes on. So a mask that
names a thread which is still running but elsewhere is an error (in NVIDIA's own code once nobody
else can go on), as is a thread that runs the instruction and is not in its own mask. Threads that
have returned do not count.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.support.ptx_machine.arithmetic import Array, unspecified
from tests.support.ptx_machine.memory import MachineFault, MissingMembers
from tests.support.ptx_machine.records import Instruction

WARP = 32
_LANES = np.arange(WARP, dtype=np.uint32)


class Warps:
    """The warps of some blocks: `threads` of each block, numbered block after block."""

    def __init__(self, blocks: int, threads: int) -> None:
        in_block = np.tile(np.arange(threads), blocks)
        self.per_block = -(-threads // WARP)
        self.count = blocks * self.per_block
        self.lane = (in_block % WARP).astype(np.uint32)
        row = np.repeat(np.arange(blocks), threads)
        self.warp_in_block = (in_block // WARP).astype(np.uint32)
        self.warp = row * self.per_block + in_block // WARP
        self.slot = self.warp * WARP + self.lane
        self.bit = (np.uint32(1) << self.lane).astype(np.uint32)
        self.running = self.gather_bits(slice(None), np.ones(blocks * threads, bool))

    def gather_bits(self, threads: Any, flags: Array) -> Array:
        """For each warp, the lanes of `threads` whose flag is set."""
        weights = np.where(flags, self.bit[threads], 0).astype("f8")
        return np.bincount(self.warp[threads], weights, self.count).astype(np.uint32)

    def leave(self, threads: Any) -> None:
        """These threads have returned."""
        left = self.gather_bits(threads, np.True_)
        self.running = self.running & ~left

    # --- member masks ---

    def check_members(self, threads: Any, mask: Array, one: Instruction) -> None:
        """MachineFault unless exactly the threads of each mask are here."""
        warp = self.warp[threads]
        present = self.gather_bits(threads, np.True_)[warp]
        missing = mask & self.running[warp] & ~present
        if np.any(missing):
            at = int(np.flatnonzero(missing)[0])
            some = np.arange(len(self.warp))[threads]
            raise MissingMembers(
                f"{one}: the mask 0x{int(np.broadcast_to(mask, warp.shape)[at]):08x} names lanes "
                f"that are elsewhere (0x{int(missing[at]):08x}); lanes here: "
                f"0x{int(present[at]):08x}",
                some[~np.isin(warp, warp[missing != 0])],
            )
        outside = (mask & self.bit[threads]) == 0
        if np.any(outside):
            at = int(np.flatnonzero(outside)[0])
            raise MachineFault(
                f"{one}: lane {int(self.lane[threads][at])} runs it but is not in its mask "
                f"0x{int(np.broadcast_to(mask, warp.shape)[at]):08x}"
            )
        if np.ndim(mask) and np.any(mask != mask.reshape(-1)[0]):
            self._check_same(threads, mask, one)

    def _check_same(self, threads: Any, mask: Array, one: Instruction) -> None:
        table = np.zeros(self.count * WARP, np.uint32)
        table[self.slot[threads]] = mask
        masks = table.reshape(-1, WARP)
        for warp, lane in zip(self.warp[threads], self.lane[threads], strict=True):
            mine = masks[warp, lane]
            members = (mine >> _LANES) & np.uint32(1)
            if np.any((masks[warp] != mine) & (masks[warp] != 0) & (members == 1)):
                raise MachineFault(f"{one}: lanes of one mask give different masks")

    # --- operations: the results are one for each thread ---

    def shuffle(
        self,
        threads: Any,
        mode: str,
        value: Array,
        by: Array,
        clamp: Array,
        mask: Array,
        one: Instruction,
    ) -> tuple[Array, Array]:
        """`shfl.sync`: the other lane's value, and whether the source was in range."""
        self.check_members(threads, mask, one)
        lane = self.lane[threads]
        step = by & np.uint32(31)
        segment = (clamp >> np.uint32(8)) & np.uint32(31)
        most = (lane & segment) | (clamp & np.uint32(31) & ~segment)
        least = lane & segment
        wanted = {
            "up": lambda: lane.astype("i8") - step.astype("i8"),
            "down": lambda: lane.astype("i8") + step.astype("i8"),
            "bfly": lambda: (lane ^ step).astype("i8"),
            "idx": lambda: (least | (step & ~segment)).astype("i8"),
        }[mode]()
        inside = wanted >= most if mode == "up" else wanted <= most
        source = np.where(inside, wanted, lane)
        table = np.full(self.count * WARP, unspecified(value.dtype.str[1:]), value.dtype)
        table[self.slot[threads]] = value
        return table[self.warp[threads] * WARP + source.astype("i8")], inside

    def vote(self, threads: Any, mode: str, flag: Array, mask: Array, one: Instruction) -> Array:
        """`vote.sync`: a predicate, or for "ballot" the lanes whose flag is set."""
        self.check_members(threads, mask, one)
        warp = self.warp[threads]
        present = self.gather_bits(threads, np.True_)[warp] & mask
        votes = self.gather_bits(threads, flag)[warp] & mask
        return {
            "ballot": lambda: votes,
            "all": lambda: votes == present,
            "any": lambda: votes != 0,
            "uni": lambda: (votes == present) | (votes == 0),
        }[mode]()

    def active(self, threads: Any) -> Array:
        """`activemask`: the lanes that are here."""
        return self.gather_bits(threads, np.True_)[self.warp[threads]]

    def match(
        self, threads: Any, mode: str, value: Array, mask: Array, one: Instruction
    ) -> tuple[Array, Array]:
        """`match.sync`: the lanes with the same value; for "all" only if every lane has it."""
        self.check_members(threads, mask, one)
        values = np.zeros(self.count * WARP, value.dtype)
        here = np.zeros(self.count * WARP, bool)
        values[self.slot[threads]] = value
        here[self.slot[threads]] = True
        warp = self.warp[threads]
        same = here.reshape(-1, WARP)[warp] & (
            values.reshape(-1, WARP)[warp] == np.reshape(value, (-1, 1))
        )
        bits = (same.astype("u8") << _LANES.astype("u8")).sum(1).astype(np.uint32) & mask
        if mode == "any":
            return bits, bits != 0
        everyone = self.active(threads) & mask
        return np.where(bits == everyone, bits, np.uint32(0)), bits == everyone

    def reduce(
        self, threads: Any, operation: str, value: Array, mask: Array, one: Instruction
    ) -> Array:
        """`redux.sync` over the lanes of each mask."""
        self.check_members(threads, mask, one)
        ufunc = {
            "add": np.add, "min": np.minimum, "max": np.maximum,
            "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
        }[operation]  # fmt: skip
        n = len(self.lane[threads])
        masks, values = np.broadcast_to(mask, n), np.broadcast_to(value, n)
        groups: dict[tuple[int, int], list[int]] = {}
        for at, key in enumerate(zip(self.warp[threads].tolist(), masks.tolist(), strict=True)):
            groups.setdefault(key, []).append(at)
        result = np.zeros(n, values.dtype)
        for members in groups.values():
            result[members] = ufunc.reduce(values[members], dtype=values.dtype)
        return result
