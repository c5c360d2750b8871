"""`@td.kernel` and `@td.func`: the decorators, and the objects that they return."""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cached_property
from types import FunctionType
from typing import Any, overload

import numpy as np

from treadle.core.dim3 import Dim3
from treadle.core.errors import (
    CompileError,
    DtypeError,
    LaunchError,
    TreadleError,
    shortened,
)
from treadle.core.nesting import deep_nesting
from treadle.core.source import Span
from treadle.ir.definition import KernelOptions, LoweredKernel
from treadle.ir.signature import DeclaredParameter, Signature
from treadle.lang.captures import CaptureSet
from treadle.lang.definitions import DeviceFunction, KernelFunction
from treadle.lang.interpreter_state import current_run, state
from treadle.lang.refusals import REFUSALS
from treadle.lang.source import Source, function_from_text, parameters_of, resolve_annotations
from treadle.lang.source_text import remember
from treadle.lang.types import Vector, declared_type, is_struct
from treadle.runtime import settings
from treadle.runtime.launch_config import ConfigurableKernel, ConfiguredKernel

Extent = int | Sequence[int]


class Function(DeviceFunction):
    """A device function made by `@td.func`: kernels call it, generic over argument types."""

    def __init__(self, function: FunctionType) -> None:
        super().__init__(function)
        self.__wrapped_function__ = function

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Run it as plain Python, inside `td.interpret()`; elsewhere TreadleError."""
        run = current_run()
        if run is None:
            raise TreadleError(
                f"{self.definition.__name__} is a device function: call it from a kernel "
                "(with td.interpret() the kernel runs as plain Python)"
            )
        return run.call(self.definition, self.source_code, arguments, keywords)

    def __repr__(self) -> str:
        return f"<treadle.func {self.definition.__qualname__}>"


class Kernel(KernelFunction, ConfigurableKernel["BoundKernel"]):
    """A kernel made by `@td.kernel`. Indexed with a grid and a block, it can be launched."""

    def __init__(
        self, function: FunctionType, options: KernelOptions, local_names: Mapping[str, Any] | None
    ) -> None:
        ConfigurableKernel.__init__(self)
        KernelFunction.__init__(self, function)
        self.options = options
        self._local_names = dict(local_names or {})
        self._from_text = function.__code__.co_filename.startswith("<kernel source")
        _check_text(self.source_code, function)
        self.parameters = self._declared()
        self._by_name = tuple(each.arg for each in self.source_code.tree.args.kwonlyargs)

    def _declared(self) -> tuple[DeclaredParameter, ...]:
        annotations = resolve_annotations(self.definition, self._local_names)
        found = []
        for node in parameters_of(self.source_code.tree):
            declared = None
            if annotations.get(node.arg) is not None:
                try:
                    declared = declared_type(annotations[node.arg])
                except DtypeError as error:
                    raise CompileError(
                        f"parameter {node.arg}: {error}",
                        self.source_code.span(node.annotation or node),
                        self.source_code.text,
                    ) from None
            found.append(DeclaredParameter(node.arg, declared))
        return tuple(found)

    # --- for the launch path (treadle.ir.definition.KernelDefinition) ---

    @cached_property
    def _captures(self) -> CaptureSet:
        return CaptureSet(self.definition)

    def captured(self) -> Hashable:
        """The current values of the constants from outside."""
        return self._captures.key()

    def identity(self) -> str | None:
        """What its IR depends on, beside a signature, as text; None for a user's kernel."""
        text = self._captures.identity()
        if text is None:
            return None
        return f"{text}\n{self.parameters!r}\n{self.options!r}\n{settings.check}"

    def lower(self, signature: Signature) -> LoweredKernel:
        """The kernel in IR for arguments of these types."""
        from treadle.lang.lower import lower_in_full  # saves import time

        captured, source = self.captured(), self.source_code
        with deep_nesting(self.name, source.span(source.tree), source.text):
            kernel, lowering = lower_in_full(
                self.definition, source, signature, self.options, asserts=settings.check
            )
        return LoweredKernel(kernel, captured, lowering.sources)

    def given(self, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[Any, ...]:
        """One argument for each parameter, of those by position and by name, and of the default
        values. LaunchError for a name that is not a parameter's, or is given twice."""
        names = [parameter.name for parameter in self.parameters]
        only = self._by_name
        by_place = names[: len(names) - len(only)]
        defaults = self.definition.__defaults__ or ()
        if len(by_place) < len(arguments) <= len(names):
            last = only[len(arguments) - len(by_place) - 1]
            raise LaunchError(f"kernel {self.name} takes {last} by name: write {last}=…")
        if len(arguments) > len(names) or not (keywords or defaults or only):
            return arguments  # the launch says how many it takes
        values = dict(zip(by_place, arguments, strict=False))
        by_position = {each.arg for each in self.source_code.tree.args.posonlyargs}
        for name, value in keywords.items():
            if name not in names or name in by_position:
                takes = f"its parameters are {', '.join(names)}" if names else "it has none"
                kind = "no parameter by that name" if name in by_position else "no parameter"
                raise LaunchError(f"kernel {self.name} has {kind} {name}: {takes}")
            if name in values:
                raise LaunchError(f"kernel {self.name}: {name} is given twice")
            values[name] = value
        found = dict(zip(by_place[len(by_place) - len(defaults) :], defaults, strict=True))
        found |= (self.definition.__kwdefaults__ or {}) | values
        lacking = [name for name in names if name not in found]
        if lacking:
            raise LaunchError(
                f"kernel {self.name} takes {len(names)} argument{'' if len(names) == 1 else 's'} "
                f"({', '.join(names)}), not {len(values)}: {lacking[0]} is not given"
            )
        return tuple(found[name] for name in names)

    # --- for users ---

    def bind(self, grid: Dim3, block: Dim3, shared_bytes: Any, stream: Any) -> BoundKernel:
        """The kernel with a launch configuration."""
        return BoundKernel(self, grid, block, shared_bytes, stream)

    def launch(self, threads: Extent, *arguments: Any, **keywords: Any) -> None:
        """Run exactly `threads` threads: an int, or a tuple (…, i, j) in array order.

        Arguments may be given by name, and those with default values left out.
        """
        if keywords or self._by_name or len(arguments) != len(self.parameters):
            arguments = self.given(arguments, keywords)
        if state.active:
            from treadle.lang.interpreter import run_threads  # saves import time

            _interpret(run_threads, self, threads, arguments)
            return
        try:
            self._launcher.launch_threads(threads, arguments)
        except TreadleError as error:
            raise shortened(error)  # noqa: B904 - it is the same error

    def source(
        self,
        target: str,
        *arguments: Any,
        block: Extent | None = None,
        shared_bytes: int = 0,
        sm: int | str | None = None,
        **keywords: Any,
    ) -> str:
        """The generated source for a target: "wgsl", "llvm", "ptx", "cuda", "msl", "numpy" or
        "ir".

        `shared_bytes` is the size of dynamic shared memory at a launch. `sm` is the compute
        capability that "ptx" and "cuda" are printed for, as 80 or "90a": instructions for matrix
        fragments and others came with newer cards. Without it the text is for the oldest ones, of
        7.0. No device is needed. CompileError for a target or a capability that is not known.
        """
        if keywords or (arguments and (self._by_name or len(arguments) != len(self.parameters))):
            arguments = self.given(arguments, keywords)
        try:
            return self._launcher.source(target, arguments, block, shared_bytes, sm)
        except TreadleError as error:
            raise shortened(error)  # noqa: B904

    def __call__(self, *arguments: Any, **keywords: Any) -> Kernel:
        """Raise an error that shows how to launch with a grid and a block.

        (As a decorator, `@td.kernel(source=text)`, it replaces the function that it decorates.)
        """
        if self._from_text and len(arguments) == 1 and isinstance(arguments[0], FunctionType):
            return self
        raise LaunchError(
            f"a kernel needs a grid and a block: {self.name}[blocks, threads](…), or "
            f"{self.name}.launch(n, …) for n threads"
        )

    def __repr__(self) -> str:
        return f"<treadle.kernel {self.name}({', '.join(map(str, self.parameters))})>"


class BoundKernel(ConfiguredKernel["Kernel"]):
    """A kernel with its grid and block. Calling it launches."""

    __slots__ = ()

    def __call__(self, *arguments: Any, **keywords: Any) -> None:
        """Launch with these arguments, by position or by name."""
        if keywords or self.kernel._by_name or len(arguments) != len(self.kernel.parameters):
            arguments = self.kernel.given(arguments, keywords)
        if state.active:
            launch = self.kernel, self.grid, self.block, self.shared_bytes
            from treadle.lang.interpreter import run  # saves import time

            _interpret(run, *launch, arguments)
            return
        try:
            self._launch(arguments)
        except TreadleError as error:
            raise shortened(error)  # noqa: B904


def _interpret(run: Callable[..., None], *launch: Any) -> None:
    """Launch in the interpreter. Errors raised in the kernel keep its frames in the traceback;
    errors from before it runs show only the launch."""
    try:
        run(*launch)
    except CompileError as error:
        raise shortened(error)  # noqa: B904


def _check_text(source: Source, function: FunctionType) -> None:
    """Refuse what is wrong for every signature: a parameter list with *args, or a default value
    that no launch takes."""
    arguments = source.tree.args
    for node, key in ((arguments.vararg, "star_parameters"), (arguments.kwarg, "star_parameters")):
        if node is not None:
            raise CompileError(REFUSALS[key].message(), source.span(node), source.text)
    defaults = function.__defaults__ or ()
    named = (arguments.posonlyargs + arguments.args)[-len(defaults) :] if defaults else []
    by_name = function.__kwdefaults__ or {}
    only = [each for each in arguments.kwonlyargs if each.arg in by_name]
    values = (*defaults, *(by_name[each.arg] for each in only))
    for parameter, value in zip((*named, *only), values, strict=True):
        if not isinstance(value, (bool, int, float, np.generic, Vector)) and not is_struct(
            type(value)
        ):
            message = REFUSALS["default_value"].message(name=parameter.arg)
            raise CompileError(message, source.span(parameter), source.text)


@overload
def kernel(function: Callable[..., Any], /) -> Kernel: ...
@overload
def kernel(
    *, block: Extent | None = ..., checked: bool = ..., fastmath: bool = ...
) -> Callable[[Callable[..., Any]], Kernel]: ...
@overload
def kernel(
    *,
    source: str,
    name: str | None = ...,
    block: Extent | None = ...,
    checked: bool = ...,
    fastmath: bool = ...,
) -> Kernel: ...
def kernel(
    function: Any = None,
    /,
    *,
    block: Extent | None = None,
    checked: bool = True,
    fastmath: bool = False,
    source: str | None = None,
    name: str | None = None,
) -> Any:
    """Make a Python function a kernel that runs on every device.

    `block` fixes the threads of a block for `launch`; `checked=False` omits the bounds checks of
    array accesses; `fastmath=True` uses the hardware's fast mathematics. `source` is the function's
    text, for code without a file (its names are looked up in the caller's scope).
    """
    options = KernelOptions(None if block is None else Dim3.of(block), checked, fastmath)
    caller = sys._getframe(1)

    def make(decorated: Any) -> Kernel:
        try:
            if source is not None:
                names = {**caller.f_globals, **caller.f_locals}
                decorated = function_from_text(source, name, names)
            return Kernel(as_function(decorated), options, caller.f_locals)
        except CompileError as error:
            raise shortened(error)  # noqa: B904

    return make if function is None and source is None else make(function)


def func(function: Callable[..., Any], /) -> Function:
    """Make a Python function a device function, which kernels and other functions can call."""
    return Function(as_function(function))


def as_function(candidate: Any) -> FunctionType:
    """The plain function that a decorator is applied to, or that of an earlier td decorator."""
    if isinstance(candidate, (Function, Kernel)):
        candidate = candidate.definition
    if isinstance(candidate, FunctionType):
        code = candidate.__code__
        place = Span(code.co_filename, code.co_firstlineno, 1, 1)
        remember(candidate)
        if code.co_name == "<lambda>":
            raise CompileError("a kernel is a function written with def, not a lambda", place)
        if hasattr(candidate, "__wrapped__"):
            raise CompileError(
                f"{candidate.__name__} is a wrapped function, made by another decorator, and a "
                "kernel is compiled from its own def: put td's decorator directly above def, and "
                "leave the other one out",
                place,
            )
    else:
        raise CompileError(
            f"a kernel is a function written with def, not {type(candidate).__name__}", Span()
        )
    return candidate
