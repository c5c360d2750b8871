"""A kernel as basic blocks: calls spelled out in place, and what is known about its registers.

Block numbers are places in the text, so that "the smallest number first" is the order in which
structured code meets again. Two facts are found ahead of time: which registers a block may drop at
its end (nobody reads them later), and which are written on every way to a read. Reads of the others
are watched while running.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import count

from tests.support.ptx_machine.records import (
    Address,
    Function,
    Group,
    Instruction,
    Integer,
    Label,
    Module,
    Name,
    Not,
    Operand,
    Pair,
    PtxError,
    Real,
    Sink,
    Variable,
)
from tests.support.ptx_machine.types import types_of

NO_RESULT = frozenset({
    "st", "red", "bra", "bar", "barrier", "ret", "exit", "membar", "fence", "trap", "call",
    "prefetch", "prefetchu", "nanosleep", "brkpt", "discard", "cp",
})  # fmt: skip
_ENDS = frozenset({"bra", "ret", "exit", "trap", "bar", "barrier"})
_TOGETHER = frozenset(
    {"shfl", "elect", "vote", "match", "redux", "bar", "mma", "ldmatrix", "wgmma"}
)
WARP_BARRIERS = ("warp",)
_CLUSTERS = ("cluster",)
_WAITS = ("wait_group",)  # of wgmma: other warps may have to come first


@dataclass(slots=True)
class BasicBlock:
    """Straight code. `end` is "jump", "branch", "exit", "barrier" or "trap"; `condition` guards a
    branch or an exit."""

    number: int
    body: list[Instruction] = field(default_factory=list)
    end: str = "jump"
    last: Instruction | None = None
    condition: Name | Not | None = None
    target: int = -1
    next: int = -1
    defined: int = 0  # registers that are written on every way here, as bits
    live: int = 0  # registers that somebody may read after the block

    def successors(self) -> tuple[int, ...]:
        if self.end == "branch":
            return (self.target, self.next)
        if self.end == "jump":
            return (self.target,)
        if self.end == "barrier" or (self.end == "exit" and self.condition):
            return (self.next,)
        return ()


@dataclass(slots=True)
class Program:
    """One kernel, ready to be translated."""

    name: str
    function: Function
    target: int  # 90 for sm_90
    registers: dict[str, str]
    index: dict[str, int]  # of each register
    variables: dict[str, Variable]
    parameters: dict[str, Variable]
    blocks: list[BasicBlock]
    watched: set[str]  # registers that some read may find unwritten
    structured: bool  # whether threads that part meet again before a warp does something together
    exact: bool = False  # whether the target is one architecture alone, as sm_90a is
    version: tuple[int, int] = (0, 0)  # of PTX


def program_of(module: Module, entry: str, structured: bool = True) -> Program:
    """The blocks of a kernel. If it is not `structured`, its threads may come one after another
    to what a warp does together, which then begins a block."""
    function = module.functions.get(entry)
    if function is None or not function.entry:
        raise PtxError(f"there is no .entry {entry}")
    expansion = _Expansion(module)
    body = list(expansion.expand(function, "", {}))
    variables = {variable.name: variable for variable in module.variables}
    variables |= {variable.name: variable for variable in expansion.variables}
    registers = expansion.registers
    blocks = _blocks_of(body, structured)
    index = {name: i for i, name in enumerate(registers)}
    watched = _find_defined(blocks, index)
    _find_live(blocks, index)
    return Program(
        entry,
        function,
        int(module.target.removeprefix("sm_").rstrip("af")),
        registers,
        index,
        variables,
        {parameter.name: parameter for parameter in function.parameters},
        blocks,
        watched,
        structured,
        module.target.endswith("a"),
        module.version,
    )


# --- calls in place ------------------------------------------------------------------------------


class _Expansion:
    """Copies functions into their callers, with names of their own.

    Parameters of calls become registers, one for each place in them that is read or written.
    """

    def __init__(self, module: Module) -> None:
        self.module = module
        self.registers: dict[str, str] = {}
        self.variables: list[Variable] = []
        self._sites = count(1)
        self._open: list[str] = []

    def expand(
        self, function: Function, prefix: str, renamed: dict[str, str]
    ) -> Iterator[Instruction | Label]:
        """The function's statements; `renamed` says what its parameters are in the caller."""
        if function.name in self._open:
            raise PtxError(f"{function.name} calls itself: recursion is not supported")
        self._open.append(function.name)
        names = dict(renamed)
        for name, type in function.registers.items():
            names[name] = prefix + name
            self.registers[prefix + name] = type
        in_calls = {v.name for v in function.variables if v.space == "param"}
        for variable in function.variables:
            names[variable.name] = prefix + variable.name
            if variable.space != "param":
                self.variables.append(replace(variable, name=prefix + variable.name))
        for one in function.body:
            if isinstance(one, Label):
                names[one.name] = prefix + one.name
        passed = in_calls | set(renamed)
        for one in function.body:
            if isinstance(one, Label):
                yield Label(names[one.name])
                continue
            if one.opcode in ("ld", "st") and one.modifiers[:1] == ("param",):
                address = one.operands[0 if one.opcode == "st" else 1]
                if (
                    isinstance(address, Address)
                    and isinstance(address.base, Name)
                    and address.base.name in passed
                ):
                    yield from self.moves(one, names)
                    continue
            if one.opcode == "ret" and prefix:
                end = Name(f"{prefix}$end")
                yield Instruction("bra", (), (end,), _rename_guard(one.guard, names), one.line)
            elif one.opcode == "call":
                yield from self.call(one, names)
            else:
                yield _rename(one, names)
        if prefix:
            yield Label(f"{prefix}$end")
        self._open.pop()

    def moves(self, one: Instruction, names: dict[str, str]) -> Iterator[Instruction]:
        """`ld.param` and `st.param` around calls, as moves of registers."""
        one = _rename(one, names)
        type = types_of(one.modifiers)[0]
        address = one.operands[0 if one.opcode == "st" else 1]
        other = one.operands[1 if one.opcode == "st" else 0]
        assert isinstance(address, Address)
        assert isinstance(address.base, Name)
        parts = other.parts if isinstance(other, Group) else (other,)
        for i, part in enumerate(parts):
            place = f"{address.base.name}+{address.offset + i * type.bytes}"
            known = self.registers.setdefault(place, type.name)
            if types_of((known,))[0].bits != type.bits:
                raise PtxError(f"{one}: the parameter was written as .{known}")
            pair = (Name(place), part) if one.opcode == "st" else (part, Name(place))
            yield Instruction("mov", (f"b{type.bits}",), pair, one.guard, one.line)

    def call(self, one: Instruction, names: dict[str, str]) -> Iterator[Instruction | Label]:
        """A call: operands move in, the function's body, results move out."""
        groups = [operand for operand in one.operands if isinstance(operand, Group)]
        callee_at = 1 if isinstance(one.operands[0], Group) else 0
        callee = one.operands[callee_at]
        assert isinstance(callee, Name)
        function = self.module.functions.get(callee.name)
        if function is None:
            raise PtxError(f"{one}: there is no function {callee.name}")
        if one.guard:
            raise PtxError(f"{one}: calls under a guard are not supported")
        results = groups[0].parts if callee_at else ()
        arguments = groups[-1].parts if len(groups) > callee_at else ()
        if len(results) != len(function.results) or len(arguments) != len(function.parameters):
            raise PtxError(f"{one}: the function has other parameters")
        site = f"{callee.name}#{next(self._sites)}."
        renamed: dict[str, str] = {}
        after: list[Instruction] = []
        for formal, actual in (
            *zip(function.parameters, arguments, strict=True),
            *zip(function.results, results, strict=True),
        ):
            own = site + formal.name
            if formal.space == "param":
                assert isinstance(actual, Name)
                renamed[formal.name] = names[actual.name]
                continue
            renamed[formal.name] = own
            self.registers[own] = formal.type
            kind = "pred" if formal.type == "pred" else f"b{8 * formal.size}"
            other = _rename_operand(actual, names)
            if formal in function.results:
                after.append(Instruction("mov", (kind,), (other, Name(own)), None, one.line))
            else:
                yield Instruction("mov", (kind,), (Name(own), other), None, one.line)
        yield from self.expand(function, site, renamed)
        yield from after


