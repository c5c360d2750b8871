"""Addresses of the 32 lanes of a warp as numbers, up to a sum that all lanes have in common.

A value is a number for each lane plus unknown uniform values (parameters, indices of blocks, counts
of loops), each times a factor. So the difference between two lanes' addresses is known although
neither address is. Banks and sectors depend on differences alone where the common part is a
multiple of what is accessed at once, as it is in rows that begin there.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from treadle.ptx_analysis.flow import Flow, writers_of
from treadle.ptx_analysis.operands import read
from treadle.ptx_analysis.text import Instruction

WARP = 32
_Vector = np.ndarray[tuple[int], np.dtype[np.int64]]
_SUM = re.compile(r"^(.+?)\s*(?:([+-])\s*(-?\s*\d+|0[xX][\da-fA-F]+))?$")
_OF_NUMBERS: Mapping[str, Callable[[_Vector, _Vector], _Vector]] = {
    "and": operator.and_, "or": operator.or_, "xor": operator.xor, "min": np.minimum,
    "max": np.maximum, "shr": operator.rshift,
}  # fmt: skip


@dataclass(frozen=True)
class Lanes:
    """`numbers[lane] + sum(factor * symbol)`."""

    numbers: tuple[int, ...]
    symbols: tuple[tuple[str, int], ...] = ()

    @property
    def is_uniform(self) -> bool:
        """Whether all lanes have the same value."""
        return len(set(self.numbers)) == 1

    @property
    def constant(self) -> int | None:
        """The value, if it is one known number."""
        return self.numbers[0] if self.is_uniform and not self.symbols else None

    @property
    def differences(self) -> tuple[int, ...]:
        """How far each lane's value is from the first one's."""
        return tuple(each - self.numbers[0] for each in self.numbers)


def number(value: int) -> Lanes:
    """A constant."""
    return Lanes((value,) * WARP)


def symbol(name: str) -> Lanes:
    """An unknown value that all lanes have in common."""
    return Lanes((0,) * WARP, ((name, 1),))


def _sum(left: Lanes, right: Lanes, sign: int = 1) -> Lanes:
    factors = dict(left.symbols)
    for name, factor in right.symbols:
        factors[name] = factors.get(name, 0) + sign * factor
    kept = tuple(sorted((name, factor) for name, factor in factors.items() if factor))
    pairs = zip(left.numbers, right.numbers, strict=True)
    return Lanes(tuple(a + sign * b for a, b in pairs), kept)


def _times(value: Lanes, factor: int) -> Lanes:
    symbols = tuple((name, each * factor) for name, each in value.symbols if factor)
    return Lanes(tuple(each * factor for each in value.numbers), symbols)


@dataclass
class LaneValues:
    """Values of registers in the first warp of a block."""

    flow: Flow
    block: tuple[int, int, int]
    """The threads of a block."""
    places: dict[str, list[Instruction]] = field(init=False)
    _known: dict[str, Lanes | None] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.places = writers_of(self.flow)

    def address(self, text: str) -> Lanes | None:
        """An address: `%rd1+16`, `tile`, `%r1`. None if it is not known how lanes differ."""
        found = _SUM.match(text)
        if found is None:
            return None
        base = self.operand(found[1].strip())
        if base is None or found[3] is None:
            return base
        offset = number(int(found[3].replace(" ", ""), 0))
        return _sum(base, offset, -1 if found[2] == "-" else 1)

    def operand(self, text: str) -> Lanes | None:
        """A register, a special register, a number, or a variable's name."""
        if re.fullmatch(r"-?\d+|-?0[xX][\da-fA-F]+U?|\d+U", text):
            return number(int(text.rstrip("U"), 0))
        if text in self.places:
            return self._register(text)
        return self._special(text)

    def _special(self, name: str) -> Lanes | None:
        x, y, z = self.block
        lane = np.arange(WARP)
        if name.startswith("%ntid."):
            return number(dict(zip("xyz", self.block, strict=True))[name[-1]])
        if name.startswith("%tid."):
            index = {"x": lane % x, "y": lane // x % y, "z": lane // (x * y) % z}[name[-1]]
            return Lanes(tuple(int(each) for each in index))
        if name == "%laneid":
            return Lanes(tuple(range(WARP)))
        if name.startswith(("%lanemask", "%clock", "%globaltimer")):
            return None
        return symbol(name)

    def _register(self, name: str) -> Lanes | None:
        if name in self._known:
            return self._known[name]
        # In a loop a register is read before its own value is known: it is then its first value and
        # something in common, which holds if what the loop adds is the same for all lanes.
        places = self.places[name]
        if len(places) > 1:
            return self._of_several(name, places)
        self._known[name] = None
        self._known[name] = self._computed(places[0], name)
        return self._known[name]

    def _of_several(self, name: str, places: list[Instruction]) -> Lanes | None:
        self._known[name] = None
        before = dict(self._known)
        first = next(
            (value for each in places if (value := self._computed(each, name)) is not None), None
        )
        self._known = before
        if first is None:
            return None
        assumed = _sum(Lanes(first.differences), symbol(name))
        self._known[name] = assumed
        values = [self._computed(each, name) for each in places]
        if any(each is None or each.differences != assumed.differences for each in values):
            self._known = {**before, name: None}
            return None
        return assumed

    def _computed(self, instruction: Instruction, name: str) -> Lanes | None:
        parts, given = instruction.parts, instruction.operands[1:]
        kind = parts[0]
        if kind == "ld":
            uniform = "param" in parts or "const" in parts or self._all_uniform(instruction)
            return symbol(name) if uniform and "local" not in parts else None
        if instruction.operands[0].startswith("{") or "|" in instruction.operands[0]:
            return None
        values = [self.operand(each) for each in given]
        known = [each for each in values if each is not None]
        if len(known) < len(values) or not values:
            return None
        found = _of(kind, parts, known)
        own = kind in ("shfl", "atom")
        return symbol(name) if found is None and not own and _uniform(known) else found

    def _all_uniform(self, instruction: Instruction) -> bool:
        values = [self.operand(each) for each in read(instruction)]
        return all(each is not None and each.is_uniform for each in values)


def _uniform(values: list[Lanes]) -> bool:
    return all(each.is_uniform for each in values)


def _of(kind: str, parts: tuple[str, ...], values: list[Lanes]) -> Lanes | None:
    """The value of an instruction, if it is a sum of numbers by lane and common values."""
    if kind in ("mov", "cvta") or (kind == "cvt" and not any(p.startswith("f") for p in parts)):
        return values[0]
    if kind in ("add", "sub"):
        return _sum(values[0], values[1], -1 if kind == "sub" else 1)
    if kind in ("mul", "mul24") and "hi" not in parts:
        return _product(values[0], values[1])
    if kind in ("mad", "mad24") and "hi" not in parts:
        product = _product(values[0], values[1])
        return None if product is None else _sum(product, values[2])
    if kind == "shl" and (by := values[1].constant) is not None:
        return _times(values[0], 1 << by)
    if any(each.symbols for each in values):
        return None
    if len(values) == 2 and kind in _OF_NUMBERS:
        left, right = (np.array(each.numbers) for each in values)
        return Lanes(tuple(int(each) for each in _OF_NUMBERS[kind](left, right)))
    if kind in ("div", "rem") and len(values) == 2 and 0 not in values[1].numbers:
        if min(*values[0].numbers, *values[1].numbers) < 0:
            return None
        pairs = zip(values[0].numbers, values[1].numbers, strict=True)
        return Lanes(tuple(a // b if kind == "div" else a % b for a, b in pairs))
    if kind == "bfe" and min(values[0].numbers) >= 0:
        begin, width = values[1].constant, values[2].constant
        if begin is not None and width is not None:
            return Lanes(tuple(each >> begin & (1 << width) - 1 for each in values[0].numbers))
    return None


def _product(left: Lanes, right: Lanes) -> Lanes | None:
    for value, factor in ((left, right.constant), (right, left.constant)):
        if factor is not None:
            return _times(value, factor)
    if not left.symbols and not right.symbols:
        return Lanes(tuple(a * b for a, b in zip(left.numbers, right.numbers, strict=True)))
    return None


def bank_passes(address: Lanes, width: int) -> tuple[int, int]:
    """How often shared memory is accessed for a warp, each lane `width` bytes, and how often at
    least: in each of its 32 banks of 4 bytes one word can be read at once, by any number of lanes.
    A warp's accesses of 8 and 16 bytes are made in 2 and 4 parts.

    >>> bank_passes(Lanes(tuple(range(0, 128, 4))), 4)
    (1, 1)
    >>> bank_passes(Lanes(tuple(range(0, 4096, 128))), 4)  # a column of 32 rows of 32 numbers
    (32, 1)
    """
    parts = max(width // 4, 1)
    lanes = WARP // parts
    passes = 0
    for begin in range(0, WARP, lanes):
        words: dict[int, set[int]] = {}
        for each in address.differences[begin : begin + lanes]:
            for at in range(each, each + max(width, 4), 4):
                words.setdefault(at // 4 % 32, set()).add(at // 4)
        passes += max(len(each) for each in words.values())
    return passes, parts


def sectors(address: Lanes, width: int) -> tuple[int, int]:
    """How many sectors of 32 bytes of global memory a warp's access touches, and how many would
    hold as many different bytes. The first lane's address is taken to begin a sector.

    >>> sectors(Lanes(tuple(range(0, 128, 4))), 4)
    (4, 4)
    >>> sectors(Lanes(tuple(range(0, 4096, 128))), 4)
    (32, 4)
    """
    begins = set(address.differences)
    touched = {at // 32 for each in begins for at in (each, each + width - 1)}
    return len(touched), -(-len(begins) * width // 32)
