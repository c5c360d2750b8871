"""`Program`: what one fused kernel computes, without any size; `Strategy`: its launches for a size.

A program runs over loop axes: `kept` ones, which its results have, and for reductions `reduced`
ones behind them. Steps compute scalars at one point of the loop, each from earlier steps. Numbers
that differ from launch to launch are parameters: integers (extents of the loop axes first, then
strides and offsets) and scalars (Python numbers in the expression). So a program is the key of
compiled kernels.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from enum import Enum, IntEnum, StrEnum
from typing import Any, NamedTuple

from treadle.core.dim3 import Dim3
from treadle.kernels.device_code.matrix_product import Form

_MOST_NAMED = 6  # operations in a kernel's name
# Elements of a row that is visited more than once, from which on a CPU's cores do it in parts.
IN_PARTS = 1 << 17


class Kind(StrEnum):
    """Which loops a program has, and so who prints it."""

    MAP = "map"  # every point by itself
    REDUCE = "reduce"  # reductions, and what follows from their results
    ROWS = "rows"  # reductions that need others' results, or values of each element that do
    PRODUCT = "product"  # a product of matrices and its epilogue


class Space(IntEnum):
    """Over which axes an element of a kernel's expression moves."""

    OUTER = 0  # those of what is stored
    INNER = 1  # of a reduction: the reduced axes behind these
    FIRST = 2  # those of a product's first factor: the stack's, the rows', the inner ones
    SECOND = 3  # of its second factor: the stack's, the columns', the inner ones


class Style(StrEnum):
    """How a device runs loops."""

    LOOPS = "loops"  # vectorized, on a CPU
    THREADS = "threads"  # of a GPU


class Move(IntEnum):
    """How far an access moves along a loop axis. Where it is neither of these, the number of the
    integer parameter stands that says it."""

    FIXED = -2  # not at all
    NEXT = -1  # to the next element


FIXED: int = Move.FIXED
NEXT: int = Move.NEXT


class Reduce(StrEnum):
    """The reductions, by the names that operations of arrays have."""

    SUM = "sum"
    PROD = "prod"
    MAX = "max"
    MIN = "min"
    ANY = "any"
    ALL = "all"
    ARGMAX = "argmax"
    ARGMIN = "argmin"
    EXP_SUM = "exp_sum"  # sum(exp(x - max(x))); only `row_analysis.online` makes it


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
                The last part is the remainder. Only the part that is wanted is computed.
    "reduce"    sources: what is reduced; detail: a `Reduce`. Steps that depend on it have one value
                for all of the reduced axes, unless they use other steps.
    "product"   sources: the elements of the factors that are computed in the product's loads;
                detail: a `Multiplied`; an element of a product of matrices. The program then has
                the axes of the stack, of the rows and of the columns, and the inner one behind them
    """

    op: str
    sources: tuple[int, ...]
    type: str  # the short name of the dtype
    detail: Any = None


class Axis(NamedTuple):
    """An axis of a factor that is computed: the number of the integer that is its extent, and of
    its logarithm if the extent is a power of two (else FIXED). Indices are divided by extents, and
    shifts are quicker."""

    extent: int
    shift: int


class Prologue(NamedTuple):
    """A factor that is computed where the product loads it: the step that is its element, and its
    axes: the stack's, those of its lines (the rows of the first factor, the columns of the second)
    and the inner ones. Accesses of that step have these axes, in this order."""

    step: int
    axes: tuple[tuple[Axis, ...], tuple[Axis, ...], tuple[Axis, ...]]


class Multiplied(NamedTuple):
    """The product in a program. `buffers` are those of the two factors, where they lie in memory,
    `prologues` say how they are computed if not, `axes` the numbers of the loop axes that are the
    stack's, the rows' and the columns', `form` what code depends on, and `first` the number of the
    first of its integers: rows, columns, inner extent, and then what `kernels.product.integers_of`
    gives. float32 factors may be `rounded` to TF32. `packed`: which factors have nothing between
    their lines."""

    buffers: tuple[int | None, int | None]
    prologues: tuple[Prologue | None, Prologue | None]
    axes: tuple[int, int, int]
    form: Form
    first: int
    rounded: bool = False
    packed: tuple[bool, bool] = (False, False)


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
        names: list[str] = []
        for step in self.steps:
            if step.op not in dull:
                name = str(step.detail) if step.op == "reduce" else step.op
                if step.op == "apply":
                    name = step.detail.name
                names.append(name)
        if not names:
            names = ["convert" if any(s.op == "cast" for s in self.steps) else "copy"]
        if len(names) > _MOST_NAMED:
            names = [*names[: _MOST_NAMED - 2], "etc", names[-1]]
        return "_".join(names)


# --- how a program is launched --------------------------------------------------------------------


class Phase(Enum):
    """What one kernel does of a program. Where there are few long rows (or products with a long
    inner axis), they are done in parts, which a further kernel joins."""

    WHOLE = "whole"  # all of it
    PART = "part"  # a pass over each part of each row, which leaves a state
    JOIN = "join"  # the states of a row become its result
    LAST = "last"  # the pass that stores values for each element, part by part


@dataclass(frozen=True, slots=True)
class Stage:
    """One launch of `grid` blocks of `block` threads. `variant` says which of the program's kernels
    it launches: what else than the program the kernel's code depends on.

    The kernel takes the program's buffers, then the scratch buffers of these numbers; the
    program's integers, then `integers`; then the program's scalars. With `threads` the launch is
    one by threads, whose extents (x first) are these, and `grid` follows from them.
    """

    variant: Hashable
    grid: Dim3
    block: Dim3
    scratch: tuple[int, ...] = ()
    integers: tuple[int, ...] = ()
    threads: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Strategy:
    """The launches for one size, and the scratch buffers they share: (short dtype, elements)."""

    stages: tuple[Stage, ...]
    scratch: tuple[tuple[str, int], ...] = ()
