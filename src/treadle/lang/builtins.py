"""The names that kernels use: indices, barriers, atomics, subgroups, mathematics.

Each is a small object that the lowering recognizes by identity. Called outside a kernel it raises
an error; inside `td.interpret()` it runs. The mathematical ones are functions of tensors too
(`tensor_functions`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Literal

from treadle.core.errors import TreadleError
from treadle.core.overriding import overridden
from treadle.lang.builtin_docs import document
from treadle.lang.interpreter_state import current_run
from treadle.lang.tensor_functions import function_of_tensors

Group = Literal["index", "memory", "barrier", "loop", "atomic", "subgroup", "math", "value"]


class BuiltinFunction:
    """A function of the kernel language. `arity` is the least and the largest number of
    arguments."""

    def __init__(self, name: str, group: Group, arity: tuple[int, int], doc: str) -> None:
        self.name = name
        self.group = group
        self.arity = arity
        self.kernel_doc = document(name, group, doc)
        self._is_found = False
        self._outside: Callable[..., Any] | None = None

    @property
    def outside(self) -> Callable[..., Any] | None:
        """The function of tensors that it is where no kernel runs."""
        if not self._is_found:
            self._outside = function_of_tensors(self.name)
            self._is_found = True
        return self._outside

    @property
    def __name__(self) -> str:
        return self.name

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Run in the interpreter, or as a function of tensors; elsewhere TreadleError."""
        run = current_run()
        if run is not None:
            return run.builtin(self, arguments, keywords)
        if self.outside is not None:
            try:
                return self.outside(*arguments, **keywords)
            except TypeError as error:
                return overridden(error, self.name, arguments, keywords)
        raise TreadleError(
            f"td.{self.name} works inside a kernel: call it from a function decorated with "
            "@td.kernel or @td.func, and launch that"
        )

    @property
    def usage(self) -> str:
        """How it is called, for messages."""
        return f"td.{self.name}({_PARAMETERS.get(self.name) or _USUAL[self.group, self.arity]})"

    def __reduce__(self) -> Any:
        return _named, (self.name,)

    def __repr__(self) -> str:
        return f"<treadle.{self.name}>"


class _OfFunction:
    """An attribute of a built-in function that is its function's of tensors, if it has one. The
    class keeps its own."""

    def __init__(self, read: Callable[[BuiltinFunction], Any], of_class: Any = None) -> None:
        self._read = read
        self._of_class = of_class

    def __get__(self, instance: BuiltinFunction | None, owner: type | None = None) -> Any:
        found = self._of_class if instance is None else self._read(instance)
        if found is None:
            raise AttributeError("only functions of tensors have a signature")
        return found


def _doc(builtin: BuiltinFunction) -> str:
    return builtin.kernel_doc if builtin.outside is None else builtin.outside.__doc__ or ""


def _signature(builtin: BuiltinFunction) -> inspect.Signature | None:
    if builtin.outside is None:
        return None
    parameters = inspect.signature(builtin.outside).parameters.values()
    return inspect.Signature([each.replace(annotation=each.empty) for each in parameters])


BuiltinFunction.__doc__ = _OfFunction(_doc, BuiltinFunction.__doc__)  # type: ignore[assignment]
BuiltinFunction.__signature__ = _OfFunction(_signature)  # type: ignore[attr-defined]


_USUAL: dict[tuple[str, tuple[int, int]], str] = {
    ("index", (1, 1)): "axes",
    ("memory", (2, 2)): "shape, dtype",
    ("loop", (1, 3)): "start, stop, step",
    ("barrier", (0, 0)): "",
    ("atomic", (3, 3)): "array, index, value",
    ("subgroup", (0, 0)): "",
    ("subgroup", (1, 1)): "value",
    ("math", (1, 1)): "x",
    ("math", (2, 2)): "a, b",
    ("math", (3, 3)): "a, b, c",
}
_PARAMETERS = {
    "atomic_cas": "array, index, expected, value", "bitcast": "x, dtype", "clip": "x, low, high",
    "cross": "a, b", "dot": "a, b", "length": "v", "normalize": "v",
    "fragment": "rows, columns, dtype, use, indexed",
    "rand_normal": "seed, counter",
    "rand_uniform": "seed, counter",
    "shuffle": "value, lane", "shuffle_down": "value, n", "shuffle_up": "value, n",
    "shuffle_xor": "value, mask", "where": "condition, a, b",
}  # fmt: skip

