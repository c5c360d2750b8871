"""Loops that are worth unrolling although they are not marked `unroll`.

Compilers of C++ do this before they make PTX; ptxas, which gets PTX, does not. A loop with a small
constant trip count becomes copies of its body: then addresses are constants, branches are decided,
and a local array can live in registers. A loop with a short body that ptxas would not unroll by
itself is unrolled by four. So is a loop of all threads over something whose size is known, if each
thread has as many iterations: `for i in range(thread, 512, 128)`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from treadle.core.dim3 import Dim3
from treadle.ir import arithmetic
from treadle.ir import nodes as n
from treadle.ir.passes.unroll import copy_body, declared_names, iterations, leaves_loop
from treadle.ir.traverse import children, root_of, statements_in, walk
from treadle.ir.types import BOOL, I32, Scalar

LARGEST = 640
"""Nodes that a loop may become."""

LARGEST_WITH_ARRAYS = 8192
"""The same, if its body uses arrays of the thread."""

_MOST_ITERATIONS = 64
_MOST_FILLED = 256  # elements of an array of the thread, which has no more registers
_SHORT = 160  # nodes of a body that is repeated
_REPEATS = 4
_SYNCHRONIZING = (
    n.Barrier, n.Subgroup, n.OpaqueStore, n.Atomic, n.Fence, n.Clock, n.Copies, n.Staged,
)  # fmt: skip


def unroll_short(kernel: n.Kernel) -> n.Kernel:
    """The kernel with such loops unrolled, innermost first."""
    writer = _Writer(kernel)
    body = writer.block(kernel.body)
    return kernel if body is kernel.body else replace(kernel, body=body)


class _Writer:
    def __init__(self, kernel: n.Kernel) -> None:
        self.taken = declared_names(kernel.body) | {p.name for p in kernel.parameters}
        self.locals = {m.name for m in kernel.memories if m.space == "local"}
        self.extents = kernel.block or Dim3()
        self.threads = _threads(kernel.body)
        self.costs: dict[str, int] = {}  # of functions
        for function in kernel.functions:
            self.costs[function.name] = self.cost(function.body)

    def cost(self, root: Any) -> int:
        """The nodes of a block, and of what it calls, with copies counted that are asked for. Other
        loops count as if they could not be short."""
        total = 0
        stack = list(root) if isinstance(root, tuple) else [root]
        while stack:
            node = stack.pop()
            total += self.costs.get(node.function, 0) if isinstance(node, n.Call) else 1
            values = iterations(node) if isinstance(node, n.For) and node.unroll else None
            if values is not None:
                total += len(values) * self.cost(node.body)
                continue
            if isinstance(node, (n.For, n.While)):
                total += LARGEST_WITH_ARRAYS
            stack.extend(children(node))
        return total

    def block(self, block: n.Block) -> n.Block:
        """A block, its inner loops first."""
        result: list[n.Statement] = []
        numbers: dict[str, n.Constant] = {}  # variables whose value is known here
        for statement in block:
            result.extend(self.statement(self.with_inner(statement), numbers))
            _follow(statement, numbers)
        same = len(result) == len(block) and all(a is b for a, b in zip(result, block, strict=True))
        return block if same else tuple(result)

    def with_inner(self, node: n.Statement) -> n.Statement:
        """A statement after the blocks in it."""
        match node:
            case n.If():
                inner = {"then": self.block(node.then), "otherwise": self.block(node.otherwise)}
            case n.For():
                inner = {"body": self.block(node.body)}
            case n.While():
                inner = {"body": self.block(node.body), "update": self.block(node.update)}
            case _:
                return node
        same = all(new is getattr(node, name) for name, new in inner.items())
        return node if same else replace(node, **inner)  # type: ignore[arg-type]

    def statement(self, node: n.Statement, numbers: Mapping[str, n.Constant]) -> n.Block:
        if isinstance(node, n.For) and not node.parallel:
            return self.counted(node)
        if isinstance(node, n.While):
            return self.known_while(node, numbers)
        return (node,)

    # --- loops whose trip count is known ----------------------------------------------------------

    def counted(self, loop: n.For) -> n.Block:
        values = iterations(loop)
        if values is None:
            return self.shared_out(loop) or self.repeated(loop)
        if self.is_short(loop.body, len(values)):
            return (replace(loop, unroll=True),)  # which the pass `unroll` then does
        return (loop,)

    def shared_out(self, loop: n.For) -> n.Block:
        """The iterations of a loop that begins at the thread's number; () if it is none, or if some
        threads have one more."""
        start, stop = loop.start, loop.stop
        axis = self.threads.get(start.name) if isinstance(start, n.Variable) else _axis(start)
        if axis is None or not isinstance(stop, n.Constant) or loop.step < 1:
            return ()
        last = self.extents[axis] - 1
        counts = {len(range(first, int(stop.value), loop.step)) for first in (0, last)}
        count = counts.pop()
        if counts or not self.is_short(loop.body, count):
            return ()
        copies: list[n.Statement] = []
        for k in range(count):
            step = n.Constant(k * loop.step, loop.variable.type)  # type: ignore[arg-type]
            at = n.Binary("add", start, step, loop.variable.type) if k else start
            variable = replace(loop.variable, name=self.fresh(loop.variable.name).name)
            copies.append(n.Declare(variable, at, loop.span))
            copies.extend(copy_body(loop.body, loop.variable.name, variable, self.taken))
        return tuple(copies)

    def is_short(self, body: n.Block, count: int) -> bool:
        """Whether so many copies of a body are few enough nodes."""
        most = _MOST_FILLED if self.fills(body) else _MOST_ITERATIONS
        if count > most or leaves_loop(body):
            return False
        arrays = any(
            isinstance(node, n.Element) and node.memory in self.locals for node in walk(body)
        )
        return count * self.cost(body) <= (LARGEST_WITH_ARRAYS if arrays else LARGEST)

    def fills(self, body: n.Block) -> bool:
        """Whether a body only assigns an element of an array of the thread."""
        if len(body) != 1 or not isinstance(body[0], n.Assign):
            return False
        root = root_of(body[0].place)
        return isinstance(root, n.Element) and root.memory in self.locals

    def known_while(self, loop: n.While, numbers: Mapping[str, n.Constant]) -> n.Block:
        """A loop whose condition is about a variable that starts with a number and changes by
        one: `step = 128; while step > 0: …; step //= 2`."""
        variable = _decider(loop.condition)
        start = numbers.get(variable.name) if variable else None
        if variable is None or start is None:
            return (loop,)
        *body, last = (*loop.body, *loop.update) or (None,)
        changed = _assigned((*loop.body, *loop.update)).count(variable.name) == 1
        if not changed or not _steps(last, variable) or leaves_loop(loop.body):
            return (loop,)
        assert isinstance(last, n.Assign)
        values = list(_values(loop.condition, last.value, start))
        if len(values) > _MOST_ITERATIONS + 1 or not self.is_short(tuple(body), len(values) - 1):
            return (loop,)
        result: list[n.Statement] = []
        for value in values[:-1]:
            result.extend(copy_body(tuple(body), variable.name, value, self.taken))
        return (*result, replace(last, value=values[-1]))

    # --- loops whose trip count is not known ------------------------------------------------------

    def repeated(self, loop: n.For) -> n.Block:
        """A loop unrolled by four, and one for the remainder."""
        start = loop.start
        if not (isinstance(start, n.Constant) and loop.variable.type == I32 and start.value >= 0):
            return (loop,)
        if loop.step != 1 or loop.unroll or not self.is_repeatable(loop.body):
            return (loop,)
        span = loop.span
        stop = self.fresh(f"{loop.variable.name}.stop")
        middle = self.fresh(f"{loop.variable.name}.middle")
        first = self.fresh(loop.variable.name)
        room = n.Binary("sub", n.Intrinsic("max", (stop, start), I32), start, I32)
        number = n.Constant(_REPEATS, I32)
        whole = n.Binary("mul", n.Binary("floordiv", room, number, I32), number, I32)
        copies: list[n.Statement] = []
        for k in range(_REPEATS):
            at = n.Binary("add", first, n.Constant(k, I32), I32) if k else first
            copies.extend(copy_body(loop.body, loop.variable.name, at, self.taken))
        return (
            n.Declare(stop, loop.stop, span),
            n.Declare(middle, n.Binary("add", start, whole, I32), span),
            n.For(first, start, middle, _REPEATS, tuple(copies), span=span),
            replace(loop, start=middle, stop=stop),
        )

    def is_repeatable(self, body: n.Block) -> bool:
        """Whether a body is short and holds branches, so that ptxas would not unroll it. Divisions
        and roots are branches too, to code for special values."""
        if self.cost(body) > _SHORT:
            return False
        branches = False
        for node in walk(body):
            if isinstance(node, (*_SYNCHRONIZING, n.Break, n.Continue, n.Return)):
                return False
            branches = branches or isinstance(node, (n.If, n.Call)) or _is_slow(node)
        return branches

    def fresh(self, name: str) -> n.Variable:
        """A new variable."""
        unique, count = name, 1
        while unique in self.taken:
            unique = f"{name}.{count}"
            count += 1
        self.taken.add(unique)
        return n.Variable(unique, I32)


def _is_slow(node: Any) -> bool:
    """Whether an operation has a way of its own for special operands."""
    operation = isinstance(node, n.Binary) and node.op == "div"
    root = isinstance(node, n.Intrinsic) and node.op == "sqrt"
    return (operation or root) and isinstance(node.type, Scalar) and node.type.is_float


def _axis(value: n.Expression | None) -> int | None:
    """The axis of which an expression is the thread's number in its block."""
    is_thread = isinstance(value, n.Builtin) and value.name == "thread_idx"
    return value.axis if is_thread else None  # type: ignore[union-attr]


