"""NumPy's functions and `treadle.numpy`'s: calls with drawn arrays, drawn ufuncs and indices, and
what is particular to arrays on devices. `tools/numpy_parity.py` draws more."""

from __future__ import annotations

import copy
import decimal
import hashlib
import json
import numbers
import pickle
import re
import statistics
import sys
import warnings
from typing import Any
from zlib import crc32

import numpy  # noqa: ICN001
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as drawn

import treadle as td
import treadle.numpy as np
from tests.parity import comparing, numpy_cases, numpy_interface
from treadle.numpy import arrays, operators, promotion
from treadle.numpy.operations import calling

_CASES = numpy_cases.all_cases()
_PARTS = 8


@pytest.mark.parametrize("part", range(_PARTS))
def test_calls_say_what_numpy_says(part: int) -> None:
    wrong = []
    with comparing.one_by_one(True):
        for name in sorted(_CASES)[part::_PARTS]:
            calls = _CASES[name]
            # A part of them here; `tools/numpy_parity.py` calls all.
            part_of = 4 if name in _LISTS else 8 if name in numpy_cases.CASES else 15
            for text in calls[crc32(name.encode()) % min(part_of, len(calls)) :: part_of]:
                try:
                    numpy_interface.check(text, crc32(text.encode()) % 11)
                except NotImplementedError:
                    continue
                except Exception as error:
                    wrong.append(f"{text} [{crc32(text.encode()) % 11}]: {error}")
    assert not wrong, "\n".join(wrong)


_LISTS = ("operators", "methods", "indexing", "writing")


def test_each_public_name_of_numpys_is_here_or_has_a_reason() -> None:
    public = {name for name in numpy.__all__ if not name.startswith("__")}
    assert public <= {*np.__all__, *np.missing()}
    assert not set(np.__all__) & set(np.missing())
    for module in ("linalg", "fft"):
        assert set(getattr(numpy, module).__all__) <= set(getattr(np, module).__all__)
    with pytest.raises(AttributeError, match=r"td\.elementwise"):
        np.vectorize  # noqa: B018
    with pytest.raises(AttributeError, match="maximm"):
        np.maximm  # noqa: B018


# --- drawn ----------------------------------------------------------------------------------------

_DTYPES = st.sampled_from(
    ["float64", "float32", "int64", "int8", "uint8", "bool", "int32", "uint32"]
)
_NAMES = (
    "add subtract multiply maximum minimum equal less bitwise_and floor_divide remainder "
    "logical_or hypot copysign"
)
_UFUNCS = st.sampled_from(_NAMES.split())


_SCALARS = [numpy.float64(1.5), numpy.float32(-2), numpy.int8(3), numpy.bool(True)]
_FLOATS = [0.0, 1.0, -2.5, 3.25, numpy.inf, numpy.nan]


def _elements(dtype: str, shape: tuple[int, ...]) -> st.SearchStrategy[Any]:
    kind = numpy.dtype(dtype)
    small = (
        st.booleans() if kind.kind == "b" else st.integers(0, 9) if kind.kind == "u"
        else st.integers(-9, 9) if kind.kind == "i" else st.sampled_from(_FLOATS)
    )  # fmt: skip
    return drawn.arrays(kind, shape, elements=small)


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_drawn_ufuncs(data: st.DataObject) -> None:
    shapes = data.draw(
        drawn.mutually_broadcastable_shapes(num_shapes=2, max_dims=3, max_side=4, min_side=0)
    )
    one = data.draw(_elements(data.draw(_DTYPES), shapes.input_shapes[0]))
    other: Any = data.draw(st.sampled_from([2, 0.5, True, -3, *_SCALARS, None]))
    other = (
        data.draw(_elements(data.draw(_DTYPES), shapes.input_shapes[1])) if other is None else other
    )
    name = data.draw(_UFUNCS)
    call = f"np.{name}(x, y)"
    axis = data.draw(st.sampled_from([None, 0, -1]))
    if data.draw(st.booleans()):
        call = (
            f"np.{name}.reduce({call}, axis={axis})"
            if name in ("add", "maximum")
            else f"np.{name}(y, x)"
        )
    _same(call, x=one, y=other)


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_drawn_indices(data: st.DataObject) -> None:
    shape = data.draw(drawn.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4))
    x = numpy.arange(numpy.prod(shape), dtype=numpy.float64).reshape(shape)
    kind = data.draw(st.sampled_from(["basic", "integers", "mask"]))
    if kind == "basic":
        index = data.draw(drawn.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True))
    elif kind == "mask":
        index = data.draw(_elements("bool", shape[: data.draw(st.integers(1, len(shape)))]))
    else:
        places = st.lists(st.integers(-5, 4), min_size=2, max_size=2)
        index = tuple(
            numpy.array(data.draw(places)) if data.draw(st.booleans())
            else data.draw(st.sampled_from([slice(None), 0, -1, None]))
            for _ in range(data.draw(st.integers(1, len(shape))))
        )  # fmt: skip
    _same("x[index]", x=x, index=index)
    _same("z = x.copy(); z[index] = 7; z", x=x, index=index)
    _same("z = x.copy(); z[index] += 1; z", x=x, index=index)


