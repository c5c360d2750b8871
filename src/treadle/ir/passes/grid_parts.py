"""A kernel with barriers of the grid, cut there into kernels that are launched one after the other.

Where a launch ends, all its blocks have ended, so the next one needs no block that waits for
another. What a thread or a block still needs lies in a buffer meanwhile (`grid_state`). Control
flow around the barriers is the same for all threads of the grid, so the host does it:

    a[i] = f(i)                    launch 0
    while error[0] > limit:        launch 0 also says whether it holds; the host reads that
      barrier grid
      step(a, i)                   launch 1, which asks again
    b[i] = a[i]                    launch 2

A condition of the kernel's parameters and of counters alone is decided by the host. In others every
thread of the grid says what it found, so that a grid that is divided is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from treadle.core.dim3 import Dim3
from treadle.core.errors import CompileError
from treadle.core.source import NOWHERE, Span
from treadle.ir import builder as b
from treadle.ir import nodes as n
from treadle.ir.passes.array_variables import resolve_items
from treadle.ir.passes.fold import fold, specialize
from treadle.ir.passes.fold_expressions import ExpressionFolder
from treadle.ir.passes.grid_state import ANSWERS, BARRIER, KEPT, Part, StateSaver
from treadle.ir.passes.inline import inline
from treadle.ir.passes.kept_words import words_of
from treadle.ir.passes.names import Names
from treadle.ir.passes.regions import assigned_in, leaves_loop
from treadle.ir.passes.uniformity import Level, analyze
from treadle.ir.traverse import rewrite_block, statements_in, walk
from treadle.ir.types import BOOL, I32, Scalar, size_of

_PLAIN = (
    n.Constant, n.Variable, n.Builtin, n.Unary, n.Binary, n.Select, n.Cast, n.Bitcast, n.Intrinsic,
    n.Construct, n.Extract,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Launch:
    """The host launches a part, and goes on at another step, or ends (None)."""

    part: int
    next: int | None


@dataclass(frozen=True, slots=True)
class Ask:
    """The host reads what the threads of the last part found, and goes on accordingly."""

    then: int | None
    otherwise: int | None
    span: Span


@dataclass(frozen=True, slots=True)
class Decide:
    """The host evaluates a condition of parameters and counters."""

    condition: n.Expression
    then: int | None
    otherwise: int | None


@dataclass(frozen=True, slots=True)
class Count:
    """The host sets a counter."""

    name: str
    value: n.Expression
    next: int | None


Step: TypeAlias = Launch | Ask | Decide | Count


@dataclass(frozen=True, slots=True)
class GridParts:
    """The parts of a kernel, each of which takes the buffer of kept words, and the values of
    `counters`, as its last arguments. `steps` is what the host does, from step `first` on."""

    parts: tuple[n.Kernel, ...]
    steps: tuple[Step, ...]
    first: int | None
    counters: tuple[n.Variable, ...]
    thread_words: int
    block_words: int  # without those of dynamic shared memory
    dynamic_words: int  # of an element of dynamic shared memory
    dynamic_bytes: int  # that such an element has

    @property
    def asks(self) -> bool:
        """Whether the host reads what threads found."""
        return any(isinstance(step, Ask) for step in self.steps)

    def words(self, grid: Dim3, block: Dim3, shared_bytes: int) -> int:
        """The length of the buffer."""
        of_block = self.block_words
        if self.dynamic_bytes:
            of_block += shared_bytes // self.dynamic_bytes * self.dynamic_words
        return ANSWERS + grid.count * (block.count * self.thread_words + of_block)


def has_grid_barriers(block: n.Block) -> bool:
    """Whether statements wait for the other blocks of the grid."""
    return any(_is_barrier(node) for node in statements_in(block))


def grid_parts(kernel: n.Kernel, block: Dim3) -> GridParts:
    """The parts of a kernel for blocks of a size. CompileError where that is not possible."""
    specialized = specialize(resolve_items(kernel), block)
    whole = fold(inline(fold(specialized, keeps_failing=True)), keeps_failing=True)
    return _Cutter(whole).parts()


def _is_barrier(node: n.Statement) -> bool:
    return isinstance(node, n.Barrier) and node.scope == BARRIER


# --- control flow around the barriers, as a graph -------------------------------------------------


@dataclass(eq=False, slots=True)
class _Node:
    """Statements without barriers of the grid, and what comes after them: a barrier if it `stops`;
    a branch if there is a condition; the end of the kernel if there is no `next`."""

    statements: list[n.Statement] = field(default_factory=list)
    next: _Node | None = None
    stops: bool = False
    condition: n.Expression | None = None
    otherwise: _Node | None = None
    counts: tuple[str, n.Expression] | None = None  # what the host sets before the statements
    entered: int = 0  # by how many others
    span: Span = NOWHERE


@dataclass(frozen=True, slots=True)
class _Loop:
    breaks: _Node
    continues: _Node


class _Cutter:
    def __init__(self, kernel: n.Kernel) -> None:
        self.kernel = kernel
        self.names = Names(kernel)
        self.host_known = {
            one.name for one in kernel.parameters if one.origin[:1] in (("value",), ("grid",))
        }
        self.counters: dict[str, n.Variable] = {}
        self.has_returns = _returns_before_barriers(kernel.body)
        self.ended = n.Variable(self.names.fresh("grid.ended"), BOOL)
        body, self.plain = _without_plain(kernel)
        self.start = _Node()
        if self.has_returns:
            self.start.statements.append(n.Declare(self.ended, n.FALSE))
        self.flatten(body, self.start, None)
        self.steps: list[Step | None] = []
        self.made: list[Part] = []
        self.known: dict[_Node, int | None] = {}

    def fresh_counter(self, variable: n.Variable) -> None:
        self.counters[variable.name] = variable

    # --- the graph ---

    def flatten(self, block: n.Block, at: _Node, loop: _Loop | None) -> _Node:
        """Add the statements of a block behind a node. The node that they end in."""
        for statement in block:
            if _is_barrier(statement):
                at = self.after(at, stops=True)
            elif not _divides(statement, loop is not None):
                at.statements.append(statement)
            else:
                at = self.control(statement, at, loop)
        return at

    def control(self, statement: n.Statement, at: _Node, loop: _Loop | None) -> _Node:
        match statement:
            case n.If():
                behind = _Node()
                at.condition, at.span = statement.condition, statement.span
                at.next, at.otherwise = _Node(), _Node()
                _enter(self.flatten(statement.then, at.next, loop), behind)
                _enter(self.flatten(statement.otherwise, at.otherwise, loop), behind)
                at.next.entered = at.otherwise.entered = 2  # a step of the host's leads there
                return behind
            case n.For():
                return self.counted(statement, at)
            case n.While():
                behind, update, head = _Node(), _Node(), _Node()
                _enter(at, head)
                self.branch(head, statement.condition, behind, statement.span)
                assert head.next is not None
                _enter(self.flatten(statement.body, head.next, _Loop(behind, update)), update)
                _enter(self.flatten(statement.update, update, None), head)
                return behind
        assert loop is not None
        _enter(at, loop.breaks if isinstance(statement, n.Break) else loop.continues)
        return _Node()  # nothing comes here

    def branch(self, head: _Node, condition: n.Expression, behind: _Node, span: Span) -> None:
        """The head of a loop: `head.next` is its body."""
        head.next = _Node(entered=2)
        if isinstance(condition, n.Constant) and condition.value and not self.has_returns:
            return
        head.condition, head.otherwise, head.span = condition, behind, span
        behind.entered = 2

    def counted(self, statement: n.For, at: _Node) -> _Node:
        """A counted loop. The host counts if it knows the bounds."""
        variable, type = statement.variable, statement.variable.type
        assert isinstance(type, Scalar)
        by = statement.by if statement.by is not None else b.constant(statement.step, type)
        bounds = (statement.start, statement.stop, by)
        of_host = all(map(self.of_host, bounds))
        behind, update, head = _Node(), _Node(), _Node()
        if of_host:
            self.fresh_counter(variable)
            begin = _Node(counts=(variable.name, statement.start))
            _enter(at, begin)
            begin.next, head.entered = head, 2
            stop, step = statement.stop, by
            update.counts = (variable.name, b.add(variable, step))
        else:
            stop = self.kept(at, variable.name + ".stop", statement.stop)
            step = by if isinstance(by, n.Constant) else self.kept(at, variable.name + ".by", by)
            at.statements.append(n.Declare(variable, statement.start, statement.span))
            _enter(at, head)
            update.statements.append(n.Assign(variable, b.add(variable, step)))
        condition: n.Expression = b.less(variable, stop)
        if isinstance(step, n.Constant):
            if step.value < 0:
                condition = b.binary("gt", variable, stop)
        else:
            down = b.both(b.less(step, 0), b.binary("gt", variable, stop))
            up = b.both(b.binary("gt", step, 0), condition)
            condition = n.Binary("logical_or", up, down, BOOL)
        self.branch(head, condition, behind, statement.span)
        assert head.next is not None
        _enter(self.flatten(statement.body, head.next, _Loop(behind, update)), update)
        _enter(update, head)
        return behind

    def kept(self, at: _Node, name: str, value: n.Expression) -> n.Expression:
        if isinstance(value, n.Constant):
            return value
        variable = n.Variable(self.names.fresh(name), value.type)
        at.statements.append(n.Declare(variable, value))
        return variable

    def after(self, at: _Node, *, stops: bool) -> _Node:
        at.next, at.stops = _Node(entered=2 if stops else 1), stops
        return at.next

    def of_host(self, expression: n.Expression) -> bool:
        """Whether the host can evaluate an expression: it has parameters and counters alone."""
        for node in walk(self.written_out(expression)):
            match node:
                case n.Variable(name):
                    if name not in self.host_known and name not in self.counters:
                        return False
                case n.Builtin(name):
                    if name not in ("block_dim", "grid_dim"):
                        return False
                case _ if not isinstance(node, _PLAIN):
                    return False
        return True

    def written_out(self, expression: n.Expression) -> n.Expression:
        """An expression with plain variables replaced by their values."""

        def change(node: object) -> object:
            if isinstance(node, n.Variable) and node.name in self.plain:
                return self.written_out(self.plain[node.name][1])
            return node

        found: n.Expression = rewrite_block((expression,), change)[0]
        return found

    # --- parts and steps ---

    def step_at(self, node: _Node | None) -> int | None:
        """What the host does from a node on."""
        if node is None:
            return None
        if node in self.known:
            return self.known[node]
        place = self.place(node)
        statements, last = self.gathered(node)
        if node.counts is not None and not statements and last is node:
            name, value = node.counts
            self.steps[place] = Count(name, self.written_out(value), self.step_at(node.next))
            return place
        if node.counts is not None:
            name, value = node.counts
            launch = self.place(None)
            self.steps[place] = Count(name, self.written_out(value), launch)
        else:
            launch = place
        asked = last.condition
        if asked is not None and self.of_host(asked) and not self.may_have_ended(last):
            decide = self.place(None) if statements else launch
            if statements:
                self.steps[launch] = Launch(self.part(statements, None, node.span), decide)
            then, otherwise = self.step_at(last.next), self.step_at(last.otherwise)
            self.steps[decide] = Decide(self.written_out(asked), then, otherwise)
        elif asked is not None:
            ask = self.place(None)
            self.steps[launch] = Launch(self.part(statements, asked, last.span), ask)
            then, otherwise = self.step_at(last.next), self.step_at(last.otherwise)
            self.steps[ask] = Ask(then, otherwise, last.span)
        elif statements:
            self.steps[launch] = Launch(
                self.part(statements, None, node.span), self.step_at(last.next)
            )
        else:  # nothing to do between two barriers
            self.steps[launch] = Decide(n.TRUE, self.step_at(last.next), None)
        return place

    def may_have_ended(self, node: _Node) -> bool:
        """Whether a loop whose head is this node goes on until all threads have returned."""
        return self.has_returns and node.condition == n.TRUE

    def place(self, node: _Node | None) -> int:
        place = len(self.steps)
        self.steps.append(None)
        if node is not None:
            self.known[node] = place
        return place

    def gathered(self, node: _Node) -> tuple[list[n.Statement], _Node]:
        """The statements from a node on that one launch executes, and the node they end in."""
        statements, at = list(node.statements), node
        seen = {node}
        while not at.stops and at.condition is None and at.next is not None:
            following = at.next
            if following in seen:
                break
            seen.add(following)
            if following.counts is not None or (following.statements and following.entered > 1):
                break
            statements += following.statements
            at = following
        return statements, at

    def part(
        self, statements: list[n.Statement], condition: n.Expression | None, span: Span
    ) -> int:
        self.made.append(Part(statements, condition, span))
        return len(self.made) - 1

    def parts(self) -> GridParts:
        """The result."""
        first = self.step_at(self.start)
        steps = tuple(step for step in self.steps if step is not None)
        assert len(steps) == len(self.steps)
        self.follow(steps)
        ended = self.ended if self.has_returns else None
        counters = tuple(self.counters.values())
        uniform = uniform_variables(self.kernel)
        saver = StateSaver(self.kernel, self.names, self.made, self.plain, counters, ended, uniform)
        made = tuple(saver.kernel(one) for one in range(len(self.made)))
        dynamic = [memory for memory in saver.memories if memory.length is None]
        element = dynamic[0].element if dynamic else None
        return GridParts(
            made,
            steps,
            first,
            counters,
            saver.thread_words,
            saver.block_words,
            words_of(element) if element is not None else 0,
            size_of(element) if element is not None else 0,
        )

    def follow(self, steps: tuple[Step, ...]) -> None:
        """Find which part may follow which."""
        for step in steps:
            if not isinstance(step, Launch):
                continue
            left, seen = [step.next], set[int]()
            while left:
                at = left.pop()
                if at is None or at in seen:
                    continue
                seen.add(at)
                match steps[at]:
                    case Launch(part):
                        self.made[step.part].followed.add(part)
                    case Count(next=following):
                        left.append(following)
                    case Ask() | Decide() as choice:
                        left += [choice.then, choice.otherwise]


def uniform_variables(kernel: n.Kernel) -> frozenset[str]:
    """The variables that are the same for all threads of a block, given that those of the grid go
    the same way around its barriers."""
    unknown = n.Variable("grid.unknown", BOOL)

    def agreed(block: n.Block, in_loop: bool) -> n.Block:
        return tuple(one(statement, in_loop) for statement in block)

    def one(statement: n.Statement, in_loop: bool) -> n.Statement:
        if _is_barrier(statement):
            return n.Barrier("block")
        if not _divides(statement, in_loop):
            return statement
        match statement:
            case n.If():
                then, otherwise = (
                    agreed(statement.then, in_loop),
                    agreed(statement.otherwise, in_loop),
                )
                return n.If(unknown, then, otherwise)
            case n.While():
                body, update = agreed(statement.body, True), agreed(statement.update, True)
                return n.While(unknown, body, update)
            case n.For():
                type = statement.variable.type
                assert isinstance(type, Scalar)
                stop = b.cast(unknown, type)
                return replace(
                    statement,
                    stop=stop,
                    by=None,
                    step=statement.step or 1,
                    body=agreed(statement.body, True),
                )
        return statement

    body = agreed(kernel.body, False)
    known = (*kernel.parameters, n.Parameter(unknown.name, BOOL))
    found = analyze(replace(kernel, body=body, parameters=known), ignore_returns=True)
    return frozenset(name for name, value in found.variables.items() if value.level <= Level.BLOCK)


def _enter(at: _Node, target: _Node) -> None:
    at.next = target
    target.entered += 1


def _divides(statement: n.Statement, in_loop: bool) -> bool:
    """Whether the host does a statement's control flow: there is a barrier of the grid in it, or a
    jump of a loop with one."""
    if isinstance(statement, (n.If, n.For, n.While)) and has_grid_barriers((statement,)):
        return True
    return in_loop and leaves_loop((statement,))


def _without_plain(
    kernel: n.Kernel,
) -> tuple[n.Block, dict[str, tuple[n.Variable, n.Expression]]]:
    """The kernel's body without declarations of variables that are computed of parameters and of
    the thread's place alone, and these: each part computes them again."""
    assigned: set[str] = set()
    for node in statements_in(kernel.body):
        if isinstance(node, n.For):
            assigned.add(node.variable.name)
        elif not isinstance(node, (n.Declare, n.If, n.While)):
            assigned |= assigned_in((node,))
    known = {parameter.name for parameter in kernel.parameters}
    plain: dict[str, tuple[n.Variable, n.Expression]] = {}
    for node in statements_in(kernel.body):
        if not isinstance(node, n.Declare) or node.value is None or node.variable.name in assigned:
            continue
        inside = list(walk(node.value))
        if all(isinstance(one, (*_PLAIN, n.Call)) for one in inside) and all(
            one.name in known or one.name in plain for one in inside if isinstance(one, n.Variable)
        ):
            plain[node.variable.name] = node.variable, node.value

    def change(node: object) -> object:
        if isinstance(node, n.Declare) and node.variable.name in plain:
            return ()
        return node

    return rewrite_block(kernel.body, change), plain


