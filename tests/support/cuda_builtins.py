"""CUDA's functions evaluated for one set of values, as a lowering would build them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.support.ir_evaluator import evaluate
from treadle.cuda_cpp.builtins.outputs import OutputOverload
from treadle.cuda_cpp.builtins.overload import Overload
from treadle.cuda_cpp.builtins.tables import FUNCTIONS, OUTPUTS
from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.lang.lower.standalone import library_functions


@dataclass
class Declaring:
    """A `Maker` that declares variables, for kernels that are compiled."""

    fastmath: bool = False
    functions: dict[str, n.Function] = field(default_factory=dict)
    statements: list[n.Statement] = field(default_factory=list)

    def library(self, name: str, *operands: n.Expression) -> n.Expression:
        return _library_call(self.functions, name, operands)

    def let(self, value: n.Expression) -> n.Expression:
        variable = n.Variable(f"kept.{len(self.statements)}", value.type)
        self.statements.append(n.Declare(variable, value))
        return variable

    def refuse(self, reason: str) -> Exception:
        return ValueError(reason)


def _library_call(
    known: dict[str, n.Function], name: str, operands: tuple[n.Expression, ...]
) -> n.Expression:
    type = operands[0].type
    assert isinstance(type, t.Scalar)
    called, functions = library_functions(name, type)
    for function in functions:
        known.setdefault(function.name, function)
    assert [each.type for each in operands] == [p.type for p in functions[-1].parameters]
    return n.Call(called, operands, functions[-1].result)


@dataclass
class Evaluating:
    """A `Maker` that computes what it is asked to keep."""

    fastmath: bool = False
    functions: dict[str, n.Function] = field(default_factory=dict)
    variables: dict[str, Any] = field(default_factory=dict)

    def library(self, name: str, *operands: n.Expression) -> n.Expression:
        return _library_call(self.functions, name, operands)

    def let(self, value: n.Expression) -> n.Expression:
        name = f"kept.{len(self.variables)}"
        self.variables[name] = self.value(value)
        return n.Variable(name, value.type)

    def refuse(self, reason: str) -> Exception:
        return ValueError(reason)

    def value(self, expression: n.Expression) -> Any:
        return evaluate(expression, tuple(self.functions.values()), self.variables)


def operand(maker: Evaluating, value: Any, type: t.Scalar | t.Vector) -> n.Expression:
    """A value as a variable, so that nothing is computed of it before."""
    name = f"kept.{len(maker.variables)}"
    maker.variables[name] = value
    return n.Variable(name, type)


def apply(overload: Overload, *values: Any, fastmath: bool = False) -> Any:
    """What an overload gives for these values."""
    maker = Evaluating(fastmath)
    operands = [operand(maker, v, p) for v, p in zip(values, overload.parameters, strict=True)]
    built = overload.build(maker, *operands)
    assert built.type == overload.result
    return maker.value(built)


def apply_outputs(overload: OutputOverload, *values: Any) -> tuple[Any, ...]:
    """The result (None if there is none) and the outputs."""
    maker = Evaluating()
    operands = [operand(maker, v, p) for v, p in zip(values, overload.parameters, strict=True)]
    result, *outputs = overload.build(maker, *operands)
    assert (result and result.type) == overload.result
    assert tuple(output.type for output in outputs if output is not None) == overload.outputs
    return tuple(None if part is None else maker.value(part) for part in (result, *outputs))


def overload(name: str, *parameters: t.Scalar | t.Vector) -> Overload:
    """The overload of a function for exactly these types, or its only one."""
    found = FUNCTIONS[name]
    if not parameters:
        assert len(found) == 1, name
        return found[0]
    (one,) = [each for each in found if each.parameters == parameters]
    return one


def outputs(name: str, type: t.Scalar) -> OutputOverload:
    (one,) = [each for each in OUTPUTS[name] if each.parameters[0] == type]
    return one
