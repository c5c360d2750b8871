"""Every operation on every type, as machine code, against NumPy: special values, odd lengths."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.support.cpu_kernels import run
from tests.support.printing import print_llvm
from treadle.codegen.llvm import LlvmOptions
from treadle.core.dim3 import Dim3
from treadle.drivers.cpu.byte_dots import with_instructions
from treadle.drivers.cpu.compiler import compiler
from treadle.ir import arithmetic
from treadle.ir import nodes as n
from treadle.ir import types as t

DTYPES = {
    "bool": np.bool_, "i8": np.int8, "u8": np.uint8, "i16": np.int16, "u16": np.uint16,
    "i32": np.int32, "u32": np.uint32, "i64": np.int64, "u64": np.uint64,
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
}  # fmt: skip
INTEGERS = [name for name in DTYPES if name[0] in "iu"]
FLOATS = ["f16", "bf16", "f32", "f64"]
INDEX = n.Variable("i", t.I32)
BINARY_NAMES = ["add", "sub", "mul", "div", "rem", "floordiv", "mod", "and", "or", "xor", "shl",
                "shr", "min", "max", "mul_high"]  # fmt: skip


def samples(name: str) -> np.ndarray:
    """Special values of a type, and some ordinary ones."""
    random = np.random.default_rng(7)
    dtype = DTYPES[name]
    if name == "bool":
        return np.array([False, True])
    if name in INTEGERS:
        info = np.iinfo(dtype)
        special = [0, 1, 2, 3, 7, info.max, info.max - 1, info.min, info.min + 1, info.bits,
                   info.bits - 1, 100, 33]  # fmt: skip
        if info.min < 0:
            special += [-1, -2, -3, -7, -33]
        ordinary = random.integers(info.min, info.max, 12, dtype=dtype, endpoint=True)
        return np.concatenate([np.array(special, dtype), ordinary])
    special = [0.0, -0.0, 1.0, -1.0, 0.5, 1.5, 2.5, -2.5, np.inf, -np.inf, np.nan, 3.0, 1e-3,
               65504.0, -100.25, 1e30, 1e-40, 7e-6]  # fmt: skip
    with np.errstate(all="ignore"):
        return np.concatenate([special, random.normal(size=9) * 10]).astype(dtype)


def pairs(name: str) -> tuple[np.ndarray, np.ndarray]:
    values = samples(name)
    a, b = np.meshgrid(values, values)
    return np.ascontiguousarray(a.ravel()), np.ascontiguousarray(b.ravel())


def elementwise(expression: n.Expression, types: list[t.Scalar], count: int) -> n.Kernel:
    """out[i] = expression, where the expression uses the variables a, b and c."""
    declares = tuple(
        n.Declare(n.Variable(name, type), n.Load(n.Element(name.upper(), INDEX, type), type))
        for name, type in zip("abc", types, strict=False)
    )
    store = n.Assign(n.Element("OUT", INDEX, expression.type), expression)
    loop = n.For(
        INDEX, n.Constant(0, t.I32), n.Constant(count, t.I32), 1, (*declares, store), parallel=True
    )
    buffers = tuple(n.Buffer(name.upper(), type) for name, type in zip("abc", types, strict=False))
    return n.Kernel(
        "elementwise", (*buffers, n.Buffer("OUT", expression.type)), (), (loop,), block=Dim3(1)
    )


def compute(expression: n.Expression, arrays: list[np.ndarray], types: list[t.Scalar]):
    out = np.zeros(len(arrays[0]), DTYPES[expression.type.name])
    return run(elementwise(expression, types, len(out)), [*arrays, out])[-1]


def variables(name: str) -> tuple[n.Variable, n.Variable]:
    return n.Variable("a", t.SCALARS[name]), n.Variable("b", t.SCALARS[name])


# --- references, in Python integers and float64 ---------------------------------------------------


def wrap(value: int, dtype) -> int:
    bits = np.iinfo(dtype).bits
    value &= (1 << bits) - 1
    return value - (1 << bits) if np.iinfo(dtype).min < 0 and value >> (bits - 1) else value


def truncated(a: int, b: int) -> int:
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def shifted(a: int, b: int, bits: int, left: bool) -> int:
    if not 0 <= b < bits:
        return -1 if not left and a < 0 else 0
    return a << b if left else a >> b


def integer_reference(op: str, a: int, b: int, bits: int) -> int:
    match op:
        case "add":
            return a + b
        case "sub":
            return a - b
        case "mul":
            return a * b
        case "div":
            return truncated(a, b) if b else 0
        case "rem":
            return a - b * truncated(a, b) if b else 0
        case "floordiv":
            return a // b if b else 0
        case "mod":
            return a % b if b else 0
        case "and":
            return a & b
        case "or":
            return a | b
        case "xor":
            return a ^ b
        case "shl":
            return shifted(a, b, bits, True)
        case "shr":
            return shifted(a, b, bits, False)
        case "min":
            return min(a, b)
        case "max":
            return max(a, b)
        case "mul_high":
            return (a * b) >> bits
    raise AssertionError(op)  # fmt: skip


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize("op", BINARY_NAMES)
def test_integer_operation(name, op):
    a, b = pairs(name)
    x, y = variables(name)
    type = t.SCALARS[name]
    if op in n.INTRINSICS:
        expression = n.Intrinsic(op, (x, y), type)
    else:
        expression = n.Binary(op, x, y, type)
    result = compute(expression, [a, b], [type, type])
    dtype, bits = DTYPES[name], np.iinfo(DTYPES[name]).bits
    expected = [
        wrap(integer_reference(op, int(p), int(q), bits), dtype) for p, q in zip(a, b, strict=True)
    ]
    np.testing.assert_array_equal(result, np.array(expected, dtype))


@pytest.mark.parametrize("name", ["i32", "u32", "i8", "i64"])
@pytest.mark.parametrize("op", ["div", "rem", "floordiv", "mod", "shl", "shr"])
@pytest.mark.parametrize("constant", [0, 1, -1, 7, 31, 64])
def test_integer_operation_by_a_constant(name, op, constant):
    type, dtype = t.SCALARS[name], DTYPES[name]
    value = wrap(constant, dtype)
    a = samples(name)
    expression = n.Binary(op, n.Variable("a", type), n.Constant(value, type), type)
    result = compute(expression, [a], [type])
    expected = [wrap(integer_reference(op, int(p), value, np.iinfo(dtype).bits), dtype) for p in a]
    np.testing.assert_array_equal(result, np.array(expected, dtype))


def float_reference(op: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """In float64 for the narrow types, so that one rounding follows."""
    wide = np.float64 if a.dtype != np.float64 else a.dtype
    x, y = a.astype(wide), b.astype(wide)
    with np.errstate(all="ignore"):
        match op:
            case "add":
                return (x + y).astype(a.dtype)
            case "sub":
                return (x - y).astype(a.dtype)
            case "mul":
                return (x * y).astype(a.dtype)
            case "div":
                return (x / y).astype(a.dtype)
            case "rem":
                return np.fmod(x, y).astype(a.dtype)
            case "min":
                return np.minimum(x, y).astype(a.dtype)
            case "max":
                return np.maximum(x, y).astype(a.dtype)
    raise AssertionError(op)  # fmt: skip


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize("op", ["add", "sub", "mul", "div", "rem", "min", "max"])
def test_float_operation(name, op):
    a, b = pairs(name)
    x, y = variables(name)
    type = t.SCALARS[name]
    if op in n.INTRINSICS:
        expression = n.Intrinsic(op, (x, y), type)
    else:
        expression = n.Binary(op, x, y, type)
    result = compute(expression, [a, b], [type, type])
    np.testing.assert_array_equal(
        result.astype(np.float64), float_reference(op, a, b).astype(np.float64)
    )


@pytest.mark.parametrize("name", FLOATS)
def test_minimum_orders_the_zeros(name):
    type, dtype = t.SCALARS[name], DTYPES[name]
    x, y = variables(name)
    a, b = np.array([0.0, -0.0], dtype), np.array([-0.0, 0.0], dtype)
    low = compute(n.Intrinsic("min", (x, y), type), [a, b], [type, type])
    high = compute(n.Intrinsic("max", (x, y), type), [a, b], [type, type])
    assert np.signbit(low.astype(np.float64)).all()
    assert not np.signbit(high.astype(np.float64)).any()


@pytest.mark.parametrize("name", list(DTYPES))
@pytest.mark.parametrize("op", n.COMPARISONS)
def test_comparison(name, op):
    a, b = pairs(name)
    x, y = variables(name)
    type = t.SCALARS[name]
    result = compute(n.Binary(op, x, y, t.BOOL), [a, b], [type, type])
    expected = {
        "eq": np.equal, "ne": np.not_equal, "lt": np.less, "le": np.less_equal,
        "gt": np.greater, "ge": np.greater_equal,
    }[op](*(v.astype(np.float64) if name == "bf16" else v for v in (a, b)))  # fmt: skip
    np.testing.assert_array_equal(result, expected)


# --- unary operations and intrinsics --------------------------------------------------------------


@pytest.mark.parametrize("name", FLOATS)
@pytest.mark.parametrize(
    "op", ["neg", "abs", "sqrt", "floor", "ceil", "trunc", "rint", "isnan", "isinf", "isfinite",
           "signbit"]
)  # fmt: skip
def test_float_unary(name, op):
    a = samples(name)
    type = t.SCALARS[name]
    x = n.Variable("a", type)
    tests = {"isnan", "isinf", "isfinite", "signbit"}
    if op == "neg":
        expression = n.Unary("neg", x, type)
    else:
        expression = n.Intrinsic(op, (x,), t.BOOL if op in tests else type)
    result = compute(expression, [a], [type])
    functions = {"neg": np.negative, "abs": np.abs}
    wide = a.astype(np.float64)
    with np.errstate(all="ignore"):
        expected = functions.get(op, getattr(np, op, None))(wide)
    if op not in tests:
        expected = expected.astype(a.dtype)
        assert (np.signbit(result) == np.signbit(expected))[~np.isnan(wide)].all() or op == "sqrt"
    np.testing.assert_array_equal(result.astype(np.float64), expected.astype(np.float64))


@pytest.mark.parametrize("name", INTEGERS)
@pytest.mark.parametrize(
    "op", ["neg", "invert", "abs", "popcount", "clz", "ctz", "reverse_bits", "signbit"]
)
def test_integer_unary(name, op):
    a = samples(name)
    type, dtype = t.SCALARS[name], DTYPES[name]
    bits = type.bits
    x = n.Variable("a", type)
    counts = {"popcount", "clz", "ctz"}
    if op in ("neg", "invert"):
        expression = n.Unary(op, x, type)
    else:
        result_type = t.I32 if op in counts else t.BOOL if op == "signbit" else type
        expression = n.Intrinsic(op, (x,), result_type)
    result = compute(expression, [a], [type])
    patterns = [format(int(v) & ((1 << bits) - 1), f"0{bits}b") for v in a]
    expected = {
        "neg": lambda: [wrap(-int(v), dtype) for v in a],
        "invert": lambda: [wrap(~int(v), dtype) for v in a],
        "abs": lambda: [wrap(abs(int(v)), dtype) for v in a],
        "popcount": lambda: [p.count("1") for p in patterns],
        "clz": lambda: [len(p) - len(p.lstrip("0")) for p in patterns],
        "ctz": lambda: [len(p) - len(p.rstrip("0")) for p in patterns],
        "reverse_bits": lambda: [wrap(int(p[::-1], 2), dtype) for p in patterns],
        "signbit": lambda: [v < 0 for v in a],
    }[op]()
    np.testing.assert_array_equal(result, np.array(expected, result.dtype))


@pytest.mark.parametrize("name", ["f32", "f64"])
def test_fma_rounds_once(name):
    type, dtype = t.SCALARS[name], DTYPES[name]
    step = np.finfo(dtype).eps
    a = np.array([1 + step, 1 - step, 3.0], dtype)
    c = -(a * a)
    x = n.Variable("a", type)
    result = compute(n.Intrinsic("fma", (x, x, n.Variable("b", type)), type), [a, c], [type, type])
    exact = [float(int(v * 2**60) ** 2 - int(-w * 2**60) * 2**60) / 2.0**120
             for v, w in zip(a.tolist(), c.tolist(), strict=True)]  # fmt: skip
    np.testing.assert_array_equal(result, np.array(exact, dtype))


def test_not():
    a = samples("bool")
    result = compute(n.Unary("not", n.Variable("a", t.BOOL), t.BOOL), [a], [t.BOOL])
    np.testing.assert_array_equal(result, ~a)


# --- casts ----------------------------------------------------------------------------------------


def cast_reference(values: np.ndarray, target: str) -> np.ndarray:
    dtype = DTYPES[target]
    if target == "bool":
        return np.array([bool(v != 0) for v in values.tolist()])
    if target in FLOATS:
        exact = values.astype(np.float64) if values.dtype.itemsize < 8 else values
        with np.errstate(all="ignore"):
            if target in ("f16", "bf16") and values.dtype.kind in "iu":
                return np.array([round_once(int(v), target) for v in values], dtype)
            return exact.astype(dtype)
    info = np.iinfo(dtype)
    if values.dtype.kind in "iub":
        return np.array([wrap(int(v), dtype) for v in values], dtype)
    result = []
    for v in values.astype(np.float64):
        if np.isnan(v):
            result.append(0)
        elif np.isinf(v):
            result.append(info.max if v > 0 else info.min)
        else:
            result.append(min(max(int(v), info.min), info.max))
    return np.array(result, dtype)


def round_once(value: int, target: str) -> float:
    """An integer rounded to the nearest f16 or bf16, ties to even, with integer arithmetic."""
    digits, largest = (11, 65519) if target == "f16" else (8, 1 << 127)
    size = abs(value)
    spare = max(size.bit_length() - digits, 0)
    kept, rest = size >> spare, size & ((1 << spare) - 1)
    half = (1 << spare) >> 1
    if spare and (rest > half or (rest == half and kept & 1)):
        kept += 1
    rounded = kept << spare
    result = float("inf") if rounded > largest else float(rounded)
    return -result if value < 0 else result


@pytest.mark.parametrize("source", list(DTYPES))
@pytest.mark.parametrize("target", list(DTYPES))
def test_cast(source, target):
    a = samples(source)
    if source == "f64" and target in ("f16", "bf16"):
        # A value that a float rounds onto the middle between two neighbours.
        digits = 10 if target == "f16" else 7
        middle = 1 + 2.0 ** -(digits + 1)
        a = np.concatenate([a, [middle + 2.0**-40, middle - 2.0**-40, middle, -middle - 2.0**-45]])
    if source in ("i32", "u32", "i64", "u64") and target == "bf16":
        a = np.concatenate([a, np.array([(1 << 24) + (1 << 16) + 1, (1 << 30) + (1 << 22) + 1,
                                         (1 << 30) + (1 << 22)], a.dtype)])  # fmt: skip
    result = compute(
        n.Cast(n.Variable("a", t.SCALARS[source]), t.SCALARS[target]), [a], [t.SCALARS[source]]
    )
    expected = cast_reference(a, target)
    if source == "f64" and target in ("f16", "bf16"):  # ml_dtypes rounds twice
        expected[-4:] = [1 + 2.0**-digits, 1.0, 1.0, -1 - 2.0**-digits]
    if target in FLOATS:
        result, expected = result.astype(np.float64), expected.astype(np.float64)
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(
    ("source", "target"),
    [("f32", "u32"), ("u32", "f32"), ("f64", "i64"), ("i64", "f64"), ("f16", "u16"),
     ("i16", "f16"), ("bf16", "u16"), ("u16", "bf16"), ("f16", "bf16"), ("i32", "u32")],
)  # fmt: skip
def test_bitcast(source, target):
    a = samples(source)
    result = compute(
        n.Bitcast(n.Variable("a", t.SCALARS[source]), t.SCALARS[target]), [a], [t.SCALARS[source]]
    )
    bits = f"u{a.dtype.itemsize}"
    kept = ~np.isnan(a.astype(np.float64)) if source in FLOATS else slice(None)
    np.testing.assert_array_equal(result.view(bits)[kept], a.view(bits)[kept])


@pytest.mark.parametrize("name", list(DTYPES))
def test_select_and_copy(name):
    a = samples(name)
    type = t.SCALARS[name]
    condition = n.Variable("b", t.BOOL)
    picks = np.arange(len(a)) % 3 == 0
    expression = n.Select(
        condition, n.Variable("a", type), n.Constant(type.kind == "bool" or 1, type), type
    )
    result = compute(expression, [a, picks], [type, t.BOOL])
    np.testing.assert_array_equal(
        result.astype(np.float64), np.where(picks, a, np.ones_like(a)).astype(np.float64)
    )


FAST = {
    "fast_rsqrt": (lambda x: 1 / np.sqrt(x), 0.01, 1e6), "fast_exp": (np.exp, -80, 80),
    "fast_exp2": (np.exp2, -120, 120), "fast_log": (np.log, 1e-30, 1e30),
    "fast_log2": (np.log2, 1e-30, 1e30), "fast_sin": (np.sin, -50, 50),
    "fast_cos": (np.cos, -50, 50), "fast_tan": (np.tan, -1.5, 1.5),
    "fast_tanh": (np.tanh, -20, 20),
}  # fmt: skip


@pytest.mark.parametrize("name", ["f32", "f64"])
@pytest.mark.parametrize("op", list(FAST))
def test_fast_intrinsic(name, op):
    function, low, high = FAST[op]
    type, dtype = t.SCALARS[name], DTYPES[name]
    a = np.linspace(low, high, 1001).astype(dtype)
    result = compute(n.Intrinsic(op, (n.Variable("a", type),), type), [a], [type])
    expected = function(a.astype(np.float64))
    close = 1e-5 if name == "f32" else 1e-10
    np.testing.assert_allclose(result, expected, rtol=close, atol=close)


def test_fast_pow():
    a, b = np.linspace(0.1, 20, 501, dtype=np.float32), np.linspace(-5, 5, 501, dtype=np.float32)
    x, y = variables("f32")
    result = compute(n.Intrinsic("fast_pow", (x, y), t.F32), [a, b], [t.F32, t.F32])
    np.testing.assert_allclose(result, a.astype(np.float64) ** b, rtol=2e-5)


@pytest.mark.parametrize("features", ["host", "none", "avx512", "avx"])
@pytest.mark.parametrize("op", ["dot4_i8", "dot4_u8", "dot4_u8i8"])
def test_dots_of_bytes(op, features, monkeypatch):
    """In one lane and in many, by the processor's instruction and without it. Where it lacks one,
    the text with it is only looked at."""
    own = compiler().features
    chosen = {"host": own, "none": "", "avx512": "+avx512vnni,+avx512vl", "avx": "+avxvnni"}[
        features
    ]
    vectors = LlvmOptions(lanes=8)
    words = samples("i32")[:16]
    a, b = (np.ascontiguousarray(each.ravel()) for each in np.meshgrid(words, words))
    operands = tuple(n.Variable(name, t.I32) for name in "abc")
    kernel = elementwise(n.Intrinsic(op, operands, t.I32), [t.I32] * 3, len(a))
    found = with_instructions(print_llvm(kernel, vectors).source, "x86_64-linux", chosen)
    has_instruction = features in ("avx512", "avx") and op != "dot4_u8"
    if features != "host":
        assert ("vpdpbusd.256" in found) == has_instruction
    if features in ("host", "none"):
        instructions = with_instructions if features == "host" else lambda source, *_: source
        monkeypatch.setattr("treadle.drivers.cpu.compiler.with_instructions", instructions)
        wanted = [
            arithmetic.intrinsic(op, row, t.I32)
            for row in zip(a.tolist(), b.tolist(), a.tolist(), strict=True)
        ]
        for options in (vectors, LlvmOptions(lanes=16), LlvmOptions(lanes=1)):
            got = run(kernel, [a, b, a, np.zeros_like(a)], options=options)[-1]
            assert got.tolist() == wanted


def test_dots_of_bytes_without_short_vectors(monkeypatch):
    """A module that is compiled without AVX-512VL, since LLVM is wrong with it, has none of its
    instructions."""
    known = "treadle.drivers.cpu.compiler.takes_bits_of_moved_conditions"
    monkeypatch.setattr(known, lambda module: True)
    a, b = np.arange(40, dtype=np.int32), np.arange(40, dtype=np.int32) - 20
    operands = tuple(n.Variable(name, t.I32) for name in "abc")
    kernel = elementwise(n.Intrinsic("dot4_u8i8", operands, t.I32), [t.I32] * 3, 40)
    got = run(kernel, [a, b, a, np.zeros_like(a)], options=LlvmOptions(lanes=8))[-1]
    rows = zip(a.tolist(), b.tolist(), a.tolist(), strict=True)
    assert got.tolist() == [arithmetic.intrinsic("dot4_u8i8", row, t.I32) for row in rows]
