"""Kernels in the Metal Shading Language, version 3.0 (macOS 13, iOS 16) and later.

`print_kernel` is the way in. `language` has Metal's spellings as tables, `atomics` and `subgroups`
operations of SIMD groups, `printer` the kernel's frame. Everything else is `codegen.c_family`.

Vectors of three numbers are packed in memory, as they are everywhere else. bfloat16 is a struct of
ours, since Metal has the type only from version 3.1 on. Compile without fast math: with it Metal
assumes that there are no NaNs and infinities.
"""

from treadle.codegen.msl.printer import print_kernel

__all__ = ["print_kernel"]
