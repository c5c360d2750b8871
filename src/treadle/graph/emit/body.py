"""A program's steps as IR, at one point of its loops."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from treadle.core.dtypes import BY_SHORT_NAME, DType, as_dtype
from treadle.graph import operations
from treadle.graph.program import FIXED, NEXT, Program, Step
from treadle.ir import builder as ir
from treadle.ir import nodes as n
from treadle.ir.traverse import Node, rewrite_kernel
from treadle.ir.types import BOOL, F32, I32, I64, Scalar, Type, Vector

Values = dict[int, n.Expression]  # a step's value


def dtype_named(short: str) -> DType:
    """The dtype of this short name."""
    return BY_SHORT_NAME.get(short) or as_dtype({"c64": "complex64", "c128": "complex128"}[short])


def type_named(short: str) -> Type:
    """The IR type of a dtype's elements."""
    return operations.ir_type(dtype_named(short))


class Body:
    """What the emitters share: parameters of the kernel, and steps computed where they ask."""

    def __init__(self, program: Program, block: int | Sequence[int] | None = None) -> None:
        self.program = program
        self.builder = ir.Builder(program.name, block)
        self.index_type: Scalar = I64 if program.big else I32
        b = self.builder
        self.buffers = [
            b.buffer(f"a{k}", type_named(short)) for k, short in enumerate(program.buffers)
        ]
        self.integers = [b.parameter(f"n{k}", self.index_type) for k in range(program.integers)]
        self.scalars = [self._scalar(k, short) for k, short in enumerate(program.scalars)]
        self._functions: dict[Any, str] = {}
        self._taken: dict[str, n.Function] = {}
        self._names = 0

    def _scalar(self, number: int, short: str) -> n.Expression:
        type = type_named(short)
        b = self.builder
        if isinstance(type, Vector):
            parts = tuple(b.parameter(f"s{number}.{c}", type.element) for c in "xy")
            return n.Construct(parts, type)
        assert isinstance(type, Scalar)
        if type.is_float and type.bits < 32:  # it travels as float32
            return ir.cast(b.parameter(f"s{number}", F32), type)
        return b.parameter(f"s{number}", type)

    @property
    def extents(self) -> list[n.Variable]:
        """The extents of the loop axes, kept ones first."""
        return self.integers[: self.program.kept + self.program.reduced]

    def fresh(self, hint: str) -> str:
        """A name that no variable has yet."""
        self._names += 1
        return f"{hint}_{self._names}"

    def let(self, hint: str, value: ir.Operand) -> n.Variable:
        """A new variable with a value."""
        return self.builder.let(self.fresh(hint), value)

    # --- places ----------------------------------------------------------------------------------

    def place(self, number: int, point: Sequence[n.Expression]) -> n.Expression:
        """The element that an access means at a point of the loops."""
        access = self.program.accesses[number]
        total: n.Expression | None = None
        if access.offset != FIXED:
            total = self.integers[access.offset]
        for move, at in zip(access.axes, point, strict=False):
            if move == FIXED:
                continue
            term = at if move == NEXT else ir.mul(at, self.integers[move])
            total = term if total is None else ir.add(total, term)
        return total if total is not None else n.Constant(0, self.index_type)

    def load(self, number: int, point: Sequence[n.Expression]) -> n.Expression:
        """What lies there."""
        access = self.program.accesses[number]
        return ir.load(self.buffers[access.buffer], self.place(number, point))

    def store(self, number: int, point: Sequence[n.Expression], value: n.Expression) -> None:
        """Put a value there."""
        access = self.program.accesses[number]
        self.builder.store(self.buffers[access.buffer], self.place(number, point), value)

    # --- steps -----------------------------------------------------------------------------------

    def evaluate(
        self,
        point: Sequence[n.Expression],
        wanted: Collection[int],
        known: Mapping[int, n.Expression] | None = None,
        loaded: Mapping[int, n.Expression] | None = None,
    ) -> Values:
        """The wanted steps' values at a point, with all that they need, each computed once.

        `known` are steps that have a value already (reductions, most of all); `loaded` are the
        values of accesses that were loaded together.
        """
        values: Values = dict(known or {})
        for number in self.needed(wanted, values):
            step = self.program.steps[number]
            value = self._step(step, point, values, loaded or {})
            plain = isinstance(value, (n.Constant, n.Variable))
            values[number] = value if plain else self.let("v", value)
        return values

    def needed(self, wanted: Collection[int], known: Collection[int]) -> list[int]:
        """The steps that the wanted ones need, in order, without those that are known."""
        found: set[int] = set()
        todo = [step for step in wanted if step not in known]
        while todo:
            step = todo.pop()
            if step in found:
                continue
            found.add(step)
            todo += [s for s in self.program.steps[step].sources if s not in known]
        return sorted(found)

    def _step(
        self,
        step: Step,
        point: Sequence[n.Expression],
        values: Values,
        loaded: Mapping[int, n.Expression],
    ) -> n.Expression:
        type = type_named(step.type)
        match step.op:
            case "load":
                assert isinstance(step.detail, int)
                known = loaded.get(step.detail)
                return known if known is not None else self.load(step.detail, point)
            case "scalar":
                assert isinstance(step.detail, int)
                return self.scalars[step.detail]
            case "constant":
                return constant_of(step.detail, type)
            case "index":
                assert isinstance(step.detail, int)
                return ir.cast(self.place(step.detail, point), type)
            case "gather":
                return self._gather(step, point, values)
            case "join":
                return self._join(step, point, values, loaded)
            case "cast":
                return cast(values[step.sources[0]], type)
        return self.apply(step.op, step.detail, [values[s] for s in step.sources])

    def _gather(self, step: Step, point: Sequence[n.Expression], values: Values) -> n.Expression:
        number, size = step.detail
        access = self.program.accesses[number]
        at = ir.cast(values[step.sources[0]], self.index_type)
        checks = [ir.check(at, self.integers[size])]
        place = at if access.offset == FIXED else ir.add(self.integers[access.offset], at)
        return ir.load(self.buffers[access.buffer], place, checks)

    def _join(
        self,
        step: Step,
        point: Sequence[n.Expression],
        values: Values,
        loaded: Mapping[int, n.Expression],
    ) -> n.Expression:
        """The part that is at this point: only what it is made of is computed."""
        b = self.builder
        found = b.variable(self.fresh("part"), type_named(step.type))

        def choose(parts: Sequence[Any]) -> None:
            (source, bounds), *rest = parts
            if not rest:
                b.assign(found, self.evaluate(point, [source], values, loaded)[source])
                return
            with b.when(self._inside(bounds, point)):
                b.assign(found, self.evaluate(point, [source], values, loaded)[source])
            with b.otherwise():
                choose(rest)

        choose(step.detail)
        return found

    def _inside(
        self, bounds: Sequence[tuple[int, int, int]], point: Sequence[n.Expression]
    ) -> n.Expression:
        """Whether a point is between all bounds."""
        tests: list[n.Expression] = []
        for access, low, high in bounds:
            at = self.place(access, point)
            if low != FIXED:
                tests.append(ir.binary("ge", at, self.integers[low]))
            if high != FIXED:
                tests.append(ir.less(at, self.integers[high]))
        test, *others = tests
        for other in others:
            test = ir.both(test, other)
        return test

    def apply(self, op: str, detail: Any, operands: Sequence[n.Expression]) -> n.Expression:
        """An operation on values. They must be variables or constants: some use them twice."""
        types = tuple(operand.type for operand in operands)
        direct = operations.direct_of(op, types)
        if direct is not None:
            return direct(*operands)
        name, result = self._function(op, detail, types)
        return n.Call(name, tuple(operands), result)

    def _function(self, op: str, detail: Any, types: tuple[Type, ...]) -> tuple[str, Type]:
        functions = operations.functions_of(op, detail, types)
        key = (op, detail, types)
        if key not in self._functions:
            self._functions[key] = self._include(functions)
        return self._functions[key], functions[-1].result

    def _include(self, functions: tuple[n.Function, ...]) -> str:
        """Add functions to the kernel, under names that are free. The last one's name."""
        names: dict[str, str] = {}
        for function in functions:
            name, count = function.name, 0
            renamed = _renamed(function, names)
            while name in self._taken and self._taken[name] != replace(renamed, name=name):
                count += 1
                name = f"{function.name}.{count}"
            names[function.name] = name
            if name not in self._taken:
                self._taken[name] = replace(renamed, name=name)
                self.builder.functions.append(self._taken[name])
        return names[functions[-1].name]

    def adopt(self, kernel: n.Kernel) -> None:
        """Have another kernel's functions and memories, under their own names. It comes first."""
        self.builder.memories += kernel.memories
        for function in kernel.functions:
            self._taken[function.name] = function
            self.builder.functions.append(function)

    def kernel(self) -> n.Kernel:
        """The kernel made of everything so far."""
        return self.builder.kernel()


