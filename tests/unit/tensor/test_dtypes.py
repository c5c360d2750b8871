"""Which dtype comes out: against NumPy where it follows the standard's tables, and by hand."""

import math
import operator
import pickle
from itertools import combinations, permutations, product

import ml_dtypes
import numpy as np
import pytest

import treadle as td
from treadle.core.dtypes import ALL_DTYPES, as_dtype
from treadle.core.errors import DtypeError
from treadle.tensor.dtypes import check_fits, default_dtype, promote, promote_scalar, supports

STANDARD = [d for d in ALL_DTYPES if d.name not in ("float16", "bfloat16")]
INTEGERS = [d for d in ALL_DTYPES if d.is_integer]
FLOATS = [td.float16, td.bfloat16, td.float32, td.float64]


def without_common(a, b):
    return {a.kind, b.kind} == {"int", "uint"} and td.uint64 in (a, b)


@pytest.mark.parametrize(("a", "b"), list(product(STANDARD, STANDARD)), ids=str)
def test_pairs_of_one_kind_are_promoted_as_in_numpy(a, b):
    if a.is_integer != b.is_integer and "bool" not in (a.kind, b.kind):
        assert promote(a, b) is (b if a.is_integer else a)  # the integer has no say
    elif without_common(a, b):
        with pytest.raises(DtypeError, match=f"no dtype holds every {a} and every {b}: cast"):
            promote(a, b)
    else:
        assert promote(a, b) == np.promote_types(a.numpy, b.numpy)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ("float16", "bfloat16", "float32"),
        ("float16", "float16", "float16"),
        ("bfloat16", "float32", "float32"),
        ("float16", "float64", "float64"),
        ("float16", "complex64", "complex64"),
        ("bfloat16", "complex128", "complex128"),
        ("float64", "complex64", "complex128"),
        ("float32", "complex64", "complex64"),
        ("int64", "bfloat16", "bfloat16"),
        ("uint64", "complex64", "complex64"),
        ("bool", "float16", "float16"),
    ],
)
def test_pairs_that_numpy_has_otherwise_or_not_at_all(a, b, expected):
    assert promote(as_dtype(a), as_dtype(b)) is promote(as_dtype(b), as_dtype(a))
    assert promote(as_dtype(a), as_dtype(b)).name == expected


def test_structs_have_no_arithmetic():
    with pytest.raises(DtypeError, match="no arithmetic"):
        promote(td.float32, np.dtype([("x", "f4")]))


def result_or_none(*dtypes):
    try:
        return td.result_type(*dtypes).name
    except DtypeError:
        return "none"


def test_the_order_of_arguments_does_not_matter():
    for some in combinations(ALL_DTYPES, 3):
        assert len({result_or_none(*order) for order in permutations(some)}) == 1, some


@pytest.mark.parametrize(
    ("dtype", "value", "expected"),
    [
        ("bool", True, "bool"),
        ("bool", 2, "int64"),
        ("bool", 2.0, "float32"),
        ("bool", 2j, "complex64"),
        ("int8", True, "int8"),
        ("int8", -128, "int8"),
        ("uint64", (1 << 64) - 1, "uint64"),
        ("int64", 0.5, "float32"),
        ("int16", 1j, "complex64"),
        ("float16", 10**30, "float16"),
        ("bfloat16", 1e300, "bfloat16"),
        ("float64", 1, "float64"),
        ("float16", 1j, "complex64"),
        ("float32", 1j, "complex64"),
        ("float64", 1j, "complex128"),
        ("complex64", 2.5, "complex64"),
        ("complex64", 1j, "complex64"),
        ("float32", np.float64(2), "float32"),
        ("int8", np.int64(3), "int8"),
        ("bool", np.True_, "bool"),
        ("float16", np.complex128(1), "complex64"),
        ("float16", np.longdouble(1), "float16"),
        ("int8", ml_dtypes.bfloat16(1), "float32"),
    ],
)
def test_a_number_takes_the_width_of_the_array(dtype, value, expected):
    cpu = td.device("cpu")
    assert promote_scalar(as_dtype(dtype), value, cpu).name == expected
    with td.use_device("cpu"):
        assert td.result_type(value, as_dtype(dtype)).name == expected


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_integers_that_do_not_fit(dtype):
    limits = td.iinfo(dtype)
    for value in (limits.min, 0, limits.max):
        assert promote_scalar(dtype, value) is dtype
        check_fits(value, dtype)
    for value in (limits.min - 1, limits.max + 1):
        with pytest.raises(OverflowError, match=f"{value} does not fit into {dtype}, which holds"):
            promote_scalar(dtype, value)
        with pytest.raises(OverflowError):
            check_fits(value, dtype)
        with pytest.raises(OverflowError):
            td.result_type(dtype, value)


def test_an_integer_is_held_against_the_dtype_it_becomes():
    assert td.result_type(td.int8, 300, td.int16) is td.int16
    assert td.result_type(300, td.int8, 1.5) is td.float32
    assert td.result_type(td.uint8, -1, td.float64) is td.float64


