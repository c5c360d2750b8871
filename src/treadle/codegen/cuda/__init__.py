"""Kernels as CUDA C++, for NVRTC or nvcc, without a header.

`print_kernel` is the way in. `language` has CUDA's spellings as tables, `atomics` and `subgroups`
warp operations, `printer` the kernel's frame. Everything else is `codegen.c_family`.

16-bit floats are structs of ours, computed in float32: the toolkit's own types need headers, which
a machine with nothing but NVRTC does not have, and on older GPUs have less than half of the
operations. Two short PTX instructions convert float16; bfloat16 is the upper half of a float.
"""

from treadle.codegen.cuda.printer import print_kernel

__all__ = ["print_kernel"]
