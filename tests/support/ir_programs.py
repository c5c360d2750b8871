"""Random kernels that are well typed, end, and touch memory only inside of it or checked.

A pass that keeps the meaning of a kernel gives one that leaves the same bits in its buffers:

    kernel = random_kernel(seed)
    assert outputs(kernel) == outputs(some_pass(kernel))
"""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np

from tests.support.ir_evaluator import run
from treadle.core.dim3 import Dim3
from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.ir.builder import constant
from treadle.ir.rules import binary_type

LENGTH = 6  # elements of each buffer
NUMBERS = (t.I32, t.I32, t.I32, t.U32, t.I8, t.I64, t.F32, t.F32, t.F16)
BUFFERS = {"x": t.I32, "y": t.F32, "z": t.U32}
_INTEGERS = [0, 1, -1, 2, 3, 4, 5, 8, 16, 31, 32, 127, -128, 2**31 - 1, -(2**31), 1000003]
_FLOATS = [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, 3.0, float("inf"), float("nan"), 1e10, 0.1]


def random_kernel(seed: int, size: int = 12) -> n.Kernel:
    """A kernel of three buffers and a parameter, with functions of values and of memory."""
    maker = _Maker(random.Random(seed))
    functions = tuple(maker.function(i) for i in range(maker.random.randrange(4)))
    return maker.kernel(functions, size)


def outputs(kernel: n.Kernel, grid: int = 2) -> dict[str, bytes]:
    """The bytes of every buffer after a run, NaN of any kind being one."""
    arrays = {
        "x": np.arange(LENGTH, dtype=np.int32) - 2,
        "y": np.linspace(-3, 3, LENGTH, dtype=np.float32),
        "z": np.arange(LENGTH, dtype=np.uint32) * 7,
    }
    run(kernel, grid, arrays, {"p": 3})
    arrays["y"][np.isnan(arrays["y"])] = np.nan
    return {name: array.tobytes() for name, array in arrays.items()}


