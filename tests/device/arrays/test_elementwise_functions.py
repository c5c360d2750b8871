"""The elementwise functions of tensors: every one on every kind of dtype, against NumPy."""

from __future__ import annotations

import inspect
import itertools
import math
import pickle
import statistics

import numpy as np
import pytest

import treadle as td
from tests.support.bfloat16 import BFLOAT16
from tests.support.graphics import may_rearrange
from treadle.runtime import settings
from treadle.tensor.dtypes import default_integer, supports
from treadle.tensor.elementwise_functions import FUNCTIONS, RULES

INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
FLOATS = ["float16", "bfloat16", "float32", "float64"]
COMPLEX = ["complex64", "complex128"]
EVERY = ["bool", *INTEGERS, *FLOATS, *COMPLEX]
ONE_OF_EACH = ["bool", "int32", "uint32", "float32", "complex64"]  # where kernels compile slowly
# For functions that make floats of integers: the casts are those of test_values.
SOME_INTEGERS = ["bool", "int8", "uint64", *FLOATS, *COMPLEX]

NAMES_IN_NUMPY = {
    "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh", "atan": "arctan",
    "atan2": "arctan2", "atanh": "arctanh", "pow": "power", "bitwise_left_shift": "left_shift",
    "bitwise_right_shift": "right_shift", "round": "rint",
}  # fmt: skip


def complex_logaddexp(x, y):
    """With the phase of the operand of the larger real part, as PyTorch has it; NumPy has none."""
    x, y = np.broadcast_arrays(x.astype(complex), y)
    larger, smaller = np.where(x.real >= y.real, (x, y), (y, x))
    return larger + np.log1p(np.exp(smaller - larger))


def inverse_erf(x):
    """By the quantiles of the normal distribution, which the standard library has."""
    if x == 0:
        return x
    if not -1 < x < 1:
        return math.copysign(math.inf, x) if abs(x) == 1 else math.nan
    return statistics.NormalDist().inv_cdf((1 + x) / 2) / math.sqrt(2)


REFERENCES = {
    "erf": np.vectorize(math.erf, otypes=[float]),
    "erfc": np.vectorize(math.erfc, otypes=[float]),
    "erfinv": np.vectorize(inverse_erf, otypes=[float]),
    "gamma": np.vectorize(math.gamma, otypes=[float]),
    "lgamma": np.vectorize(math.lgamma, otypes=[float]),
    "logaddexp": lambda x, y: complex_logaddexp(x, y) if np.iscomplexobj(x) else np.logaddexp(x, y),
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "reciprocal": lambda x: 1 / x,
}
TESTS = {
    "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "isnan", "isinf",
    "isfinite", "signbit", "logical_and", "logical_or", "logical_xor", "logical_not",
}  # fmt: skip
OF_INTEGERS = {  # what has values in every integer dtype
    "abs", "add", "bitwise_and", "bitwise_invert", "bitwise_left_shift", "bitwise_or",
    "bitwise_right_shift", "bitwise_xor", "ceil", "conj", "floor", "floor_divide", "imag",
    "maximum", "minimum", "multiply", "negative", "positive", "pow", "real", "remainder", "round",
    "sign", "square", "subtract", "trunc",
}  # fmt: skip
TOLERANCES = {
    "float16": 2e-3, "bfloat16": 1e-2, "float32": 4e-6, "float64": 1e-13, "complex64": 1e-5,
    "complex128": 1e-13,
}  # fmt: skip
ALIKE = [name for name in FUNCTIONS if name not in ("where", "clip")]


def numpy_dtype(name: str) -> np.dtype:
    return td.bfloat16.numpy if name == "bfloat16" else np.dtype(name)


def arity(name: str) -> int:
    if name in RULES:
        return RULES[name].operands
    return len(inspect.signature(FUNCTIONS[name]).parameters)


def reference(name, *operands):
    function = REFERENCES.get(name) or getattr(np, NAMES_IN_NUMPY.get(name, name), None)
    assert function is not None, f"NumPy has no {name}: add what it is to REFERENCES here"
    if name in ("ceil", "floor", "trunc", "round") and operands[0].dtype.kind in "iu":
        return operands[0]
    with np.errstate(all="ignore"):
        return function(*operands)