def _renamed(function: n.Function, names: Mapping[str, str]) -> n.Function:
    """A function that calls others by their new names."""
    if all(old == new for old, new in names.items()):
        return function
    holder = n.Kernel("holder", (), (), (), functions=(function,))

    def change(node: Node) -> Node:
        if isinstance(node, (n.Call, n.CallStatement)):
            return replace(node, function=names.get(node.function, node.function))
        return node

    return rewrite_kernel(holder, change).functions[0]


def constant_of(value: Any, type: Type) -> n.Expression:
    """A Python number as a constant; a pair for a complex type."""
    if isinstance(type, Vector):
        number = complex(value)
        parts = (ir.constant(number.real, type.element), ir.constant(number.imag, type.element))
        return n.Construct(parts, type)
    assert isinstance(type, Scalar)
    return ir.constant(value, type)


def cast(value: n.Expression, type: Type) -> n.Expression:
    """A value as another dtype: complex numbers have imaginary part 0, and lose it."""
    if value.type == type:
        return value
    if isinstance(type, Vector):
        if isinstance(value.type, Vector):
            return n.Cast(value, type)
        return n.Construct((cast(value, type.element), ir.constant(0.0, type.element)), type)
    if isinstance(value.type, Vector):
        if type == BOOL:
            parts = [cast(ir.extract(value, c), BOOL) for c in "xy"]
            return ir.binary("or", *parts)
        return cast(ir.extract(value, "x"), type)
    return n.Cast(value, type)
