"""All functions that CUDA declares and that have no effects, by name."""

from __future__ import annotations

from treadle.cuda_cpp.builtins import (
    conversions,
    fast,
    halves,
    integers,
    mathematics,
    outputs,
    packed,
    vectors,
)
from treadle.cuda_cpp.builtins.outputs import OutputOverload
from treadle.cuda_cpp.builtins.recipes import Table, merged

FUNCTIONS: Table = merged(
    mathematics.FUNCTIONS,
    fast.FUNCTIONS,
    integers.FUNCTIONS,
    packed.FUNCTIONS,
    conversions.FUNCTIONS,
    halves.FUNCTIONS,
    vectors.FUNCTIONS,
)
OUTPUTS: dict[str, tuple[OutputOverload, ...]] = outputs.OUTPUTS

# See `mathematics.FLOATING`.
FLOATING: frozenset[str] = mathematics.FLOATING

# Functions of CUDA's mathematics that are refused: the reason and what to write instead.
_ARRAY = "reads an array through a pointer: use norm3d or norm4d, or sqrt of a sum in a loop"
_TEXT = "takes its digits as text: write NAN, or __int_as_float(0x7fffffff)"

_SYNC = "is gone from CUDA since Volta: {} takes a mask of the threads that take part"
_WITHOUT_MASKS = ("__shfl", "__shfl_up", "__shfl_down", "__shfl_xor", "__any", "__all", "__ballot")

REFUSED: dict[str, str] = {
    **{name: _SYNC.format(f"{name}_sync") for name in _WITHOUT_MASKS},
    "nan": _TEXT,
    "nanf": _TEXT,
    "norm": _ARRAY,
    "normf": _ARRAY,
    "rnorm": _ARRAY,
    "rnormf": _ARRAY,
}