def _same(text: str, **names: Any) -> None:
    def ours(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(ours, value))
        return np.array(value) if isinstance(value, numpy.ndarray) else value

    mine = {key: ours(value) for key, value in names.items()}
    with comparing.one_by_one(True), numpy.errstate(all="ignore"):
        try:
            wanted = numpy_interface.run(text, {**names, "np": numpy})
        except Exception as error:
            with pytest.raises(
                next(each for each in type(error).__mro__ if each.__module__ == "builtins")
            ):
                repr(numpy_interface.run(text, {**mine, "np": np}))
            return
        numpy_interface.compare(numpy_interface.run(text, {**mine, "np": np}), wanted, 1e-5)


_PAIRS = ["int32 int64", "uint16 uint8", "bool bool", "float32 float64", "float64 int8",
          "complex128 float64"]  # fmt: skip
_COMBINED = "add subtract multiply maximum power logical_xor hypot negative"


def test_several_values_for_one_place() -> None:
    random = numpy.random.default_rng()
    places = random.integers(-6, 6, 9)
    for name in _COMBINED.split():
        dtype, other = str(random.choice(_PAIRS)).split()
        x = random.integers(0, 4, 6).astype(dtype)
        values = random.integers(1, 4, 9).astype(other)
        call = f"np.{name}.at(z, places{'' if name == 'negative' else ', values'})"
        _same(f"z = x.copy(); {call}; z", x=x, places=places, values=values)


def test_reductions_into_arrays_of_other_dtypes() -> None:
    random = numpy.random.default_rng()
    x = random.standard_normal((3, 4))
    for name in ("sum", "mean", "max", "cumsum", "std", "ptp"):
        out = str(random.choice(["float32", "int64", "complex64", "bool"]))
        place = f"np.zeros({'x.shape' if name == 'cumsum' else '4'}, {out!r})"
        y = random.choice(["x", "x + 1j * x", "(10 * x).astype(int)"])
        _same(f"z = {place}; np.{name}({y}, axis=0, out=z); z", x=x)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int32", "uint8"])
def test_edges_of_bins_are_computed_in_the_arrays_dtype(dtype: str) -> None:
    random = numpy.random.default_rng()
    for count in (1, 7):
        x = random.uniform(0, 9, count).astype(dtype)
        for mine, wanted in zip(np.histogram(np.asarray(x), 7), numpy.histogram(x, 7), strict=True):
            numpy.testing.assert_array_equal(numpy.asarray(mine), wanted, strict=True)


# --- what is particular ---------------------------------------------------------------------------


def test_elements_are_values_and_arrays_are_places() -> None:
    x = np.array([3.0, 1.0])
    first = x[0]
    x[0] = 9
    assert float(first) == 3.0
    assert hash(first) == hash(3.0)
    assert repr(first) == "np.float64(3.0)"
    assert {first: 1}[3.0] == 1
    assert f"{first:.2f}" == "3.00"
    assert isinstance(first, np.generic)
    assert not isinstance(first, np.ndarray)
    assert isinstance(np.array(3.0), np.ndarray)
    with pytest.raises(TypeError):
        first[...] = 2
    with pytest.raises(TypeError):
        hash(x)