def arguments(name: str, dtype: str, rng) -> list[np.ndarray]:
    """Values for each operand; the second one broadcasts."""
    form = numpy_dtype(dtype)
    found = []
    for position, shape in enumerate([(5, 7), (7,)][: arity(name)]):
        if dtype == "bool":
            values = rng.integers(0, 2, shape)
            if name in ("gamma", "lgamma") or (position and name in ("floor_divide", "remainder")):
                values[...] = 1
        elif dtype in INTEGERS:
            low, high = (0 if dtype[0] == "u" else -9), 10
            if name in ("gamma", "lgamma"):
                low = 1
            if position and name == "pow":
                low = 0
            if position and "shift" in name:
                low, high = 0, 2 * 8 * form.itemsize
            values = rng.integers(low, high, shape)
            if position and name in ("floor_divide", "remainder"):
                values[values == 0] = 3
        else:
            values = rng.uniform(-3, 3, shape)
            if name in ("gamma", "lgamma", "pow") and position == 0:
                values = np.abs(values) + 0.1
            if dtype in COMPLEX:
                values = values + 1j * rng.uniform(-3, 3, shape)
        found.append(values.astype(form))
    return found


# What bools are refused by, as by NumPy and PyTorch, and of what they are small integers.
NOT_OF_BOOLS = ("negative", "positive", "subtract", "bitwise_left_shift", "bitwise_right_shift")
SAME_OF_BOOLS = ("abs", "ceil", "conj", "floor", "real", "round", "sign", "trunc")
INTEGERS_OF_BOOLS = ("floor_divide", "pow", "remainder", "square")


def is_taken(name: str, dtype: str) -> bool:
    """Whether a function takes a dtype; integers become floats, and all dtypes truth values."""
    kinds = RULES[name].kinds
    if kinds == {"bool"} or name == "imag":
        return True
    kind = getattr(td, dtype).kind
    if kind == "bool":
        return name not in NOT_OF_BOOLS
    return kind in kinds or (kind in ("int", "uint") and "float" in kinds)


def expected_dtype(name: str, dtype: str) -> str:
    if name in TESTS:
        return "bool"
    if dtype in COMPLEX and name in ("abs", "angle", "real", "imag"):
        return {"complex64": "float32", "complex128": "float64"}[dtype]
    if dtype == "bool" and name in INTEGERS_OF_BOOLS:
        return default_integer().name
    if dtype in (*INTEGERS, "bool") and name not in OF_INTEGERS:
        return "float32"
    return dtype


def dtypes_for(name: str, device: td.Device) -> list[str]:
    """One dtype of each kind; on the CPU a quarter of the others, too, another one for the next
    function."""
    if device.backend != "cpu":
        return ONE_OF_EACH
    every = EVERY if name in OF_INTEGERS or name in TESTS else SOME_INTEGERS
    turn = ALIKE.index(name) % 4
    return [
        dtype
        for number, dtype in enumerate(every)
        if dtype in (*ONE_OF_EACH, "float64") or number % 4 == turn
    ]


@pytest.mark.parametrize("name", ALIKE)
def test_every_function_on_every_kind_of_dtype(device, rng, name):
    for dtype in dtypes_for(name, device):
        if not supports(device, getattr(td, dtype)):
            continue
        operands = arguments(name, dtype, rng)
        ours = [td.asarray(values) for values in operands]
        if not is_taken(name, dtype):
            with pytest.raises(td.errors.DtypeError, match=f"not {dtype}: cast"):
                getattr(td, name)(*ours)
            continue
        found = getattr(td, name)(*ours)
        result = expected_dtype(name, dtype)
        assert found.dtype == result
        if dtype in FLOATS and name != "nextafter":
            wide = reference(name, *(values.astype(np.float64) for values in operands))
        elif dtype == "bool" and name in SAME_OF_BOOLS:
            wide = operands[0]
        elif dtype == "bool" and result != "bool":
            form = np.float64 if result == "float32" else np.int64
            wide = reference(name, *(values.astype(form) for values in operands))
        elif dtype in INTEGERS and result == "float32":
            narrow = np.float32 if name == "nextafter" else np.float64
            wide = reference(name, *(values.astype(narrow) for values in operands))
        else:
            wide = reference(name, *operands)
        got, wanted = found.numpy(), np.broadcast_to(wide, (5, 7))
        if result in TOLERANCES:
            wanted = wanted.astype(numpy_dtype(result))
            wider = np.complex128 if result in COMPLEX else np.float64
            rtol = TOLERANCES[result]
            np.testing.assert_allclose(got.astype(wider), wanted.astype(wider), rtol, rtol)
        else:
            np.testing.assert_array_equal(got, wanted, f"{name} of {dtype}")