# Functions that are Python's operators by name.
OPERATORS = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "floor_divide": "//",
    "remainder": "%", "bitwise_and": "&", "bitwise_or": "|", "bitwise_xor": "^",
    "bitwise_left_shift": "<<", "bitwise_right_shift": ">>",
}  # fmt: skip
COMPARISONS = {
    "equal": "==", "not_equal": "!=", "less": "<", "less_equal": "<=", "greater": ">",
    "greater_equal": ">=",
}  # fmt: skip
# Functions that are operations of subgroups in the IR.
SUBGROUP_OPERATIONS = {
    **{name: name for name in ("shuffle", "shuffle_up", "shuffle_down", "shuffle_xor")},
    **{name: name for name in ("vote_all", "vote_any", "ballot")},
    **{f"subgroup_{op}": op for op in ("sum", "min", "max", "prefix_sum")},
}


def _named(name: str) -> BuiltinFunction | BuiltinVariable:
    return NAMES[name]


class BuiltinVariable:
    """A built-in variable with the parts x, y and z, such as `td.thread_idx`."""

    def __init__(self, name: str, doc: str) -> None:
        self.name = name
        self.__doc__ = doc

    def _part(self, axis: int) -> Any:
        run = current_run()
        if run is None:
            raise TreadleError(
                f"td.{self.name}.{'xyz'[axis]} has a value only inside a running kernel"
            )
        return run.builtin(self, (axis,), {})

    @property
    def x(self) -> Any:
        """The fastest axis."""
        return self._part(0)

    @property
    def y(self) -> Any:
        """The second axis."""
        return self._part(1)

    @property
    def z(self) -> Any:
        """The third axis."""
        return self._part(2)

    def __repr__(self) -> str:
        return f"<treadle.{self.name}>"


def _define(group: Group, name: str, least: int, most: int, doc: str) -> BuiltinFunction:
    return BuiltinFunction(name, group, (least, most), doc)


def _math(name: str, operands: int, doc: str) -> BuiltinFunction:
    return BuiltinFunction(name, "math", (operands, operands), doc)


# --- indices -------------------------------------------------------------------------------------

thread_idx = BuiltinVariable("thread_idx", "This thread's index in its block.")
block_idx = BuiltinVariable("block_idx", "This block's index in the grid.")
block_dim = BuiltinVariable("block_dim", "The threads of a block along each axis.")
grid_dim = BuiltinVariable("grid_dim", "The blocks of the grid along each axis.")
grid = _define(
    "index", "grid", 1, 1, "This thread's global index: i, (i, j) or (i, j, k), the last fastest."
)
grid_size = _define("index", "grid_size", 1, 1, "The threads of the grid along each axis of grid.")

# --- memory and loops ----------------------------------------------------------------------------

shared = _define("memory", "shared", 2, 2, "An array that the threads of a block share.")
local = _define("memory", "local", 2, 2, "A private array of this thread.")
fragment = _define(
    "memory", "fragment", 4, 5, "A small matrix that the threads of a subgroup hold together."
)
static_range = _define("loop", "static_range", 1, 3, "A range whose loop is unrolled.")

# --- barriers ------------------------------------------------------------------------------------

sync_threads = _define("barrier", "sync_threads", 0, 0, "Wait for all threads of the block.")
sync_subgroup = _define("barrier", "sync_subgroup", 0, 0, "Wait for all threads of the subgroup.")
thread_fence = _define("barrier", "thread_fence", 0, 0, "Order memory accesses on the device.")
thread_fence_block = _define(
    "barrier", "thread_fence_block", 0, 0, "Order memory accesses in the block."
)