def test_elements_are_numpys_scalars_on_the_cpu() -> None:
    x = np.array([0.5, 2.0])
    total = x.sum()
    assert type(total) is type(x[0]) is type(next(iter(x))) is np.float64
    assert type(np.sqrt(2)) is np.float64
    assert type(x > 1) is type(total * x) is np.ndarray
    assert json.dumps({"sum": total}) == '{"sum": 2.5}'
    assert decimal.Decimal(total) == decimal.Decimal("2.5")
    assert np.arange(3, dtype=np.int8).sum().dtype == np.int64
    rng = np.random.default_rng()
    assert type(rng.random()) is type(rng.normal()) is float
    assert type(rng.poisson(3)) is type(np.random.randint(4)) is int
    assert type(rng.integers(3)) is np.int64
    assert (x.astype(np.float32) * total).dtype == np.float64
    assert (x.astype(np.float32) * np.float32(2)).dtype == np.float32
    assert np.array([x.min(), total]).tolist() == [0.5, 2.5]
    sums = np.ones(4)
    for at, each in enumerate(sums[:-1]):  # what the loop writes is what it reads
        sums[at + 1] += each
    assert sums.tolist() == [1, 2, 3, 4]
    compiled = td.compile(lambda t: t - np.wrap(t).mean().td)
    assert compiled(td.asarray([1.0, 3.0])).tolist() == [-1, 1]
    weights = td.asarray([1.0, 3.0]).requires_grad_()
    (np.wrap(weights) ** 2).sum().td.backward()
    assert weights.grad.tolist() == [2, 6]


def test_elements_of_a_device_are_read_when_they_are_numbers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for module in (arrays, operators):
        monkeypatch.setattr(module, "is_read_at_once", lambda inner: False)
    x = np.array([0.5, 2.0])
    total = x.sum()
    assert isinstance(total, np.generic)
    for kind in (float, np.float64, np.floating, numbers.Real):
        assert isinstance(total, kind)
    assert not isinstance(total, (int, np.ndarray))
    assert not isinstance(x, np.generic)
    assert isinstance(np.arange(3).sum(), np.integer)
    assert type(total).__name__ == "float64"
    assert repr(total) == "np.float64(2.5)"
    assert total.as_integer_ratio() == (5, 2)
    assert np.arange(4)[3].bit_count() == 2
    assert statistics.mean([total, x[0]]) == 1.5
    assert json.dumps({"sum": total}, default=float) == '{"sum": 2.5}'
    assert type(x * total) is np.ndarray
    assert (x * total).tolist() == [1.25, 5]
    assert type(total + 1) is type(total)
    assert pickle.loads(pickle.dumps(total)) == copy.copy(total) == 2.5
    with pytest.raises(AttributeError, match="nope"):
        total.nope  # noqa: B018
    with pytest.raises(TypeError, match="create"):
        np.generic(3)


_DEVICES = ["cpu", *(["webgpu"] if td.is_available("webgpu") else [])]


@pytest.mark.parametrize("device", _DEVICES)
def test_elements_and_arrays_of_a_device(device: str) -> None:
    theirs = numpy.random.default_rng().uniform(1, 2, 7).astype(numpy.float32)
    x = np.asarray(theirs, device=device)
    total = x.sum()
    assert isinstance(total, np.float32)
    assert (type(total) is np.float32) == (device == "cpu")
    for found in (x / total, total / x, np.divide(x, total), x / np.float32(total)):
        assert type(found) is np.ndarray
        assert found.dtype == np.float32
        assert found.device is x.device
    numpy.testing.assert_allclose(numpy.asarray(x / total), theirs / theirs.sum(), rtol=1e-5)
    numpy.testing.assert_allclose(numpy.asarray(np.clip(x, 1.2, x.mean())),
                                  theirs.clip(1.2, theirs.mean()), rtol=1e-5)  # fmt: skip
    assert [type(each) for each in x] == [np.float32] * 7
    assert list(x) == theirs.tolist()
    x[1] = total
    x[-1] = 0.5
    assert x[1] == total
    assert int(np.argmin(x)) == 6
    if device == "webgpu":
        with pytest.raises(TypeError, match="float32"):
            json.dumps(total)


