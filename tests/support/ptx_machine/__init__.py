"""An evaluator of the PTX that treadle prints, so that machines without a GPU check what it does.

    records, text     PTX text as records
    program           a kernel as basic blocks; what is known about its registers
    writer            a block as a Python function over NumPy vectors
    instructions, accesses    what each instruction is, in such functions
    arithmetic, conversions, memory, atomics, warps    what the functions call
    run               chunks of blocks; groups of threads; barriers
    driver            the machine as a device of treadle's own protocol

The meaning is the PTX ISA's. Where the ISA leaves a value open, a value stands that nobody should
use; what hardware would punish (addresses outside of memory or not aligned), what the ISA leaves
undefined (a barrier that part of a block reaches, a member mask that does not fit) and what can
only be a printer's mistake (reading a register that was never written) is an error that names the
instruction. Threads of many blocks run in step; nothing depends on time.
"""
