"""The nodes of the IR: structured, immutable, typed, each with the source line it came from.

A kernel is a tree: statements in blocks, expressions inside statements. Variables are mutable and
local to one thread; names are unique within a function, so a name is an identity. Names may hold
dots (`x.size`); printers spell them as their language allows.

Expressions have no effects: they compute and they load. What writes, waits or communicates with
other threads is a statement. So the order of effects is the order of statements.

Meaning, on every target:

- Integer arithmetic wraps. `div` and `rem` truncate, `floordiv` and `mod` floor; all four give 0
  for a divisor of 0. A shift by the width or more gives 0 (or the sign, for signed `shr`).
- For floats `rem` is C's fmod; `floordiv` and `mod` are NumPy's (the remainder has the divisor's
  sign). No one of them is computed at compile time.
- Parameters (of kernels and functions) and loop variables are never assigned.
- `min` and `max` return NaN if an operand is NaN. Float arithmetic may be contracted (a*b+c fused).
- A cast from float to integer truncates, saturates, and turns NaN into 0; casts between integers
  wrap; a cast to bool is `!= 0`.
- A load whose checks fail gives zero; a store or atomic whose checks fail is dropped (the atomic's
  result is zero). An access without checks is trusted.
- `logical_and` and `logical_or` do not evaluate their right operand unless needed; `Select`
  evaluates both sides.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from treadle.core.dim3 import Dim3
from treadle.core.source import NOWHERE, Span
from treadle.ir.types import BOOL, I32, Scalar, Type

# --- expressions ---------------------------------------------------------------------------------

ARITHMETIC = ("add", "sub", "mul", "div", "rem", "floordiv", "mod")
BITWISE = ("and", "or", "xor", "shl", "shr")
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
LOGICAL = ("logical_and", "logical_or")
UNARY = ("neg", "not", "invert")  # arithmetic, logical (bool), bitwise (integers)

# Operations that targets have or can build from a line or two, exact unless said otherwise.
# name: number of operands. Those that start with "fast_" promise no accuracy (fastmath kernels).
INTRINSICS: dict[str, int] = {
    "abs": 1, "sqrt": 1, "floor": 1, "ceil": 1, "trunc": 1, "rint": 1, "fma": 3,
    "min": 2, "max": 2, "isnan": 1, "isinf": 1, "isfinite": 1, "signbit": 1,
    "popcount": 1, "clz": 1, "ctz": 1, "reverse_bits": 1, "mul_high": 2,
    "fast_rsqrt": 1, "fast_exp": 1, "fast_exp2": 1, "fast_log": 1, "fast_log2": 1,
    "fast_sin": 1, "fast_cos": 1, "fast_tan": 1, "fast_tanh": 1, "fast_pow": 2,
    "dot": 2, "dot4_i8": 3, "dot4_u8": 3, "dot4_u8i8": 3,
    # Whether the target has the others: 2^x with an error of 2 ULP for |x| < 1, and 0, infinity or
    # NaN where that is the result; 1 / x with that error for 2^-125 < |x| < 2^125. The operand of
    # the first says its type only.
    "has_near_functions": 1, "near_exp2": 1, "near_reciprocal": 1,
}  # fmt: skip

BUILTINS = ("thread_idx", "block_idx", "block_dim", "grid_dim", "lane", "subgroup_size")


@dataclass(frozen=True, slots=True)
class Constant:
    """A number. Floats may be NaN or infinite; the value is already rounded to `type`."""

    value: bool | int | float
    type: Scalar
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Variable:
    """The value of a local variable or scalar parameter; also the place to assign to it."""

    name: str
    type: Type
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Builtin:
    """Where this thread is. `axis` 0, 1, 2 is x, y, z (0 for `lane` and `subgroup_size`)."""

    name: str
    axis: int = 0
    type: Scalar = I32
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Unary:
    op: str
    operand: Expression
    type: Type
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Binary:
    """Both operands have one type (vectors elementwise); comparisons give bool (scalars only).

    The right operand of a shift has the type of the left.
    """

    op: str
    left: Expression
    right: Expression
    type: Type
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Select:
    condition: Expression
    if_true: Expression
    if_false: Expression
    type: Type
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Cast:
    """The operand's value as another scalar type (or vector, componentwise)."""

    operand: Expression
    type: Type
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Bitcast:
    """The operand's bits as another scalar type of the same size."""

    operand: Expression
    type: Type
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Intrinsic:
    """One of INTRINSICS. Operands have one type; tests (isnan …) give bool, counts I32 of bits in
    the operand's own width, `dot` the vectors' element; the others the operand type.

    `dot4_*` are of I32: the third operand and the sum of the products of the bytes in the first
    two, signed (i8), unsigned (u8), or unsigned in the first and signed in the second (u8i8).
    """

    op: str
    operands: tuple[Expression, ...]
    type: Type
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a function without effects (no memory parameters, barriers, atomics)."""

    function: str
    arguments: tuple[Argument, ...]
    type: Type
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Construct:
    """A vector or struct from its components or fields, in order."""

    operands: tuple[Expression, ...]
    type: Type
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Extract:
    """Component or field `name` of a vector or struct value."""

    operand: Expression
    name: str
    type: Type
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Load:
    """What lies at a place in memory, or at an item of an array (or vector) in a variable."""

    place: MemoryPlace
    type: Type
    span: Span = field(default=NOWHERE, compare=False)


Expression: TypeAlias = (
    Constant | Variable | Builtin | Unary | Binary | Select | Cast | Bitcast
    | Intrinsic | Call | Construct | Extract | Load
)  # fmt: skip

# --- places --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Check:
    """The access takes place only if 0 <= index < bound. `axis` is for messages. Outside may be
    `expected`, as at the edges of a matrix: then reports leave it out. `of` is what messages say is
    indexed, if it is not the memory as a whole; its index may be `GIVEN_BACK`,
    `NOT_GIVEN` or `MISALIGNED`."""

    index: Expression
    bound: Expression
    axis: int = 0
    expected: bool = False
    of: str = ""


# Indices in memory that a kernel has given back, in memory that it was never given, and between the
# elements.
GIVEN_BACK, NOT_GIVEN, MISALIGNED = -(1 << 31), 1 - (1 << 31), 2 - (1 << 31)


@dataclass(frozen=True, slots=True)
class Element:
    """Element `index` of a memory seen as a sequence of `type`.

    `memory` names a buffer parameter, a shared or local memory, or a memory parameter. `type` is
    usually the memory's own element type; where it differs the bytes are reinterpreted. `index`
    (i32 or i64) counts elements of `type`. Checks compare what the user indexed with (one per
    axis) against the extents of what was indexed.
    """

    memory: str
    index: Expression
    type: Type
    checks: tuple[Check, ...] = ()
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Member:
    """Component or field `name` of the vector or struct at `base`."""

    base: Place
    name: str
    type: Type
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Item:
    """Item `index` of the fixed array at `base` (an array inside a struct), or of a vector."""

    base: Place
    index: Expression
    type: Type
    checks: tuple[Check, ...] = ()
    span: Span = field(default=NOWHERE, compare=False)


# A Member or Item has an Element as its root; in a Load it may be a Variable, until those that
# need it are put into memory (`passes.array_variables`).
MemoryPlace: TypeAlias = Element | Member | Item
Place: TypeAlias = Variable | Element | Member | Item


@dataclass(frozen=True, slots=True)
class MemoryReference:
    """A memory handed to a function's memory parameter."""

    memory: str
    span: Span = field(default=NOWHERE, compare=False)