INF, NAN = math.inf, math.nan
SPECIAL = [-INF, -3.0, -1.0, -0.5, -0.0, 0.0, 0.5, 1.0, 2.0, INF, NAN]
# Where the standard says otherwise than NumPy, or NumPy nothing.
OTHERWISE = {
    "floor_divide": lambda x, y: np.where(np.isinf(x) | np.isinf(y), x / y, np.floor_divide(x, y)),
}
WITHOUT_SIGN = {"minimum", "maximum"}  # of zeros
FLOAT_FUNCTIONS = [
    name for name in ALIKE
    if not name.startswith("bitwise") and name not in ("imag", "gamma", "lgamma")
]  # fmt: skip


@pytest.mark.parametrize("name", FLOAT_FUNCTIONS)
def test_special_values_of_floats(device, name):
    """Infinities, NaN and the signs of zeros."""
    count = arity(name)
    columns = list(np.array(list(itertools.product(SPECIAL, repeat=count)), np.float32).T.copy())
    found = getattr(td, name)(*map(td.asarray, columns)).numpy()
    wide = [column.astype(np.float64 if name != "nextafter" else np.float32) for column in columns]
    with np.errstate(all="ignore"):
        wanted = OTHERWISE[name](*wide) if name in OTHERWISE else reference(name, *wide)
    wanted = np.asarray(wanted).astype(found.dtype)
    if found.dtype == bool:
        np.testing.assert_array_equal(found, wanted)
        return
    np.testing.assert_allclose(found, wanted, 4e-6, 0 if name == "nextafter" else 1e-7)
    if name not in WITHOUT_SIGN and not (name == "sign" and may_rearrange(device)):
        zeros = wanted == 0
        shown = np.signbit(found[zeros]), np.signbit(wanted[zeros])
        np.testing.assert_array_equal(*shown, str([column[zeros] for column in columns]))


def test_neighbours_of_narrow_floats(device):
    for form in (np.float16, *BFLOAT16):
        bits = np.arange(0, 1 << 16, 97, np.uint16)
        if form is not np.float16:  # its denormals are float32's, which some GPUs take for zeros
            bits = bits[(bits & 0x7FFF == 0) | (bits & 0x7F80 > 0)]
        x = bits.view(form)
        with np.errstate(all="ignore"):
            for target in (INF, -INF, 1.0):
                y = np.full(x.shape, target, form)
                found = td.nextafter(td.asarray(x), td.asarray(y)).numpy()
                wanted = np.nextafter(x, y)
                numbers = ~np.isnan(wanted)
                np.testing.assert_array_equal(
                    found[numbers].view(np.uint16), wanted[numbers].view(np.uint16)
                )
                assert np.isnan(found[~numbers]).all()


def test_integers_to_negative_powers(device, monkeypatch):
    """What is known to be one is refused; else the fraction is cut, as PyTorch cuts it."""
    bases, exponents = np.meshgrid(
        *(np.int32(each) for each in ([1, -1, 2, 0, -3, 7], [-1, -2, -3, -127, 0, 2]))
    )
    wanted = [
        0 if abs(base) != 1 and exponent < 0 else base ** abs(exponent)
        for base, exponent in zip(bases.flat, exponents.flat, strict=True)
    ]
    for dtype in ("int8", "int32"):
        x, y = (td.asarray(each.ravel(), dtype=dtype) for each in (bases, exponents))
        assert (x**y).tolist() == wanted
        for number in (-1, np.int8(-2)):
            with pytest.raises(ValueError, match="are fractions: make floats"):
                x**number
        with pytest.raises(ValueError, match="to the power -127 are fractions"):
            x ** exponents.ravel()
        monkeypatch.setattr(settings, "check", True)
        with pytest.raises(ValueError, match="to the power -127 are fractions"):
            x**y
        monkeypatch.setattr(settings, "check", False)
    assert (td.asarray([3], dtype=td.u32) ** td.asarray([2], dtype=td.u32)).tolist() == [9]
    assert (td.asarray([2.0]) ** -1).tolist() == [0.5]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32"])
