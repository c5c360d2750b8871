"""Recursive functions as a loop, for targets without a call stack.

The bodies of functions that call each other become pieces of code without calls, each with a
number. A loop runs the piece whose number `state` is; the piece ends by setting the next one. A
call saves the variables that are read after it in arrays of the thread, at the index of the
current level, with the number of the piece that follows the call; that piece loads them again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from treadle.core.source import Span
from treadle.ir import nodes as n
from treadle.ir.passes.fold import leaves, zero
from treadle.ir.passes.frames import Frames
from treadle.ir.traverse import statements_in, walk
from treadle.ir.types import BOOL, I32, Scalar, Struct, Type, Vector

_END = -1  # the piece that ends a call


@dataclass(frozen=True, slots=True)
class _Goto:
    """The end of a path through a piece: which piece comes next."""

    piece: int


@dataclass(frozen=True, slots=True)
class _CallTo:
    """The end of a path through a piece: a call, and the piece that follows it."""

    function: str
    then: int


@dataclass(frozen=True, slots=True)
class _Branch:
    """An if in a piece, in which paths end."""

    condition: n.Expression
    then: _Code
    otherwise: _Code
    span: Span


_Code: TypeAlias = "tuple[n.Statement | _Branch | _Goto | _CallTo, ...]"


@dataclass(frozen=True, slots=True)
class _Loop:
    """Where `break` and `continue` of the loop around go."""

    after: int
    again: int


@dataclass(slots=True)
class _Piece:
    function: str
    block: n.Block  # not cut at calls yet
    after: int  # the piece that follows the block
    loop: _Loop | None
    resumes: bool = False  # it follows a call
    code: _Code = ()
    live: frozenset[str] = frozenset()  # the variables that are read before they are assigned


@dataclass(frozen=True, slots=True)
class Recursion:
    """The loop, the memories that it needs, and the variable that says that the levels were not
    enough: then the loop was left."""

    code: n.Block
    memories: tuple[n.Memory, ...]
    overflowed: n.Variable


def as_loop(
    bodies: Mapping[str, n.Block],
    first: str,
    level: n.Variable,
    levels: int,
    unique: Callable[[str], str],
    span: Span,
) -> Recursion:
    """The call of the function `first` as a loop. A body calls one of the functions by a
    CallStatement without arguments, and ends by `Return` without a value: arguments and results are
    in variables that are declared around. `level` is declared there too, and zero: it is the depth
    of the calls. At most `levels` of them have not ended at any time."""
    return _Flattened(bodies, level, levels, unique, span).call(first)


class _Flattened:
    def __init__(
        self,
        bodies: Mapping[str, n.Block],
        level: n.Variable,
        levels: int,
        unique: Callable[[str], str],
        span: Span,
    ) -> None:
        self.bodies = bodies
        self.level = level
        self.levels = levels
        self.unique = unique
        self.span = span
        self.pieces: list[_Piece] = []
        self.entries: dict[str, int] = {}
        self.stops: dict[str, n.Variable] = {}  # of counted loops, by their variable
        # Functions with memories at the index of the level: a pointer to them may be an argument.
        self.has_memory = {name for name, body in bodies.items() if level.name in _read(body)}
        self.state = n.Variable(unique("state"), I32, span)
        self.overflowed = n.Variable(unique("too_deep"), BOOL, span)

    def call(self, first: str) -> Recursion:
        for name, body in self.bodies.items():
            self.entries[name] = self.piece(name, body, _END, None)
        for piece in self.pieces:  # which become more
            piece.code = tuple(self.path(piece.block, piece.after, piece.loop, piece.function))
        order = self.order(self.entries[first])
        self.find_live(order)
        names = [_mentioned(self.pieces[one].code) for one in order]
        variables = {
            name: one for at in order for name, one in _declared(self.pieces[at].code).items()
        }
        shared = {
            name: one for name, one in variables.items() if sum(name in each for each in names) > 1
        }
        frames = Frames(self.level, self.levels, self.unique, self.span)
        for at in order:
            for call in _calls(self.pieces[at].code):
                live = self.pieces[call.then].live
                saved = [one for name, one in variables.items() if name in live]
                frames.keep(self.pieces[at].function, saved)
        made = _Printer(self, frames, {one: at for at, one in enumerate(order)}, shared)
        code: n.Block = (
            n.Declare(self.overflowed, n.FALSE, self.span),
            n.Declare(self.state, _number(order.index(self.entries[first])), self.span),
            *(n.Declare(one, None, one.span) for one in shared.values()),
            n.While(n.TRUE, (*map(made.test, order), *made.ending()), (), self.span),
        )
        return Recursion(code, frames.memories(), self.overflowed)

    # --- pieces ---

    def piece(
        self, function: str, block: n.Block, after: int, loop: _Loop | None, resumes: bool = False
    ) -> int:
        """A new piece; the one that follows if there is nothing to do in it."""
        if not block and not resumes and self.entries.get(function) is not None:
            return after
        self.pieces.append(_Piece(function, block, after, loop, resumes))
        return len(self.pieces) - 1

    def path(
        self, block: n.Block, after: int, loop: _Loop | None, function: str
    ) -> Iterator[n.Statement | _Branch | _Goto | _CallTo]:
        """A block up to the end of each path through its first piece. What follows that becomes
        other pieces."""
        for at, statement in enumerate(block):
            if not self.divides(statement):
                yield statement
                continue
            rest = block[at + 1 :]
            match statement:
                case n.Return():
                    yield _Goto(_END)
                case n.Break():
                    assert loop is not None
                    yield _Goto(loop.after)
                case n.Continue():
                    assert loop is not None
                    yield _Goto(loop.again)
                case n.CallStatement():
                    if self.is_last(rest, after, function):
                        yield _CallTo(statement.function, _END)
                        return
                    then = self.piece(function, rest, after, loop, resumes=True)
                    yield _CallTo(statement.function, then)
                case n.If():
                    yield self.branch(statement, rest, after, loop, function)
                case n.While():
                    yield _Goto(self.loop(statement, rest, after, loop, function))
                case n.For():
                    declared, same = self.as_while(statement)
                    yield from declared
                    yield _Goto(self.loop(same, rest, after, loop, function))
            return
        yield _Goto(after)

    def divides(self, statement: n.Statement) -> bool:
        """Whether a statement is more than a part of one piece: it calls, or it leaves what is
        around it."""
        if _leaves_loop(statement):
            return True
        return any(
            isinstance(one, n.Return)
            or (isinstance(one, n.CallStatement) and one.function in self.bodies)
            for one in statements_in((statement,))
        )

    def is_last(self, rest: n.Block, after: int, function: str) -> bool:
        """Whether nothing follows a call, so that it can use the level of its function."""
        if function in self.has_memory:
            return False
        match rest:
            case (n.Return(), *_):
                return True
            case (
                n.Declare(n.Variable(kept), n.Variable(given)),
                n.Assign(n.Variable(result), n.Variable(value)),
                n.Return(),
                *_,
            ):
                return (kept, given) == (value, result)
        return not rest and after == _END

    def branch(
        self, node: n.If, rest: n.Block, after: int, loop: _Loop | None, function: str
    ) -> _Branch:
        then, otherwise = node.then, node.otherwise
        if then and leaves(then[-1]):
            otherwise += rest
        elif otherwise and leaves(otherwise[-1]):
            then += rest
        elif rest:
            after = self.piece(function, rest, after, loop)
        return _Branch(
            node.condition,
            tuple(self.path(then, after, loop, function)),
            tuple(self.path(otherwise, after, loop, function)),
            node.span,
        )

    def loop(
        self, node: n.While, rest: n.Block, after: int, loop: _Loop | None, function: str
    ) -> int:
        """The piece that a loop begins with."""
        end = self.piece(function, rest, after, loop)
        first = len(self.pieces)
        head = _Piece(function, node.body, first, None)
        self.pieces.append(head)
        again = self.piece(function, node.update, first, None)
        head.after, head.loop = again, _Loop(end, again)
        if node.condition != n.TRUE:
            leave = n.If(node.condition, (), (n.Break(node.span),), node.span)
            head.block = (leave, *node.body)
        return first

    def as_while(self, node: n.For) -> tuple[n.Block, n.While]:
        """A counted loop as another one, after the declarations of its variable and its bound."""
        assert node.by is None, "the front end makes loops of constant steps"
        variable, type = node.variable, node.variable.type
        assert isinstance(type, Scalar)
        stop = n.Variable(self.unique(f"{variable.name}.stop"), type, node.span)
        declared = (n.Declare(stop, node.stop), n.Declare(variable, node.start))
        condition = n.Binary("lt" if node.step > 0 else "gt", variable, stop, BOOL, node.span)
        step = n.Constant(abs(node.step), type)
        op = "add" if node.step > 0 else "sub"
        further = n.Assign(variable, n.Binary(op, variable, step, type), node.span)
        return declared, n.While(condition, node.body, (further,), node.span)

    def order(self, first: int) -> list[int]:
        """The pieces that are reached, each before those that it leads to where that is possible:
        then a round of the loop runs several."""
        found: list[int] = []
        seen = {first}
        stack = [(first, iter(self.following(first)))]
        while stack:
            piece, following = stack[-1]
            further = next((one for one in following if one not in seen), None)
            if further is None:
                found.append(piece)
                stack.pop()
            else:
                seen.add(further)
                stack.append((further, iter(self.following(further))))
        return found[::-1]

    def following(self, piece: int) -> list[int]:
        found: list[int] = []
        for end in _ends(self.pieces[piece].code):
            if isinstance(end, _CallTo):
                found.append(self.entries[end.function])
            found.append(end.then if isinstance(end, _CallTo) else end.piece)
        return [one for one in found[::-1] if one != _END]

    # --- which variables are read after a call ---

    def find_live(self, order: list[int]) -> None:
        changed = True
        while changed:
            changed = False
            for at in reversed(order):
                piece = self.pieces[at]
                live = self.before(piece.code, frozenset(), ())
                changed = changed or live != piece.live
                piece.live = live

    def before(
        self, code: _Code, live: frozenset[str], loops: tuple[tuple[frozenset[str], ...], ...]
    ) -> frozenset[str]:
        """The variables that code reads before it assigns them, or that are read after it: `live`.
        `loops` has what is read after `break` and after `continue` of the loops around."""
        for one in reversed(code):
            match one:
                case _Goto(piece):
                    live = frozenset() if piece == _END else self.pieces[piece].live
                case _CallTo(then=piece):
                    live = frozenset() if piece == _END else self.pieces[piece].live
                case _Branch() | n.If():
                    live = (
                        self.before(one.then, live, loops)
                        | self.before(one.otherwise, live, loops)
                        | _read(one.condition)
                    )
                case n.Break():
                    live = loops[-1][0]
                case n.Continue():
                    live = loops[-1][1]
                case n.While():
                    live = self.before_loop(one, live, loops)
                case n.For():
                    around = n.While(n.TRUE, one.body)
                    inside = self.before_loop(around, live, loops) - {one.variable.name}
                    live = live | inside | _read(one.start) | _read(one.stop)
                case n.Declare(variable, value):
                    live = live - {variable.name} | _read(value)
                case n.Assign(n.Variable(name), value):
                    live = live - {name} | _read(value)
                case _:
                    result = getattr(one, "result", None)
                    if isinstance(result, n.Variable):
                        live = (live - {result.name}) | (_read(one) - {result.name})
                    else:
                        live = live | _read(one)
        return live

    def before_loop(
        self,
        node: n.While,
        after: frozenset[str],
        loops: tuple[tuple[frozenset[str], ...], ...],
    ) -> frozenset[str]:
        start = after | _read(node.condition)
        while True:
            again = self.before(node.update, start, loops)
            found = start | self.before(node.body, again, (*loops, (after, again)))
            if found == start:
                return start
            start = found


@dataclass(frozen=True, slots=True)
class _Printer:
    """The pieces as branches on the state."""

    made: _Flattened
    frames: Frames
    numbers: Mapping[int, int]  # the states, by piece
    shared: Mapping[str, n.Variable]  # the variables of several pieces

    def test(self, at: int) -> n.Statement:
        """A piece, if the state is its own."""
        piece = self.made.pieces[at]
        code: list[n.Statement] = []
        if at == self.made.entries[piece.function]:
            code.append(self.refused())
        if piece.resumes:
            code += self.frames.loads(piece.function, piece.live)
        code += self.code(piece.code, piece.function)
        return n.If(self.is_at(self.numbers[at]), tuple(code), (), self.made.span)

    def is_at(self, state: int) -> n.Expression:
        return n.Binary("eq", self.made.state, _number(state), BOOL, self.made.span)

    def refused(self) -> n.Statement:
        """The end of the loop where a call is too deep."""
        made = self.made
        deep = n.Binary("ge", made.level, _number(made.levels), BOOL, made.span)
        return n.If(deep, (n.Assign(made.overflowed, n.TRUE), n.Break(made.span)), (), made.span)

    def ending(self) -> n.Block:
        """The end of a call: the piece that follows it, one level higher."""
        made = self.made
        higher = n.Assign(made.level, n.Binary("sub", made.level, _number(1), I32))
        outermost = n.Binary("eq", made.level, _number(0), BOOL, made.span)
        back = n.Assign(made.state, self.frames.state())
        leave = n.If(outermost, (n.Break(made.span),), (), made.span)
        return (n.If(self.is_at(len(self.numbers)), (leave, higher, back), (), made.span),)

    def code(self, code: _Code, function: str) -> Iterator[n.Statement]:
        made = self.made
        for one in code:
            match one:
                case _Goto(piece):
                    yield n.Assign(made.state, _number(self.number(piece)))
                case _CallTo(called, then):
                    if then != _END:
                        yield from self.frames.saves(function, made.pieces[then].live)
                        yield self.frames.save_state(self.number(then))
                        yield n.Assign(made.level, n.Binary("add", made.level, _number(1), I32))
                    yield n.Assign(made.state, _number(self.number(made.entries[called])))
                case _Branch():
                    then_ = tuple(self.code(one.then, function))
                    otherwise = tuple(self.code(one.otherwise, function))
                    yield n.If(one.condition, then_, otherwise, one.span)
                case _:
                    yield from self.statement(one)

    def number(self, piece: int) -> int:
        return len(self.numbers) if piece == _END else self.numbers[piece]

    def statement(self, one: n.Statement) -> n.Block:
        """A statement, in which the variables of several pieces are declared already."""
        match one:
            case n.Declare(variable, value) if variable.name in self.shared:
                value = _zero(variable.type) if value is None else value
                return () if value is None else (n.Assign(variable, value, one.span),)
            case n.If():
                then, otherwise = self.block(one.then), self.block(one.otherwise)
                return (replace(one, then=then, otherwise=otherwise),)
            case n.While():
                body, update = self.block(one.body), self.block(one.update)
                return (replace(one, body=body, update=update),)
            case n.For():
                return (replace(one, body=self.block(one.body)),)
        return (one,)

    def block(self, block: n.Block) -> n.Block:
        return tuple(one for statement in block for one in self.statement(statement))


# --- what code mentions --------------------------------------------------------------------------


def _flat(code: _Code) -> Iterator[n.Statement | n.Expression | _Goto | _CallTo]:
    """The statements and ends of code, and the conditions of its branches."""
    for one in code:
        if isinstance(one, _Branch):
            yield one.condition
            yield from _flat(one.then)
            yield from _flat(one.otherwise)
        else:
            yield one


def _ends(code: _Code) -> list[_Goto | _CallTo]:
    return [one for one in _flat(code) if isinstance(one, (_Goto, _CallTo))]


def _calls(code: _Code) -> list[_CallTo]:
    return [one for one in _ends(code) if isinstance(one, _CallTo) and one.then != _END]


def _mentioned(code: _Code) -> set[str]:
    return {name for one in _flat(code) for name in _read(one)}


def _declared(code: _Code) -> dict[str, n.Variable]:
    found: dict[str, n.Variable] = {}
    for part in _flat(code):
        if isinstance(part, (n.Declare, n.If, n.For, n.While)):
            for one in statements_in((part,)):
                if isinstance(one, n.Declare):
                    found[one.variable.name] = one.variable
    return found


def _read(node: object) -> frozenset[str]:
    """The variables in a node or block."""
    if node is None or isinstance(node, (_Goto, _CallTo)):
        return frozenset()
    return frozenset(one.name for one in walk(node) if isinstance(one, n.Variable))


def _leaves_loop(statement: n.Statement) -> bool:
    """Whether a break or continue in a statement is of a loop around it."""
    if isinstance(statement, n.If):
        return any(map(_leaves_loop, (*statement.then, *statement.otherwise)))
    return isinstance(statement, (n.Break, n.Continue))


def _number(value: int) -> n.Constant:
    return n.Constant(value, I32)


def _zero(type: Type) -> n.Expression | None:
    """The zero of a type; None for one with arrays, which has a value by parts only."""
    match type:
        case Scalar():
            return zero(type)
        case Vector():
            return n.Construct((zero(type.element),) * type.count, type)
        case Struct():
            parts = tuple(_zero(one.type) for one in type.fields)
            return None if None in parts else n.Construct(parts, type)  # type: ignore[arg-type]
    return None