Argument: TypeAlias = Expression | MemoryReference

# --- statements ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Declare:
    """A new variable, zero unless a value is given. It lives to the end of its block."""

    variable: Variable
    value: Expression | None = None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Assign:
    """Put a value into a variable, a part of one, or memory.

    A `later` one copies from a buffer to shared memory, and may do so at any time until this thread
    has waited for it (`Copies`). Until then nothing reads or writes either place. Without targets
    that have such copies it happens at once.
    """

    place: Place
    value: Expression
    span: Span = field(default=NOWHERE, compare=False)
    later: bool = False


@dataclass(frozen=True, slots=True)
class If:
    condition: Expression
    then: Block
    otherwise: Block = ()
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class For:
    """`variable` (declared here, not assigned in the body) runs from start by step, while below
    stop (above, for a negative step). The bounds are evaluated once. `step` is a constant, not 0.
    A front end may leave it open, as 0, and give the step `by` an expression instead, of which a
    value of 0 runs nothing: `passes.trip_counts` makes a loop with a constant step of that.

    `unroll` asks for unrolling. `parallel` promises that iterations are independent: they may run
    in any order or at once (made by fission from the threads of a block).
    """

    variable: Variable
    start: Expression
    stop: Expression
    step: int
    body: Block
    unroll: bool = False
    parallel: bool = False
    span: Span = field(default=NOWHERE, compare=False)
    by: Expression | None = None


