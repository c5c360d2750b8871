"""What a device is like, beyond its limits and features.

A driver states these once, where it lists its devices. Everything above the drivers decides by
them, and never by a driver's name: so a new device needs no change there.
"""

from __future__ import annotations

from dataclasses import dataclass

from treadle.core.dtypes import DType, int64


@dataclass(frozen=True, slots=True)
class Traits:
    """The defaults suit an unknown GPU: it has every operation, and shares no memory with the host
    or with other libraries."""

    targets: tuple[str, ...]
    """What kernels are printed as for the device, as `codegen.target` names it; the usual first."""

    rank: int = 9
    """Where several devices are there, one of the least rank is the default."""

    # --- how it computes ---

    serial_threads: bool = False
    """Whether the threads of a block run one after the other, as loops. Then a kernel is fastest if
    each thread works on a long contiguous part."""

    software: bool = False
    """Whether it is a GPU's driver that computes on a CPU."""

    slow_compiler: bool = False
    """Whether its compiler takes more than linear time for long code."""

    usual_block: int = 256
    """Threads of a block that a launch by threads chooses."""

    usual_row: int = 32
    """How many of these lie along x, where there are other axes."""

    streamed_bytes: int = 0
    """Results of more bytes than this are quicker if they are stored past the caches, which they do
    not fit in; 0 if none are."""

    vector_loads: bool = True
    """Whether a thread is quicker if it works on several neighbours, loaded at once."""

    double_buffers: bool = False
    """Whether tiles are worth two copies in shared memory: one to fill while the other is used."""

    matrix_products: frozenset[str] = frozenset()
    """The dtypes (short names) whose products subgroups compute by instructions for small matrices;
    "tf32" for float32 numbers that are rounded to 10 bits of fraction; two names one after the
    other ("i8u8") for factors of two dtypes."""

    later_copies: bool = False
    """Whether copies to shared memory happen while their threads go on."""

    matrix_units: tuple[tuple[int, int, int], ...] = ()
    """The rows, columns and inner extents of the small matrices of float16 that subgroups multiply
    with sums of float32 by instructions whose layout is hidden (`ir.opaque`)."""

    group_products: frozenset[str] = frozenset()
    """The dtypes (short names) whose products groups of 128 threads compute from tiles in shared
    memory, fed by copies of boxes of matrices, in the language that kernels are usually printed as;
    named as in `matrix_products`."""

    clusters: bool = False
    """Whether blocks run side by side as a cluster, and reach each other's shared memory, in the
    language that kernels are usually printed as."""

    multiprocessors: int = 0
    """How many blocks of the largest size run at once; 0 if that is not known."""

    exact_division: bool = True
    """Whether quotients of floats are rounded to the nearest."""

    fast_powers: bool = False
    """Whether its own powers of two are good to the last few bits."""

    atomics_64: bool = True
    """Whether it has atomic operations on 64-bit numbers that it computes with."""

    narrow_stores: bool = True
    """Whether elements of less than 32 bits are stored without an atomic operation on a word."""

    default_integer: DType = int64
    """The dtype of Python's integers."""

    # --- its memory, and the host's part ---

    on_host: bool = False
    """Whether kernels are run by this process itself, and events have the host's clock."""

    calls_kernels: bool = False
    """Whether compiled kernels are functions of this process (`CompiledKernel.entry_point`)."""

    persistent_kernels: bool = False
    """Whether a kernel may run for as long as an actor lives, reading memory that the host writes
    meanwhile (`Device.mapped_memory`)."""

    host_memory: bool = False
    """Whether its memory is the process's own, which NumPy can use in place."""

    cuda_memory: bool = False
    """Whether its memory is CUDA's, which other libraries for CUDA can use in place."""

    vendor_products: bool = False
    """Whether a library of its vendor may multiply matrices (`Device.dense_product`)."""

    starts_at_once: bool = False
    """Whether work starts when it is given, rather than with what is given after it."""

    changes_recordings: bool = False
    """Whether launches of a recording can be given other grids and parameters."""

    @property
    def has_addresses(self) -> bool:
        """Whether a buffer's memory lies at an address."""
        return self.host_memory or self.cuda_memory