# Of kernels that the library makes for itself, which the host writes to while they run.
fence_system = BuiltinFunction("fence_system", "barrier", (0, 0), "Order accesses for the host.")
fence_sequential = BuiltinFunction(
    "fence_sequential", "barrier", (0, 0), "Order a store before a later load, for the host."
)
cycles = BuiltinFunction("cycles", "value", (0, 0), "Cycles that the hardware has counted.")

# --- atomics -------------------------------------------------------------------------------------

atomic_add = _define("atomic", "atomic_add", 3, 3, "Add to array[index]; gives the old value.")
atomic_sub = _define("atomic", "atomic_sub", 3, 3, "Subtract; gives the old value.")
atomic_min = _define("atomic", "atomic_min", 3, 3, "Keep the smaller; gives the old value.")
atomic_max = _define("atomic", "atomic_max", 3, 3, "Keep the larger; gives the old value.")
atomic_and = _define("atomic", "atomic_and", 3, 3, "Bitwise and; gives the old value.")
atomic_or = _define("atomic", "atomic_or", 3, 3, "Bitwise or; gives the old value.")
atomic_xor = _define("atomic", "atomic_xor", 3, 3, "Bitwise exclusive or; gives the old value.")
atomic_exchange = _define("atomic", "atomic_exchange", 3, 3, "Replace; gives the old value.")
atomic_cas = _define(
    "atomic", "atomic_cas", 4, 4, "Replace if it equals `expected`; gives the old value."
)

# --- subgroups -----------------------------------------------------------------------------------

lane = _define("subgroup", "lane", 0, 0, "This thread's index in its subgroup.")
subgroup_size = _define("subgroup", "subgroup_size", 0, 0, "The threads of a subgroup.")
shuffle = _define("subgroup", "shuffle", 2, 2, "The value of the thread `lane`.")
shuffle_up = _define("subgroup", "shuffle_up", 2, 2, "The value of the thread n lanes below.")
shuffle_down = _define("subgroup", "shuffle_down", 2, 2, "The value of the thread n lanes above.")
shuffle_xor = _define("subgroup", "shuffle_xor", 2, 2, "The value of the thread lane ^ mask.")
vote_all = _define("subgroup", "vote_all", 1, 1, "Whether p holds in every thread.")
vote_any = _define("subgroup", "vote_any", 1, 1, "Whether p holds in some thread.")
ballot = _define("subgroup", "ballot", 1, 1, "The threads where p holds, as bits of a u32.")
subgroup_sum = _define("subgroup", "subgroup_sum", 1, 1, "The sum over the subgroup.")
subgroup_min = _define("subgroup", "subgroup_min", 1, 1, "The minimum over the subgroup.")
subgroup_max = _define("subgroup", "subgroup_max", 1, 1, "The maximum over the subgroup.")
subgroup_prefix_sum = _define(
    "subgroup", "subgroup_prefix_sum", 1, 1, "The sum over the lanes before this one."
)