def test_views_share_memory() -> None:
    x = np.arange(12).reshape(3, 4)
    x[1:, ::2][0] = -1
    x.T[0] += 100
    assert x.tolist() == [[100, 1, 2, 3], [99, 5, -1, 7], [108, 9, 10, 11]]
    assert np.shares_memory(x, x[1])
    assert not np.shares_memory(x, x.copy())
    assert np.zeros((2, 2)).base is None
    assert x[1].base is not None
    assert np.asarray(x) is np.array(x, copy=False) is np.atleast_1d(x) is x
    assert np.asarray(x, np.float32) is not x


def test_arrays_are_copied_and_pickled() -> None:
    x = np.array([[1, 2], [3, 4]], dtype=np.int16)
    for made in (copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        made[0, 0] = 9
        assert made.tolist() == [[9, 2], [3, 4]]
        assert made.dtype == np.int16
    assert x[0, 0] == 1
    assert pickle.loads(pickle.dumps(x[0, 1])) == 2


def test_numpys_own_functions_and_arrays() -> None:
    x = np.arange(3.0)
    own = numpy.ones(3)
    assert type(own + x) is np.ndarray
    assert type(numpy.exp(x)) is np.ndarray
    assert type(numpy.concatenate([x, x])) is np.ndarray
    assert type(numpy.asarray(x)) is numpy.ndarray
    assert numpy.linalg.norm(x) == pytest.approx(5**0.5)
    assert numpy.array_equal(own @ x, 3)
    assert numpy.vecdot(own, x) == 3
    assert x.__array_namespace__() is np
    # What NumPy's own arrays hold is written by NumPy.
    wide = own.copy()
    wide += x
    assert wide.tolist() == [1, 2, 3]
    numpy.sqrt(x, out=wide)
    assert wide[2] == 2**0.5
    numpy.copyto(wide, x)
    numpy.add.at(wide, [0, 0], x[2])
    assert wide.tolist() == [4, 1, 2]
    assert numpy.sum(np.ones((3, 3)), axis=0, out=wide) is wide
    assert wide.tolist() == [3, 3, 3]
    assert (np.array([True, False]) ** 2).dtype == np.int8
    assert (np.array([True, False]) ** 3).dtype == np.int64
    with pytest.raises(TypeError, match="same_kind"):
        numpy.add(x, x, out=numpy.zeros(3, int))
    for name, advice in (("float_", "np.float64"), ("trapz", "np.trapezoid"), ("int", "builtin")):
        with pytest.raises(AttributeError, match=re.escape(advice)):
            getattr(np, name)
    with pytest.raises(AttributeError, match=r"numpy\.asarray"):
        x.__array_interface__  # noqa: B018
    with pytest.raises(TypeError, match=r"not builtins\.int"):
        np.wrap(3)
    with pytest.raises(TypeError, match="polynomials"):
        numpy.polyfit(x, x, 1)


# Python's and NumPy's numbers, and arrays without axes.
_NUMBERS = ["1", "1.5", "True", "2j", "np.float32(2)", "np.int8(3)", "np.complex64(2j)",
            "np.bool(True)", "np.array(2)", "np.array(2.5)", "np.array([2, 1])"]  # fmt: skip
_OF_FILES = (
    "errstate fromfile fromregex genfromtxt load loadtxt save savetxt savez savez_compressed"
)
_LAXER = "bincount clip diag_indices gradient histogram histogram_bin_edges histogramdd indices"


def test_types_of_results_for_numbers() -> None:
    skipped = {*_OF_FILES.split(), *_LAXER.split(), "frombuffer", "fromstring", "from_dlpack",
               "empty", "empty_like", "isfortran", "tril_indices", "triu_indices"}  # fmt: skip
    skipped |= {name for name in numpy.__all__ if name.startswith("set")}  # options of the process

    def kind(value: Any) -> str:
        if isinstance(value, (tuple, list)):
            return f"{type(value).__name__} of {[kind(each) for each in value]}"
        return f"{type(value).__name__} {getattr(value, 'dtype', '')} {getattr(value, 'shape', '')}"

    wrong = []
    random = numpy.random.default_rng()
    for name in sorted({*np.__all__} & {*numpy.__all__} - skipped):
        theirs = getattr(numpy, name)
        if isinstance(theirs, type) or not callable(theirs):
            continue
        number = random.choice(_NUMBERS)
        if name in ("bartlett", "blackman", "hamming", "hanning") and "j" in number:
            continue
        with numpy.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                wanted = kind(eval(f"np.{name}({number})", {"np": numpy}))
            except Exception:
                continue
            found = kind(eval(f"np.{name}({number})", {"np": np}))
        if found != wanted:
            wrong.append(f"np.{name}({number}): {found}, not {wanted}")
    assert not wrong, "\n".join(wrong)


def test_memory_as_a_buffer() -> None:
    theirs = numpy.random.default_rng().standard_normal((3, 5)).astype(">f4").astype("f4")
    x = np.asarray(theirs)
    for mine, wanted in (
        (x, theirs),
        (x[1:, ::2], theirs[1:, ::2]),
        (x.T, theirs.T),
        (np.ones((0, 2)), numpy.ones((0, 2))),
        (x[0, 1], theirs[0, 1]),
    ):
        assert bytes(mine) == wanted.tobytes()
        assert memoryview(mine.__buffer__(0) if isinstance(mine, np.ndarray) else mine) == wanted
    x.__buffer__(1)[0, 0] = 7.0  # the memory itself
    assert x[0, 0] == 7
    x.flags.writeable = False
    assert x.__buffer__(0).readonly
    with pytest.raises(BufferError, match="read-only"):
        x.__buffer__(1)
    assert np.frombuffer(x, np.uint8).tolist() == list(x.tobytes())
    if sys.version_info >= (3, 12):
        assert bytearray(x) == x.tobytes()
        assert hashlib.sha256(x[:1]).digest() == hashlib.sha256(x[:1].tobytes()).digest()
    if "webgpu" in _DEVICES:
        far = np.asarray(theirs, device="webgpu")
        assert bytes(far) == theirs.tobytes()
        with pytest.raises(BufferError, match="tobytes"):
            far.__buffer__(0)


@pytest.mark.parametrize("device", _DEVICES)
def test_spreads_without_freedom_and_singular_matrices(device: str) -> None:
    random = numpy.random.default_rng()
    x = random.standard_normal((2, 5)).astype(numpy.float32)
    x[1] = 3  # no spread: 0 / 0
    n = int(random.integers(5, 8))
    with numpy.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in ("std", "nanvar"):
            for axis, ddof in ((1, n), (0, 2), (None, 10)):
                wanted = getattr(numpy, name)(x, axis, ddof=ddof)
                mine = getattr(np, name)(np.asarray(x, device=device), axis, ddof=ddof)
                numpy.testing.assert_allclose(numpy.asarray(mine), wanted, rtol=1e-4)
        singular = numpy.stack(
            [numpy.eye(2), numpy.zeros((2, 2)), numpy.ones((2, 2)), [[1, 2], [3, 5]]]
        ).astype("f4")
        for p in (1, "fro", -numpy.inf, *((None, -2) if device == "cpu" else ())):
            wanted = numpy.linalg.cond(singular, p)
            mine = numpy.asarray(np.linalg.cond(np.asarray(singular, device=device), p))
            if p in (None, -2):  # of ones: rounding
                wanted[2] = mine[2] = 0
            numpy.testing.assert_allclose(mine, wanted, rtol=1e-3)
    assert np.isnan(np.linalg.cond(np.asarray([[numpy.nan, 1], [1, 1]], device=device), 1))
    assert np.linalg.cond(1e-200 * np.eye(2), 1) == 1


def test_no_arrays_to_join() -> None:
    for name in ("concatenate", "stack", "hstack", "vstack", "dstack", "column_stack", "block"):
        with pytest.raises(ValueError, match=r"need at least one|cannot be empty"):
            getattr(np, name)([])
    with pytest.raises(ValueError, match="at least two"):
        np.linalg.multi_dot([])
    with pytest.raises(ValueError, match="0-length"):
        np.choose([], [])
    with pytest.raises(ValueError, match="at least one operand"):
        np.einsum("")
    with pytest.raises(TypeError, match="tuple"):
        np.block(())


def test_what_programs_ask_of_matmul() -> None:
    for name in ("matmul", "vecdot", "matvec", "vecmat"):
        for what in ("signature", "nin", "nout", "nargs", "types", "ntypes", "identity"):
            assert getattr(getattr(np, name), what) == getattr(getattr(numpy, name), what)


def test_views_are_not_resized() -> None:
    x = np.arange(12.0)
    view = x.reshape(3, 4)
    for extents in ((2, 2), (5, 4)):
        with pytest.raises(ValueError, match="does not own"):
            view.resize(extents)
    view.resize((4, 3))  # as many elements: the same memory
    assert view.shape == (4, 3)
    x.resize(14)
    assert x.tolist() == [*range(12), 0, 0]


def test_integer_powers_and_out_of_range() -> None:
    x = np.array([2, 3])
    with pytest.raises(ValueError, match="negative integer powers"):
        x ** np.array([-1, 2])
    for powers in (-1, np.array([-1, 2])):  # nothing is raised for no elements
        assert (np.zeros((0, 2), int) ** powers).shape == (0, 2)
    with pytest.raises(OverflowError):
        np.array([1], dtype=np.uint8) + 256
    with pytest.raises(IndexError):
        x[np.array([0, 2])]
    with pytest.raises(IndexError):
        x[np.array([0, 2])] = 1
    with pytest.raises(np.exceptions.AxisError):
        x.sum(axis=1)


def test_names_that_numpy_has_elsewhere() -> None:
    assert np.float32(2) + np.ones(2, np.float32) == pytest.approx([3, 3])
    with np.errstate(divide="ignore"):
        assert np.float64(1) / 0 == np.inf
    assert np.errstate(over="ignore")(np.geterr)()["over"] == "ignore"
    with pytest.raises(NotImplementedError, match="isfinite"):
        np.seterr(all="raise")
    np.testing.assert_allclose(np.ones(2), [1, 1])
    with pytest.raises(AssertionError):
        np.testing.assert_array_equal(np.ones(2), [1, 2])
    assert np.set_device("cpu") is None
    assert np.get_device() is td.device("cpu")


def test_states_of_generators() -> None:
    rng = np.random.default_rng()
    rng.random()
    state = json.loads(json.dumps(rng.bit_generator.state))
    first = rng.random(5)
    kept = pickle.loads(pickle.dumps(rng))
    assert kept.random() == rng.random()
    rng.bit_generator.state = state
    assert np.array_equal(rng.random(5), first)
    with pytest.raises(ValueError, match="treadle"):
        rng.bit_generator.state = numpy.random.default_rng().bit_generator.state
    with pytest.raises(AttributeError, match="'Generator' object has no attribute 'draw'"):
        rng.draw()
    with pytest.raises(NotImplementedError, match="ngood is an array"):
        rng.hypergeometric([1, 2], 3, 2)
    for refused in (("zipf", 1.0), ("logseries", 1.0), ("vonmises", 0, -1), ("poisson", [-1, 2]),
                    ("normal", 0, np.array([1.0, -1])), ("binomial", 3, [1.5, 0.5]),
                    ("integers", [1, 5], [2, 3]), ("dirichlet", [-1, 1]), ("multinomial", 3, []),
                    ("multinomial", -1, [1.0]), ("multinomial", 3, [1.5, -0.5]),
                    ("triangular", [0, 1], [1, 0.5], 2), ("exponential", [-1.0])):  # fmt: skip
        with pytest.raises(ValueError):  # noqa: PT011
            getattr(rng, refused[0])(*refused[1:])


@pytest.mark.parametrize("device", _DEVICES)
def test_draws_are_where_their_parameters_are(device: str) -> None:
    rng = np.random.default_rng()
    x = np.asarray([0.5, 0.75], np.float32, device=device)
    for name in ("normal", "uniform", "gamma", "dirichlet", "exponential", "integers"):
        given = (np.asarray([3, 5], np.int32, device=device),) if name == "integers" else (x,)
        kind = np.int32 if name == "integers" else None
        drawn = getattr(rng, name)(*given, **({} if kind is None else {"dtype": kind}))
        assert drawn.shape == (2,)
        assert drawn.device is x.device


def test_rows_of_outcomes_and_lists_that_are_shuffled() -> None:
    rng = np.random.default_rng()
    assert rng.multinomial([3, 4], [[1.0, 0.0], [0.0, 1.0]]).tolist() == [[3, 0], [0, 4]]
    assert rng.multinomial([[1], [2]], [1.0, 0.0]).tolist() == [[[1, 0]], [[2, 0]]]
    counts = rng.multinomial([0, 7, 2000], [[0.2, 0.3, 0.5]] * 3, (2, 3))
    assert counts.sum(-1).tolist() == [[0, 7, 2000]] * 2
    assert abs(counts[:, 2] / 2000 - np.array([0.2, 0.3, 0.5])).max() < 0.06
    with pytest.raises(ValueError, match="mismatch"):
        rng.multinomial([2, 3], [0.2, 0.8], (4, 3))
    with pytest.raises(OverflowError, match="range"):
        rng.uniform(0, [1, numpy.inf])
    for made in (list(range(30)), numpy.arange(30)):
        for shuffle in (rng.shuffle, np.random.shuffle):
            before = list(made)
            shuffle(made)
            assert list(made) != before
            assert sorted(made) == list(range(30))
    square = numpy.arange(30).reshape(3, 10)
    rng.shuffle(square, 1)
    assert (square % 10 == square[0]).all()
    with pytest.raises(TypeError, match="a list"):
        rng.shuffle((1, 2))


_LAWS: dict[str, tuple[tuple[Any, ...], str, tuple[Any, ...]]] = {
    "vonmises": ((0.0, 3.0), "vonmises", (3.0,)),
    "zipf": ((2.3,), "zipf", (2.3,)),
    "logseries": ((0.95,), "logser", (0.95,)),
    "hypergeometric": ((15, 20, 12), "hypergeom", (35, 15, 12)),
    "noncentral_f": ((5, 12, 2.0), "ncf", (5, 12, 2.0)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", _LAWS)
def test_draws_have_their_distribution(name: str) -> None:
    """By the greatest distance from the distribution function (Kolmogorov)."""
    stats = pytest.importorskip("scipy.stats")
    arguments, law, parameters = _LAWS[name]
    x = numpy.sort(numpy.asarray(getattr(np.random.default_rng(), name)(*arguments, 20000)))
    places, counts = numpy.unique(x, return_counts=True)
    above = numpy.cumsum(counts) / 20000
    wanted = getattr(stats, law)(*parameters).cdf(places)
    assert abs(above - wanted).max() < 2.4 / 20000**0.5


# The others are run with the slow tests.
_QUICK = ("binomial", "multinomial", "multivariate_normal", "normal", "shuffle", "triangular")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=() if name in _QUICK else pytest.mark.slow)
        for name in sorted(np.random._METHODS)
    ],
)
def test_random_draws_have_shapes_and_moments(name: str) -> None:
    rng, theirs = np.random.default_rng(5), numpy.random.default_rng(5)
    arguments = _ARGUMENTS.get(name, ())
    if name in ("permutation", "shuffle"):
        x = np.arange(50)
        found = getattr(rng, name)(x)
        found = x if found is None else found
        assert not np.array_equal(found, np.arange(50))
        assert np.array_equal(np.sort(found), np.arange(50))
        return
    mine = getattr(rng, name)(*arguments, size=4000)
    wanted = getattr(theirs, name)(*arguments, size=4000)
    assert mine.shape == wanted.shape
    assert mine.dtype == wanted.dtype
    if name not in ("standard_cauchy", "zipf"):
        center = float(mine.mean())
        assert center == pytest.approx(wanted.mean(), abs=6 * wanted.std() / 4000**0.5 + 1e-12)
    assert (
        getattr(rng, name)(*arguments).shape == getattr(theirs, name)(*arguments).shape
        if name in _ROWS
        else True
    )


