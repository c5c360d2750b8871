# Written by tools/stubs.py: change the tables or docstrings that it reads instead.
"""Stencils: grids whose cells are updated from their neighbours.

`body` reads the decorated function, `boundary` what lies outside, `analysis` finds which arrays it
reads at which offsets, `kernel_text` writes the kernel that runs it over a grid, `launching`
decides the threads, `sharing` finds arrays that overlap, `launcher` launches, `array_calls` makes
outputs, `decorator` has what users call, `loop` runs steps, `several_steps`, `bands` and `tiles`
several of them in one launch, `array_body` runs a body on whole arrays, for derivatives.
"""

from treadle.stencils.decorator import Stencil as Stencil
from treadle.stencils.decorator import stencil as stencil
from treadle.stencils.loop import stencil_loop as stencil_loop

__all__ = [
    "Stencil",
    "stencil",
    "stencil_loop",
]
