"""Reductions: the elements of each row become one value, whatever axes a row has.

All reductions of a program are done in one pass, and what follows from them on the kept axes too.
"""

from __future__ import annotations

from treadle.graph.emit.blocks import Blocks, HeldBlocks
from treadle.graph.emit.body import Body
from treadle.graph.emit.loops import ColumnLoops, RowLoops
from treadle.graph.emit.online import online
from treadle.graph.emit.passes import Walk, Way, emit_passes
from treadle.graph.emit.ways import plan
from treadle.graph.program import Program
from treadle.ir.nodes import Kernel


def emit(program: Program, variant: Way) -> Kernel:
    """The kernel of one of a plan's stages."""

    def walk(body: Body, way: Way) -> Walk:
        if program.style == "threads":
            return HeldBlocks(body, way) if way.held else Blocks(body, way)
        return RowLoops(body, way) if way.along == "row" else ColumnLoops(body, way)

    return emit_passes(online(program) if variant.online else program, variant, walk)


__all__ = ["emit", "plan"]
