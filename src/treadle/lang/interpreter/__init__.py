"""`with td.interpret():` runs kernels as plain Python, one thread after the other.

The kernel is lowered first, so that constructs which a device refuses are refused here too, and to
get the types of its local variables. Then its source runs, rewritten so that numbers wrap, round
and convert as they do on a device. `print` prints, and a debugger stops in the user's own lines.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from types import FunctionType
from typing import Any, Protocol

import numpy as np

from treadle.codegen.pipeline import for_block
from treadle.core.dim3 import Dim3
from treadle.core.errors import CompileError, LaunchError
from treadle.core.limits import MOST_SHARED_MEMORY, Limits
from treadle.core.nesting import deep_nesting
from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.ir.definition import KernelDefinition
from treadle.ir.passes.whole_subgroups import check_lanes, has_matrices
from treadle.ir.signature import Signature
from treadle.ir.traverse import walk
from treadle.lang.interpreter import functions, numbers
from treadle.lang.interpreter.arguments import InterpretedArguments, take_arguments
from treadle.lang.interpreter.arrays import (
    ElementPlace,
    KernelArray,
    MemberPlace,
    attribute,
    constant_array,
    copied,
    item,
)
from treadle.lang.interpreter.threads import BlockState, Request, ThreadState, run_block
from treadle.lang.interpreter.transform import python_function
from treadle.lang.interpreter_state import state
from treadle.lang.lower import lower_in_full
from treadle.lang.positions import GridPos
from treadle.lang.rules import Literal
from treadle.lang.source import Source, resolve_annotations
from treadle.lang.types import (
    ArrayType,
    Vector,
    annotation_of,
    declared_type,
    ir_type,
    is_struct,
    make_value,
)
from treadle.runtime import settings
from treadle.runtime.launch import check_block, check_whole_subgroups, threads_of

_BLOCK = 64  # threads, for launches that leave the block open


class Interpreted(KernelDefinition, Protocol):
    """A kernel in Python (`treadle.lang.decorators.Kernel`)."""

    @property
    def definition(self) -> Any:
        """The decorated function (type checkers would take a FunctionType for a method)."""

    @property
    def source_code(self) -> Source:
        """Its source."""


def run(
    kernel: Interpreted, grid: Dim3, block: Dim3, shared_bytes: int, arguments: Sequence[Any]
) -> None:
    """Interpret `kernel[grid, block](…)`."""
    taken = take_arguments(kernel, arguments)
    check_block(kernel.name, block)
    if min(grid) < 1:
        if min(grid) == 0 and any(isinstance(v, KernelArray) and not v.size for v in taken.values):
            return
        raise LaunchError(
            f"kernel {kernel.name}: the grid {tuple(grid)} must be at least 1 along each axis"
        )
    Run(kernel, taken).blocks(grid, block, shared_bytes, None)
    taken.copy_back()


def run_threads(
    kernel: Interpreted, threads: int | Sequence[int], arguments: Sequence[Any]
) -> None:
    """Interpret `kernel.launch(threads, …)`."""
    taken = take_arguments(kernel, arguments)
    extent = threads_of(kernel.name, threads)
    if extent.count == 0:
        return
    run = Run(kernel, taken)
    block = kernel.options.block or Dim3(min(extent.x, _BLOCK))
    if has_matrices(run.lowered):
        block = kernel.options.block or _block_of_powers(extent)
        axes = len(threads) if isinstance(threads, Sequence) else 1
        check_whole_subgroups(kernel.name, tuple(extent)[:axes], block)
    grid = Dim3(*(-(-a // b) for a, b in zip(extent, block, strict=True)))
    run.blocks(grid, block, 0, extent)
    taken.copy_back()


def _block_of_powers(extent: Dim3) -> Dim3:
    """A block for whole subgroups, where a launch has them, as devices choose it."""
    x = min(1 << (extent.x - 1).bit_length(), _BLOCK)
    return Dim3(x, min(1 << (extent.y - 1).bit_length(), _BLOCK // x))


class Run:
    """One interpreted launch."""

    def __init__(self, kernel: Interpreted, taken: InterpretedArguments) -> None:
        self.kernel = kernel
        self.taken = taken
        signature = Signature(taken.signature)
        source = kernel.source_code
        with deep_nesting(kernel.name, source.span(source.tree), source.text):
            lowered, lowering = lower_in_full(
                kernel.definition, source, signature, kernel.options, asserts=settings.check
            )
        self.types = lowering.types
        self.sources = lowering.sources
        self.lowered = lowered
        bodies = [lowered.body, *(function.body for function in lowered.functions)]
        self.waits = any(
            isinstance(node, (n.Barrier, n.Subgroup)) for body in bodies for node in walk(body)
        )
        self.body = python_function(kernel.definition, source, _Helper())
        self.functions: dict[FunctionType, Callable[..., Any]] = {}

    def blocks(self, grid: Dim3, block: Dim3, shared_bytes: int, extent: Dim3 | None) -> None:
        """Run the blocks one after the other. LaunchError or UnsupportedOnTarget for a kernel that
        needs more shared memory than its arrays' device has, or than any device for NumPy's."""
        limits = self.taken.limits or Limits(max_shared_memory=MOST_SHARED_MEMORY)
        with deep_nesting(self.kernel.name):
            ready = for_block(self.lowered, block, shared_bytes, limits)
            try:
                check_lanes(ready)
            except CompileError as error:
                raise error.with_source(self.sources.get(error.file)) from None
        for z in range(grid.z):
            for y in range(grid.y):
                for x in range(grid.x):
                    self._block(BlockState(grid, block, Dim3(x, y, z), shared_bytes), extent)

    def _block(self, shared: BlockState, extent: Dim3 | None) -> None:
        size = shared.block
        states = [
            ThreadState(shared, Dim3(x, y, z), _cannot_wait)
            for z in range(size.z)
            for y in range(size.y)
            for x in range(size.x)
        ]
        if extent is not None:
            states = [state for state in states if _inside(state, extent)]
        if self.waits:
            run_block(states, self._thread)
        else:
            for state in states:
                self._thread(state)

    def _thread(self, thread: ThreadState) -> None:
        before = state.run, state.thread
        state.run, state.thread = self, thread
        try:
            arguments = [copied(value) for value in self.taken.values]
            thread.types.append(self._types(self.kernel.definition, arguments))
            with np.errstate(all="ignore"):
                self.body(*arguments)
        finally:
            state.run, state.thread = before

    def _types(self, function: FunctionType, arguments: Sequence[Any]) -> dict[str, t.Type]:
        return self.types.get((function, tuple(kind_of(value) for value in arguments)), {})

    def call(
        self,
        function: FunctionType,
        source: Source,
        arguments: Sequence[Any],
        keywords: dict[str, Any],
    ) -> Any:
        """Call a device function."""
        thread = state.thread
        assert thread is not None
        bound = inspect.signature(function).bind(*arguments, **keywords)
        bound.apply_defaults()
        values = _converted(function, bound.arguments)
        body = self.functions.get(function)
        if body is None:
            body = self.functions[function] = python_function(function, source, _Helper())
        thread.types.append(self._types(function, values))
        try:
            return body(*values)
        finally:
            thread.types.pop()

    def builtin(self, target: Any, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Any:
        """Call one of td's functions, or read one of its built-in variables."""
        return functions.run_builtin(state.thread, target, arguments, keywords)


