"""`Program`: what one fused kernel computes, without any size: the key of compiled kernels.

A program runs over loop axes: `kept` ones, which its results have, and for reductions `reduced`
ones behind them. Steps compute scalars at one point of the loop, each from earlier steps. Numbers
that differ from launch to launch are parameters: integers (extents of the loop axes first, then
strides and offsets) and scalars (Python numbers in the expression).
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

from treadle.kernels.device_code.multiplying import Form

Kind = Literal["map", "reduce", "rows", "product"]
Style = Literal["loops", "threads"]  # how work is spread: vectorized loops of a CPU, or a GPU

# How far an access moves along a loop axis: not at all, to the next element, or as far as the
# integer parameter of this number says.
FIXED, NEXT = -2, -1


class Step(NamedTuple):
    """One scalar. `op` is a name in `operations`, or

    "load"      detail: the number of an access
    "gather"    sources: a flat index; detail: the number of an access whose axes are all FIXED, and
                of the integer that holds the number of elements
    "scalar"    detail: the number of a scalar parameter
    "constant"  detail: a Python number that the code contains
    "index"     detail: the number of an access, whose place in its (missing) memory is the value
    "cast"      to `type`
    "join"      detail: parts, each a step and the ranges of the loops where it is the value: an
                index (an access without memory), and the integers of its bounds, or FIXED for none.
                The last part is what is left. Only the part that is wanted is computed.
    "reduce"    sources: what is reduced; detail: the kind. Steps that depend on it have one value
                for all of the reduced axes, unless they use other steps.
    "product"   detail: a `Multiplied`; an element of a product of matrices. The program then has
                the axes of the stack, of the rows and of the columns, and the inner one behind them
    """

    op: str
    sources: tuple[int, ...]
    type: str  # the short name of the dtype
    detail: Any = None


class Multiplied(NamedTuple):
    """The product in a program. `buffers` are those of the two factors, `axes` the numbers of the
    loop axes that are the stack's, the rows' and the columns', `form` what code depends on, and
    `first` the number of the first of its integers: rows, columns, inner extent, and then what
    `kernels.product.integers_of` gives."""

    buffers: tuple[int, int]
    axes: tuple[int, int, int]
    form: Form
    first: int


class Access(NamedTuple):
    """Where a buffer is read or written: for each loop axis FIXED, NEXT or the number of an integer
    parameter; `offset` the number of one, or FIXED for none. `buffer` -1: an index without memory.
    """

    buffer: int
    axes: tuple[int, ...]
    offset: int


class Output(NamedTuple):
    """A step that is stored."""

    step: int
    access: int


class Program(NamedTuple):
    """One fused kernel. `buffers` and `scalars` are short names of dtypes, in order of their
    parameters. `lanes` elements along the last loop axis are one thread's, loaded and stored
    together. `big`: indices need 64 bits."""

    kind: Kind
    style: Style
    kept: int
    reduced: int
    steps: tuple[Step, ...]
    accesses: tuple[Access, ...]
    outputs: tuple[Output, ...]
    buffers: tuple[str, ...]
    scalars: tuple[str, ...]
    integers: int
    big: bool = False
    lanes: int = 1

    @property
    def name(self) -> str:
        """What people see of it: its operations, a few of them."""
        dull = ("load", "scalar", "constant", "index", "cast")
        told: list[str] = []
        for step in self.steps:
            if step.op not in dull:
                name = str(step.detail) if step.op == "reduce" else step.op
                if step.op == "apply":
                    name = step.detail.name
                told.append(name)
        if not told:
            told = ["convert" if any(s.op == "cast" for s in self.steps) else "copy"]
        if len(told) > _MOST_TOLD:
            told = [*told[: _MOST_TOLD - 2], "etc", told[-1]]
        return "_".join(told)


_MOST_TOLD = 6
