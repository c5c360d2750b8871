"""The launch configuration `kernel[grid, block, shared_bytes, stream](…)`: the base classes of the
kernels of all front ends, before and after it is given."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from functools import cached_property
from typing import Any, Generic, TypeVar, cast

from treadle.core.dim3 import Dim3
from treadle.core.errors import LaunchError
from treadle.ir.definition import KernelDefinition
from treadle.runtime.launch import Launcher
from treadle.runtime.varying import varying

_MOST_CONFIGURED = 256  # grids and blocks that a kernel remembers

B = TypeVar("B")
K = TypeVar("K", bound="ConfigurableKernel[Any]")


class ConfigurableKernel(ABC, Generic[B]):
    """A kernel that is indexed with its launch configuration, and then called. It caches the
    configured kernels, so that a launch in a loop prepares nothing."""

    def __init__(self) -> None:
        self._configured: dict[Any, B] = {}  # by launch configuration

    @property
    @abstractmethod
    def name(self) -> str:
        """The kernel's name, for messages."""

    @abstractmethod
    def bind(self, grid: Dim3, block: Dim3, shared_bytes: Any, stream: Any) -> B:
        """The configured kernel, which is called to launch."""

    @cached_property
    def _launcher(self) -> Launcher:
        return Launcher(cast(KernelDefinition, self))

    def __getitem__(self, launch: Any) -> B:
        try:
            return self._configured[launch]
        except (KeyError, TypeError):
            configured = self._configure(launch)
        if varying.get() is not None:
            return configured  # it may have sizes of a trace
        if len(self._configured) >= _MOST_CONFIGURED:
            self._configured.clear()
        with suppress(TypeError):  # a list is accepted, but is not hashable
            self._configured[launch] = configured
        return configured

    def _configure(self, launch: Any) -> B:
        parts = launch if isinstance(launch, tuple) else (launch,)
        if not 2 <= len(parts) <= 4:
            raise LaunchError(
                f"a launch needs a grid and a block, {self.name}[grid, block](…), optionally "
                f"followed by shared_bytes and a stream: {len(parts)} given"
            )
        shared = parts[2] if len(parts) > 2 and parts[2] is not None else 0
        stream = parts[3] if len(parts) > 3 else None
        try:
            grid, block = Dim3.of(parts[0]), Dim3.of(parts[1])
        except (TypeError, ValueError) as error:
            raise LaunchError(f"{self.name}[grid, block]: {error}") from None
        return self.bind(grid, block, shared, stream)


class ConfiguredKernel(Generic[K]):
    """A kernel with its launch configuration. A front end defines `__call__`, which launches."""

    __slots__ = ("_launch", "block", "grid", "kernel", "shared_bytes", "stream")

    def __init__(self, kernel: K, grid: Dim3, block: Dim3, shared_bytes: Any, stream: Any) -> None:
        self.kernel = kernel
        self.grid = grid
        self.block = block
        self.shared_bytes = shared_bytes
        self.stream = stream
        self._launch = kernel._launcher.bound(grid, block, shared_bytes, stream)

    def __repr__(self) -> str:
        return f"{self.kernel!r}[{tuple(self.grid)}, {tuple(self.block)}]"