@dataclass(frozen=True, slots=True)
class While:
    """While `condition` holds, run `body`; `update` runs after the body and after `continue`."""

    condition: Expression
    body: Block
    update: Block = ()
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Break:
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Continue:
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Return:
    """Ends this thread (in a kernel) or the function, with its value if it has one."""

    value: Expression | None = None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Barrier:
    """All threads of the block (or subgroup) wait; memory written before is seen after.

    A subgroup's with a `mask` is CUDA's, as in `Subgroup`. A block's with a `part` is PTX's of some
    of the threads: the number of the barrier, and how many threads wait at it, both u32. At one of
    the grid the threads of all blocks wait: a kernel is cut there (`passes.grid_parts`).
    """

    scope: Literal["block", "subgroup", "grid"] = "block"
    mask: Expression | None = None
    span: Span = field(default=NOWHERE, compare=False)
    part: tuple[Expression, ...] = ()


@dataclass(frozen=True, slots=True)
class Fence:
    """Orders this thread's memory accesses as seen by its block, by the device, or by the whole
    system, with its host and other devices. A `sequential` one orders a store before a later load,
    too, if the other side has such a fence as well.

    Those of a block may have a role, where threads wait in loops until others have written: the
    latter `arrive`, and the former `wait`. Where the threads of a block do not run side by side,
    they meet at a wait, and an arrival is nothing.
    """

    scope: Literal["block", "device", "system"] = "device"
    span: Span = field(default=NOWHERE, compare=False)
    sequential: bool = False
    role: Literal["", "arrive", "wait"] = ""


# `inc` and `dec` (of u32) are CUDA's, and wrap around at their operand: inc gives old + 1, or 0 if
# that would be more; dec gives old - 1, or the operand if old is 0 or more than that.
ATOMICS = ("add", "sub", "min", "max", "and", "or", "xor", "exchange", "cas", "inc", "dec")


@dataclass(frozen=True, slots=True)
class Atomic:
    """An indivisible update of the scalar at `place`; `result`, if any, receives the old value.

    `operands` is (value,), or (expected, desired) for `cas`. `result` is already declared.
    """

    op: str
    place: MemoryPlace
    operands: tuple[Expression, ...]
    result: Variable | None = None
    span: Span = field(default=NOWHERE, compare=False)