def _cannot_wait(request: Request) -> Any:
    raise AssertionError(f"{request.kind} in a kernel that was lowered without one")


def _inside(state: ThreadState, extent: Dim3) -> bool:
    block = state.block
    return all(
        block.index[axis] * block.block[axis] + state.index[axis] < extent[axis]
        for axis in range(3)
    )


def _converted(function: FunctionType, arguments: dict[str, Any]) -> list[Any]:
    """Arguments of a device function, converted to its annotations; literals get a type."""
    annotations = resolve_annotations(function)
    values = []
    for name, value in arguments.items():
        annotation = annotations.get(name)
        if isinstance(value, GridPos):
            values.append(value)
            continue
        if annotation is not None and not isinstance(annotation, ArrayType):
            declared = declared_type(annotation)
            if isinstance(declared, t.Scalar):
                value = numbers.cast(value, declared)
        elif numbers.is_literal(value):
            value = numbers.typed(value)
        values.append(copied(value))
    return values


def kind_of(value: Any) -> Any:
    """The kind of an argument, equal to the lowering's `kind_of`: functions are lowered once for
    each combination of kinds."""
    if isinstance(value, np.generic):
        return numbers.scalar_type(value)
    if isinstance(value, Vector):
        return value.type.ir
    if isinstance(value, KernelArray):
        return (value.element, value.ndim)
    if isinstance(value, tuple):
        return tuple(kind_of(part) for part in value)
    if isinstance(value, GridPos):
        return value.rules
    if numbers.is_literal(value):
        return (type(value).__name__, value)
    if isinstance(value, np.ndarray):
        return kind_of(constant_array(value))
    if is_struct(type(value)):
        return ir_type(type(value))
    return id(value)


def _zero(type: Any) -> Any:
    """Zero of a type, or of each part of a tuple, except its constants."""
    if isinstance(type, tuple):
        return tuple(map(_zero, type))
    if isinstance(type, Literal):
        return type.value
    return None if type is None else make_value(annotation_of(type), None)


class _Helper:
    """The operations that the rewritten source calls."""

    binary = staticmethod(numbers.binary)
    unary = staticmethod(numbers.unary)
    compare = staticmethod(numbers.compare)
    item = staticmethod(item)
    attribute = staticmethod(attribute)
    function = staticmethod(functions.known_function)
    shown = staticmethod(functions.shown)
    element = staticmethod(ElementPlace)
    member = staticmethod(MemberPlace)

    @staticmethod
    def zero(name: str) -> Any:
        """The value of a local variable before it is assigned; None if its type is not known."""
        thread = state.thread
        assert thread is not None
        return _zero(thread.types[-1].get(name))

    @staticmethod
    def local(name: str, value: Any) -> Any:
        """A value converted to a local variable's type."""
        thread = state.thread
        assert thread is not None
        wanted = thread.types[-1].get(name) if thread.types else None
        if numbers.is_number(value):
            return (
                numbers.cast(value, wanted)
                if isinstance(wanted, t.Scalar)
                else (numbers.typed(value))
            )
        return copied(value)

    @staticmethod
    def result(value: Any) -> Any:
        """A value converted to the function's result type."""
        if isinstance(value, tuple):
            return tuple(numbers.typed(v) if numbers.is_number(v) else copied(v) for v in value)
        return _Helper.local("return", value)

    @staticmethod
    def unpacked(value: Any, count: int) -> tuple[Any, ...]:
        """The parts of a tuple or vector."""
        parts = tuple(value)
        if len(parts) != count:
            raise ValueError(f"{count} names for {len(parts)} values")
        return parts

    @staticmethod
    def store(value: Any, place: Any) -> None:
        """Store a value in a place."""
        place.store(value)

    @staticmethod
    def opened(place: Any) -> tuple[Any, Any]:
        """A place and its value before the right side is evaluated."""
        return place, place.load()

    @staticmethod
    def update(opened: tuple[Any, Any], op: str, value: Any) -> None:
        """`place op= value`."""
        place, old = opened
        place.store(numbers.binary(op, old, value))
