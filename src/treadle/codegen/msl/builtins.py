"""The values that Metal hands to an entry point: the thread's and the block's indices."""

from __future__ import annotations

from treadle.codegen.c_family.module import Module

BUILTINS = {
    "thread_idx": "uint3 thread_idx [[thread_position_in_threadgroup]]",
    "block_idx": "uint3 block_idx [[threadgroup_position_in_grid]]",
    "grid_dim": "uint3 grid_dim [[threadgroups_per_grid]]",
    "lane": "uint lane [[thread_index_in_simdgroup]]",
    "thread_number": "uint thread_number [[thread_index_in_threadgroup]]",
}


def use(module: Module, name: str) -> str:
    """The name of such a value, which becomes a parameter of the entry point."""
    module.builtins.setdefault(name, BUILTINS[name])
    return name