# name: number of operands. `shuffle*` take (value, lane | delta | mask). These give lanes, as the
# bits of a u32: `ballot` those whose operand is true, `active` those that are here, `match_any`
# those with the same bits, and `match_all` all that are here, if they have the same bits, else 0.
# Those of REDUCTIONS may take one more operand: the lanes (u32) that a thread reduces over.
SUBGROUP_OPERATIONS: dict[str, int] = {
    "shuffle": 2, "shuffle_up": 2, "shuffle_down": 2, "shuffle_xor": 2,
    "vote_all": 1, "vote_any": 1, "ballot": 1, "active": 0, "match_any": 1, "match_all": 1,
    "sum": 1, "min": 1, "max": 1, "and": 1, "or": 1, "xor": 1, "prefix_sum": 1,
}  # fmt: skip


REDUCTIONS = ("sum", "min", "max", "and", "or", "xor")

# Products of small matrices, and ways to bring their elements to the lanes that hold them, by the
# number of operands: vectors, whose elements `ir.matrices` says. All lanes take part, no mask.
MATRIX_OPERATIONS: dict[str, int] = {
    "multiply_f16": 3, "multiply_bf16": 3, "multiply_tf32": 3, "multiply_i8": 3, "multiply_u8": 3,
    "multiply_i8u8": 3, "multiply_u8i8": 3,
    "matrix_rows": 1, "matrix_columns": 1,
}  # fmt: skip

