"""For which sizes a trace holds, and the numbers that its replay needs for them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

from treadle.core.size_facts import fact_at, readable_facts
from treadle.core.size_record import Record
from treadle.runtime.varying import Varying

Numbers = tuple[tuple[Any, ...], tuple[Any, ...]]


class Symbols:
    """The sizes of the arguments of a call with symbols at some positions.

    Positions share a symbol if their values were equal in all calls that are known (`seen`): that
    they are equal is a guard then."""

    def __init__(
        self,
        sizes: Sequence[int],
        dynamic: Sequence[int],
        seen: Sequence[Sequence[int]],
        names: Sequence[str],
    ) -> None:
        self.record = Record(of_program=True)
        self.numbers: list[Any] = list(sizes)
        self.dynamic = list(dynamic)
        self._sizes = tuple(sizes)
        self._names = list(names)
        self.first: list[int] = []  # the position of each symbol
        self.repeated: list[tuple[int, int]] = []  # a position, and that of its symbol
        known: dict[tuple[int, ...], int] = {}
        for at in dynamic:
            values = (sizes[at], *[each[at] for each in seen])
            place = known.get(values) if len(values) > 1 else None
            if place is None:
                known[values] = at
                self.first.append(at)
                self.numbers[at] = self.record.symbol(sizes[at], names[at])
            else:
                self.repeated.append((at, place))
                self.numbers[at] = self.numbers[place]

    def guards(self, varying: Varying) -> SizeGuards:
        """The guards of the trace that was made with them."""
        return SizeGuards(self, self._sizes, self._names, varying.function())


class SizeGuards:
    """The facts about sizes under which a trace may be replayed."""

    def __init__(
        self, symbols: Symbols, sizes: tuple[int, ...], names: list[str],
        function: Callable[..., Any],
    ) -> None:  # fmt: skip
        self.record = symbols.record
        self.sizes = sizes  # that were traced
        self._names = names
        self._function = function
        dynamic = frozenset(symbols.dynamic)
        static = [at for at in range(len(sizes)) if at not in dynamic]
        self._static = static
        self._repeated = symbols.repeated
        self._symbols = symbols.first
        self._pick_static, self._pick_symbols = _picker(static), _picker(symbols.first)
        self._pick_repeated = _picker([at for at, _ in symbols.repeated])
        self._pick_places = _picker([place for _, place in symbols.repeated])
        self._static_sizes = self._pick_static(sizes)

    def numbers(self, sizes: tuple[int, ...]) -> Numbers | None:
        """What a replay needs for other sizes; None if the trace does not hold for them."""
        if self._pick_static(sizes) != self._static_sizes:
            return None
        if self._repeated and self._pick_repeated(sizes) != self._pick_places(sizes):
            return None
        try:
            found: Numbers | None = self._function(*self._pick_symbols(sizes))
        except (ArithmeticError, ValueError):  # before the fact that would have said no
            return None
        return found

    def is_for_less_memory(self, sizes: tuple[int, ...]) -> bool:
        """Whether the trace holds for other sizes but for the room in its memory."""
        number = self._failing(sizes)
        return number is not None and number in self.record.rooms

    def _failing(self, sizes: tuple[int, ...]) -> int | None:
        if self._pick_static(sizes) != self._static_sizes:
            return None
        if self._pick_repeated(sizes) != self._pick_places(sizes):
            return None
        return self.record.failing(self._pick_symbols(sizes))

    def why_not(self, sizes: tuple[int, ...]) -> str:
        """Which guard does not hold for other sizes."""
        for at, value in zip(self._static, self._static_sizes, strict=True):
            if sizes[at] != value:
                return f"{self._names[at]} == {value}"
        for at, place in self._repeated:
            if sizes[at] != sizes[place]:
                return f"{self._names[at]} == {self._names[place]}"
        number = self._failing(sizes)
        return "nothing" if number is None else fact_at(self.record, number)

    def described(self) -> list[str]:
        """The guards of sizes, for people."""
        fixed = [
            f"{self._names[at]} == {value}"
            for at, value in zip(self._static, self._static_sizes, strict=True)
        ]
        equal = [f"{self._names[at]} == {self._names[place]}" for at, place in self._repeated]
        return [*fixed, *equal, *readable_facts(self.record)]

    @property
    def names(self) -> list[str]:
        """The names of the symbols."""
        return [self._names[at] for at in self._symbols]


def _picker(positions: Sequence[int]) -> Callable[[tuple[int, ...]], tuple[int, ...]]:
    """Takes the elements at some positions out of a tuple."""
    if len(positions) > 1:
        return itemgetter(*positions)
    if positions:
        position = positions[0]
        return lambda sizes: (sizes[position],)
    return lambda sizes: ()
