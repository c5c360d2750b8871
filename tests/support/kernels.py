"""Lowering and running kernels of the language without a device."""

from __future__ import annotations

from typing import Any

import numpy as np

import treadle.lang as td
from tests.support import ir_evaluator
from treadle.core.dim3 import Dim3
from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.ir.printer import to_text
from treadle.ir.signature import ArrayArgument, ScalarArgument, Signature
from treadle.ir.verify import verify
from treadle.lang.interpreter.arguments import take_arguments


def array(element: t.Type = t.F32, ndim: int = 1, **layout: bool) -> ArrayArgument:
    """The type of an array argument."""
    return ArrayArgument(element, ndim, **layout)


def number(type: t.Scalar = t.F32) -> ScalarArgument:
    """The type of a scalar argument."""
    return ScalarArgument(type)


def lower(kernel: Any, *arguments: Any, threads: int = 0) -> n.Kernel:
    """A kernel in IR, verified, for argument types, or for arguments."""
    if arguments and not isinstance(arguments[0], (ArrayArgument, ScalarArgument)):
        arguments = take_arguments(kernel, arguments).signature
    lowered = kernel.lower(Signature(tuple(arguments), threads)).kernel
    verify(lowered)
    return lowered


def body_text(kernel: n.Kernel) -> str:
    """The statements of a lowered kernel as text, without the heading."""
    text = to_text(kernel)
    body = text[text.rindex("\n\n  ") + 2 : text.rindex("}")]
    return "\n".join(line[2:] for line in body.rstrip().splitlines())


def evaluate(
    kernel: Any, grid: Any, block: Any, arguments: tuple[Any, ...], **options: Any
) -> ir_evaluator.Outcome:
    """Run a kernel's IR in the reference evaluator; arrays are changed in place."""
    taken = take_arguments(kernel, arguments)
    lowered = lower(kernel, *taken.signature)
    buffers = {}
    parameters: dict[str, Any] = {}
    for declared, value, given in zip(kernel.parameters, taken.values, arguments, strict=True):
        if hasattr(value, "data") and hasattr(value, "extents"):
            buffers[declared.name] = given
        elif isinstance(value, np.generic):
            parameters[declared.name] = value.item()
        else:
            parameters |= {
                ".".join(map(str, p.origin[1:])): leaf(value, p.origin[2:])
                for p in lowered.parameters
                if p.origin[0] == "leaf" and p.origin[1] == declared.name
            }
    by_name = {
        p.name: parameters[".".join(map(str, p.origin[1:]))]
        for p in lowered.parameters
        if p.origin[0] in ("value", "leaf")
    }
    return ir_evaluator.run(lowered, grid, buffers, by_name, block=block, **options)


def leaf(value: Any, path: tuple[Any, ...]) -> Any:
    """A part of a struct or vector value."""
    for part in path:
        value = value[part] if isinstance(part, int) else getattr(value, part)
    return value.item()


def agree(kernel: Any, grid: Any, block: Any, *arguments: Any) -> list[Any]:
    """Run a kernel in the interpreter and as IR; both must leave the same. Gives the arguments
    as they are afterwards."""

    def fresh() -> tuple[Any, ...]:
        return tuple(a.copy() if isinstance(a, np.ndarray) else a for a in arguments)

    interpreted, evaluated = fresh(), fresh()
    with td.interpret():
        kernel[grid, block](*interpreted)
    evaluate(kernel, Dim3.of(grid), Dim3.of(block), evaluated)
    for one, other in zip(interpreted, evaluated, strict=True):
        if isinstance(one, np.ndarray):
            if one.dtype.kind == "V" and one.dtype.names is None:  # bfloat16
                one, other = one.astype(np.float32), other.astype(np.float32)
            np.testing.assert_array_equal(one, other)
    return list(interpreted)
