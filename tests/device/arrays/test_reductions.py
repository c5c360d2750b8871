"""Reducing programs on every device: rows along memory and across it, whole and in parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.support.drafts import Draft
from treadle.core.dtypes import as_dtype
from treadle.graph.emit.row_analysis import row_analysis
from treadle.graph.emit.row_strategy import row_strategy
from treadle.graph.program import Kind, Phase
from treadle.kernels.machine import machine_of

REFERENCES: dict[str, Any] = {
    "sum": np.sum, "prod": np.prod, "max": np.max, "min": np.min, "any": np.any, "all": np.all,
    "argmax": np.argmax, "argmin": np.argmin,
}  # fmt: skip

# Extents of the kept and of the reduced axes.
SPACES = [
    ((), (1,)), ((), (0,)), ((), (7,)), ((), (4099,)), ((), (1 << 16,)), ((1,), (1,)), ((5,), (0,)),
    ((5,), (33,)), ((300,), (3,)), ((3, 7), (5, 11)), ((2,), (70001,)), ((), (3, 5, 1031)),
    ((2, 1, 3), (2, 3, 1, 17)),
]  # fmt: skip


def numbers(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray[Any, Any]:
    if dtype == "bool":
        return rng.random(shape) < 0.5
    if dtype.startswith("complex"):
        return (rng.standard_normal(shape) + 1j * rng.standard_normal(shape)).astype(dtype)
    if dtype.startswith("float"):
        return rng.standard_normal(shape).astype(dtype)
    info = np.iinfo(dtype)
    return rng.integers(info.min, info.max, shape, dtype, endpoint=True)


def in_rows(values: np.ndarray[Any, Any], kept: int) -> np.ndarray[Any, Any]:
    return values.reshape((*values.shape[:kept], -1))


def across(values: np.ndarray[Any, Any], kept: int) -> tuple[np.ndarray[Any, Any], ...]:
    """The values in memory with the kept axes last, and the view of that memory."""
    axes = (*range(kept, values.ndim), *range(kept))
    base = np.ascontiguousarray(values.transpose(axes))
    return base, base.transpose(np.argsort(axes))


@pytest.mark.parametrize("turned", [False, True], ids=["along", "across"])
@pytest.mark.parametrize("space", SPACES, ids=str)
def test_sizes(device: td.Device, space: Any, turned: bool, rng: np.random.Generator) -> None:
    kept, reduced = space
    values = numbers(rng, (*kept, *reduced), "float32")
    base, view = across(values, len(kept)) if turned else (values, values)
    draft = Draft(Kind.REDUCE, kept, reduced)
    x = draft.load(base, view)
    total, most = draft.reduce("sum", x), draft.reduce("max", x)
    for step in (total, most, draft.step("add", total, most, type="f32")):
        draft.store(step)
    where = draft.reduce("argmin", x, "i32")
    if values.size:
        draft.store(where)
    found = draft.run(device)
    flat = in_rows(values, len(kept)) if values.size else values.reshape((*kept, 0))
    np.testing.assert_allclose(found[0], flat.sum(-1, dtype=np.float64), rtol=1e-6, atol=1e-3)
    np.testing.assert_array_equal(found[1], flat.max(-1, initial=-np.inf))
    np.testing.assert_array_equal(found[2], found[0] + found[1])
    if values.size:
        np.testing.assert_array_equal(found[3], flat.argmin(-1))


NUMBERS = ("sum", "prod", "max", "min", "argmax", "argmin")
KINDS = {"bool": ("any", "all", "max", "min", "argmax", "argmin"), "complex64": ("sum", "prod")}
WIDE = {"int64": "int64", "uint64": "int64", "float64": "float64"}  # what a device must be able to


@pytest.mark.parametrize("turned", [False, True], ids=["along", "across"])
def test_every_kind_of_every_dtype(
    device: td.Device, turned: bool, rng: np.random.Generator
) -> None:
    names = ("bool", "complex64", "int8", "uint8", "int16", "uint16", "int32", "uint32", "float32")
    wide = [name for name, feature in WIDE.items() if feature in device.features]
    for dtype in (*names, *wide):
        values = numbers(rng, (11, 37), dtype)
        base, view = across(values, 1) if turned else (values, values)
        draft = Draft(Kind.REDUCE, (11,), (37,))
        x = draft.load(base, view)
        kinds = KINDS.get(dtype, NUMBERS)
        for kind in kinds:
            type = "i32" if "arg" in kind else as_dtype(dtype).short
            draft.store(draft.reduce(kind, x, type))
        for kind, found in zip(kinds, draft.run(device), strict=True):
            extra = {"dtype": dtype} if kind in ("sum", "prod") else {}
            wanted = REFERENCES[kind](values, axis=1, **extra)
            if "float" in dtype or "complex" in dtype:
                np.testing.assert_allclose(found, wanted, 1e-4, 1e-4, err_msg=f"{kind} {dtype}")
            else:
                np.testing.assert_array_equal(found, wanted, err_msg=f"{kind} {dtype}")


@pytest.mark.parametrize("space", [((), (90001,)), ((6,), (40,))], ids=str)
def test_the_first_of_equals_wins_and_nan_before_all(device: td.Device, space: Any) -> None:
    kept, reduced = space
    for places, value in [((17, 3, 29), 9.0), ((30, 23, 5), np.nan), ((), np.inf)]:
        values = np.full((*kept, *reduced), -np.inf, np.float32)
        values[..., 11] = 9.0 if places else -np.inf
        values[..., 38] = np.inf if places and np.isnan(value) else -np.inf
        for place in places:
            values[..., place] = value
        if len(reduced) and reduced[0] > 1000 and places:
            values[..., -1] = value
        draft = Draft(Kind.REDUCE, kept, reduced)
        x = draft.load(values)
        for step in (draft.reduce("argmax", x, "i32"), draft.reduce("max", x)):
            draft.store(step)
        for step in (
            draft.reduce("argmin", draft.step("negative", x, type="f32"), "i32"),
            draft.reduce("min", x),
        ):
            draft.store(step)
        most, greatest, least, smallest = draft.run(device)
        np.testing.assert_array_equal(most, values.argmax(-1))
        np.testing.assert_array_equal(least, values.argmax(-1))
        np.testing.assert_array_equal(greatest, values.max(-1))
        np.testing.assert_array_equal(smallest, values.min(-1))


def test_strides_offsets_and_broadcasts(device: td.Device, rng: np.random.Generator) -> None:
    base = numbers(rng, (13, 9, 40), "float32")
    view = base[::-2, 1:8:3, 37:3:-3]  # (7, 3, 12)
    scale = numbers(rng, (12,), "float32")
    bias = numbers(rng, (7,), "float32")
    draft = Draft(Kind.REDUCE, (7,), (3, 12))
    x = draft.load(base, view)
    y = draft.load(scale, np.broadcast_to(scale, (7, 3, 12)))
    z = draft.load(bias, np.broadcast_to(bias[:, None, None], (7, 3, 12)))
    product = draft.step("multiply", x, draft.step("add", y, z, type="f32"), type="f32")
    total = draft.reduce("sum", product)
    after = draft.load(bias)
    draft.store(draft.step("multiply", total, draft.scalar(0.5, "f32"), type="f32"))
    draft.store(draft.step("subtract", total, after, type="f32"))
    half, less = draft.run(device)
    wanted = (view.astype(np.float64) * (scale + bias[:, None, None])).sum((1, 2))
    np.testing.assert_allclose(half, 0.5 * wanted, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(less, wanted - bias, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("space", [((), (65536 * 2,)), ((9,), (64,)), ((3,), (5, 8))], ids=str)
def test_four_elements_at_once(device: td.Device, space: Any, rng: np.random.Generator) -> None:
    kept, reduced = space
    values = numbers(rng, (*kept, *reduced), "float32")
    draft = Draft(Kind.REDUCE, kept, reduced)
    x = draft.load(values)
    draft.store(draft.reduce("sum", draft.step("multiply", x, x, type="f32")))
    draft.store(draft.reduce("argmax", x, "i32"))
    squares, where = draft.run(device, lanes=4)
    flat = in_rows(values, len(kept)).astype(np.float64)
    np.testing.assert_allclose(squares, (flat * flat).sum(-1), rtol=1e-5)
    np.testing.assert_array_equal(where, flat.argmax(-1))


def test_the_place_counts_all_reduced_axes(device: td.Device) -> None:
    draft = Draft(Kind.REDUCE, (2,), (3, 4))
    index = draft.step("index", type="i32", detail=len(draft.accesses))
    draft.accesses.append((-1, (100, 10, 1), 5))
    draft.store(draft.reduce("argmax", index, "i32"))
    draft.store(draft.reduce("max", index))
    where, most = draft.run(device)
    assert where.tolist() == [11, 11]
    assert most.tolist() == [28, 128]


@pytest.mark.parametrize("space", [((), (90001,)), ((5,), (33,)), ((), ())], ids=str)
def test_indices_of_64_bits(device: td.Device, space: Any, rng: np.random.Generator) -> None:
    if "int64" not in device.features:
        with pytest.raises(td.errors.DtypeError, match="int64"):
            td.zeros(1, dtype=td.i64)
        return
    kept, reduced = space
    values = numbers(rng, (*kept, *reduced), "float32")
    draft = Draft(Kind.REDUCE, kept, reduced)
    draft.big = True
    x = draft.load(values)
    draft.store(draft.reduce("sum", x))
    draft.store(draft.reduce("argmin", x, "i32"))
    total, where = draft.run(device)
    flat = values.reshape((*kept, -1))
    np.testing.assert_allclose(total, flat.sum(-1, dtype=np.float64), rtol=1e-5, atol=1e-3)
    np.testing.assert_array_equal(where, flat.argmin(-1))


# --- rows -----------------------------------------------------------------------------------------


def softmax(base: np.ndarray[Any, Any], view: np.ndarray[Any, Any], kept: int) -> Draft:
    draft = Draft(Kind.ROWS, view.shape[:kept], view.shape[kept:])
    x = draft.load(base, view)
    shifted = draft.step("subtract", x, draft.reduce("max", x), type="f32")
    power = draft.step("exp", shifted, type="f32")
    total = draft.reduce("sum", power)
    draft.store(draft.step("divide", power, total, type="f32"), each=True)
    draft.store(draft.step("log", total, type="f32"))
    return draft


ROWS = [((5,), (33,)), ((300,), (3,)), ((2, 3), (7, 5)), ((), (1001,)), ((1,), (0,))]


@pytest.mark.parametrize("turned", [False, True], ids=["along", "across"])
@pytest.mark.parametrize("space", ROWS, ids=str)
def test_softmax(device: td.Device, space: Any, turned: bool, rng: np.random.Generator) -> None:
    kept, reduced = space
    values = numbers(rng, (*kept, *reduced), "float32")
    base, view = across(values, len(kept)) if turned else (values, values)
    shares, logs = softmax(base, view, len(kept)).run(device)
    check_softmax(values, kept, shares, logs)


def check_softmax(
    values: np.ndarray[Any, Any],
    kept: tuple[int, ...],
    shares: np.ndarray[Any, Any],
    logs: np.ndarray[Any, Any],
) -> None:
    length = int(np.prod(values.shape[len(kept) :]))
    flat = values.reshape((*kept, length)).astype(np.float64)
    powers = np.exp(flat - flat.max(-1, initial=-np.inf, keepdims=True))
    total = powers.sum(-1, keepdims=True)
    np.testing.assert_allclose(shares.reshape(flat.shape), powers / total, rtol=2e-6)
    if length:
        np.testing.assert_allclose(logs, np.log(total[..., 0]), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("shape", [(3, 60), (2, 4096), (130, 4)], ids=str)
def test_softmax_of_four_elements_at_once(
    device: td.Device, shape: tuple[int, int], rng: np.random.Generator
) -> None:
    values = numbers(rng, shape, "float32")
    shares, logs = softmax(values, values, 1).run(device, lanes=4)
    check_softmax(values, shape[:1], shares, logs)


def normalized(values: np.ndarray[Any, Any], weights: np.ndarray[Any, Any]) -> Draft:
    rows, length = values.shape
    draft = Draft(Kind.ROWS, (rows,), (length,))
    x, w = draft.load(values), draft.load(weights, np.broadcast_to(weights, values.shape))
    share = draft.scalar(1 / length, "f32")
    mean = draft.step("multiply", draft.reduce("sum", x), share, type="f32")
    apart = draft.step("subtract", x, mean, type="f32")
    squares = draft.step("multiply", apart, apart, type="f32")
    variance = draft.step("multiply", draft.reduce("sum", squares), share, type="f32")
    spread = draft.step("sqrt", variance, type="f32")
    unit = draft.step("divide", apart, spread, type="f32")
    draft.store(draft.step("multiply", unit, w, type="f32"), each=True)
    draft.store(mean)
    draft.store(variance)
    return draft


@pytest.mark.parametrize("shape", [(4, 257), (2, 150001), (70, 12)], ids=str)
def test_rows_that_are_normalized(
    device: td.Device, shape: tuple[int, int], rng: np.random.Generator
) -> None:
    values = numbers(rng, shape, "float32") + np.float32(3)
    weights = numbers(rng, shape[1:], "float32")
    found, mean, variance = normalized(values, weights).run(device)
    exact = values.astype(np.float64)
    np.testing.assert_allclose(mean, exact.mean(1), rtol=1e-5)
    np.testing.assert_allclose(variance, exact.var(1), rtol=1e-5)
    units = (exact - exact.mean(1, keepdims=True)) / exact.std(1, keepdims=True)
    np.testing.assert_allclose(found, units * weights, rtol=1e-4, atol=1e-5)


def test_one_long_row_is_done_in_parts(device: td.Device, rng: np.random.Generator) -> None:
    values = numbers(rng, (1, 1 << 18), "float32")
    draft = softmax(values, values, 1)
    program, integers = draft.program(device)
    stages = row_strategy(program, integers[:2], machine_of(device)).stages
    assert [stage.variant.phase for stage in stages] == [Phase.PART, Phase.JOIN, Phase.LAST]
    shares, logs = draft.run(device)
    powers = np.exp(values.astype(np.float64) - values.max())
    np.testing.assert_allclose(shares, powers / powers.sum(), rtol=2e-6)
    np.testing.assert_allclose(logs, [np.log(powers.sum())], rtol=1e-6)


# --- plans, and how exact sums are ----------------------------------------------------------------


def test_exponentials_wait_in_the_place_of_the_result() -> None:
    values = np.zeros((8, 8), np.float32)
    draft = softmax(values, values, 1)
    program, _ = draft.program(td.device("cpu"))
    saved = row_analysis(program).saved
    assert [program.steps[one.step].op for one in saved] == ["exp"]
    # Not where the input is read once more: the result may be written into its memory.
    step = draft.outputs[0].step
    draft.outputs[0] = draft.outputs[0]._replace(step=draft.step("add", step, 0, type="f32"))
    program, _ = draft.program(td.device("cpu"))
    assert row_analysis(program).saved == ()


def test_no_rows_means_nothing_to_launch() -> None:
    draft = Draft(Kind.REDUCE, (0,), (5,))
    draft.store(draft.reduce("sum", draft.load(np.zeros((0, 5), np.float32))))
    for backend in ("cpu", "webgpu"):
        device = td.device(backend)
        program, integers = draft.program(device)
        assert row_strategy(program, integers[:2], machine_of(device)).stages == ()


@pytest.mark.parametrize("turned", [False, True], ids=["along", "across"])
def test_sums_of_many_numbers_are_exact_to_a_few_roundings(
    turned: bool, rng: np.random.Generator
) -> None:
    device = td.device("cpu")
    count = (1 << 22) + 1
    ones = np.ones((1, count), np.float32)
    normal = numbers(rng, (1, count), "float32") + np.float32(10)
    for values in (ones, normal):
        if turned:  # sixteen columns
            values = np.repeat(values[:, : count // 16], 16, 0)
        base, view = across(values, 1) if turned else (values, values)
        draft = Draft(Kind.REDUCE, values.shape[:1], values.shape[1:])
        draft.store(draft.reduce("sum", draft.load(base, view)))
        (found,) = draft.run(device)
        wanted = values.sum(1, dtype=np.float64)
        assert np.abs(found / wanted - 1).max() < 1e-6


def test_sums_of_uint32(device: td.Device) -> None:
    """They do not wrap where there are 64-bit integers; where there are none, `explain` says so."""
    _ = device.handle
    x = td.asarray([2**32 - 1, 2**31, 7], dtype=td.uint32)
    total = td.sum(x)
    if "int64" in device.features:
        assert (total.dtype, total.item()) == (td.uint64, 2**32 + 2**31 + 6)
        assert td.cumulative_sum(x).tolist() == [2**32 - 1, 2**32 + 2**31 - 1, 2**32 + 2**31 + 6]
        assert td.prod(x[:2]).item() == (2**32 - 1) * 2**31
        assert "wraps" not in td.explain(td.sum(x))
    else:
        assert (total.dtype, total.item()) == (td.uint32, 2**31 + 6)
        assert "adds up uint32 in uint32, which wraps" in td.explain(td.sum(x))
        assert "wraps" not in td.explain(td.sum(x.to(td.float32)))
    assert td.sum(x, dtype=td.uint32).item() == 2**31 + 6


def test_an_axis_of_a_tensor_without_axes(device: td.Device) -> None:
    """0 and -1, as of a row of one element; the result has no axes either."""
    x = td.asarray(-3.0)
    alike = (
        td.sum, td.prod, td.max, td.min, td.mean, td.logsumexp, td.cumulative_sum, td.sort,
        td.cumulative_prod,
    )  # fmt: skip
    for axis in (0, -1, None):
        for function in alike:
            if axis is None and function is td.sort:
                continue
            found = function(x, axis=axis)
            assert (found.shape, found.item()) == ((), -3.0), function.__name__
        for function in (td.argmax, td.argmin):
            assert (function(x, axis=axis).shape, function(x, axis=axis).item()) == ((), 0)
        assert td.linalg.vector_norm(x, axis=axis).item() == 3.0
        assert td.linalg.norm(x, axis=axis).item() == 3.0
        assert [f(x, axis=axis).item() for f in (td.var, td.std)] == [0.0, 0.0]
        assert [f(x, axis=axis).item() for f in (td.any, td.all)] == [True, True]
        assert td.count_nonzero(x, axis=axis).item() == 1
    assert td.sum(x, axis=(0,), keepdims=True).shape == ()
    assert td.argsort(x, axis=0).item() == 0
    assert td.sort(x, axis=-1, descending=True).shape == ()
    assert [each.shape for each in td.topk(x, 1)] == [(), ()]
    place = td.asarray(0)
    assert td.gather(x, 0, place).shape == td.index_select(x, 0, place.reshape(1)).shape == ()
    assert td.gather(x, 0, place.reshape(1)).shape == (1,)
    assert td.take_along_axis(x.reshape(1), place.reshape(1)).shape == (1,)
    assert td.argwhere(x).shape == (1, 0)
    assert td.argwhere(x * 0).shape == (0, 0)
    assert td.swapaxes(x, 0, -1).shape == td.flip(x, axis=0).shape == td.squeeze(x, 0).shape == ()
    for wrong in (1, -2):
        for function in alike:
            with pytest.raises(IndexError):
                function(x, axis=wrong)
    with pytest.raises(td.errors.ShapeError, match="takes one index"):
        td.index_select(x, 0, td.asarray([0, 0]))


def test_gradients_along_an_axis_of_a_scalar() -> None:
    """Of what has none."""
    for function in (td.sum, td.sort, td.cumulative_sum, td.logsumexp, td.linalg.vector_norm):
        x = td.asarray(2.0, device="cpu").requires_grad_()
        (function(x, axis=0) * 3).backward()
        assert (x.grad.shape, x.grad.item()) == ((), 3.0)
    x = td.asarray(2.0, device="cpu").requires_grad_()
    (td.topk(x, 1).values * 3).backward()
    assert x.grad.item() == 3.0
