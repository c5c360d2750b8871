"""Dtypes, vectors, structs: names, values and layouts."""

from __future__ import annotations

import copy
import math
import pickle

import ml_dtypes
import numpy as np
import pytest

import treadle.lang as td
from treadle.core.dtypes import DTYPES, as_dtype, integer_range
from treadle.core.errors import CompileError, DtypeError
from treadle.ir import types as t


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_dtype_equals_its_names_and_numpys(dtype) -> None:
    assert dtype == dtype.name == dtype.numpy
    assert dtype == dtype.short
    assert as_dtype(dtype.numpy) is as_dtype(dtype.short) is as_dtype(dtype.name) is dtype
    assert {dtype.numpy: 1}[dtype] == 1
    assert dtype.itemsize == dtype.numpy.itemsize
    assert pickle.loads(pickle.dumps(dtype)) is dtype
    assert t.SCALARS[dtype.short].bits == dtype.bits


@pytest.mark.parametrize("dtype", [td.complex64, td.complex128], ids=str)
def test_complex_dtypes(dtype) -> None:
    assert dtype == dtype.name == dtype.numpy
    assert dtype == dtype.short
    assert as_dtype(dtype.numpy) is as_dtype(dtype.short) is as_dtype(dtype.name) is dtype
    assert (dtype.is_complex, dtype.is_float, dtype.short in t.SCALARS) == (True, False, False)
    assert dtype.itemsize == dtype.numpy.itemsize == 2 * dtype.component.itemsize
    assert dtype(1 + 2j) == 1 + 2j
    assert isinstance(dtype(True), dtype.numpy.type)
    assert pickle.loads(pickle.dumps(dtype)) is dtype
    pair = td.vec2[dtype.component]
    assert td.Array[dtype, 2] == td.Array[pair, 2]
    with pytest.raises(DtypeError, match=rf"use td.vec2\[td.{dtype.component.short}\]"):
        td.vec3[dtype]
    with pytest.raises(DtypeError, match=r"field z .* use td.vec2"):
        td.struct(type("Number", (), {"__annotations__": {"z": dtype}}))


def test_a_complex_number_is_not_cast_to_a_real_one() -> None:
    with pytest.raises(DtypeError, match=r"cast value.real, or abs\(value\)"):
        td.f32(1j)
    assert (td.bool(1j), td.bool(0j)) == (True, False)


def test_short_names_are_the_array_apis_dtypes() -> None:
    assert td.f32 is td.float32
    assert td.u64 is td.uint64
    assert td.bf16.numpy == ml_dtypes.bfloat16
    assert td.f32 != td.f64
    assert td.f32 != "f64"


@pytest.mark.parametrize("value", ["int33", int, float, complex, None, "complex32", object])
def test_what_is_no_dtype(value) -> None:
    with pytest.raises(DtypeError, match="is not a dtype"):
        as_dtype(value)


@pytest.mark.parametrize(
    ("dtype", "value", "expected"),
    [
        (td.u8, -1, 255),
        (td.i8, 200, -56),
        (td.i32, 3.99, 3),
        (td.i32, -3.99, -3),
        (td.i32, 1e20, 2**31 - 1),
        (td.u32, -5.0, 0),
        (td.i64, float("nan"), 0),
        (td.bool, 0.5, True),
        (td.f16, 1e6, np.inf),
        (td.f32, 0.1, np.float32(0.1)),
    ],
)
def test_a_dtype_called_casts_as_in_a_kernel(dtype, value, expected) -> None:
    result = dtype(value)
    assert result == expected
    assert result.dtype == dtype


def test_vectors() -> None:
    v = td.vec3[td.f32](1, 2.5, 3)
    assert (v.x, v[1], v.zy) == (1.0, 2.5, td.vec2[td.f32](3, 2.5))
    v.y = 0.1
    assert v.y == np.float32(0.1)
    assert td.vec4[td.i32](7) == td.vec4[td.i32](7, 7, 7, 7)
    assert list(td.vec2[td.i32]()) == [0, 0]
    with pytest.raises(AttributeError, match="no component"):
        _ = v.w
    with pytest.raises(TypeError, match="has 3 components, not 2"):
        td.vec3[td.f32](1, 2)


@td.struct
class Inner:
    flag: td.u8
    scale: td.f64


@td.struct
class Outer:
    kind: td.i8
    inner: Inner
    place: td.vec3[td.f32]
    weights: td.i16[5]
    total: td.f32 = 2.5


def _pickled(value):
    return pickle.loads(pickle.dumps(value))


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, _pickled])
@pytest.mark.parametrize("dtype", [td.f32, td.bf16, td.bool], ids=str)
def test_vectors_are_copied_and_pickled(copied, dtype) -> None:
    whole = td.vec3[dtype](1, 0, 1)
    for vector in (whole, whole.yx, whole.zzyy):
        made = copied(vector)
        assert (made, made.type) == (vector, vector.type)
        before = list(vector.parts)
        made.x = not made.x
        assert vector.parts == before


