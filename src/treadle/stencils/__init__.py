"""Stencils: grids whose cells are updated from their neighbours.

`body` reads the decorated function, `boundary` what lies outside, `analysis` finds which arrays it
reads at which offsets, `kernel_text` writes the kernel that runs it over a grid, `launching`
decides the threads, `sharing` finds arrays that overlap, `launcher` launches, `array_calls` makes
outputs, `decorator` has what users call, `loop` runs steps, `several_steps`, `bands` and `tiles`
several of them in one launch, `array_body` runs a body on whole arrays, for derivatives.
"""

from treadle.core.deferred_imports import exports

NAMES = {
    "treadle.stencils.decorator": "Stencil stencil",
    "treadle.stencils.loop": "stencil_loop",
}
__all__, __getattr__, __dir__ = exports(__name__, NAMES)