# Of the library, for matrices that a subgroup holds together (`ir.matrices`).
multiply_f16 = BuiltinFunction("multiply_f16", "subgroup", (3, 3), "Add a product of float16.")
multiply_bf16 = BuiltinFunction("multiply_bf16", "subgroup", (3, 3), "Add one of bfloat16.")
multiply_tf32 = BuiltinFunction("multiply_tf32", "subgroup", (3, 3), "Add one of TF32.")
multiply_i8 = BuiltinFunction("multiply_i8", "subgroup", (3, 3), "Add one of int8.")
multiply_u8 = BuiltinFunction("multiply_u8", "subgroup", (3, 3), "Add one of uint8.")
multiply_i8u8 = BuiltinFunction("multiply_i8u8", "subgroup", (3, 3), "Add one of both.")
multiply_u8i8 = BuiltinFunction("multiply_u8i8", "subgroup", (3, 3), "Add one of both.")
matrix_rows = BuiltinFunction("matrix_rows", "subgroup", (1, 1), "The words of rows by lanes.")
matrix_columns = BuiltinFunction("matrix_columns", "subgroup", (1, 1), "Of columns, by lanes.")
sixteen_bytes = BuiltinFunction("sixteen_bytes", "value", (2, 2), "Aligned bytes as four words.")
# And for copies to shared memory that happen later (`nodes.Copies`).
number_at = BuiltinFunction("number_at", "value", (2, 2), "A number of an array of vectors.")
copy_later = BuiltinFunction("copy_later", "value", (3, 3), "Begin to copy to array[index].")
end_copies = BuiltinFunction("end_copies", "barrier", (0, 0), "Begun copies become a group.")
wait_copies = BuiltinFunction("wait_copies", "value", (1, 1), "Wait until so many groups are left.")
# And for tiles in stages of shared memory (`ir.stages`; `lang.lower.stages` names the arguments).
prepare_stages = BuiltinFunction("prepare_stages", "value", (2, 5), "Stages are ready to be used.")
claim_stage = BuiltinFunction("claim_stage", "value", (4, 4), "A stage may be filled.")
copy_tile = BuiltinFunction("copy_tile", "value", (10, 12), "Begin to copy a box of a matrix.")
wait_stage = BuiltinFunction("wait_stage", "value", (3, 3), "Wait until a stage is filled.")
release_stage = BuiltinFunction("release_stage", "value", (2, 2), "A group has read a stage.")
hand_stage = BuiltinFunction("hand_stage", "value", (2, 2), "Who waits for a stage may go on.")
multiply_tiles = BuiltinFunction("multiply_tiles", "value", (7, 7), "Begin to add a product.")
begin_product = BuiltinFunction("begin_product", "value", (7, 7), "Begin a product.")
multiply_held = BuiltinFunction("multiply_held", "value", (6, 6), "Begin to add one of held rows.")
meet_cluster = BuiltinFunction("meet_cluster", "barrier", (0, 0), "Wait for the cluster's groups.")
take_elements = BuiltinFunction("take_elements", "value", (4, 4), "Elements of another block's.")
leave_stages = BuiltinFunction("leave_stages", "value", (0, 0), "Wait for the cluster's blocks.")
settle_products = BuiltinFunction("settle_products", "value", (1, 3), "Wait for multiplications.")

# --- values --------------------------------------------------------------------------------------

bitcast = _define("value", "bitcast", 2, 2, "The bits of a number as another dtype of its size.")
where = _define("value", "where", 3, 3, "The second argument where the first holds, else the third")
dot = _define("value", "dot", 2, 2, "The dot product of two vectors.")
cross = _define("value", "cross", 2, 2, "The cross product of two vectors of three numbers.")
length = _define("value", "length", 1, 1, "The length of a vector: the root of its dot product.")
normalize = _define("value", "normalize", 1, 1, "A vector divided by its length; NaN for zeros.")

# --- mathematics that targets have exactly -------------------------------------------------------