# And of matrices whose layout is the target's own (`ir.opaque`).
OPAQUE_OPERATIONS: dict[str, int] = {
    "opaque_rows": 2, "opaque_columns": 2, "opaque_fill": 1, "opaque_multiply": 3,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Subgroup:
    """A value exchanged among the threads of a subgroup; `result` is already declared. `op` is one
    of SUBGROUP_OPERATIONS, of MATRIX_OPERATIONS or of OPAQUE_OPERATIONS.

    A shuffle from a lane outside the subgroup (or the block) gives the thread's own value.

    Without a `mask` all threads of the subgroup take part, and all must be here (except for
    `active`, which gives the lanes that are here). An operation with a mask (u32, a bit for each
    lane) is CUDA's: it may stand where the threads of a subgroup have diverged, and of those that
    are here it concerns the ones that the mask names. A thread that is here is in its own mask, and
    threads in one mask give the same mask. What a shuffle reads from a lane that takes no part is
    not defined.
    """

    op: str
    operands: tuple[Expression, ...]
    result: Variable
    mask: Expression | None = None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class OpaqueStore:
    """Stores an opaque matrix (`ir.opaque`): its rows, or its columns, are adjacent elements, which
    begin at `place`, `stride` elements from each other. All lanes of the subgroup take part."""

    place: Element
    stride: Expression
    value: Expression
    columns: bool = False
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Clock:
    """The cycles (u64) that a clock of the hardware has counted; `result` is already declared.

    It is a statement, so that it is read at its place: the difference of two is the time between.
    """

    result: Variable
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Copies:
    """Of the later copies of this thread: those begun since the last group become a group (`left`
    is None), or the thread waits until at most `left` groups are not done, the newest ones. Other
    threads see what was copied after a barrier that follows the wait."""

    left: int | None = None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Staged:
    """A step of a block's work on tiles in stages of shared memory, which goes on beside its
    threads: copies of boxes of a matrix, and multiplications of tiles by 128 threads each. `op` is
    one of `ir.stages.OPERATIONS`, which says what the others are: the places that it changes, what
    it reads (a load stands for where its element lies), and constants.

    All threads of the block reach it, in the same order.
    """

    op: str
    places: tuple[Place, ...] = ()
    operands: tuple[Expression, ...] = ()
    numbers: tuple[int, ...] = ()
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class CallStatement:
    """A call of a function that may have effects. `result`, if any, is already declared."""

    function: str
    arguments: tuple[Argument, ...]
    result: Variable | None = None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Formatted:
    """A number spelled by a conversion of C's printf ("%5.2f"), which suits its type. `stars` are
    the ints for the `*` of the conversion, in order."""

    spec: str
    value: Expression
    stars: tuple[Expression, ...] = ()
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Print:
    """Literal text and numbers, in order and without anything between, then `end`, on the host.
    A bare number is spelled as Python does."""

    parts: tuple[str | Expression | Formatted, ...]
    end: str = "\n"
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Assert:
    """In check mode a false condition is reported with the message; otherwise nothing happens.

    One that is `always` made is C's: the message is the condition as it was written in `function`
    (the kernel, if it is empty). It is reported in every launch, and the thread goes no further
    where it can end without the others of its block.

    The message of a `fault` says what went wrong where the condition is false, not what should
    hold.
    """

    condition: Expression
    message: str
    always: bool = False
    function: str = ""
    fault: bool = False
    span: Span = field(default=NOWHERE, compare=False)


Statement: TypeAlias = (
    Declare | Assign | If | For | While | Break | Continue | Return | Barrier | Fence
    | Atomic | Subgroup | OpaqueStore | Clock | Copies | Staged | CallStatement | Print | Assert
)  # fmt: skip
Receiving: TypeAlias = Atomic | Subgroup | Clock | CallStatement  # may put a result in a variable
Block: TypeAlias = tuple[Statement, ...]

# --- functions and kernels -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Memory:
    """An array that a kernel owns: `shared` by the block, or `local` to one thread.

    Its contents start undefined. `length` None (shared only) is set at launch: whatever is left
    of the launch's shared bytes.
    """

    name: str
    space: Literal["shared", "local"]
    element: Type
    length: int | None
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Buffer:
    """A kernel parameter in device memory (space "global"), or a function's memory parameter.

    Of a `volatile` one, which the host or another kernel writes meanwhile, each access reaches the
    memory, where it stands; fences of the system order them. What follows a load of an `acquired`
    one in the program sees all that was written before the value that was loaded. What is stored in
    a `streamed` one is larger than the caches and not read soon: a target may store it past them.
    Blocks exchange what lies in a `coherent` one, ordered by their barriers (`passes.barriers`).
    """

    name: str
    element: Type
    span: Span = field(default=NOWHERE, compare=False)
    volatile: bool = False
    acquired: bool = False
    streamed: bool = False
    coherent: bool = False


@dataclass(frozen=True, slots=True)
class Parameter:
    """A scalar parameter. `origin` says where a launch takes its value from:

    ("value", argument)          a scalar argument
    ("leaf", argument, path…)    a part of a vector or struct argument, by names and numbers
    ("shape" | "stride", argument, axis), ("size" | "offset", argument)    of an array, in elements
    ("buffer", argument)         a number of the array's memory: two arrays in one have the same
    ("threads", axis)            the extent asked of `launch`, x first
    ("grid", axis)               the grid, x first
    ("length", argument)         the elements of a dynamic shared memory
    """

    name: str
    type: Scalar
    origin: tuple[str | int, ...] = ()
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Function:
    """A device function. `parameters` are values (any type) or buffers."""

    name: str
    parameters: tuple[Variable | Buffer, ...]
    result: Type
    body: Block
    memories: tuple[Memory, ...] = ()
    span: Span = field(default=NOWHERE, compare=False)


@dataclass(frozen=True, slots=True)
class Kernel:
    """A kernel: what every printer takes.

    `block` is the number of threads in a block, always known when code is printed (None only for
    a kernel that is good for any block and has not been specialized yet). `functions` holds every
    function that is called, callees before callers. The accesses of a `trusting` kernel are checked
    only where nothing else guards memory: on a target that runs CUDA itself they have no checks.
    `registers` is how many 32-bit ones are enough for a thread, 0 if that is not known.
    """

    name: str
    buffers: tuple[Buffer, ...]
    parameters: tuple[Parameter, ...]
    body: Block
    memories: tuple[Memory, ...] = ()
    functions: tuple[Function, ...] = ()
    block: Dim3 | None = None
    fastmath: bool = False
    trusting: bool = False
    registers: int = 0
    span: Span = field(default=NOWHERE, compare=False)


TRUE = Constant(True, BOOL)
FALSE = Constant(False, BOOL)
