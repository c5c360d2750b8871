"""Statements. All threads of a chunk of blocks go through them together; a mask says which of them
run a statement: True (all of them), False (none) or an array of booleans.

    if x > 0: y = 1                    t1 = (v_x > k0)
    else: y = 2                        m2 = both(m, t1)
                                       if m2 is not False:
                                           v_y = merge(m2, k1, v_y)
                                       m3 = without(m, t1)
                                       if m3 is not False:
                                           v_y = merge(m3, k2, v_y)

What ends a thread's block (`break`, `continue`, `return`) takes it out of the mask. Barriers need
nothing: no thread is ahead of another one.
"""

from __future__ import annotations

from treadle.codegen.numpy.emitter import Constants, Emitter
from treadle.codegen.numpy.expressions import (
    Expressions,
    Memories,
    function_name,
    to_store,
)
from treadle.codegen.numpy.functions import native_name
from treadle.core.errors import UnsupportedOnTarget
from treadle.ir import nodes as n
from treadle.ir.matrices import EXCHANGED, EXCHANGES
from treadle.ir.traverse import root_of, statements_in
from treadle.ir.types import Scalar, Void, leaves

_RETURNED = "r"  # the threads that have returned from the function


class Statements:
    """Prints the body of a function."""

    def __init__(
        self, constants: Constants, memories: Memories, returns: n.Function | None = None
    ) -> None:
        self.emitter = Emitter(constants)
        self.values = Expressions(self.emitter, memories)
        self.function = returns
        # Variables that may be assigned without a mask: those of the innermost block. Who is not in
        # the mask of that block any more does not read them again.
        self._own: set[str] = set()
        self._breaks: list[str] = []
        self._ends_with_return = False  # and returns nowhere else

    # --- blocks ----------------------------------------------------------------------------------

    def body(self, block: n.Block) -> None:
        """Print a function's body."""
        returns = [one for one in statements_in(block) if isinstance(one, n.Return)]
        self._ends_with_return = len(returns) == 1 and block[-1] is returns[0]
        if returns and not self._ends_with_return:
            self.emitter.line(f"{_RETURNED} = False")
        self.block(block)

    def block(self, block: n.Block) -> None:
        """Print a block, whose variables live until its end."""
        outer, self._own = self._own, set()
        self._rest(block)
        self._own = outer

    def _rest(self, block: n.Block) -> None:
        for at, statement in enumerate(block):
            self.statement(statement)
            if isinstance(statement, (n.Break, n.Continue, n.Return)):
                return
            rest = block[at + 1 :]
            if rest and _may_end(statement) and not self.emitter.is_deep:
                with self.emitter.indented(f"if {self.emitter.mask} is not False:"):
                    self._rest(rest)
                return

    def _inner(self, mask: str, block: n.Block) -> None:
        """A block that only the threads of a mask run."""
        outer, self.emitter.mask = self.emitter.mask, mask
        self.block(block)
        self.emitter.mask = outer

    # --- statements ------------------------------------------------------------------------------

    def statement(self, node: n.Statement) -> None:
        self._print(node)
        if not isinstance(node, n.Declare):
            self.emitter.forget()

    def _print(self, node: n.Statement) -> None:
        emitter = self.emitter
        match node:
            case n.Declare():
                self.declare(node)
            case n.Assign():
                self.assign(node)
            case n.If():
                self.branch(node)
            case n.For():
                self.for_loop(node)
            case n.While():
                self.while_loop(node)
            case n.Break():
                broken = self._breaks[-1]
                emitter.line(f"{broken} = either({broken}, {emitter.mask})")
                emitter.line(f"{emitter.mask} = False")
            case n.Continue():
                emitter.line(f"{emitter.mask} = False")
            case n.Return():
                self.give_back(node)
            case n.Barrier() | n.Fence():
                pass
            case n.Atomic():
                self.atomic(node)
            case n.Subgroup():
                self.subgroup(node)
            case n.Clock():
                self.receive(node.result, ["clock()"])
            case n.CallStatement():
                self.call(node)
            case _:
                raise UnsupportedOnTarget(
                    f"{type(node).__name__} has no meaning for NumPy", node.span
                )

    def declare(self, node: n.Declare) -> None:
        names = self.emitter.parts(node.variable)
        if node.value is None:
            zeros = [
                self.emitter.constants.name(0, scalar) for _, scalar in leaves(node.variable.type)
            ]
            values = zeros
        else:
            values = self.values.owned(node.value)
        self._own.add(node.variable.name)
        self._put(names, values)

    def assign(self, node: n.Assign) -> None:
        root = root_of(node.place)
        if isinstance(root, n.Variable):
            self.assign_variable(root, node)
            return
        values = self.values.parts(node.value)
        if len(values) > 1:  # the first store may change what the others load
            values = [self.emitter.temporary(text) for text in self.values.owned(node.value)]
        address = self.values.address(node.place)
        for value, (offset, type) in zip(values, leaves(node.place.type), strict=True):
            view, index = self.values.element(address, offset, type)
            checks = f", {address.checks}" if address.checks else ""
            stored = to_store(value, type)
            self.emitter.line(f"store({view}, {index}, {stored}, {self.emitter.mask}{checks})")

    def assign_variable(self, root: n.Variable, node: n.Assign) -> None:
        values = self.values.owned(node.value)
        choices = self.values.choices(node.place)
        if not choices[0][1]:
            self._merge(root.name, (*choices[0][0],), values)
            return
        emitter = self.emitter
        values = [emitter.temporary(value) for value in values]
        for names, conditions in choices:
            chosen = emitter.mask
            for condition in conditions:
                chosen = f"both({chosen}, {condition})"
            chosen = emitter.temporary(chosen)
            merged = [
                f"merge({chosen}, {value}, {name})"
                for name, value in zip(names, values, strict=True)
            ]
            self._put((*names,), merged)

    def _put(self, names: tuple[str, ...], values: list[str]) -> None:
        if len(names) > 1:
            values = [f"({', '.join(values)})"]
        if names:
            self.emitter.line(f"{', '.join(names)} = {values[0]}")

    def _merge(self, variable: str, names: tuple[str, ...], values: list[str]) -> None:
        """Assign for the threads of the mask."""
        if variable not in self._own:
            mask = self.emitter.mask
            values = [
                f"merge({mask}, {value}, {name})" for name, value in zip(names, values, strict=True)
            ]
        self._put(names, values)

    def receive(self, variable: n.Variable | None, values: list[str]) -> None:
        """Put the result of a statement into a variable."""
        if variable is not None:
            self._merge(variable.name, self.emitter.parts(variable), values)

    # --- control flow ----------------------------------------------------------------------------

    def branch(self, node: n.If) -> None:
        emitter = self.emitter
        condition = self.values.one(node.condition)
        if node.otherwise:
            condition = emitter.temporary(condition)
        then = emitter.fresh("m")
        emitter.line(f"{then} = both({emitter.mask}, {condition})")
        masks = [then]
        jumps = _may_end(node)
        if node.otherwise or jumps:
            other = emitter.fresh("m")
            if not node.otherwise:
                condition = then
            emitter.line(
                f"{other} = {'without' if node.otherwise else 'minus'}({emitter.mask}, {condition})"
            )
            masks.append(other)
        with emitter.indented(f"if {then} is not False:"):
            self._inner(then, node.then)
        if node.otherwise:
            with emitter.indented(f"if {masks[1]} is not False:"):
                self._inner(masks[1], node.otherwise)
        if jumps:
            emitter.line(f"{emitter.mask} = either({', '.join(masks)})")

    def for_loop(self, node: n.For) -> None:
        emitter, values = self.emitter, self.values
        start, stop = values.one(node.start), values.one(node.stop)
        loop, inside, mask = emitter.fresh("l"), emitter.fresh("a"), emitter.fresh("m")
        type = node.variable.type
        assert isinstance(type, Scalar)
        emitter.line(f"{loop} = Trips({start}, {stop}, {node.step}, {emitter.mask}, {type.name})")
        emitter.line(f"{inside} = {emitter.mask}")
        broken, returns = self._enter_loop(node.body)
        step = emitter.fresh("i")
        with emitter.indented(f"for {step} in {loop}.steps:"):
            emitter.line(f"{mask} = {loop}.mask({step}, {inside})")
            emitter.line(f"if {mask} is False: break")
            (name,) = emitter.parts(node.variable)
            emitter.line(f"{name} = {loop}.value({step})")
            self._inner(mask, node.body)
            self._leave_iteration(inside, broken, returns)
        self._leave_loop(broken, returns)

    def while_loop(self, node: n.While) -> None:
        emitter = self.emitter
        inside, mask = emitter.fresh("a"), emitter.fresh("m")
        emitter.line(f"{inside} = {emitter.mask}")
        broken, returns = self._enter_loop(node.body)
        with emitter.indented("while True:"):
            outer, emitter.mask = emitter.mask, inside
            emitter.line(f"{inside} = both({inside}, {self.values.one(node.condition)})")
            emitter.mask = outer
            emitter.line(f"if {inside} is False: break")
            emitter.line(f"{mask} = {inside}")
            self._inner(mask, node.body)
            self._leave_iteration(inside, broken, returns)
            if node.update:
                self._inner(inside, node.update)
        self._leave_loop(broken, returns)

    def _enter_loop(self, body: n.Block) -> tuple[str, bool]:
        """The variable for the threads that break ("" if none does), and whether some return."""
        broken = self.emitter.fresh("b") if _breaks(body) else ""
        if broken:
            self.emitter.line(f"{broken} = False")
        self._breaks.append(broken)
        return broken, _jumps(body, n.Return)

    def _leave_iteration(self, inside: str, broken: str, returns: bool) -> None:
        emitter = self.emitter
        gone = [broken] if broken else []
        gone += [_RETURNED] if returns else []
        for name in gone:
            emitter.line(f"{inside} = minus({inside}, {name})")
        if gone:
            emitter.line(f"if {inside} is False: break")

    def _leave_loop(self, broken: str, returns: bool) -> None:
        self._breaks.pop()
        if returns:
            mask = self.emitter.mask
            self.emitter.line(f"{mask} = minus({mask}, {_RETURNED})")

    def give_back(self, node: n.Return) -> None:
        emitter, mask = self.emitter, self.emitter.mask
        if node.value is not None:
            for name, value in zip(self.results(), self.values.owned(node.value), strict=True):
                merged = f"merge({mask}, {value}, {name})"
                emitter.line(f"{name} = {value if self._ends_with_return else merged}")
        if self._ends_with_return:
            return
        emitter.line(f"{_RETURNED} = either({_RETURNED}, {mask})")
        emitter.line(f"{mask} = False")

    def results(self) -> list[str]:
        """The Python variables of a function's result."""
        assert self.function is not None
        return [f"result{i}" for i in range(len(leaves(self.function.result)))]

    # --- effects ---------------------------------------------------------------------------------

    def atomic(self, node: n.Atomic) -> None:
        emitter = self.emitter
        type = node.place.type
        assert isinstance(type, Scalar)
        operands = [to_store(self.values.one(operand), type) for operand in node.operands]
        address = self.values.address(node.place)
        view, index = self.values.element(address, 0, type)
        text = (
            f"atomic_{type.name if type.name == 'bf16' else 'number'}(c, {node.op!r}, "
            f"{view}, {index}, ({', '.join(operands)},), {emitter.mask}, "
            f"{address.checks or True}, {node.result is not None})"
        )
        if node.result is None:
            emitter.line(text)
        else:
            self.receive(node.result, [f"bf16_of({text})" if type.name == "bf16" else text])

    def subgroup(self, node: n.Subgroup) -> None:
        if node.mask is not None:
            raise UnsupportedOnTarget("a warp's masks were not removed for NumPy", node.span)
        operands = [self.values.parts(operand) for operand in node.operands]
        if node.op in n.MATRIX_OPERATIONS:
            given = ", ".join(f"({', '.join(parts)})" for parts in operands)
            found = self.emitter.temporary(f"warp_matrices(c, {node.op!r}, {given})")
            words = EXCHANGED.get(node.result.type, 4) if node.op in EXCHANGES else 4
            self.receive(node.result, [f"{found}[{at}]" for at in range(words)])
            return
        count = len(operands[0]) if operands else 1
        values = []
        for i in range(count):  # the components of a vector, one after the other
            own = [parts[i] if j == 0 else parts[0] for j, parts in enumerate(operands)]
            values.append(
                f"warp(c, {node.op!r}, {self.emitter.mask}, {', '.join(own)})"
                if own
                else f"warp(c, {node.op!r}, {self.emitter.mask})"
            )
        self.receive(node.result, values)

    def call(self, node: n.CallStatement) -> None:
        type = node.result.type if node.result is not None else Void()
        value = n.Call(node.function, node.arguments, type, node.span)
        parts = self.values.parts(value)
        self.receive(node.result, parts)