_ROWS = ("dirichlet", "multinomial", "multivariate_normal")
_ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "beta": (2.0, 3.0), "binomial": (10, 0.3), "chisquare": (3.0,), "dirichlet": ([1.0, 2.0, 3.0],),
    "hypergeometric": (7, 9, 5), "logseries": (0.6,), "noncentral_f": (5.0, 12.0, 2.0),
    "vonmises": (0.5, 2.0), "zipf": (3.0,),
    "f": (5.0, 12.0), "gamma": (2.0, 1.5), "geometric": (0.3,), "multinomial": (8, [0.2, 0.3, 0.5]),
    "multivariate_normal": ([1.0, -1.0], [[2.0, 0.3], [0.3, 1.0]]), "negative_binomial": (4, 0.4),
    "noncentral_chisquare": (3.0, 2.0), "normal": (1.0, 2.0), "pareto": (5.0,), "poisson": (3.0,),
    "power": (2.0,), "standard_gamma": (2.0,), "standard_t": (6.0,), "triangular": (-1.0, 0.5, 2.0),
    "uniform": (-1.0, 3.0), "wald": (1.0, 2.0), "weibull": (1.5,), "lognormal": (0.0, 0.5),
}  # fmt: skip


def test_a_device_without_float64_computes_in_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(promotion, "supports", lambda device, dtype: "64" not in dtype.name)
    monkeypatch.setattr(calling, "_plans", {})
    x = np.asarray([1, 2])
    assert x.dtype == np.int32
    assert (x / 2).dtype == np.float32
    assert np.ones(2).dtype == np.float32
    assert np.linspace(0, 1, 3).mean().dtype == np.float32
    with pytest.raises(TypeError, match="float32"):
        np.ones(2, np.float64)


