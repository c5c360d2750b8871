"""Statements of the kernel language, drawn as text: loops, branches, barriers, atomics.

Kernels are free of races by construction. Every array that a kernel writes is of one sort:

- own elements: a thread reads and writes its own element only;
- rounds: all threads write their own elements, wait, read anybody's, and wait again;
- accumulators: atomics of one kind, which commute, and nobody looks at the result.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from tests.fuzz.expressions import Choices, Expressions, Function, Memory, Name

VARIABLE_TYPES = ("i32", "f32", "u32", "bool", "i8", "u16", "i16", "u8")
VECTOR_TYPES = ("i32", "u32", "f32", "u8", "i16")
STRUCT = "Several"  # with the fields f0, f1, …
COMMUTING = {"add": ("add", "sub"), "min": ("min",), "max": ("max",), "xor": ("xor",),
             "or": ("or",), "and": ("and",)}  # fmt: skip


@dataclass
class Accumulator:
    """An array that threads update with atomics of one kind."""

    name: str
    type: str
    extents: tuple[str, ...]
    kind: str


class Body:
    """The body of a function or kernel while it is drawn."""

    def __init__(self, choices: Choices, expressions: Expressions, result: str | None) -> None:
        self.choices = choices
        self.e = expressions
        self.result = result  # a function's type; None in a kernel
        self.lines: list[str] = []
        self.indent = 1
        self.budget = 0  # statements left
        self.uniform = result is None  # whether all threads of the block run the same statements
        self.loops: list[str] = []  # "free": may be left early by some threads; else "whole"
        self.accumulators: list[Accumulator] = []
        self.shared: list[Memory] = []
        self.exchanged: list[Memory] = []  # arrays in device memory that rounds may use
        self.barriers = False
        self.lanes = False  # whether subgroup operations may be drawn
        self.fields: tuple[str, ...] = ()  # the types of the fields of `STRUCT`
        self.variable_types = VARIABLE_TYPES + (("i64", "u64") if choices.wide else ())
        self.returned = False  # whether some threads may have ended
        self._count = 0

    # --- text ---

    def line(self, text: str) -> None:
        self.lines.append("    " * self.indent + text)

    def new(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    @contextmanager
    def block(self, head: str, uniform: bool) -> Iterator[None]:
        """An indented block: what it declares is gone at its end."""
        self.line(head)
        names, memories, was = len(self.e.names), len(self.e.memories), self.uniform
        self.indent += 1
        self.uniform = was and uniform
        start = len(self.lines)
        yield
        if len(self.lines) == start:
            self.line("pass")
        self.uniform = was
        self.indent -= 1
        del self.e.names[names:]
        del self.e.memories[memories:]

    # --- statements ---

    def statements(self, most: int) -> None:
        for _ in range(self.choices.number(1, most)):
            if self.budget <= 0 or self.choices.over:
                return
            self.budget -= 1
            self.statement()

    def statement(self) -> None:
        options: list[tuple[int, Callable[[], None]]] = [
            (5, self.declare),
            (5, self.assign),
            (4, self.store),
            (3, self.branch),
            (2, self.for_loop),
            (1, self.while_loop),
            (3 if self.loops else 1, self.leave),
        ]
        if self.result is None:
            options += [(1, self.local_array), (1, self.static_loop)]
            if self.accumulators:
                options.append((2, self.accumulate))
            if self.uniform and self.barriers:
                options.append((12, self.round))
            if self.uniform and self.lanes:
                options.append((12, self.subgroup))
        self.choices.weighted(options)()

    def declare(self) -> None:
        """A new variable, perhaps the same for all threads of the block."""
        if self.choices.wide and self.choices.chance(20):
            return self.several()
        type = self.choices.pick(self.variable_types)
        uniform = self.uniform and not self.returned and self.choices.chance(25)
        name = self.new("v")
        value = self.e.value(type, self.choices.number(0, 3), uniform)
        if type in ("i32", "f32", "bool") and self.choices.chance(25):
            value = self.e.literal(type)
        self.line(f"{name} = {value}")
        self.e.names.append(Name(name, type, uniform))
        return None

    def several(self) -> None:
        """A struct or a vector, whose parts are then variables as others are."""
        name, e = self.new("v"), self.e
        if self.fields and self.choices.chance(50):
            made = ", ".join(e.value(type, 2) for type in self.fields)
            self.line(f"{name} = {STRUCT}({made})")
            e.names += [Name(f"{name}.f{k}", type) for k, type in enumerate(self.fields)]
            return
        type, count = self.choices.pick(VECTOR_TYPES), self.choices.number(2, 4)
        kind = f"td.vec{count}[td.{type}]"
        alike = [n.name for n in e.names if n.type == kind]
        if alike and type in e.integers and self.choices.chance(70):
            left, right = self.choices.pick(alike), self.choices.pick(alike)
            made = f"{left} {self.choices.pick(('+', '-', '*', '^', '&', '//', '%'))} {right}"
        else:
            made = f"{kind}({', '.join(e.value(type, 2) for _ in range(count))})"
        self.line(f"{name} = {made}")
        e.names.append(Name(name, kind, assignable=False))
        e.names += [Name(f"{name}.{axis}", type) for axis in "xyzw"[:count]]

    def _targets(self) -> list[Name]:
        return [n for n in self.e.names if n.assignable and (self.uniform or not n.uniform)]

    def assign(self) -> None:
        targets = self._targets()
        if not targets:
            return self.declare()
        target = self.choices.pick(targets)
        same = [n for n in targets if n.type == target.type and n.uniform == target.uniform]
        same = [n for n in same if "." not in n.name]
        if len(same) > 1 and "." not in target.name and self.choices.chance(15):
            other = self.choices.pick(same)
            self.line(f"{target.name}, {other.name} = {other.name}, {target.name}")
            return None
        if target.type in self.e.integers and self.choices.chance(40):
            op = self.choices.pick(("+", "-", "*", "//", "%", "^", "&", "|", "<<", ">>"))
            value = self.e.operand(target.type, self.choices.number(0, 2), target.uniform)
            if op in ("<<", ">>"):
                value = str(self.choices.number(0, 33))
            self.line(f"{target.name} {op}= {value}")
            return None
        value = self.e.value(target.type, self.choices.number(0, 3), target.uniform)
        self.line(f"{target.name} = {value}")
        return None

    def store(self) -> None:
        ready = [m for m in self.e.memories if m.writes != "none"]
        if not ready:
            return self.assign()
        memory = self.choices.pick(ready)
        index = memory.slot
        if memory.writes == "any":
            index = ", ".join(self.e.index(extent, 2) for extent in memory.extents)
        elif self.choices.chance(10):
            first = self.choices.pick(
                (memory.extents[0], f"-1 - abs({memory.slot.split(chr(44))[0]})", "1 << 30")
            )
            index = ", ".join((first, *(["0"] * (len(memory.extents) - 1))))
        value = self.e.value(memory.type, self.choices.number(0, 3))
        op = ""
        if memory.type in self.e.integers and self.choices.chance(25) and memory.reads != "none":
            op = self.choices.pick(("+", "-", "*", "^", "|", "&", "//", "%"))
        self.line(f"{memory.name}[{index}] {op}= {value}")
        return None

    def branch(self) -> None:
        uniform = self.uniform and self.choices.chance(50)
        with self.block(f"if {self.e.test(2, uniform)}:", uniform):
            self.statements(3)
        if self.choices.chance(15):
            with self.block(f"elif {self.e.test(1, uniform)}:", uniform):
                self.statements(2)
        if self.choices.chance(40):
            with self.block("else:", uniform):
                self.statements(3)

    @contextmanager
    def loop(self, head: str, uniform: bool, names: list[Name]) -> Iterator[None]:
        whole = uniform and self.uniform and self.choices.chance(60)
        with self.block(head, whole):
            self.loops.append("whole" if whole else "free")
            self.e.names.extend(replace(name, uniform=name.uniform and whole) for name in names)
            yield
            self.loops.pop()

    def for_loop(self) -> None:
        if len(self.loops) >= 2:
            return self.assign()
        uniform = self.uniform and self.choices.chance(50)
        name = self.new("k")
        stop = self.choices.weighted([(2, ""), (1, "expression")])
        if stop:
            stop = f"{self.e.integer('i32', 1, uniform)} % {self.choices.number(1, 5)}"
        else:
            stop = str(self.choices.number(1, 4))
        step = self.choices.pick((1, 2, -1, -3, 3))
        once = None  # a bound that the body changes, which must not count
        if step > 0 and self.choices.chance(20):
            once = self.new("n")
            self.line(f"{once} = td.i32({stop})")
            stop = once
        bounds = stop
        if step != 1:
            bounds = f"{stop}, -2, {step}" if step < 0 else f"-1, {stop}, {step}"
        counted = self.choices.chance(5)  # whether the body may assign to it
        counter = Name(name, "i32", uniform, assignable=counted, fixed=not counted)
        with self.loop(f"for {name} in range({bounds}):", uniform, [counter]):
            if once is not None:
                self.line(f"{once} -= 1")
            self.statements(3)
        return None

    def static_loop(self) -> None:
        if len(self.loops) >= 2:
            return self.assign()
        name = self.new("k")
        counter = Name(f"td.i32({name})", "i32", True, assignable=False, fixed=True)
        head = f"for {name} in td.static_range({self.choices.number(1, 3)}):"
        with self.block(head, True):
            self.loops.append("unrolled")
            self.e.names.append(counter)
            self.statements(2)
            self.loops.pop()
        return None

    def while_loop(self) -> None:
        if len(self.loops) >= 2:
            return self.assign()
        uniform = self.uniform and not self.returned and self.choices.chance(50)
        name = self.new("n")
        self.line(f"{name} = 0")
        counter = Name(name, "i32", uniform, assignable=False)
        self.e.names.append(replace(counter, uniform=False))
        limit = f"{name} < {self.choices.number(1, 4)}"
        test = self.e.test(1, uniform) if self.choices.chance(60) else ""
        head = f"while {limit}:" if not test else f"while {limit} and td.bool({test}):"
        with self.loop(head, uniform, []):
            self.line(f"{name} += 1")
            self.statements(3)
        return None

    def leave(self) -> None:
        """break, continue or return, for the threads that meet a condition."""
        options = ["return"]
        if self.loops and self.loops[-1] != "unrolled":
            options += ["break", "continue"] * 2
        way = self.choices.pick(options)
        # A loop that holds barriers is left by all threads or by none.
        uniform = way != "return" and self.loops[-1] == "whole"
        if uniform and not self.uniform:
            return self.assign()
        if way == "return" and self.result is not None:
            way = f"return {self.e.value(self.result, 2)}"
        with self.block(f"if {self.e.test(2, uniform)}:", uniform):
            if self.choices.chance(40):
                self.statements(2)
            self.line(way)
        if way == "return":
            # What the rest assigns is assigned by the remaining threads only.
            self.returned = True
            for each in self.e.names:
                each.uniform = each.uniform and each.fixed
        return None

    # --- kernels only ---

    def local_array(self) -> None:
        name, type, length = self.new("mine"), self.choices.pick(self.variable_types), 4
        two = self.choices.chance(20)
        self.line(f"{name} = td.local({(2, length) if two else length}, td.{type})")
        value = self.e.value(type, 1)
        counter = self.new("k")
        if two:
            self.line(f"for {counter} in range({2 * length}):")
            self.line(f"    {name}[{counter} // {length}, {counter} % {length}] = {value}")
        else:
            self.line(f"for {counter} in range({length}):")
            self.line(f"    {name}[{counter}] = {value}")
        extents = ("2", str(length)) if two else (str(length),)
        self.e.memories.append(Memory(name, type, extents, writes="any"))

    def accumulate(self) -> None:
        into = self.choices.pick(self.accumulators)
        at = [self.e.index(extent, 2) for extent in into.extents]
        index = at[0] if len(at) == 1 else f"({', '.join(at)})"
        value = self.e.integer(into.type, self.choices.number(0, 3))
        op = self.choices.pick(COMMUTING[into.kind])
        self.line(f"td.atomic_{op}({into.name}, {index}, {value})")

    def round(self) -> None:
        """Write one's own element, wait, read anybody's, wait."""
        ready = [m for m in (*self.shared, *self.exchanged) if m.reads == "own"]
        if not ready:
            return self.declare()
        memory = self.choices.pick(ready)
        in_shared = memory in self.shared
        if in_shared and memory.type in ("i32", "u32") and self.choices.chance(30):
            self._shared_atomics(memory)
        else:
            self.line(f"{memory.name}[{memory.slot}] = {self.e.value(memory.type, 2)}")
        self.line("td.sync_threads()")
        memory.reads, memory.writes = "block", "none"
        if self.choices.chance(70):
            name = self.new("v")
            load = self.e.load(memory, 2)
            self.line(f"{name} = {f'td.f32({load})' if memory.type == 'f16' else load}")
            self.e.names.append(Name(name, "f32" if memory.type == "f16" else memory.type))
        self.statements(3)
        self.line("td.sync_threads()")
        memory.reads, memory.writes = "own", "own"
        return None

    def _shared_atomics(self, memory: Memory) -> None:
        self.line("td.sync_threads()")
        kind = self.choices.pick(tuple(COMMUTING))
        memory.reads = memory.writes = "none"
        effects, self.e.effects = self.e.effects, False  # the index may stand there twice
        at = f"{self.e.integer('i32', 1)} % {self.e.threads}"
        self.e.effects = effects
        into = memory.block.format(at)
        into = f"({into})" if "," in into else into
        value = self.e.integer(memory.type, 2)
        memory.reads = memory.writes = "own"
        op = self.choices.pick(COMMUTING[kind])
        self.line(f"td.atomic_{op}({memory.name}, {into}, {value})")

    def subgroup(self) -> None:
        """Exchanges whose result does not depend on the subgroup's size (four or more)."""
        name = self.new("v")
        form = self.choices.pick(("xor", "self", "sum", "any"))
        type = self.choices.pick(("i32", "u32", "f32"))
        value = self.e.value(type, 2)
        sums = [a for a in self.accumulators if a.kind == "add" and a.type in ("i32", "u32")]
        if form == "sum" and sums:
            into = self.choices.pick(sums)
            at = "0" if len(into.extents) == 1 else f"({', '.join(['0'] * len(into.extents))})"
            self.line(f"{name} = td.subgroup_sum({self.e.integer(into.type, 2)})")
            with self.block("if td.lane() == 0:", False):
                self.line(f"td.atomic_add({into.name}, {at}, {name})")
            return
        if form == "any":
            self.line(f"{name} = td.vote_any({self.e.condition(1, True)})")
            self.e.names.append(Name(name, "bool"))
            return
        if form == "self":
            self.line(f"{name} = td.shuffle({value}, td.lane())")
        else:
            self.line(f"{name} = td.shuffle_xor({value}, {self.choices.pick((1, 2, 3))})")
        self.e.names.append(Name(name, type))
        return