def print_function(function: n.Function, constants: Constants, memories: Memories) -> list[str]:
    """The lines of a function without effects."""
    printer = Statements(constants, memories, function)
    names: list[str] = []
    for parameter in function.parameters:
        if isinstance(parameter, n.Buffer):
            raise UnsupportedOnTarget("NumPy's functions take no memory", parameter.span)
        names += printer.emitter.parts(parameter)
    header = f"def {function_name(function.name)}({', '.join(['c', 'm', *names])}):"
    native = native_name(function)
    if native is not None:
        return [header, f"    return wide_{native}({', '.join(names)})"]
    results = printer.results()
    for name, (_, scalar) in zip(results, leaves(function.result), strict=True):
        printer.emitter.line(f"{name} = {constants.name(0, scalar)}")
    printer.body(function.body)
    printer.emitter.line(f"return {', '.join(results)}")
    return [header, *printer.emitter.lines]


def _breaks(body: n.Block) -> bool:
    """Whether a loop with this body may be left by a `break` of its own."""
    for statement in body:
        if isinstance(statement, n.Break):
            return True
        if isinstance(statement, n.If) and (
            _breaks(statement.then) or _breaks(statement.otherwise)
        ):
            return True
    return False


def _jumps(body: n.Block, kind: type) -> bool:
    return any(isinstance(statement, kind) for statement in statements_in(body))


def _may_end(statement: n.Statement) -> bool:
    """Whether threads may leave the block of a statement within it."""
    match statement:
        case n.If():
            return any(
                isinstance(inner, (n.Break, n.Continue, n.Return)) or _may_end(inner)
                for inner in (*statement.then, *statement.otherwise)
            )
        case n.For() | n.While():
            return _jumps(statement.body, n.Return)
    return False