def test_arrays_count_by_their_dtype_whatever_their_shape():
    one = td.asarray(1.0, dtype=td.float64, device="cpu")
    many = td.zeros(5, dtype=td.float32, device="cpu")
    assert td.result_type(many, one) is td.float64
    assert td.result_type(np.zeros(3, np.int8), td.uint8) is td.int16
    assert td.result_type(many, 1j, "int64") is td.complex64


@pytest.mark.parametrize(
    "wrong",
    ["text", None, [1, 2], object(), str, np.dtype("M8[s]")],
    ids=["text", "none", "list", "object", "str", "time"],
)
def test_what_has_no_dtype(wrong):
    with pytest.raises(DtypeError, match="is not a dtype"):
        td.result_type(td.float32, wrong)


def test_numbers_alone_have_no_width():
    with pytest.raises(ValueError, match="needs an array or a dtype"):
        td.result_type(1, 2.0)
    with pytest.raises(DtypeError, match="not a number"):
        promote_scalar(td.float32, np.datetime64(1, "s"))


@pytest.mark.parametrize("a", ALL_DTYPES, ids=str)
def test_can_cast_says_where_promotion_leads(a):
    for b in ALL_DTYPES:
        leads = not without_common(a, b) and promote(a, b) is b
        assert td.can_cast(a, b) is leads
        if a in STANDARD and b in STANDARD and not (a.is_integer and not b.is_integer):
            assert td.can_cast(a, b) is (np.can_cast(a.numpy, b.numpy) and not without_common(a, b))


SIGNED, UNSIGNED = {"int8", "int16", "int32", "int64"}, {"uint8", "uint16", "uint32", "uint64"}
FLOATING, COMPLEX = {"float16", "bfloat16", "float32", "float64"}, {"complex64", "complex128"}
KINDS = {
    "bool": {"bool"},
    "signed integer": SIGNED,
    "unsigned integer": UNSIGNED,
    "integral": SIGNED | UNSIGNED,
    "real floating": FLOATING,
    "complex floating": COMPLEX,
    "numeric": SIGNED | UNSIGNED | FLOATING | COMPLEX,
}


@pytest.mark.parametrize("kind", KINDS)
def test_kinds(kind):
    for dtype in ALL_DTYPES:
        assert td.isdtype(dtype, kind) is (dtype.name in KINDS[kind])
        assert td.isdtype(dtype, (kind, td.int8)) is (dtype.name in KINDS[kind] | {"int8"})


def test_kinds_that_are_dtypes_or_nothing():
    assert td.isdtype(td.float32, td.float32) is True
    assert td.isdtype(td.float32, np.float32) is True
    assert td.isdtype(td.float32, td.float64) is False
    assert td.isdtype(td.float32, ()) is False
    with pytest.raises(ValueError, match="'floating' is not a kind of dtypes; there are bool, sig"):
        td.isdtype(td.float32, ("real floating", "floating"))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
def test_finfo(dtype):
    info = td.finfo(dtype)
    reference = ml_dtypes.finfo(dtype.numpy)
    assert info.dtype is dtype
    assert info.bits == reference.bits == dtype.bits
    for name in ("eps", "max", "min", "smallest_normal"):
        value = getattr(info, name)
        assert type(value) is float
        assert value == float(getattr(reference, name))
    one = dtype.numpy.type(1)
    assert one + dtype.numpy.type(info.eps) > one
    with np.errstate(over="ignore"):
        assert math.isinf(dtype.numpy.type(info.max) * dtype.numpy.type(2))


def test_finfo_and_iinfo_of_arrays_and_parts():
    assert td.finfo(td.complex128) is td.finfo(td.float64)
    assert td.finfo(td.zeros(2, dtype=td.complex64, device="cpu")).dtype is td.float32
    assert td.iinfo(np.zeros(0, np.uint8)).max == 255
    assert td.iinfo("i4").dtype is td.int32
    with pytest.raises(DtypeError, match=r"for int8 use td\.iinfo"):
        td.finfo(td.int8)
    for dtype in (td.bool, td.float32, td.complex64):
        with pytest.raises(DtypeError, match="iinfo takes integer dtypes"):
            td.iinfo(dtype)


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_iinfo(dtype):
    info, reference = td.iinfo(dtype), np.iinfo(dtype.numpy)
    assert (info.bits, info.min, info.max) == (reference.bits, reference.min, reference.max)
    assert type(info.max) is type(info.min) is type(info.bits) is int


def test_defaults_of_numbers():
    cpu = td.device("cpu")
    numbers = (True, 1, 1.0, 1j)
    assert [default_dtype(n, cpu).name for n in numbers] == [
        "bool",
        "int64",
        "float32",
        "complex64",
    ]


def test_dtypes_stay_themselves_through_a_pickle():
    for dtype in ALL_DTYPES:
        assert pickle.loads(pickle.dumps(dtype)) is dtype
        assert supports(td.device("cpu"), dtype)
        assert not operator.eq(dtype, None)