abs = _math("abs", 1, "The absolute value.")
sqrt = _math("sqrt", 1, "The square root.")
floor = _math("floor", 1, "The largest integer not above x.")
ceil = _math("ceil", 1, "The smallest integer not below x.")
trunc = _math("trunc", 1, "The integer part of x.")
round = _math("round", 1, "The nearest integer, ties to even.")
fma = _math("fma", 3, "a * b + c, rounded once where the target can.")
minimum = _math("minimum", 2, "The smaller; NaN if either is.")
maximum = _math("maximum", 2, "The larger; NaN if either is.")
clip = _math("clip", 3, "x limited to low … high.")
isnan = _math("isnan", 1, "Whether x is NaN.")
isinf = _math("isinf", 1, "Whether x is infinite.")
isfinite = _math("isfinite", 1, "Whether x is neither NaN nor infinite.")
signbit = _math("signbit", 1, "Whether the sign bit is set (-0.0 too).")
sign = _math("sign", 1, "-1, 0 or 1; NaN for NaN.")
copysign = _math("copysign", 2, "The magnitude of the first with the sign of the second.")
square = _math("square", 1, "x * x.")
reciprocal = _math("reciprocal", 1, "1 / x.")
negative = _math("negative", 1, "-x.")
positive = _math("positive", 1, "x.")
popcount = _math("popcount", 1, "The number of set bits.")
clz = _math("clz", 1, "The number of zero bits above the highest set one.")
ctz = _math("ctz", 1, "The number of zero bits below the lowest set one.")
reverse_bits = _math("reverse_bits", 1, "The bits in reverse order.")
mul_high = _math("mul_high", 2, "The upper half of the product of two integers.")
# What the library of mathematics asks of a target, and takes from it: no names of `td`.
has_near_functions = _math("has_near_functions", 1, "Whether there are both for the type of x.")
near_exp2 = _math("near_exp2", 1, "2 to the power x with an error of 2 ULP, for |x| < 1.")
near_reciprocal = _math("near_reciprocal", 1, "1 / x, with that error, for 2^-125 < |x| < 2^125.")
dot4_i8 = _math("dot4_i8", 3, "c and the products of the signed bytes of the words a and b.")
dot4_u8 = _math("dot4_u8", 3, "c and the products of the unsigned bytes of the words a and b.")
dot4_u8i8 = _math("dot4_u8i8", 3, "c and the products of unsigned bytes of a and signed ones of b.")

# --- operators by name, as in the Array API ------------------------------------------------------

add = _math("add", 2, "a + b.")
subtract = _math("subtract", 2, "a - b.")
multiply = _math("multiply", 2, "a * b.")
divide = _math("divide", 2, "a / b.")
floor_divide = _math("floor_divide", 2, "a // b.")
remainder = _math("remainder", 2, "a % b.")
equal = _math("equal", 2, "a == b.")
not_equal = _math("not_equal", 2, "a != b.")
less = _math("less", 2, "a < b.")
less_equal = _math("less_equal", 2, "a <= b.")
greater = _math("greater", 2, "a > b.")
greater_equal = _math("greater_equal", 2, "a >= b.")
bitwise_and = _math("bitwise_and", 2, "a & b.")
bitwise_or = _math("bitwise_or", 2, "a | b.")
bitwise_xor = _math("bitwise_xor", 2, "a ^ b.")
bitwise_left_shift = _math("bitwise_left_shift", 2, "a << b.")
bitwise_right_shift = _math("bitwise_right_shift", 2, "a >> b.")
bitwise_invert = _math("bitwise_invert", 1, "~a.")
logical_and = _math("logical_and", 2, "Whether both hold.")
logical_or = _math("logical_or", 2, "Whether either holds.")
logical_xor = _math("logical_xor", 2, "Whether exactly one holds.")
logical_not = _math("logical_not", 1, "Whether it does not hold.")

# --- mathematics written in the kernel language (treadle.lang.math) ------------------------------

