"""From IR to source text: one package a target, and what they share.

`records` is what printers hand to drivers; `target` says what a target is; `pipeline` is the
order of passes, for all of them.
"""

TARGETS: dict[str, str] = {
    "wgsl": "treadle.codegen.wgsl.target",
    "llvm": "treadle.codegen.llvm.target",
    "ptx": "treadle.codegen.ptx.target",
    "cuda": "treadle.codegen.cuda.target",
    "msl": "treadle.codegen.msl.target",
    "numpy": "treadle.codegen.numpy.target",
}
"""The module of each target's record, by the name that `source` and `KernelCode.target` use."""
