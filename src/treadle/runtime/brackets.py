"""What kernels of all front ends share: what stands in the brackets of a launch,
`kernel[grid, block, shared_bytes, stream](…)`, and what that makes of them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from functools import cached_property
from typing import Any, Generic, TypeVar, cast

from treadle.core.dim3 import Dim3
from treadle.core.errors import LaunchError
from treadle.ir.definition import KernelDefinition
from treadle.runtime.launch import Launcher

_MOST_BOUND = 256  # grids and blocks that a kernel remembers

B = TypeVar("B")
K = TypeVar("K", bound="Bracketed[Any]")


class Bracketed(ABC, Generic[B]):
    """A kernel that is indexed with its grid and block, and then called. It remembers what was in
    the brackets, so that a launch in a loop prepares nothing."""

    def __init__(self) -> None:
        self._bound: dict[Any, B] = {}  # by what stood in the brackets

    @property
    @abstractmethod
    def name(self) -> str:
        """The kernel's name, for messages."""

    @abstractmethod
    def bind(self, grid: Dim3, block: Dim3, shared_bytes: Any, stream: Any) -> B:
        """What is called to launch."""

    @cached_property
    def _launcher(self) -> Launcher:
        return Launcher(cast(KernelDefinition, self))

    def __getitem__(self, launch: Any) -> B:
        try:
            return self._bound[launch]
        except (KeyError, TypeError):
            bound = self._from_brackets(launch)
        if len(self._bound) >= _MOST_BOUND:
            self._bound.clear()
        with suppress(TypeError):  # a list in the brackets is fine, but no key
            self._bound[launch] = bound
        return bound

    def _from_brackets(self, launch: Any) -> B:
        parts = launch if isinstance(launch, tuple) else (launch,)
        if not 2 <= len(parts) <= 4:
            raise LaunchError(
                f"a launch needs blocks and threads of a block, {self.name}[grid, block](…), with "
                f"shared_bytes and a stream behind them if need be: {len(parts)} given"
            )
        shared = parts[2] if len(parts) > 2 and parts[2] is not None else 0
        stream = parts[3] if len(parts) > 3 else None
        try:
            grid, block = Dim3.of(parts[0]), Dim3.of(parts[1])
        except (TypeError, ValueError) as error:
            raise LaunchError(f"{self.name}[grid, block]: {error}") from None
        return self.bind(grid, block, shared, stream)


class Bound(Generic[K]):
    """A kernel with its grid and block; a front end says in `__call__` what a launch takes."""

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
