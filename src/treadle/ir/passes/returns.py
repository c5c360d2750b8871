"""Returns as structured control flow, so that a function's body can be inlined.

if c: return a                 if c: result = a
return b                       else: result = b
"""

from __future__ import annotations

from dataclasses import replace

from treadle.ir import nodes as n
from treadle.ir.passes.fold import leaves
from treadle.ir.traverse import walk
from treadle.ir.types import BOOL, Void


def with_one_return(function: n.Function) -> n.Function:
    """The function with one return, at its end. NVIDIA's Vulkan driver miscompiles functions with
    several returns whose result is assigned to a variable of a loop (`codegen.faults`)."""
    nodes = list(walk(function.body))
    if isinstance(function.result, Void) or sum(isinstance(each, n.Return) for each in nodes) < 2:
        return function
    used = {each.name for each in nodes if isinstance(each, n.Variable)}
    used |= {parameter.name for parameter in function.parameters}
    result = n.Variable(_unused("result", used), function.result)
    body = without_returns(function.body, result, n.Variable(_unused("returned", used), BOOL))
    return replace(function, body=(n.Declare(result), *body, n.Return(result)))


def _unused(name: str, used: set[str]) -> str:
    while name in used:
        name += "_"
    return name


def without_returns(body: n.Block, result: n.Variable | None, returned: n.Variable) -> n.Block:
    """The body without returns: `result`, if any, gets their value, and branches skip what they
    skipped. `returned` is the flag that is declared if branches alone cannot do that."""
    trial = _Returns(result, returned)
    statements = trial.lower(body, in_loop=False)
    if trial.flag_is_read:
        return (n.Declare(returned, n.FALSE), *statements)
    return _Returns(result, None).lower(body, in_loop=False)


class _Returns:
    def __init__(self, result: n.Variable | None, flag: n.Variable | None) -> None:
        self.result = result
        self.flag = flag
        self.flag_is_read = False

    def lower(self, block: n.Block, in_loop: bool) -> n.Block:
        """A block without returns. In a loop a return sets the flag and breaks."""
        out: list[n.Statement] = []
        for position, statement in enumerate(block):
            if not _may_return(statement):
                out.append(statement)
                if leaves(statement):
                    break
                continue
            rest = block[position + 1 :]
            match statement:
                case n.Return():
                    out.extend(self.give(statement, in_loop))
                    break
                case n.If() if in_loop:
                    out.extend(
                        _if(
                            statement,
                            self.lower(statement.then, in_loop),
                            self.lower(statement.otherwise, in_loop),
                        )
                    )
                case n.If() if _never_ends(statement.then):
                    otherwise = self.lower(statement.otherwise + rest, in_loop)
                    out.extend(_if(statement, self.lower(statement.then, in_loop), otherwise))
                    break
                case n.If() if _never_ends(statement.otherwise):
                    then = self.lower(statement.then + rest, in_loop)
                    out.extend(_if(statement, then, self.lower(statement.otherwise, in_loop)))
                    break
                case n.If():
                    then = self.lower(statement.then, in_loop)
                    out.extend(_if(statement, then, self.lower(statement.otherwise, in_loop)))
                    out.extend(self.unless_returned(rest))
                    break
                case n.For() | n.While():
                    out.append(replace(statement, body=self.lower(statement.body, in_loop=True)))
                    if not in_loop:
                        out.extend(self.unless_returned(rest))
                        break
                    out.append(n.If(self.read_flag(), (n.Break(statement.span),)))
        return tuple(out)

    def give(self, statement: n.Return, in_loop: bool) -> list[n.Statement]:
        given: list[n.Statement] = []
        if self.result is not None and statement.value is not None:
            given.append(n.Assign(self.result, statement.value, statement.span))
        if self.flag is not None:
            given.append(n.Assign(self.flag, n.TRUE, statement.span))
        if in_loop:
            given.append(n.Break(statement.span))
        return given

    def unless_returned(self, rest: n.Block) -> n.Block:
        if not rest:
            return ()
        going_on = n.Unary("not", self.read_flag(), BOOL)
        return (n.If(going_on, self.lower(rest, in_loop=False)),)

    def read_flag(self) -> n.Variable:
        self.flag_is_read = True
        assert self.flag is not None, "the first trial found that no flag is read"
        return self.flag


def _if(statement: n.If, then: n.Block, otherwise: n.Block) -> n.Block:
    """The if with other branches, turned around if the first is empty."""
    condition = statement.condition
    if then:
        return (n.If(condition, then, otherwise, statement.span),)
    if otherwise:
        return (
            n.If(n.Unary("not", condition, BOOL, condition.span), otherwise, (), statement.span),
        )
    return ()


def _never_ends(block: n.Block) -> bool:
    """Whether control never reaches the end of a block."""
    return any(leaves(statement) for statement in block)


def _may_return(statement: n.Statement) -> bool:
    match statement:
        case n.Return():
            return True
        case n.If():
            return any(map(_may_return, statement.then + statement.otherwise))
        case n.For() | n.While():
            return any(map(_may_return, statement.body))
    return False
