"""`@td.stencil`, and the object that it makes."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, overload

from treadle.core.errors import AutogradError, CompileError, TreadleError, shortened
from treadle.graph.history import recording
from treadle.ir.definition import KernelOptions
from treadle.stencils.array_calls import has_history, made, without_arrays
from treadle.stencils.body import read_body
from treadle.stencils.boundary import check_halo, read_boundary, read_storage, read_tile
from treadle.stencils.launcher import Launcher

Extent = int | Sequence[int]


class Stencil(Launcher):
    """A stencil, made by `@td.stencil`. Called with its arrays and numbers, it runs over a grid."""

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Compute all cells of the grid. Without its outputs it makes them, and returns them."""
        try:
            if named:
                arguments = self._in_order(arguments, named)
            outputs = len(self.body.outputs)
            if outputs and len(arguments) == len(self.body.names) - outputs:
                return made(self, arguments)
            if recording.get() and any(map(has_history, arguments)):
                raise AutogradError(
                    f"{self.name} is given its outputs, and what it writes to them has no "
                    f"derivative: call it without them, which returns new ones, or within "
                    "td.no_grad() if no gradient is wanted"
                )
            self.run(without_arrays(self.body, arguments))
            return None
        except TreadleError as error:
            raise _of_user(error)  # noqa: B904 - it is the same error

    def source(
        self,
        target: str,
        *arguments: Any,
        block: Extent | None = None,
        sm: int | str | None = None,
    ) -> str:
        """The generated source for a target: "wgsl", "llvm", "ptx", "cuda", "msl", "numpy" or
        "ir". The types are those of the arguments, or of the annotations without arguments. `sm` is
        the compute capability that "ptx" and "cuda" are printed for, as 80. No device is
        needed."""
        try:
            kernel, serial = self.kernel_for_target(target, arguments)
            if arguments:
                arguments += (1,) * (len(kernel.parameters) - len(arguments))
            return kernel.source(target, *arguments, block=None if serial else block, sm=sm)
        except TreadleError as error:
            raise _of_user(error)  # noqa: B904

    def __repr__(self) -> str:
        return f"<treadle.stencils {self.body.name}({', '.join(self.body.order)})>"

    def _in_order(self, arguments: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
        """The arguments of a call of which some are named. TypeError for other names."""
        body, count = self.body, len(arguments) + len(named)
        without = [name for name in body.names if name not in body.outputs]
        order = without if count == len(without) else list(body.names)
        given = dict(zip(order, arguments, strict=False))
        for name in named:
            if name not in body.names or name in given:
                what = "is given twice" if name in given else "is not one of them"
                raise TypeError(
                    f"the parameters of {body.name} are {', '.join(body.names)}: {name} {what}"
                )
        given |= named
        missing = [name for name in order if name not in given]
        if missing:
            inputs = [name for name in missing if name in without]
            raise TypeError(
                f"{body.name} is not given {', '.join(inputs or missing)}: outputs "
                f"({', '.join(body.outputs) or 'none'}) are given all, or none of them"
            )
        return tuple(given[name] for name in order)


def _of_user(error: TreadleError) -> TreadleError:
    """An error without the lines of the kernel around the body, and with a short traceback."""
    if notes := getattr(error, "__notes__", None):
        notes[:] = [note for note in notes if "<kernel source" not in note]
    return shortened(error)


@overload
def stencil(body: Callable[..., Any], /) -> Stencil: ...
@overload
def stencil(
    *,
    boundary: Any = ...,
    value: Any = ...,
    halo: Extent | None = ...,
    tile: Extent | None = ...,
    storage: Any = ...,
    fastmath: bool = ...,
) -> Callable[[Callable[..., Any]], Stencil]: ...
def stencil(
    body: Any = None,
    /,
    *,
    boundary: Any = "clamp",
    value: Any = None,
    halo: Extent | None = None,
    tile: Extent | None = None,
    storage: Any = None,
    fastmath: bool = False,
) -> Any:
    """Make a function of arrays and a position a stencil: it computes each cell of a grid.

    The function reads neighbours of its position, as in `pos.north(u)` or `pos.at(u, di, dj)`, and
    writes its own cell, `out[pos] = …` (see `td.GridPos`). Arrays have 1, 2 or 3 axes. `boundary`
    says what a neighbour outside an array is: the nearest element ("clamp"), that at the other end
    ("wrap"), the one as far inside ("mirror"), 0 ("zero") or `value` ("constant"); or that cells
    with such neighbours are not computed ("skip"); or what a function of the array and the indices
    returns. A list has one for each axis. `halo` is checked if it is given: how far from its cell
    the function may read. `tile` is the block of threads on a GPU, in array order. `storage`,
    `td.float16` or `td.bfloat16`, is the dtype of arrays that are annotated as float32: neighbours
    are read as float32, and what is written is rounded.

    >>> import numpy as np, treadle as td
    >>> @td.stencil(boundary="zero")
    ... def blur(u, out, pos):
    ...     out[pos] = (pos.west(u) + 2.0 * u[pos] + pos.east(u)) / 4.0
    >>> u, out = td.asarray([0.0, 4.0, 8.0], device="cpu"), td.zeros(3, device="cpu")
    >>> blur(u, out)
    >>> out.tolist()
    [1.0, 4.0, 5.0]
    """
    rules = read_boundary(boundary, value)
    checked = check_halo(halo)
    options = KernelOptions(read_tile(tile), True, fastmath)
    names = sys._getframe(1).f_locals
    kept = read_storage(storage)

    def make(decorated: Any) -> Stencil:
        try:
            found = read_body(decorated, names, kept)
            return Stencil(found, rules, checked, options, kept)
        except CompileError as error:
            raise shortened(error)  # noqa: B904

    return make if body is None else make(body)