def test_shifts_and_powers_at_the_ends(device, dtype):
    limits = np.iinfo(dtype)
    x = np.array([limits.min, limits.max, 1, 0, 100], dtype)
    ours = td.asarray(x)
    for count in (0, 1, limits.bits - 1, limits.bits, limits.bits + 1):
        wide = [int(value) << count for value in x]
        found = td.bitwise_left_shift(ours, count)
        np.testing.assert_array_equal(found.numpy(), _wrapped(wide, limits))
        found = ours >> count
        np.testing.assert_array_equal(found.numpy(), [int(value) >> count for value in x])
    for power in (0, 1, 2, 3, 5):
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal((ours**power).numpy(), x**power)


def _wrapped(values, limits):
    return [((v - limits.min) % (1 << limits.bits)) + limits.min for v in values]


BINARY = [name for name in ALIKE if arity(name) == 2]


@pytest.mark.parametrize("name", BINARY)
def test_numbers_on_either_side(device, name):
    function = getattr(td, name)
    of_bits = name.startswith("bitwise")
    x = np.array([1, 2, 3], np.int32 if of_bits else np.float32)
    number = 2 if of_bits else 1.5
    ours = td.asarray(x)
    for found, operands in (
        (function(ours, number), (x, x.dtype.type(number))),
        (function(number, ours), (x.dtype.type(number), x)),
        (function(ours, x.dtype.type(number)), (x, x.dtype.type(number))),
    ):
        wanted = reference(name, *operands)
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found.numpy(), wanted, 4e-6)
    with pytest.raises(TypeError, match="at least one array"):
        function(1, 2)


SHAPES = [
    ((), ()), ((), (3,)), ((0,), (1,)), ((0, 3), (3,)), ((4, 1, 3), (5, 1)), ((1,), (1, 1, 1)),
    ((2, 3, 1, 2, 5), (3, 2, 1, 5)),
]  # fmt: skip


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_broadcasting(device, rng, shapes):
    x, y = (rng.standard_normal(shape).astype(np.float32) for shape in shapes)
    ours, theirs = td.asarray(x), td.asarray(y)
    found = td.maximum(td.multiply(ours, theirs), -td.hypot(ours, theirs))
    wanted = np.maximum(x * y, -np.hypot(x, y))
    assert found.shape == wanted.shape
    np.testing.assert_allclose(found.numpy(), wanted, 1e-5)


def test_where(device, rng):
    x, y = rng.standard_normal((2, 4, 5)).astype(np.float32)
    test = x[0] > 0
    ours = td.asarray(test), td.asarray(x), td.asarray(y)
    np.testing.assert_array_equal(td.where(*ours).numpy(), np.where(test, x, y))
    np.testing.assert_array_equal(td.where(ours[0], ours[1], 7).numpy(), np.where(test, x, 7))
    np.testing.assert_array_equal(td.where(ours[0], -1, ours[2]).numpy(), np.where(test, -1, y))
    assert td.where(ours[0], 1, 0.5).dtype == td.float32
    assert td.where(ours[0], True, False).dtype == td.bool
    assert td.where(ours[0], td.asarray([1], dtype=td.int8), td.asarray(1.5)).dtype == td.float32
    z = td.where(ours[0], td.asarray(x.astype(np.complex64)), 1j)
    np.testing.assert_array_equal(z.numpy(), np.where(test, x, 1j))
    assert td.where(ours[1], 1, 0).tolist() == np.ones((4, 5), int).tolist()


