"""Calls of stencils without their outputs, which make and return them, and have derivatives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from treadle.autograd.function import Function
from treadle.autograd.transforms import vjp
from treadle.core.dtypes import DType
from treadle.core.errors import LaunchError, ShapeError
from treadle.graph.history import recording
from treadle.graph.placeholders import within
from treadle.ir.signature import ScalarArgument
from treadle.lang.types import ArrayType, annotation_of
from treadle.runtime.arguments import bind
from treadle.runtime.arrays import ArrayClass, array_class, packed_strides
from treadle.runtime.convert import ArrayDescription, describe, device_of_arguments
from treadle.stencils.analysis import Analysis
from treadle.stencils.array_body import run_on_arrays
from treadle.stencils.body import Body
from treadle.stencils.launcher import Launcher
from treadle.stencils.launching import grid_of, shapes_of
from treadle.tensor.creation import asarray, empty, zeros
from treadle.tensor.tensor import Tensor


def made(stencil: Launcher, arguments: tuple[Any, ...]) -> Any:
    """New arrays with what a stencil computes of its other arguments: one, or a tuple."""
    outputs = stencil.body.outputs
    inputs = [name for name in stencil.body.names if name not in outputs]
    given = dict(zip(inputs, arguments, strict=True))
    tensors = [value for value in arguments if isinstance(value, Tensor)]
    where = tensors[0].device if tensors else device_of_arguments(arguments)
    values = {
        name: asarray(value, device=where) if _is_array(value) else value
        for name, value in given.items()
    }
    if within.get() is not None:
        found = _on_arrays(stencil, values)
    elif recording.get() and any(has_history(value) for value in values.values()):
        found = _WithGradient.apply(stencil, tuple(values), *values.values())
        found = found if isinstance(found, tuple) else (found,)
    else:
        found = _computed(stencil, values)
    return found[0] if len(found) == 1 else found


def has_history(value: Any) -> bool:
    """Whether a value is a tensor that was computed from variables of a gradient."""
    return isinstance(value, Tensor) and value._history is not None


def without_arrays(body: Body, arguments: Sequence[Any]) -> tuple[Any, ...]:
    """Arguments with arrays without axes as the numbers that they hold."""
    return tuple(
        value.numpy()[()] if _is_number(body, name, value) else value
        for name, value in zip(body.names, arguments, strict=False)
    ) + tuple(arguments[len(body.names) :])


def _is_number(body: Body, name: str, value: Any) -> bool:
    """Whether an argument is an array without axes, which stands for a number."""
    return (
        isinstance(value, Tensor)
        and value.ndim == 0
        and not isinstance(body.annotations.get(name), ArrayType)
    )


@dataclass(frozen=True)
class _Outputs:
    """The arrays that a call makes, by names."""

    shapes: dict[str, tuple[int, ...]]
    dtypes: dict[str, Any]
    described: list[tuple[Any, Any]]  # all arguments, and the outputs
    analysis: Analysis


def _outputs(stencil: Launcher, values: dict[str, Any]) -> _Outputs:
    """The outputs for the values of the other parameters: as large as the first array of the grid's
    rank, and of stacks as many grids as the body writes. Refuses what a launch refuses."""
    body = stencil.body
    model = _model(body, values)
    extents = model.shape[body.stacked.get(_name_of(values, model), 0) :]
    dtypes = {
        name: _annotated_dtype(body.annotations.get(name)) or model.dtype for name in body.outputs
    }
    shapes = {name: ((1,) * body.stacked.get(name, 0) + tuple(extents)) for name in body.outputs}
    described = _described(body, values, shapes, dtypes)
    analysis = stencil.analysis_of(described)
    for at, counts in analysis.stacks:
        if (name := body.names[at]) in shapes:
            shapes[name] = counts + shapes[name][len(counts) :]
    return _Outputs(shapes, dtypes, _described(body, values, shapes, dtypes), analysis)


def _described(
    body: Body, values: dict[str, Any], shapes: dict[str, tuple[int, ...]], dtypes: dict[str, Any]
) -> list[tuple[Any, Any]]:
    """What a launch knows of its arguments, of which some have no memory (yet)."""
    found = []
    for name in body.names:
        value = values.get(name)
        if name in shapes:
            found.append(_imagined(dtypes[name], shapes[name]))
        elif isinstance(value, Tensor) and _is_number(body, name, value):
            found.append(describe(value.dtype.numpy.type(0)))
        elif isinstance(value, Tensor):
            found.append(_imagined(value.dtype, value.shape))
        else:
            found.append(describe(value))
    return found


def _on_arrays(stencil: Launcher, values: dict[str, Any]) -> tuple[Tensor, ...]:
    """The outputs by operations of whole arrays."""
    body, outputs = stencil.body, _outputs(stencil, values)
    analysis = outputs.analysis
    shapes = shapes_of(body, analysis, [one for _, one in outputs.described])
    grid = grid_of(body, analysis, shapes)
    if not grid.same_shape:
        every = ", ".join(f"{body.names[at]} has {shape}" for at, shape in shapes.items())
        raise ShapeError(
            f"derivatives of {body.name}, and td.vmap, need arrays of one shape, and {every}: "
            "staggered grids have none yet"
        )
    numbers: dict[str, Any] = {}
    for at, name in enumerate(body.names):
        value = values.get(name)
        if isinstance(value, float):
            numbers[name] = _rounded(value, bind(stencil.declared, at, *outputs.described[at]))
        elif isinstance(value, Tensor) and _is_number(body, name, value):
            bound = bind(stencil.declared, at, *outputs.described[at])
            if isinstance(bound, ScalarArgument):
                numbers[name] = value.to(annotation_of(bound.type))
    tensors = [value for value in values.values() if isinstance(value, Tensor)]
    return run_on_arrays(
        body, analysis, values | numbers, grid.extents, tensors[0].device, outputs.dtypes,
        stencil.storage,
    )  # fmt: skip


def _computed(stencil: Launcher, values: dict[str, Any]) -> tuple[Tensor, ...]:
    """The outputs by a launch."""
    body = stencil.body
    given = without_arrays(body, [values.get(name) for name in body.names])
    values = dict(zip(body.names, given, strict=True))
    model, outputs = _model(body, values), _outputs(stencil, values)
    # Cells that are skipped, or not written by the body, are zero.
    skips = any(rule.name == "skip" for rule in stencil.boundary.rules)
    for name in body.outputs:
        make = empty if name in body.always_written and not skips else zeros
        shape, dtype = outputs.shapes[name], outputs.dtypes[name]
        values[name] = make(shape, dtype=dtype, device=model.device)
    stencil.run(tuple(values[name] for name in body.names))
    return tuple(values[name] for name in body.outputs)


def _model(body: Body, values: dict[str, Any]) -> Tensor:
    """The array like which outputs are made: the first one of their rank."""
    tensors = {
        name: value for name, value in values.items() if isinstance(value, Tensor) and value.ndim
    }
    if not tensors:
        lists = [name for name, value in values.items() if isinstance(value, (list, tuple))]
        how = f" (td.asarray({lists[0]}), since lists are not arrays)" if lists else ""
        raise LaunchError(f"{body.name} makes its outputs like its first array: give it one{how}")
    ranks = {name: value.ndim - body.stacked.get(name, 0) for name, value in tensors.items()}
    first = body.outputs[0]
    declared = body.ndim_of(first, None)
    rank = max(ranks.values()) if declared is None else declared - body.stacked.get(first, 0)
    chosen = next((name for name in tensors if ranks[name] == rank), next(iter(tensors)))
    return tensors[chosen]


def _name_of(values: dict[str, Any], value: Any) -> str:
    return next(name for name, each in values.items() if each is value)


class _WithGradient(Function):
    """A launch whose derivative is that of the body's operations."""

    @staticmethod
    def forward(ctx: Any, stencil: Launcher, names: tuple[str, ...], *values: Any) -> Any:
        """Launch the stencil."""
        ctx.stencil, ctx.names = stencil, names
        ctx.save_for_backward(*(each if isinstance(each, Tensor) else None for each in values))
        ctx.numbers = [None if isinstance(each, Tensor) else each for each in values]
        found = _computed(stencil, dict(zip(names, values, strict=True)))
        return found[0] if len(found) == 1 else found

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        """The gradients of the arrays that have one."""
        values = [
            number if saved is None else saved
            for saved, number in zip(ctx.saved_tensors, ctx.numbers, strict=True)
        ]
        wanted = [at for at in range(len(values)) if ctx.needs_input_grad[at + 2]]

        def outputs(*some: Any) -> tuple[Tensor, ...]:
            every = dict(zip(ctx.names, values, strict=True))
            every |= {ctx.names[at]: value for at, value in zip(wanted, some, strict=True)}
            return _on_arrays(ctx.stencil, every)

        _, back = vjp(outputs, *(values[at] for at in wanted))
        found = dict(zip(wanted, back(tuple(gradients)), strict=True))
        return (None, None, *(found.get(at) for at in range(len(values))))


def _is_array(value: Any) -> bool:
    return isinstance(describe(value)[0], ArrayClass) if not isinstance(value, Tensor) else True


def _imagined(dtype: Any, shape: Sequence[int]) -> tuple[ArrayClass, ArrayDescription]:
    """The class of an array that has no memory (yet)."""
    extents = tuple(shape)
    key = array_class(None, dtype, extents, packed_strides(extents), 0)
    return key, ArrayDescription(key, extents, math.prod(extents))


def _rounded(value: float, bound: Any) -> float:
    """A Python number as a kernel gets it, whose parameter has this type."""
    return float(annotation_of(bound.type)(value)) if isinstance(bound, ScalarArgument) else value


def _annotated_dtype(annotation: Any) -> Any:
    """The dtype that an annotation says, if it is of an array of numbers."""
    element = annotation.element if isinstance(annotation, ArrayType) else None
    return element if isinstance(element, DType) else None