def _returns_before_barriers(block: n.Block) -> bool:
    """Whether a barrier of the grid may come after a return, in the text or around a loop."""
    returned = False
    for node in statements_in(block):
        if isinstance(node, n.Return):
            returned = True
        elif (returned and _is_barrier(node)) or (
            isinstance(node, (n.For, n.While))
            and has_grid_barriers((node,))
            and any(isinstance(inside, n.Return) for inside in statements_in((node,)))
        ):
            return True
    return False


def with_offset(kernel: n.Kernel) -> n.Kernel:
    """A part whose kept words do not begin where their buffer does."""
    offset = n.Variable(f"{KEPT}.offset", I32)

    def change(node: object) -> object:
        if isinstance(node, n.Element) and node.memory == KEPT:
            return replace(node, index=b.add(node.index, offset))
        return node

    parameter = n.Parameter(offset.name, I32, ("offset", KEPT))
    changed = replace(kernel, parameters=(*kernel.parameters, parameter))
    return replace(changed, body=rewrite_block(kernel.body, change))


def steps_for(steps: tuple[Step, ...], grid: Dim3) -> tuple[Step, ...]:
    """The host's steps for a grid, whose size is then known in their expressions."""

    def change(node: object) -> object:
        if isinstance(node, n.Builtin) and node.name == "grid_dim":
            return n.Constant(grid[node.axis], node.type)
        return node

    def of_grid(step: Step) -> Step:
        match step:
            case Decide(condition):
                return replace(step, condition=rewrite_block((condition,), change)[0])
            case Count(_, value):
                return replace(step, value=rewrite_block((value,), change)[0])
        return step

    return tuple(map(of_grid, steps))


def value_of(expression: n.Expression, known: Mapping[str, n.Constant]) -> n.Constant:
    """The value of an expression of the host's, of which these parameters and counters are known.
    CompileError if that is not enough."""
    folder = ExpressionFolder()
    folder.known = dict(known)
    found = folder.expression(expression)
    if not isinstance(found, n.Constant):
        raise CompileError("the host cannot evaluate this condition around a barrier of the grid")
    return found
