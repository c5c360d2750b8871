"""What the two languages for NVIDIA's cards have in common: the cards."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from treadle.codegen.blocks import check_threads
from treadle.codegen.records import Binding, ParameterLayout, Target
from treadle.codegen.target import Lowered
from treadle.core.dim3 import Dim3
from treadle.core.errors import UnsupportedOnTarget
from treadle.core.limits import CUDA_PARAMETER_BYTES, Limits
from treadle.ir import nodes as n
from treadle.ir.matrices import EXCHANGES
from treadle.ir.passes.masks import without_masked_reductions
from treadle.ir.passes.matrices import with_unchecked_rows, without_matrices
from treadle.ir.passes.narrow_atomics import with_swapped_halves
from treadle.ir.traverse import Node, rewrite_kernel
from treadle.ir.types import align_of, size_of

LARGEST_STATIC = 48 << 10
"""Bytes of shared memory that a kernel may declare; more is asked for at the launch."""

_OLDEST = "sm_70"
_LIMITS = Limits(
    1024,
    Dim3(1024, 1024, 64),
    Dim3((1 << 31) - 1, 65535, 65535),
    max_shared_memory=96 << 10,
    subgroup_size=32,
)
_FEATURES = frozenset({
    "float16", "float64", "int64", "subgroups", "float_atomics", "int64_atomics",
})  # fmt: skip


def generic(language: str) -> Target:
    """What to print for without a card to ask: what they all have."""
    return Target(language, _OLDEST, _LIMITS, _FEATURES)


def arrange(kernel: n.Kernel, target: Target) -> Lowered:
    """A card runs a block as it is: its threads, its warps of 32, its barriers."""
    block = kernel.block or Dim3()
    check_threads(kernel, block, target.limits)
    kernel = without_masked_reductions(kernel, has_reductions(target))
    given = kernel
    kernel = without_matrices(kernel, lambda node: not has_matrices(given, node, target))
    if target.language != "ptx":
        kernel = with_swapped_halves(_with_whole_copies(kernel, target))
    return Lowered(with_unchecked_rows(kernel), block)


def capability(target: Target) -> int:
    """A card's compute capability, 90 for 9.0."""
    return int(target.dialect[3:].rstrip("af")) if target.dialect.startswith("sm_") else 0


def has_reductions(target: Target) -> bool:
    """Whether a card reduces numbers of a warp by an instruction."""
    return capability(target) >= 80


# Since when cards have instructions for what the lanes of a warp do with matrices.
MATRICES_SINCE = {
    "multiply_f16": 75, "multiply_bf16": 80, "multiply_tf32": 80, "multiply_i8": 75,
    "multiply_u8": 75, "multiply_i8u8": 75, "multiply_u8i8": 75, "matrix_rows": 75,
    "matrix_columns": 75,
}  # fmt: skip


# How cards that have them spell the products.
MULTIPLIED = {
    "multiply_f16": "m16n8k16.row.col.f32.f16.f16.f32",
    "multiply_bf16": "m16n8k16.row.col.f32.bf16.bf16.f32",
    "multiply_tf32": "m16n8k8.row.col.f32.tf32.tf32.f32",
    "multiply_i8": "m16n8k32.row.col.s32.s8.s8.s32",
    "multiply_u8": "m16n8k32.row.col.s32.u8.u8.s32",
    "multiply_i8u8": "m16n8k32.row.col.s32.s8.u8.s32",
    "multiply_u8i8": "m16n8k32.row.col.s32.u8.s8.s32",
}
_WHOLE_PRODUCTS = 80  # since when each is one instruction


def has_matrices(kernel: n.Kernel, node: n.Subgroup, target: Target) -> bool:
    """Whether a card does an operation on matrices by an instruction that is printed. Rows of
    matrices are taken from shared memory where each is 16 bytes of it for certain."""
    since = MATRICES_SINCE[node.op] if target.language == "ptx" else _WHOLE_PRODUCTS
    if capability(target) < since:
        return False
    if node.op not in EXCHANGES:
        return True
    (row,) = node.operands
    if not (isinstance(row, n.Load) and isinstance(row.place, n.Element)):
        return False
    memory = row.place.memory
    return any(each.name == memory and each.space == "shared" for each in kernel.memories)


COPIES_SINCE = 80
"""Since when cards copy to shared memory while the thread goes on."""

_COPIED_SIZES = (4, 8, 16)  # bytes


def copied_from(value: n.Expression) -> tuple[n.MemoryPlace | None, n.Expression | None]:
    """The place that a value is loaded from, and on what condition: zeros otherwise."""
    if isinstance(value, n.Load):
        return value.place, None
    if isinstance(value, n.Select) and isinstance(value.if_true, n.Load):
        other = value.if_false
        parts = other.operands if isinstance(other, n.Construct) else (other,)
        if all(isinstance(part, n.Constant) and part.value == 0 for part in parts):
            return value.if_true.place, value.condition
    return None, None


def _with_whole_copies(kernel: n.Kernel, target: Target) -> n.Kernel:
    """The kernel whose later copies are from a buffer, where the card has them; others happen at
    once."""
    has = capability(target) >= COPIES_SINCE
    buffers = {buffer.name for buffer in kernel.buffers if not buffer.volatile}

    def change(node: Node) -> Node:
        if isinstance(node, n.Copies) and not has:
            return ()
        if isinstance(node, n.Assign) and node.later:
            source, _ = copied_from(node.value)
            size = size_of(node.value.type)
            whole = has and size in _COPIED_SIZES and align_of(node.value.type) >= size
            whole = whole and not (isinstance(node.place, n.Element) and node.place.checks)
            if whole and isinstance(source, n.Element) and not source.checks:
                return node if source.memory in buffers else replace(node, later=False)
            return replace(node, later=False)
        return node

    return rewrite_kernel(kernel, change)


def check_parameters(
    kernel: n.Kernel, bindings: Sequence[Binding], layout: ParameterLayout
) -> None:
    """UnsupportedOnTarget if a kernel's parameters are more than CUDA hands over."""
    size = 8 * len(bindings) + layout.size
    if size > CUDA_PARAMETER_BYTES:
        raise UnsupportedOnTarget(
            f"{kernel.name} takes {len(bindings)} arrays and {len(layout.slots)} "
            f"numbers, {size} bytes of parameters; CUDA hands at most {CUDA_PARAMETER_BYTES} to a "
            "kernel: pass fewer arrays, or several as one",
            kernel.span,
        )