def _threads(block: n.Block) -> dict[str, int]:
    """The variables that are the thread's number, with its axis."""
    found = {}
    for node in statements_in(block):
        axis = _axis(node.value) if isinstance(node, n.Declare) else None
        if axis is not None:
            found[node.variable.name] = axis  # type: ignore[union-attr]
    for name in _assigned(block):
        found.pop(name, None)
    return found


# --- variables with known numbers -----------------------------------------------------------------


def _follow(statement: n.Statement, numbers: dict[str, n.Constant]) -> None:
    """What is known of variables after a statement."""
    match statement:
        case n.Declare(value=n.Constant() as value):
            numbers[statement.variable.name] = value
        case n.Assign(place=n.Variable() as variable, value=n.Constant() as value):
            numbers[variable.name] = value
        case _:
            for name in _assigned((statement,)):
                numbers.pop(name, None)


def _assigned(block: n.Block) -> list[str]:
    """The variables that a block assigns, as often as it does."""
    names: list[str] = []
    for node in statements_in(block):
        if isinstance(node, n.Assign):
            root = root_of(node.place)
            if isinstance(root, n.Variable):
                names.append(root.name)
        elif isinstance(node, n.Receiving) and node.result:
            names.append(node.result.name)
    return names


def _decider(condition: n.Expression) -> n.Variable | None:
    """The only variable of a condition, if it is an integer."""
    match condition:
        case (
            n.Binary(left=n.Variable() as variable, right=n.Constant())
            | n.Binary(left=n.Constant(), right=n.Variable() as variable)
        ) if condition.op in n.COMPARISONS:
            type = variable.type
            return variable if isinstance(type, Scalar) and type.is_integer else None
    return None


def _steps(last: n.Statement | None, variable: n.Variable) -> bool:
    """Whether a statement changes a variable by a number: `step = step op 2`."""
    match last:
        case n.Assign(
            place=n.Variable() as place,
            value=n.Binary(left=n.Variable() as left, right=n.Constant()),
        ):
            return place.name == left.name == variable.name
    return False


def _values(condition: n.Expression, step: n.Expression, start: n.Constant) -> Iterator[n.Constant]:
    """The values of a variable in each iteration, and the one that ends the loop."""
    value = start
    for _ in range(_MOST_ITERATIONS + 2):
        yield value
        if not _evaluate(condition, value):
            return
        value = replace(value, value=_evaluate(step, value))


def _evaluate(node: n.Expression, value: n.Constant) -> Any:
    """A binary operation on a variable with this value and a number."""
    assert isinstance(node, n.Binary)
    left, right = (
        part.value if isinstance(part, n.Constant) else value.value
        for part in (node.left, node.right)
    )
    of_type = value.type if node.type == BOOL else node.type
    assert isinstance(of_type, Scalar)
    return arithmetic.binary(node.op, left, right, of_type)
