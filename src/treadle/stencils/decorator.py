"""`@td.stencil`, and the object that it makes."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, overload

from treadle.autograd.function import Function
from treadle.autograd.transforms import vjp
from treadle.core.dtypes import DType
from treadle.core.errors import AutogradError, CompileError, LaunchError, TreadleError, shortened
from treadle.graph.history import recording
from treadle.graph.placeholders import within
from treadle.ir import types as t
from treadle.ir.definition import KernelOptions
from treadle.ir.signature import ArrayArgument, DeclaredParameter, ScalarArgument, Signature
from treadle.ir.types import size_of
from treadle.lang.decorators import Kernel
from treadle.lang.definitions import ByName
from treadle.lang.interpreter_state import state
from treadle.lang.source import function_from_text
from treadle.lang.types import ArrayType, annotation_of
from treadle.runtime.arguments import argument_of, bind, declared_arguments
from treadle.runtime.arrays import ArrayClass, DeviceArray, array_class, packed_strides
from treadle.runtime.convert import ArrayDescription, describe, device_of_arguments
from treadle.runtime.devices import default_device
from treadle.stencils.analysis import Analysis, analyze, grid_rank
from treadle.stencils.array_body import run_on_arrays
from treadle.stencils.body import Body, read_body
from treadle.stencils.boundary import (
    Boundary,
    check_constants,
    check_halo,
    read_boundary,
    read_storage,
    read_tile,
)
from treadle.stencils.kernel_text import Form, StencilKernel
from treadle.stencils.launching import (
    ONE_CELL,
    gpu_form,
    gpu_threads,
    grid_of,
    serial_parts,
    shapes_of,
    usual_form,
)
from treadle.stencils.sharing import extent_of, repeats_elements
from treadle.tensor.creation import asarray, empty, zeros
from treadle.tensor.tensor import Tensor

Extent = int | Sequence[int]
_MOST_ANALYSES = 1024


class Stencil(ByName):
    """A stencil, made by `@td.stencil`. Called with its arrays and numbers, it runs over a grid."""

    def __init__(
        self,
        body: Body,
        boundary: Boundary,
        halo: tuple[int, ...] | None,
        options: KernelOptions,
        storage: t.Scalar | None,
    ) -> None:
        self.__name__ = body.name
        self.__qualname__ = body.function.__qualname__
        self.__module__ = body.function.__module__
        self.__doc__ = body.function.__doc__
        self.__wrapped__ = body.function
        self.body = body
        self._boundary = boundary
        self._halo = halo
        self.options = options
        self.storage = storage
        self._analyses: dict[Any, Analysis] = {}
        self._kernels: dict[Any, StencilKernel] = {}
        self.loops: dict[Any, Any] = {}  # kernels of several steps, which begin with this stencil

    @cached_property
    def _declared(self) -> Kernel:
        """A kernel with the stencil's parameters, which checks arguments."""
        return _parameters_of(self.body, self.options)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Compute all cells of the grid. Without its outputs it makes them, and returns them."""
        try:
            if named:
                arguments = self._in_order(arguments, named)
            outputs = len(self.body.outputs)
            if outputs and len(arguments) == len(self.body.names) - outputs:
                return self._made(arguments)
            if recording.get() and any(map(has_history, arguments)):
                raise AutogradError(
                    f"{self.name} is given its outputs, and what it writes to them has no "
                    f"derivative: call it without them, which returns new ones, or within "
                    "td.no_grad() if no gradient is wanted"
                )
            self._run(arguments)
            return None
        except TreadleError as error:
            raise _of_user(error)  # noqa: B904 - it is the same error

    @property
    def name(self) -> str:
        """The stencil's name."""
        return self.body.name

    @property
    def parameters(self) -> tuple[DeclaredParameter, ...]:
        """The parameters of a call, with their annotations."""
        return self._declared.parameters

    def source(self, target: str, *arguments: Any, block: Extent | None = None) -> str:
        """The generated source for a target: "wgsl", "llvm", "ptx", "cuda", "msl", "numpy" or
        "ir". The types are those of the arguments, or of the annotations without arguments. No
        device is needed."""
        try:
            kernel, serial = self._kernel_for_target(target, arguments)
            if arguments:
                arguments += (1,) * (len(kernel.parameters) - len(arguments))
            return kernel.source(target, *arguments, block=None if serial else block)
        except TreadleError as error:
            raise _of_user(error)  # noqa: B904

    def __repr__(self) -> str:
        return f"<treadle.stencils {self.body.name}({', '.join(self.body.order)})>"

    # --- without outputs ---

    def _made(self, arguments: tuple[Any, ...]) -> Any:
        """New arrays with what is computed: one, or a tuple."""
        outputs = self.body.outputs
        inputs = [name for name in self.body.names if name not in outputs]
        given = dict(zip(inputs, arguments, strict=True))
        tensors = [value for value in arguments if isinstance(value, Tensor)]
        where = tensors[0].device if tensors else device_of_arguments(arguments)
        values = {
            name: asarray(value, device=where) if _is_array(value) else value
            for name, value in given.items()
        }
        if within.get() is not None:
            found = self.on_arrays(values)
        elif recording.get() and any(has_history(value) for value in values.values()):
            found = _WithGradient.apply(self, tuple(values), *values.values())
            found = found if isinstance(found, tuple) else (found,)
        else:
            found = self._computed(values)
        return found[0] if len(found) == 1 else found

    def on_arrays(self, values: dict[str, Any]) -> tuple[Tensor, ...]:
        """The outputs by operations of whole arrays."""
        ranks = [
            self.body.ndim_of(name, getattr(values.get(name), "ndim", None))
            for name in self.body.names
        ]
        known = [rank for rank in ranks if rank]
        ndim = grid_rank(self.body, [rank or max(known) for rank in ranks])
        rules = self._boundary.of_axes(ndim, self.body.name)
        model = self._model(values)
        outputs = self._dtypes(model)
        described = [
            _imagined(outputs[name], model.shape)
            if name in outputs
            else _imagined(values[name].dtype, values[name].shape)
            if isinstance(values[name], Tensor)
            else describe(values[name])
            for name in self.body.names
        ]
        self.analysis_of(described)  # refuses what a launch with these types refuses
        numbers = {
            name: _rounded(value, bind(self._declared, at, *described[at]))
            for at, name in enumerate(self.body.names)
            if isinstance(value := values.get(name), float)
        }
        return run_on_arrays(self.body, rules, values | numbers, model, outputs, self.storage)

    def _model(self, values: dict[str, Any]) -> Tensor:
        """The array like which outputs are made: the first one of their rank."""
        body = self.body
        tensors = [value for value in values.values() if isinstance(value, Tensor)]
        if not tensors:
            lists = [name for name, value in values.items() if isinstance(value, (list, tuple))]
            how = f" (td.asarray({lists[0]}), since lists are not arrays)" if lists else ""
            raise LaunchError(
                f"{body.name} makes its outputs like its first array: give it one{how}"
            )
        rank = body.ndim_of(body.outputs[0], max(each.ndim for each in tensors))
        return next((each for each in tensors if each.ndim == rank), tensors[0])

    def _dtypes(self, model: Tensor) -> dict[str, Any]:
        """The dtypes of the outputs: as annotated, or that of the model."""
        annotations = self.body.annotations
        return {
            name: _annotated_dtype(annotations.get(name)) or model.dtype
            for name in self.body.outputs
        }

    def _computed(self, values: dict[str, Any]) -> tuple[Tensor, ...]:
        """The outputs by a launch."""
        body = self.body
        model = self._model(values)
        # Cells that are skipped, or not written by the body, are zero.
        skips = any(rule.name == "skip" for rule in self._boundary.rules)
        for name in body.outputs:
            dtype = self._dtypes(model)[name]
            make = empty if name in body.always_written and not skips else zeros
            values[name] = make(model.shape, dtype=dtype, device=model.device)
        self._run(tuple(values[name] for name in body.names))
        return tuple(values[name] for name in body.outputs)

    # --- a call ---

    def _run(self, arguments: tuple[Any, ...]) -> None:
        self.check_count(arguments)
        described = [describe(value) for value in arguments]
        analysis = self.analysis_of(described)
        shapes = shapes_of(self.body, analysis, [one for _, one in described])
        grid = grid_of(self.body, analysis, shapes)
        self._check_sharing(analysis, arguments, described)
        if grid.is_empty:
            return
        device = device_of_arguments(arguments) or default_device()
        wide = any(isinstance(key, ArrayClass) and key.big for key, _ in described)
        serial = device.traits.serial_threads and not state.active
        gpu = ONE_CELL
        if not serial and not state.active:
            gpu = gpu_form(analysis, device, grid.region)
        form = Form(serial, grid.same_shape, wide, self.storage, gpu.cells, gpu.block)
        kernel = self._kernel(analysis, form)
        if not serial:
            threads, parts = gpu_threads(analysis, grid.region, gpu)
            kernel.launch(threads, *arguments, *parts)
            return
        count, parts = serial_parts(grid.region, *_bytes_near(analysis, described))
        kernel[count, 1](*arguments, *parts)

    def _in_order(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
        """The arguments of a call of which some are named. TypeError for other names."""
        body, count = self.body, len(arguments) + len(named)
        without = [name for name in body.names if name not in body.outputs]
        order = without if count == len(without) else list(body.names)
        given = dict(zip(order, arguments, strict=False))
        for name in named:
            if name not in body.names or name in given:
                what = "is given twice" if name in given else "is not one of them"
                raise TypeError(
                    f"the parameters of {body.name} are {', '.join(body.names)}: {name} {what}"
                )
        given |= named
        missing = [name for name in order if name not in given]
        if missing:
            inputs = [name for name in missing if name in without]
            raise TypeError(
                f"{body.name} is not given {', '.join(inputs or missing)}: outputs "
                f"({', '.join(body.outputs) or 'none'}) are given all, or none of them"
            )
        return tuple(given[name] for name in order)

    def check_count(self, arguments: tuple[Any, ...]) -> None:
        """LaunchError unless there is an argument for each parameter."""
        body = self.body
        names, outputs = body.names, body.outputs
        if len(arguments) == len(names):
            return
        updated = [name for name in body.written_at_position if name not in outputs]
        without = f", or {len(names) - len(outputs)} without {', '.join(outputs)}"
        advice = ""
        if updated and len(arguments) < len(names):
            advice = (
                f". The body reads {', '.join(updated)}, as {updated[0]}[{body.position}] += … "
                "does, so a call does not make it"
            )
        raise LaunchError(
            f"{body.name}({', '.join(names)}) takes {len(names)} "
            f"argument{'' if len(names) == 1 else 's'}{without if outputs else ''}, not "
            f"{len(arguments)} (the position is given by treadle){advice}"
        )

    def analysis_of(self, described: Sequence[tuple[Any, Any]]) -> Analysis:
        """The accesses of the body for arguments of these classes."""
        key = (tuple(one for one, _ in described), self.body.captures.key())
        known = self._analyses.get(key)
        if known is None:
            if len(self._analyses) >= _MOST_ANALYSES:  # for example, a captured number changes
                self._analyses.clear()
            known = self._analyses[key] = self._analyze(described)
        return known

    def _analyze(self, described: Sequence[tuple[Any, Any]]) -> Analysis:
        declared = self._declared
        bound = [bind(declared, position, *one) for position, one in enumerate(described)]
        ranks = [
            self.body.ndim_of(name, key.ndim if isinstance(key, ArrayClass) else None)
            for name, (key, _) in zip(self.body.names, described, strict=True)
        ]
        signature = Signature(tuple(map(argument_of, bound)))
        return self._analysis(signature, ranks)

    def _analysis(self, signature: Signature, ranks: Sequence[int | None]) -> Analysis:
        ndim = grid_rank(self.body, ranks)
        rules = self._boundary.of_axes(ndim, self.body.name)
        found = analyze(self.body, signature, rules, self.options, self._halo, self.storage)
        given = [signature.arguments[at] for at in found.cells]
        if self.storage is not None and not any(
            isinstance(each, ArrayArgument) and each.element == self.storage for each in given
        ):
            raise self.body.refused(
                f"{self.body.name} has storage=, and none of its arrays is kept in "
                f"td.{self.storage}: annotate them as float32, as in u: td.Array[td.f32, 2]"
            )
        for at, argument in zip(found.cells, given, strict=True):
            if at not in found.fixed and isinstance(argument, ArrayArgument):
                check_constants(self.body.name, rules, self.body.names[at], argument.element)
        return found

    def _kernel(self, analysis: Analysis, form: Form) -> StencilKernel:
        key = analysis, form
        known = self._kernels.get(key)
        if known is None:
            known = StencilKernel(self.body, analysis, form, self.options)
            self._kernels[key] = known
        return known

    def _check_sharing(
        self, analysis: Analysis, arguments: Sequence[Any], described: Sequence[tuple[Any, Any]]
    ) -> None:
        """Refuse an array that is read at other cells and shares memory with one that is
        written, and one that is written of which several cells are one element."""
        names = self.body.names
        for at in analysis.written:
            if not described[at][0].contiguous and repeats_elements(described[at][1]):
                raise LaunchError(
                    f"{self.body.name} writes {names[at]}, which has the same element for several "
                    f"cells, as of td.broadcast_to: give it an array of its own "
                    f"(td.empty({tuple(described[at][1].shape)}))"
                )
        if _are_apart(described):
            return
        read = dict.fromkeys((*analysis.cells, *analysis.indexed))
        places = {
            at: extent_of(arguments[at], described[at][1]) for at in (*read, *analysis.written)
        }
        for at in analysis.written:
            for other in read:
                if other == at or not places[at].shares(places[other]):
                    continue
                own = {at, other} <= analysis.fixed and other not in analysis.indexed
                if own and places[at].is_same(places[other]):
                    continue  # each thread reads what it writes itself
                raise LaunchError(
                    f"{self.body.name} writes {names[at]}, which shares memory with "
                    f"{names[other]}, of which it reads other cells: give it another array "
                    f"(td.empty_like({names[other]}))"
                )

    def _kernel_for_target(
        self, target: str, arguments: tuple[Any, ...]
    ) -> tuple[StencilKernel, bool]:
        """The kernel whose source is printed, and whether its threads are serial."""
        from treadle.codegen import TARGETS
        from treadle.codegen.target import find_target

        serial = target in TARGETS and find_target(target).serial_threads
        same, wide = True, False
        if arguments:
            self.check_count(arguments)
            described = [describe(value) for value in arguments]
            analysis = self.analysis_of(described)
            shapes = shapes_of(self.body, analysis, [one for _, one in described])
            same = grid_of(self.body, analysis, shapes).same_shape
            wide = any(isinstance(key, ArrayClass) and key.big for key, _ in described)
        else:
            declared = declared_arguments(self._declared)
            ranks = [each.ndim if isinstance(each, ArrayArgument) else None for each in declared]
            analysis = self._analysis(Signature(declared), ranks)
        gpu = ONE_CELL if serial else usual_form(analysis)
        form = Form(serial, same, wide, self.storage, gpu.cells, gpu.block)
        return self._kernel(analysis, form), serial


def _are_apart(described: Sequence[tuple[Any, Any]]) -> bool:
    """Whether all arrays are treadle's and lie in memories of their own."""
    arrays = [one for key, one in described if isinstance(key, ArrayClass)]
    memories = {id(one.storage) for one in arrays if isinstance(one, DeviceArray)}
    return len(memories) == len(arrays)


class _WithGradient(Function):
    """A launch whose derivative is that of the body's operations."""

    @staticmethod
    def forward(ctx: Any, stencil: Stencil, names: tuple[str, ...], *values: Any) -> Any:
        """Launch the stencil."""
        ctx.stencil, ctx.names = stencil, names
        ctx.save_for_backward(*(each if isinstance(each, Tensor) else None for each in values))
        ctx.numbers = [None if isinstance(each, Tensor) else each for each in values]
        found = stencil._computed(dict(zip(names, values, strict=True)))
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
            return ctx.stencil.on_arrays(every)  # type: ignore[no-any-return]

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


def has_history(value: Any) -> bool:
    """Whether a value is a tensor that was computed from variables of a gradient."""
    return isinstance(value, Tensor) and value._history is not None


def _annotated_dtype(annotation: Any) -> Any:
    """The dtype that an annotation says, if it is of an array of numbers."""
    element = annotation.element if isinstance(annotation, ArrayType) else None
    return element if isinstance(element, DType) else None


def _parameters_of(body: Body, options: KernelOptions) -> Kernel:
    """A kernel with a stencil's parameters that does nothing."""
    parameters, names = [], {}
    for at, name in enumerate(body.names):
        parameters.append(f"{name}: treadle_p{at}" if name in body.annotations else name)
        names[f"treadle_p{at}"] = body.annotations.get(name)
    text = f"def {body.name}({', '.join(parameters)}):\n    pass\n"
    return Kernel(function_from_text(text, None, names), options, None)


def _bytes_near(analysis: Analysis, described: Sequence[tuple[Any, Any]]) -> tuple[int, int]:
    """The bytes of a cell in all arrays together, and how many planes are near it."""
    size = 0
    for at in analysis.cells:
        grids = math.prod(described[at][1].shape[: analysis.leading(at)])
        size += grids * size_of(described[at][0].element)
    low, high = analysis.reach(0)
    return size, high - low + 1


def _of_user(error: TreadleError) -> TreadleError:
    """An error without the lines of the kernel around the body, and with a short traceback."""
    if notes := getattr(error, "__notes__", None):
        notes[:] = [note for note in notes if "<kernel source" not in note]
    return shortened(error)


@overload
def stencil(body: Callable[..., Any], /) -> Stencil: ...
@overload
def stencil(
    *,
    boundary: Any = ...,
    value: Any = ...,
    halo: Extent | None = ...,
    tile: Extent | None = ...,
    storage: Any = ...,
    fastmath: bool = ...,
) -> Callable[[Callable[..., Any]], Stencil]: ...
def stencil(
    body: Any = None,
    /,
    *,
    boundary: Any = "clamp",
    value: Any = None,
    halo: Extent | None = None,
    tile: Extent | None = None,
    storage: Any = None,
    fastmath: bool = False,
) -> Any:
    """Make a function of arrays and a position a stencil: it computes each cell of a grid.

    The function reads neighbours of its position, as in `pos.north(u)` or `pos.at(u, di, dj)`, and
    writes its own cell, `out[pos] = …` (see `td.GridPos`). Arrays have 1, 2 or 3 axes. `boundary`
    says what a neighbour outside an array is: the nearest element ("clamp"), that at the other end
    ("wrap"), the one as far inside ("mirror"), 0 ("zero") or `value` ("constant"); or that cells
    with such neighbours are not computed ("skip"); or what a function of the array and the indices
    returns. A list has one for each axis. `halo` is checked if it is given: how far from its cell
    the function may read. `tile` is the block of threads on a GPU, in array order. `storage`,
    `td.float16` or `td.bfloat16`, is the dtype of arrays that are annotated as float32: neighbours
    are read as float32, and what is written is rounded.

    >>> import numpy as np, treadle as td
    >>> @td.stencil(boundary="zero")
    ... def blur(u, out, pos):
    ...     out[pos] = (pos.west(u) + 2.0 * u[pos] + pos.east(u)) / 4.0
    >>> u, out = td.asarray([0.0, 4.0, 8.0], device="cpu"), td.zeros(3, device="cpu")
    >>> blur(u, out)
    >>> out.tolist()
    [1.0, 4.0, 5.0]
    """
    rules = read_boundary(boundary, value)
    checked = check_halo(halo)
    options = KernelOptions(read_tile(tile), True, fastmath)
    names = sys._getframe(1).f_locals
    kept = read_storage(storage)

    def make(decorated: Any) -> Stencil:
        try:
            found = read_body(decorated, names, kept)
            return Stencil(found, rules, checked, options, kept)
        except CompileError as error:
            raise shortened(error)  # noqa: B904

    return make if body is None else make(body)