def draw_function(choices: Choices, name: str, known: list[Function]) -> tuple[list[str], Function]:
    """A device function's lines, and how it is called."""
    types = ("i32", "f32", "u32", "i8", "u16", "bool")
    types += ("i64", "u64") if choices.wide else ()
    parameters = tuple(choices.pick(types) for _ in range(choices.number(1, 3)))
    result = choices.pick(types)
    e = Expressions(choices, 1)
    e.functions = [f for f in known if not f.array]
    e.in_function = True
    e.names = [Name(f"p{k}", type, assignable=False) for k, type in enumerate(parameters)]
    heads = [n.name for n in e.names]
    array, writes = "", False
    if choices.chance(40):
        array, writes = choices.pick(("i32", "f32", "u8", "u32")), choices.chance(40)
        access = Memory("a", array, ("a.size",), "at", "any", "none")
        if writes:
            access.reads = access.writes = "own"
        e.memories = [access]
        e.names.append(Name("at", "i32", assignable=False))
        heads = ["a", "at", *heads]
    body = Body(choices, e, result)
    body.budget = choices.number(0, 5)
    if body.budget:
        body.statements(5)
    body.line(f"return {e.value(result, 3)}")
    lines = ["@td.func", f"def {name}({', '.join(heads)}):", *body.lines]
    return lines, Function(name, parameters, result, array, writes)