exp = _math("exp", 1, "e to the power x.")
exp2 = _math("exp2", 1, "2 to the power x.")
expm1 = _math("expm1", 1, "exp(x) - 1, precise near 0.")
log = _math("log", 1, "The natural logarithm.")
log2 = _math("log2", 1, "The logarithm to base 2.")
log10 = _math("log10", 1, "The logarithm to base 10.")
log1p = _math("log1p", 1, "log(1 + x), precise near 0.")
sin = _math("sin", 1, "The sine of x radians.")
cos = _math("cos", 1, "The cosine of x radians.")
tan = _math("tan", 1, "The tangent of x radians.")
asin = _math("asin", 1, "The arc sine.")
acos = _math("acos", 1, "The arc cosine.")
atan = _math("atan", 1, "The arc tangent.")
atan2 = _math("atan2", 2, "The angle of the point (second, first).")
sinh = _math("sinh", 1, "The hyperbolic sine.")
cosh = _math("cosh", 1, "The hyperbolic cosine.")
tanh = _math("tanh", 1, "The hyperbolic tangent.")
asinh = _math("asinh", 1, "The inverse hyperbolic sine.")
acosh = _math("acosh", 1, "The inverse hyperbolic cosine.")
atanh = _math("atanh", 1, "The inverse hyperbolic tangent.")
pow = _math("pow", 2, "The first to the power of the second.")
rsqrt = _math("rsqrt", 1, "1 / sqrt(x).")
cbrt = _math("cbrt", 1, "The cube root.")
hypot = _math("hypot", 2, "sqrt(a*a + b*b) without overflow.")
logaddexp = _math("logaddexp", 2, "log(exp(a) + exp(b)) without overflow.")
nextafter = _math("nextafter", 2, "The next number after the first, towards the second.")
erf = _math("erf", 1, "The error function.")
erfc = _math("erfc", 1, "1 - erf(x), precise for large x.")
erfinv = _math("erfinv", 1, "The number whose erf is x; infinite for 1 and -1, NaN beyond.")
gamma = _math("gamma", 1, "The gamma function.")
lgamma = _math("lgamma", 1, "The logarithm of the gamma function's magnitude.")
sigmoid = _math("sigmoid", 1, "1 / (1 + exp(-x)).")
rand_uniform = _math("rand_uniform", 2, "A random f32 in [0, 1) from (seed, counter).")
rand_normal = _math("rand_normal", 2, "A standard normal f32 from (seed, counter).")

NAMES: dict[str, BuiltinFunction | BuiltinVariable] = {
    value.name: value
    for value in list(globals().values())
    if isinstance(value, (BuiltinFunction, BuiltinVariable))
}

# The docstrings are made from tables; doctest finds them here.
__test__ = {
    name: value.kernel_doc for name, value in NAMES.items() if isinstance(value, BuiltinFunction)
}

__all__ = [
    "abs",
    "acos",
    "acosh",
    "add",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "atomic_add",
    "atomic_and",
    "atomic_cas",
    "atomic_exchange",
    "atomic_max",
    "atomic_min",
    "atomic_or",
    "atomic_sub",
    "atomic_xor",
    "ballot",
    "bitcast",
    "bitwise_and",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "block_dim",
    "block_idx",
    "cbrt",
    "ceil",
    "clip",
    "clz",
    "copysign",
    "cos",
    "cosh",
    "cross",
    "ctz",
    "divide",
    "dot",
    "dot4_i8",
    "dot4_u8",
    "dot4_u8i8",
    "equal",
    "erf",
    "erfc",
    "erfinv",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "floor_divide",
    "fma",
    "fragment",
    "gamma",
    "greater",
    "greater_equal",
    "grid",
    "grid_dim",
    "grid_size",
    "hypot",
    "isfinite",
    "isinf",
    "isnan",
    "lane",
    "length",
    "less",
    "less_equal",
    "lgamma",
    "local",
    "log",
    "log1p",
    "log2",
    "log10",
    "logaddexp",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "maximum",
    "minimum",
    "mul_high",
    "multiply",
    "negative",
    "nextafter",
    "normalize",
    "not_equal",
    "popcount",
    "positive",
    "pow",
    "rand_normal",
    "rand_uniform",
    "reciprocal",
    "remainder",
    "reverse_bits",
    "round",
    "rsqrt",
    "shared",
    "shuffle",
    "shuffle_down",
    "shuffle_up",
    "shuffle_xor",
    "sigmoid",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "sqrt",
    "square",
    "static_range",
    "subgroup_max",
    "subgroup_min",
    "subgroup_prefix_sum",
    "subgroup_size",
    "subgroup_sum",
    "subtract",
    "sync_subgroup",
    "sync_threads",
    "tan",
    "tanh",
    "thread_fence",
    "thread_fence_block",
    "thread_idx",
    "trunc",
    "vote_all",
    "vote_any",
    "where",
]  # fmt: skip
