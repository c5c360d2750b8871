"""Kernels as WGSL, the language of WebGPU, in the dialects of its two compilers.

`print_kernel` is the way in. The modules, from the outside in: `printer` lays out the whole text,
`statements` and `expressions` print a body, `access` and `atomics` print what touches memory as
`plans` decided to lay it out, `words` packs and unpacks what is smaller or larger than a word,
`casts` converts between types as registers hold them, `helpers` holds the small functions that
the text may need, `module` collects all of it.
"""

from treadle.codegen.wgsl.options import WgslOptions
from treadle.codegen.wgsl.printer import print_kernel

__all__ = ["WgslOptions", "print_kernel"]
