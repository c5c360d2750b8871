"""What can be said of PTX text without running it: resources, barriers, accesses, bank conflicts.

    text        PTX as records: kernels, instructions, variables
    flow        basic blocks; which branch decides whether a block runs
    variance    which registers differ between the threads of a block
    lanes       addresses as functions of the lane: bank conflicts, sectors of global memory
    wide_loads  loads of neighbours that the assembler makes one of
    assembler   what NVIDIA's assembler says: registers, spills; how many blocks fit
    findings    all of it for a module

The text may be of any compiler. Nothing here is needed to compile or to launch.
"""

from treadle.ptx_analysis.findings import Finding, KernelReport, report

__all__ = ["Finding", "KernelReport", "report"]