def test_clip(device):
    x = td.asarray([-2.0, -0.5, 0.5, 3.0, NAN])
    assert td.clip(x, -1, 1).tolist()[:4] == [-1.0, -0.5, 0.5, 1.0]
    assert math.isnan(td.clip(x, -1, 1).tolist()[4])
    assert td.clip(x, max=0.0).tolist()[:4] == [-2.0, -0.5, 0.0, 0.0]
    assert td.clip(x, 0).tolist()[:4] == [0.0, 0.0, 0.5, 3.0]
    bounds = td.asarray([[0.0], [1.0]])
    assert td.clip(x, bounds, max=2.0).numpy()[:, :4].tolist() == [[0, 0, 0.5, 2], [1, 1, 1, 2]]
    copy = td.clip(x)
    copy[0] = 9.0
    assert x[0].item() == -2.0
    small = td.asarray([-100, 5, 100], dtype=td.int8)
    clipped = td.clip(small, -1000, 50)
    assert clipped.dtype == td.int8
    assert clipped.tolist() == [-100, 5, 50]
    # Floating bounds make floats of integers; wider integers are bounds as far as x's reach.
    halves = td.clip(small, -0.5, 50)
    assert (halves.dtype, halves.tolist()) == (td.float32, [-0.5, 5.0, 50.0])
    halves = td.clip(small, max=td.asarray(7.5, dtype=td.f16))
    assert (halves.dtype, halves[2].item()) == (td.float16, 7.5)
    assert td.clip(small, td.asarray([300, -300, 6])).tolist() == [127, 5, 100]
    assert td.clip(td.asarray([True, False]), 0, 0).tolist() == [0, 0]
    with pytest.raises(td.errors.DtypeError, match="x is int8, and a bound is complex"):
        td.clip(small, 1j)


def test_one_name_in_and_outside_kernels(device):
    @td.kernel
    def roots(x: td.Array[td.f32], y: td.Array[td.f32]):
        i = td.grid(1)
        if i < x.size:
            y[i] = td.where(x[i] < 0.0, td.sqrt(td.abs(x[i])), td.minimum(x[i], 2.0))

    x = td.asarray([-4.0, 1.0, 3.0])
    y = td.zeros(3)
    roots.launch(3, x, y)
    ours = td.where(x < 0, td.sqrt(td.abs(x)), td.minimum(x, 2))
    assert y.tolist() == ours.tolist() == [2.0, 1.0, 2.0]
    with td.interpret():
        roots.launch(3, x, y)
    assert y.tolist() == [2.0, 1.0, 2.0]


def test_the_functions_say_what_they_are():
    assert str(inspect.signature(td.exp)) == "(x, /)"
    assert str(inspect.signature(td.atan2)) == "(x1, x2, /)"
    assert str(inspect.signature(td.clip)) == "(x, /, min=None, max=None)"
    assert str(inspect.signature(td.where)) == "(condition, x1, x2, /)"
    assert all(getattr(td, name).__doc__ for name in FUNCTIONS)
    assert pickle.loads(pickle.dumps(td.exp)) is td.exp


def test_quotients_of_widened_integers(device):
    """The signs of both operands count, also where one of them was narrower."""
    x = np.array([1, -1, 7, -7, 5, 0, 6, -6], np.int32)
    y = np.array([-2, 2, -2, 2, 5, 7, -3, -4], np.int8)
    wide = "int64" if "int64" in device.features else "int32"
    for narrow in ("int8", "int16", "int32"):
        ours = td.asarray(x.astype(wide)), td.asarray(y.astype(narrow))
        np.testing.assert_array_equal(td.floor_divide(*ours).numpy(), x // y)
        np.testing.assert_array_equal(td.remainder(*ours).numpy(), x % y)


def test_round_to_decimals(device):
    x = np.array([1.234, -2.567, 0.125, 1e30, np.inf, -np.inf, np.nan, 55.0], np.float32)
    for decimals in (0, 1, 2, -1):
        wanted = np.round(x.astype(np.float64), decimals)
        np.testing.assert_allclose(td.round(td.asarray(x), decimals).numpy(), wanted, 1e-6)
    whole = td.asarray(x).round(decimals=12).numpy()
    np.testing.assert_allclose(whole, x, 1e-6)  # without overflow
    assert td.asarray([12, 17]).round(1).tolist() == [12, 17]
    assert td.asarray([60.04], dtype=td.float16).round(3).tolist() == [60.03125]
    with pytest.raises(td.errors.DtypeError, match="decimals=-1 of"):
        td.asarray([12, 17]).round(-1)
    with pytest.raises(ValueError, match="from -38 to 38, not 39"):
        td.asarray(x).round(39)
