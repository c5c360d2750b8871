"""A stencil's launches: what its body accesses for the arguments of a call, and its kernels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from treadle.core.errors import LaunchError
from treadle.ir import types as t
from treadle.ir.definition import KernelOptions
from treadle.ir.signature import ArrayArgument, DeclaredParameter, Signature
from treadle.ir.types import size_of
from treadle.lang.decorators import Kernel
from treadle.lang.definitions import ByName
from treadle.lang.interpreter_state import state
from treadle.lang.source import function_from_text
from treadle.runtime.arguments import argument_of, bind, declared_arguments
from treadle.runtime.arrays import ArrayClass
from treadle.runtime.convert import describe, device_of_arguments
from treadle.runtime.devices import default_device
from treadle.stencils.analysis import Analysis, analyze, grid_rank
from treadle.stencils.body import Body
from treadle.stencils.boundary import Boundary, check_constants
from treadle.stencils.grid_kernel import captures_of_rules
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
from treadle.stencils.marching import Marches
from treadle.stencils.sharing import check_sharing

_MOST_ANALYSES = 1024


class Launcher(ByName):
    """A body with what its decorator says, launched with an argument for each parameter."""

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
        self.boundary = boundary
        self._outside = captures_of_rules(boundary.rules)
        self._halo = halo
        self.options = options
        self.storage = storage
        self._analyses: dict[Any, Analysis] = {}
        self._kernels: dict[Any, StencilKernel] = {}
        self._marches = Marches(body, options, storage)
        self.loops: dict[Any, Any] = {}  # kernels of several steps, which begin with this stencil

    @cached_property
    def declared(self) -> Kernel:
        """A kernel with the stencil's parameters, which checks arguments."""
        return _parameters_of(self.body, self.options)

    @property
    def name(self) -> str:
        """The stencil's name."""
        return self.body.name

    @property
    def parameters(self) -> tuple[DeclaredParameter, ...]:
        """The parameters of a call, with their annotations."""
        return self.declared.parameters

    def run(self, arguments: tuple[Any, ...]) -> None:
        """Compute all cells of the grid, with an argument for each parameter."""
        self.check_count(arguments)
        described = [describe(value) for value in arguments]
        analysis = self.analysis_of(described)
        shapes = shapes_of(self.body, analysis, [one for _, one in described])
        grid = grid_of(self.body, analysis, shapes)
        check_sharing(self.body, analysis, arguments, described)
        if grid.is_empty:
            return
        device = device_of_arguments(arguments) or default_device()
        wide = any(isinstance(key, ArrayClass) and key.big for key, _ in described)
        serial = device.traits.serial_threads and not state.active
        gpu = ONE_CELL
        if not serial and not state.active:
            plain = grid.same_shape and not wide
            if plain and self._marches.launch(analysis, device, grid.region, arguments):
                return
            gpu = gpu_form(analysis, device, grid.region)
        form = Form(serial, grid.same_shape, wide, self.storage, gpu.cells, gpu.block)
        kernel = self._kernel(analysis, form)
        if not serial:
            threads, parts = gpu_threads(analysis, grid.region, gpu)
            kernel.launch(threads, *arguments, *parts)
            return
        count, parts = serial_parts(grid.region, *_bytes_near(analysis, described))
        kernel[count, 1](*arguments, *parts)

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
        outside = tuple(each.key() for each in self._outside)
        key = (tuple(one for one, _ in described), self.body.captures.key(), outside)
        known = self._analyses.get(key)
        if known is None:
            if len(self._analyses) >= _MOST_ANALYSES:  # for example, a captured number changes
                self._analyses.clear()
            known = self._analyses[key] = self._analyze(described)
        return known

    def _analyze(self, described: Sequence[tuple[Any, Any]]) -> Analysis:
        declared = self.declared
        bound = [bind(declared, position, *one) for position, one in enumerate(described)]
        ranks = [
            self.body.ndim_of(name, key.ndim if isinstance(key, ArrayClass) else None)
            for name, (key, _) in zip(self.body.names, described, strict=True)
        ]
        signature = Signature(tuple(map(argument_of, bound)))
        return self._analysis(signature, ranks)

    def _analysis(self, signature: Signature, ranks: Sequence[int | None]) -> Analysis:
        ndim = grid_rank(self.body, ranks)
        rules = self.boundary.of_axes(ndim, self.body.name)
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

    def kernel_for_target(
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
            declared = declared_arguments(self.declared)
            ranks = [each.ndim if isinstance(each, ArrayArgument) else None for each in declared]
            analysis = self._analysis(Signature(declared), ranks)
        gpu = ONE_CELL if serial else usual_form(analysis)
        form = Form(serial, same, wide, self.storage, gpu.cells, gpu.block)
        return self._kernel(analysis, form), serial


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