@td.struct
class Planet:
    place: td.vec2[td.f32]
    moons: td.i32[2]


def test_structs_are_copied_and_pickled() -> None:
    planet = Planet((1, 2), (3, 4))
    for made in (copy.deepcopy(planet), pickle.loads(pickle.dumps(planet))):
        assert made == planet
        made.place.x = 9
        made.moons[0] = 9
        assert planet == Planet((1, 2), (3, 4)) != made


def test_a_structs_layout_is_numpys_aligned_one() -> None:
    inner = np.dtype([("flag", "u1"), ("scale", "f8")], align=True)
    outer = np.dtype(
        [
            ("kind", "i1"),
            ("inner", inner),
            ("place", "f4", 3),
            ("weights", "i2", 5),
            ("total", "f4"),
        ],
        align=True,
    )
    assert Outer.dtype.itemsize == outer.itemsize
    for name in outer.names:
        assert Outer.dtype.fields[name][1] == outer.fields[name][1], name


def test_vectors_of_four_align_to_sixteen_in_structs() -> None:
    @td.struct
    class Ray:
        t: td.f32
        direction: td.vec4[td.f32]

    assert Ray.dtype.fields["direction"][1] == 16
    assert Ray.dtype.itemsize == 32


def test_struct_values() -> None:
    value = Outer(3, Inner(1, 0.1), td.vec3[td.f32](1, 2, 3), weights=[1, 2, 3, 4, 5])
    assert value.total == 2.5
    assert value.inner.scale == 0.1
    assert value.kind.dtype == np.int8
    copy = Outer(**vars(value))
    copy.inner.flag = 9
    assert value.inner.flag == 1
    assert value != copy
    record = np.asarray(value)
    assert record.dtype == Outer.dtype
    assert record["weights"].tolist() == [1, 2, 3, 4, 5]
    assert Outer().place == td.vec3[td.f32](0)
    with pytest.raises(TypeError, match="has no field"):
        Inner(size=3)
    with pytest.raises(TypeError, match="twice"):
        Inner(1, flag=3)
    with pytest.raises(AttributeError, match="has no field"):
        value.size = 1


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_numbers_of_fields_are_what_a_cast_makes(dtype: td.DType) -> None:
    """However a field is given its number: fitting ones as by a cast, others are refused."""
    cell = td.struct(type("Cell", (), {"__annotations__": {"x": dtype, "y": dtype}}))
    if dtype.is_integer:
        low, high = integer_range(dtype)
        good: list[object] = [low, high, 7, 3.0, True, np.int8(5), dtype(9)]
        bad: list[object] = [low - 1, high + 1, 0.5, math.nan, math.inf]
    elif dtype.is_float:
        most = float(ml_dtypes.finfo(dtype.numpy).max)
        good = [most, -most, 0.1, -0.0, 7, math.inf, True, np.float32(0.1), dtype(0.1)]
        bad = [10**400] if dtype is td.float64 else [2 * most, -2 * most]
        assert math.isnan(cell(math.nan, 0).x)
    else:
        good, bad = [True, False, 1, 0.0, np.bool_(1)], []
    for value in good:
        wanted = dtype(value)
        for made in (cell(value, 0), cell(x=value), cell(x=value, y=1)):
            assert made.x == wanted
            assert type(made.x) is type(wanted)
            assert np.signbit(float(made.x)) == np.signbit(float(wanted))
    for value in bad:
        for fields in ((value, 1), (1, value)):
            with pytest.raises(DtypeError, match=r"field [xy] of struct Cell"):
                cell(*fields)


def test_a_struct_without_fields_or_with_a_wrong_one() -> None:
    with pytest.raises(DtypeError, match="has no fields"):

        @td.struct
        class Empty:
            pass

    with pytest.raises(DtypeError, match="field x of struct Wrong"):

        @td.struct
        class Wrong:
            x: td.Array[td.f32]

    with pytest.raises(CompileError, match="can't be evaluated"):

        @td.struct
        class Unknown:
            x: nothing  # noqa: F821


def test_array_annotations() -> None:
    assert str(td.Array[td.f32, 2].declared) == "Array[f32, 2]"
    assert td.Array["float32"] == td.Array[td.f32]
    with pytest.raises(DtypeError, match="number of dimensions"):
        td.Array[td.f32, "x"]
    with pytest.raises(CompileError, match=r"parameter x: td\.Array needs a dtype"):
        td.kernel(source="def k(x: td.Array): pass")
    with pytest.raises(CompileError, match=r"write td\.f32"):
        td.kernel(source="def k(x: float): pass")