def _rename(one: Instruction, names: dict[str, str]) -> Instruction:
    operands = tuple(_rename_operand(operand, names) for operand in one.operands)
    return replace(one, operands=operands, guard=_rename_guard(one.guard, names))


def _rename_guard(guard: Name | Not | None, names: dict[str, str]) -> Name | Not | None:
    renamed = _rename_operand(guard, names) if guard else None
    assert renamed is None or isinstance(renamed, Name | Not)
    return renamed


def _rename_operand(operand: Operand, names: dict[str, str]) -> Operand:
    match operand:
        case Name(name):
            return Name(names.get(name, name))
        case Not(Name(name)):
            return Not(Name(names.get(name, name)))
        case Address(Name(name), offset, at):
            places = tuple(_rename_operand(part, names) for part in at)
            return Address(Name(names.get(name, name)), offset, places)
        case Group(parts):
            return Group(tuple(_rename_operand(part, names) for part in parts))
        case Pair(first, second):
            return Pair(_rename_operand(first, names), _rename_operand(second, names))
    return operand


# --- blocks --------------------------------------------------------------------------------------


def _blocks_of(body: list[Instruction | Label], structured: bool) -> list[BasicBlock]:
    blocks = [BasicBlock(0)]
    labels: dict[str, int] = {}
    jumps: list[tuple[BasicBlock, str]] = []

    def begin() -> BasicBlock:
        blocks.append(BasicBlock(len(blocks)))
        return blocks[-1]

    for one in body:
        block = blocks[-1]
        if isinstance(one, Label):
            if block.body or block.last:
                block.target = block.next = len(blocks)
                block = begin()
            if one.name in labels:
                raise PtxError(f"the label {one.name} stands twice")
            labels[one.name] = block.number
            continue
        alone = one.opcode in _TOGETHER and not structured
        waits = (
            one.opcode == "setmaxnreg"
            or one.modifiers[:1] == _WAITS
            or one.modifiers[:2] == (*_CLUSTERS, "wait")
        )
        if (alone or waits) and block.body:
            block.target = block.next = len(blocks)
            block = begin()
        if one.opcode not in _ENDS or one.modifiers[:1] in (WARP_BARRIERS, _CLUSTERS):
            block.body.append(one)
            continue
        block.last, block.next = one, len(blocks)
        if one.opcode == "bra":
            (target,) = one.operands
            assert isinstance(target, Name)
            block.end, block.condition = ("branch" if one.guard else "jump"), one.guard
            jumps.append((block, target.name))
        elif one.opcode in ("ret", "exit"):
            block.end, block.condition = "exit", one.guard
        else:
            if one.guard:
                raise PtxError(f"{one}: a barrier or trap under a guard is not supported")
            block.end = "trap" if one.opcode == "trap" else "barrier"
        begin()
    for block, name in jumps:
        if name not in labels:
            raise PtxError(f"{block.last}: there is no label {name}")
        block.target = labels[name]
    last = blocks[-1]
    if last.last is None:
        last.end = "exit"
    return blocks


