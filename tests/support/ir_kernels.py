"""Kernels written as IR, launched like any other:

kernel = ir_kernel('''
kernel double {
  buffer x: f32
  parameter x.size: i32 from ("size", "x")
  var i: i32 = thread_idx.x
  x[i; i in x.size] = x[i; i in x.size] * 2.0
}
''')
kernel[1, 64](x)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from treadle.core.dim3 import Dim3
from treadle.ir import nodes as n
from treadle.ir.definition import KernelOptions, LoweredKernel
from treadle.ir.parser import from_text
from treadle.ir.signature import Declared, DeclaredArray, DeclaredParameter, Signature
from treadle.runtime.launch import Launcher


class IrKernel:
    """A kernel of flat arrays and numbers, which are its parameters in this order."""

    options = KernelOptions()

    def __init__(self, kernel: n.Kernel) -> None:
        self.kernel = kernel
        self.name = kernel.name
        declared: list[tuple[str, Declared]] = [
            (buffer.name, DeclaredArray(buffer.element, 1)) for buffer in kernel.buffers
        ]
        declared += [
            (str(parameter.origin[1]), parameter.type)
            for parameter in kernel.parameters
            if parameter.origin[:1] == ("value",)
        ]
        self.parameters = tuple(DeclaredParameter(*pair) for pair in declared)
        self.launcher = Launcher(self)

    def captured(self) -> None:
        """Nothing comes from outside."""

    def lower(self, signature: Signature) -> LoweredKernel:
        """The kernel as it is."""
        return LoweredKernel(self.kernel, None)

    def __getitem__(self, shape: tuple[int | Sequence[int], ...]) -> Callable[..., None]:
        grid, block, *rest = shape
        bound = self.launcher.bound(Dim3.of(grid), Dim3.of(block), *rest)
        return lambda *arguments: bound(arguments) and None

    def source(self, target: str, **options: Any) -> str:
        """The text of the kernel on a target."""
        return self.launcher.source(target, (), **options)


def ir_kernel(text: str) -> IrKernel:
    """The kernel that a text in the IR's notation says."""
    return IrKernel(from_text(text))