def test_windows_and_strides():
    theirs = numpy.random.default_rng().standard_normal((5, 7))
    mine, tricks = np.asarray(theirs), np.lib.stride_tricks
    for window, axis in [((2, 3), None), (3, 1), ((2, 2), (0, 0)), ((1, 7), None), (0, 0)]:
        wanted = numpy.lib.stride_tricks.sliding_window_view(theirs, window, axis)
        found = tricks.sliding_window_view(mine, window, axis)
        assert found.shape == wanted.shape
        assert (numpy.asarray(found) == wanted).all()
    wanted = numpy.lib.stride_tricks.sliding_window_view(theirs[::2, 1:], 2, 1)
    assert (numpy.asarray(tricks.sliding_window_view(mine[::2, 1:], 2, 1)) == wanted).all()
    found = tricks.as_strided(mine, (2, 2), (8, 16))
    assert found.tolist() == theirs.ravel()[[[0, 2], [1, 3]]].tolist()
    for wrong in (lambda: tricks.sliding_window_view(mine, (9, 9)),
                  lambda: tricks.sliding_window_view(mine, 3),
                  lambda: tricks.as_strided(mine, (99,), (8,))):  # fmt: skip
        with pytest.raises(ValueError, match=r"window|axis|memory"):
            wrong()