# --- what is known about registers ---------------------------------------------------------------


def effects(one: Instruction) -> tuple[set[str], set[str]]:
    """The names that an instruction reads and those that it writes."""
    reads: set[str] = set()
    writes: set[str] = set()
    operands = list(one.operands)
    if one.opcode == "wgmma":
        for operand in operands[:1]:  # sums, which are added to
            _names(operand, writes)
    elif one.opcode not in NO_RESULT and operands and not isinstance(operands[0], Address):
        _names(operands.pop(0), writes)
    for operand in operands:
        _names(operand, reads)
    if one.guard:
        _names(one.guard, reads)
    return reads, writes


def _names(operand: Operand, found: set[str]) -> None:
    match operand:
        case Address(Name(name), _, at):
            found.add(name)
            for part in at:
                _names(part, found)
        case Name(name) | Not(Name(name)):
            found.add(name)
        case Group(parts):
            for part in parts:
                _names(part, found)
        case Pair(first, second):
            _names(first, found)
            _names(second, found)
        case Integer() | Real() | Sink() | Address():
            pass


def _bits(names: set[str], index: dict[str, int]) -> int:
    result = 0
    for name in names:
        if name in index:
            result |= 1 << index[name]
    return result


def _steps(block: BasicBlock, index: dict[str, int]) -> Iterator[tuple[int, int, int]]:
    """For each instruction: registers read, surely written, perhaps written."""
    for one in (*block.body, *((block.last,) if block.last else ())):
        reads, writes = effects(one)
        written = _bits(writes, index)
        yield _bits(reads, index), 0 if one.guard else written, written


def _find_defined(blocks: list[BasicBlock], index: dict[str, int]) -> set[str]:
    everything = (1 << len(index)) - 1
    steps = [list(_steps(block, index)) for block in blocks]
    before: list[list[int]] = [[] for _ in blocks]
    for block in blocks:
        for target in block.successors():
            before[target].append(block.number)
    out = [everything] * len(blocks)
    changed = True
    while changed:
        changed = False
        for block in blocks:
            known = everything if block.number else 0
            for source in before[block.number]:
                known &= out[source]
            block.defined = known
            for _, surely, _ in steps[block.number]:
                known |= surely
            if known != out[block.number]:
                out[block.number] = known
                changed = True
    unsure = 0
    for block in blocks:
        known = block.defined
        for reads, surely, _ in steps[block.number]:
            unsure |= reads & ~known
            known |= surely
    return {name for name, i in index.items() if unsure >> i & 1}


def _find_live(blocks: list[BasicBlock], index: dict[str, int]) -> None:
    steps = [list(_steps(block, index)) for block in blocks]
    live_in = [0] * len(blocks)
    changed = True
    while changed:
        changed = False
        for block in reversed(blocks):
            live = 0
            for target in block.successors():
                live |= live_in[target]
            block.live = live
            for reads, surely, perhaps in reversed(steps[block.number]):
                # What a guarded write may leave alone is still needed.
                live = (live & ~surely) | reads | (perhaps & ~surely)
            if live != live_in[block.number]:
                live_in[block.number] = live
                changed = True