class _Maker:
    def __init__(self, drawn: random.Random) -> None:
        self.random = drawn
        self.functions: list[n.Function] = []
        self.variables: list[n.Variable] = []
        self.writable: list[n.Variable] = []
        self.memories: dict[str, t.Scalar] = {}
        self.count = 0
        self.result: t.Type | None = None
        self.loops = 0
        self.pure = False

    def name(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    # --- functions and the kernel ---

    def function(self, number: int) -> n.Function:
        self.variables, self.writable, self.memories = [], [], {}
        self.pure = self.random.random() < 0.4
        parameters: list[n.Variable | n.Buffer] = []
        for _ in range(self.random.randrange(1, 4)):
            if self.random.random() < 0.4 and not self.pure:
                buffer = n.Buffer(self.name("m"), self.random.choice(list(BUFFERS.values())))
                self.memories[buffer.name] = buffer.element  # type: ignore[assignment]
                parameters.append(buffer)
            else:
                variable = n.Variable(self.name("a"), self.random.choice(NUMBERS))
                self.variables.append(variable)
                parameters.append(variable)
        memories: tuple[n.Memory, ...] = ()
        if self.random.random() < 0.3 and not self.pure:
            memories = (n.Memory(self.name("own"), "local", t.I32, LENGTH),)
            self.memories[memories[0].name] = t.I32
        self.result = self.random.choice(NUMBERS)
        body = self.filled(memories) + self.block(self.random.randrange(2, 7), 2)
        body += (n.Return(self.expression(self.result, 2)),)
        function = n.Function(f"f{number}", tuple(parameters), self.result, body, memories)
        self.functions.append(function)
        return function

    def filled(self, memories: tuple[n.Memory, ...]) -> n.Block:
        """Stores that give every element of a fresh memory a value."""
        return tuple(
            n.Assign(n.Element(memory.name, constant(i, t.I32), t.I32), constant(i * i, t.I32))
            for memory in memories
            for i in range(LENGTH)
        )

    def kernel(self, functions: tuple[n.Function, ...], size: int) -> n.Kernel:
        self.variables, self.writable = [n.Variable("p", t.I32)], []
        self.memories = dict(BUFFERS)
        self.result, self.pure = None, False
        memories = (n.Memory("mine", "local", t.I32, LENGTH),)
        self.memories["mine"] = t.I32
        body = self.filled(memories) + self.block(size, 3)
        last = [
            n.Assign(self.place(memory), self.expression(type, 3))
            for memory, type in BUFFERS.items()
        ]
        return n.Kernel(
            "k",
            tuple(n.Buffer(name, element) for name, element in BUFFERS.items()),
            (n.Parameter("p", t.I32, ("value", "p")),),
            (*body, *last),
            memories,
            functions,
            Dim3(2),
        )

    # --- statements ---

    def block(self, size: int, depth: int) -> n.Block:
        variables, writable = list(self.variables), list(self.writable)
        statements: list[n.Statement] = []
        for _ in range(size):
            statements.extend(self.statement(depth))
        self.variables, self.writable = variables, writable
        return tuple(statements)

    def body(self, size: int, depth: int) -> n.Block:
        """The body of a function or loop, whose declarations stay visible in it."""
        return self.block(size, depth)

    def statement(self, depth: int) -> list[n.Statement]:
        kinds: list[tuple[int, Callable[[int], list[n.Statement]]]] = [
            (4, self.declare),
            (4, self.assign),
            (2, self.leave),
        ]
        if not self.pure:
            kinds += [(3, self.store), (1, self.atomic), (2, self.call)]
        if depth:
            kinds += [(3, self.conditional), (2, self.count_loop), (1, self.while_loop)]
        weights, makers = zip(*kinds, strict=True)
        return self.random.choices(makers, weights)[0](depth)

    def declare(self, depth: int) -> list[n.Statement]:
        variable = n.Variable(self.name("v"), self.random.choice((*NUMBERS, t.BOOL)))
        value = self.expression(variable.type, 3) if self.random.random() < 0.9 else None
        self.variables.append(variable)
        self.writable.append(variable)
        return [n.Declare(variable, value)]

    def assign(self, depth: int) -> list[n.Statement]:
        if not self.writable:
            return self.declare(depth)
        variable = self.random.choice(self.writable)
        return [n.Assign(variable, self.expression(variable.type, 3))]

    def store(self, depth: int) -> list[n.Statement]:
        if not self.memories:
            return self.assign(depth)
        memory = self.random.choice(list(self.memories))
        return [n.Assign(self.place(memory), self.expression(self.memories[memory], 3))]

    def atomic(self, depth: int) -> list[n.Statement]:
        memories = [name for name, element in self.memories.items() if element == t.I32]
        results = [variable for variable in self.writable if variable.type == t.I32]
        if not memories:
            return self.assign(depth)
        result = self.random.choice(results) if results else None
        place = self.place(self.random.choice(memories))
        op = self.random.choice(("add", "min", "xor", "exchange"))
        return [n.Atomic(op, place, (self.expression(t.I32, 2),), result)]

    def call(self, depth: int) -> list[n.Statement]:
        if not self.functions:
            return self.assign(depth)
        function = self.random.choice(self.functions)
        arguments = self.arguments(function)
        if arguments is None:
            return self.assign(depth)
        results = [variable for variable in self.writable if variable.type == function.result]
        result = self.random.choice(results) if results else None
        return [n.CallStatement(function.name, arguments, result)]

    def arguments(self, function: n.Function) -> tuple[n.Argument, ...] | None:
        arguments: list[n.Argument] = []
        for parameter in function.parameters:
            if isinstance(parameter, n.Buffer):
                fitting = [
                    m for m, element in self.memories.items() if element == parameter.element
                ]
                if not fitting:
                    return None
                arguments.append(n.MemoryReference(self.random.choice(fitting)))
            else:
                arguments.append(self.expression(parameter.type, 2))
        return tuple(arguments)

    def conditional(self, depth: int) -> list[n.Statement]:
        then = self.block(self.random.randrange(1, 4), depth - 1)
        otherwise = self.block(self.random.randrange(3), depth - 1)
        return [n.If(self.expression(t.BOOL, 2), then, otherwise)]

    def count_loop(self, depth: int) -> list[n.Statement]:
        variable = n.Variable(self.name("k"), t.I32)
        start, step = self.random.randrange(-1, 4), self.random.choice((1, 1, 2, -1))
        stop = start + self.random.randrange(-1, 4) * step
        self.variables.append(variable)
        self.loops += 1
        body = self.block(self.random.randrange(1, 4), depth - 1)
        self.loops -= 1
        self.variables.remove(variable)
        first, last = constant(start, t.I32), constant(stop, t.I32)
        if self.random.randrange(3):
            return [n.For(variable, first, last, step, body)]
        # Bounds are taken once: what the body does to them afterwards does not count. (It brings
        # them nearer, so that a fault ends the loop early rather than never.)
        low, high = (n.Variable(self.name(name), t.I32) for name in ("low", "high"))
        nearer = ((low, step), (high, -step))
        move = [n.Assign(v, n.Binary("add", v, constant(by, t.I32), t.I32)) for v, by in nearer]
        declared = [n.Declare(low, first), n.Declare(high, last)]
        return [*declared, n.For(variable, low, high, step, (*move, *body))]

    def while_loop(self, depth: int) -> list[n.Statement]:
        counter = n.Variable(self.name("w"), t.I32)
        self.variables.append(counter)
        self.loops += 1
        body = self.block(self.random.randrange(1, 4), depth - 1)
        self.loops -= 1
        below = n.Binary("lt", counter, constant(self.random.randrange(4), t.I32), t.BOOL)
        condition = below
        if self.random.random() < 0.3:
            condition = n.Binary("logical_and", below, self.expression(t.BOOL, 1), t.BOOL)
        one_more = n.Assign(counter, n.Binary("add", counter, constant(1, t.I32), t.I32))
        self.variables.remove(counter)
        return [n.Declare(counter), n.While(condition, body, (one_more,))]

    def leave(self, depth: int) -> list[n.Statement]:
        """A return, break or continue, usually under a condition."""
        options: list[n.Statement] = []
        if self.loops:
            options += [n.Break(), n.Continue()]
        if self.result is not None:
            options.append(n.Return(self.expression(self.result, 2)))
        elif self.random.random() < 0.2:
            options.append(n.Return())
        if not options:
            return self.assign(depth)
        statement = self.random.choice(options)
        if self.random.random() < 0.1:
            return [statement]
        return [n.If(self.expression(t.BOOL, 2), (statement,))]

    # --- places and expressions ---

    def place(self, memory: str) -> n.Element:
        index = self.expression(t.I32, 2)
        checks = (n.Check(index, constant(LENGTH, t.I32)),)
        if self.random.random() < 0.2:
            index, checks = constant(self.random.randrange(LENGTH), t.I32), ()
        return n.Element(memory, index, self.memories[memory], checks)

    def expression(self, type: t.Type, depth: int) -> n.Expression:
        assert isinstance(type, t.Scalar)
        fitting = [variable for variable in self.variables if variable.type == type]
        choice = self.random.random()
        if depth == 0 or choice < 0.2:
            if fitting and self.random.random() < 0.7:
                return self.random.choice(fitting)
            if type == t.I32 and self.random.random() < 0.2:
                return n.Builtin(self.random.choice(("thread_idx", "block_dim", "block_idx")))
            return self.constant(type)
        if choice < 0.3 and type in self.memories.values():
            memories = [name for name, element in self.memories.items() if element == type]
            return n.Load(self.place(self.random.choice(memories)), type)
        if choice < 0.36:
            condition = self.expression(t.BOOL, depth - 1)
            both = self.expression(type, depth - 1), self.expression(type, depth - 1)
            return n.Select(condition, *both, type)
        if choice < 0.46:
            return n.Cast(self.expression(self.random.choice(NUMBERS), depth - 1), type)
        if choice < 0.52:
            calls = self.pure_calls(type)
            if calls:
                return self.random.choice(calls)
        if type == t.BOOL:
            return self.condition(depth)
        if choice < 0.6:
            op = "neg" if type.is_float or self.random.random() < 0.5 else "invert"
            return n.Unary(op, self.expression(type, depth - 1), type)
        if choice < 0.66:
            op = self.random.choice(("min", "max", "abs"))
            operands = [self.expression(type, depth - 1) for _ in range(n.INTRINSICS[op])]
            return n.Intrinsic(op, tuple(operands), type)
        ops = n.ARITHMETIC if type.is_float else n.ARITHMETIC + n.BITWISE
        op = self.random.choice(ops)
        return n.Binary(
            op, self.expression(type, depth - 1), self.expression(type, depth - 1), type
        )

    def pure_calls(self, type: t.Scalar) -> list[n.Expression]:
        """Calls of functions whose body changes nothing but its own variables."""
        found: list[n.Expression] = []
        for function in self.functions:
            value_only = all(isinstance(p, n.Variable) for p in function.parameters)
            if function.result == type and value_only and not _changes(function):
                arguments = self.arguments(function)
                assert arguments is not None
                found.append(n.Call(function.name, arguments, type))
        return found

    def condition(self, depth: int) -> n.Expression:
        if self.random.random() < 0.3:
            op = self.random.choice((*n.LOGICAL, "xor", "eq"))
            both = self.expression(t.BOOL, depth - 1), self.expression(t.BOOL, depth - 1)
            return n.Binary(op, *both, t.BOOL)
        if self.random.random() < 0.2:
            return n.Unary("not", self.expression(t.BOOL, depth - 1), t.BOOL)
        type = self.random.choice(NUMBERS)
        op = self.random.choice(n.COMPARISONS)
        left, right = self.expression(type, depth - 1), self.expression(type, depth - 1)
        return n.Binary(op, left, right, binary_type(op, type))

    def constant(self, type: t.Scalar) -> n.Constant:
        if type == t.BOOL:
            return constant(self.random.random() < 0.5, type)
        return constant(self.random.choice(_FLOATS if type.is_float else _INTEGERS), type)


def _changes(function: n.Function) -> bool:
    from treadle.ir.effects import effects
    from treadle.ir.traverse import walk

    calls = any(isinstance(node, n.CallStatement) for node in walk(function.body))
    return bool(effects([function])) or bool(function.memories) or calls