def test_views_that_are_read_only() -> None:
    x = np.arange(12.0).reshape(3, 4)
    locked = x.copy()
    locked.flags.writeable = False
    windows = np.lib.stride_tricks.sliding_window_view(x, 2, 1)
    views = [np.diagonal(x), np.broadcast_to(x, (2, 3, 4)), np.broadcast_to(x, (3, 4)), windows,
             np.diag(x), locked, locked[1:], locked.T, locked.reshape(-1)]  # fmt: skip
    for view in views:
        before = view.tolist()
        assert not view.flags.writeable
        for write in (
            lambda y: y.__setitem__(0, 1), lambda y: y.T.__setitem__(0, 1), lambda y: y.fill(1),
            lambda y: y.__setitem__(y > 3, 1), lambda y: y.__setitem__([0], 1),
            lambda y: y.__iadd__(1), lambda y: np.add(y, 1, out=y), lambda y: y.sort(),
            lambda y: np.copyto(y, 1), lambda y: np.add.at(y, 0, 1), lambda y: y.put([0], 1),
            lambda y: setattr(y, "flat", 1), lambda y: np.random.shuffle(y),
        ):  # fmt: skip
            with pytest.raises(ValueError, match=r"read-only|broadcast"):
                write(view)
        assert view.tolist() == before
        assert view.copy().flags.writeable
    assert x.tolist() == numpy.arange(12.0).reshape(3, 4).tolist()
    x[0, 0] = 7
    assert np.diagonal(x)[0] == 7
    locked.setflags(write=True)
    locked[0, 0] = 5
    assert locked[0, 0] == 5
    with pytest.raises(ValueError, match="WRITEABLE"):
        np.broadcast_to(x, (2, 3, 4)).flags.writeable = True
