"""What becomes one kernel, and that writes come neither too early nor too late."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import treadle as td
from treadle.graph.realize import watchers


@pytest.fixture
def kernels():
    """The groups that are planned while a test runs."""
    found = []
    watchers.append(found.append)
    yield found
    watchers.remove(found.append)


def names(kernels):
    every = [part for group in kernels for part in group.parts or (group,)]
    return [group.program.name for group in every if group.program is not None]


def test_a_chain_is_one_kernel(device, kernels, rng):
    data = rng.standard_normal((5, 7)).astype(np.float32)
    x = td.asarray(data)
    found = (td.exp(x * 2 + 1) - x).numpy()
    np.testing.assert_allclose(found, np.exp(data * 2 + 1) - data, rtol=1e-5, atol=1e-5)
    assert names(kernels) == ["multiply_add_exp_subtract"]


def test_softmax_is_one_kernel(device, kernels, rng):
    data = rng.standard_normal((70, 33)).astype(np.float32)
    x = td.asarray(data)
    e = td.exp(x - td.max(x, axis=1, keepdims=True))
    found = (e / td.sum(e, axis=1, keepdims=True)).numpy()
    right = np.exp(data.astype(np.float64))
    np.testing.assert_allclose(found, right / right.sum(1, keepdims=True), rtol=2e-6)
    assert len(kernels) == 1


def test_variance_and_its_epilogue_are_one_kernel(device, kernels, rng):
    data = rng.standard_normal((70, 33)).astype(np.float32)
    x = td.asarray(data)
    found = (1 / td.sqrt(td.var(x, axis=1) + 1e-5)).numpy()
    right = 1 / np.sqrt(data.astype(np.float64).var(1) + 1e-5)
    np.testing.assert_allclose(found, right, rtol=2e-6)
    assert len(kernels) == 1


def test_views_are_read_where_they_lie(device, kernels, rng):
    data = rng.standard_normal((6, 8)).astype(np.float32)
    x = td.asarray(data)
    found = (td.permute_dims(x + 1, (1, 0))[::-2] * 3).numpy()
    np.testing.assert_allclose(found, ((data + 1).T[::-2]) * 3, rtol=1e-6)
    assert len(kernels) == 1


def test_reshapes_that_merge_axes_are_followed(device, rng):
    """The loops of a map are split where a reshape merges axes that have no common stride."""
    x = rng.standard_normal((6, 1, 8)).astype(np.float32)
    y = rng.standard_normal((6, 4, 1)).astype(np.float32)
    z = rng.standard_normal((6, 32)).astype(np.float32)
    merged = (x * y).reshape(6, 32)
    a, b, c = map(td.asarray, (x, y, z))
    product = (a * b).reshape(6, 32)
    turned = (td.asarray(z) + 1).T.reshape(-1)
    cases = [
        (product * 2 - c, merged * 2 - z),
        ((product + 1).reshape(3, 64) * 3, (merged + 1).reshape(3, 64) * 3),
        (turned * c.reshape(-1), (z + 1).T.reshape(-1) * z.reshape(-1)),
        (turned * product.reshape(-1), (z + 1).T.reshape(-1) * merged.reshape(-1)),
        (product[1:5, 8:24] + 1, merged[1:5, 8:24] + 1),
        (product[:, ::-1] + c, merged[:, ::-1] + z),
    ]
    for found, _ in cases[:3]:
        assert td.explain(found).splitlines()[0] == "1 kernel"
    for found, expected in cases:
        np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5, atol=1e-5)


def test_maps_of_many_axes(device, rng):
    """The axes before the last three are counted by one index of the grid."""
    for shape in [(2, 3, 5, 2, 7, 3), (1, 1, 3, 1, 2, 2, 5), (4099, 3, 2, 3, 2)]:
        x = rng.integers(0, 1 << 20, shape).astype(np.int32)
        order = tuple(range(0, len(shape), 2)) + tuple(range(1, len(shape), 2))
        found = td.asarray(x).permute_dims(order) + td.asarray(x[..., :1]).permute_dims(order)
        expected = x.transpose(order) + x[..., :1].transpose(order)
        assert np.array_equal(found.numpy(), expected)


def test_split_loops_write_and_reduce(device, rng):
    x = rng.standard_normal((6, 1, 8)).astype(np.float32)
    y = rng.standard_normal((6, 4, 1)).astype(np.float32)
    merged = (x * y).reshape(6, 32)
    product = (td.asarray(x) * td.asarray(y)).reshape(6, 32)
    target = td.zeros((8, 40))
    target[1:7, 4:36] = product + 1
    expected = np.zeros((8, 40), np.float32)
    expected[1:7, 4:36] = merged + 1
    np.testing.assert_allclose(target.numpy(), expected, rtol=1e-5, atol=1e-5)
    joined = td.concat([product * 2, td.ones((2, 32)), product - 1])
    expected = np.concatenate([merged * 2, np.ones((2, 32)), merged - 1])
    np.testing.assert_allclose(joined.numpy(), expected, rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(
        (product * 2).sum(axis=1).numpy(), (merged * 2).sum(1), rtol=1e-4, atol=1e-5
    )
    found = td.nn.functional.softmax(product * 2, axis=1).numpy()
    right = np.exp(merged.astype(np.float64) * 2)
    np.testing.assert_allclose(found, right / right.sum(1, keepdims=True), rtol=1e-5)


def test_split_loops_of_sizes_that_change(device, rng):
    for rows in (3, 5, 7, 5, 1, 9, 3):
        for columns in (4, 6, 4):
            x = rng.standard_normal((rows, 1, 8)).astype(np.float32)
            y = rng.standard_normal((1, columns, 1)).astype(np.float32)
            z = rng.standard_normal((rows, columns * 8)).astype(np.float32)
            found = (td.asarray(x) * td.asarray(y)).reshape(rows, -1) * 2 + td.asarray(z)
            expected = (x * y).reshape(rows, -1) * 2 + z
            np.testing.assert_allclose(found.numpy(), expected, rtol=1e-5, atol=1e-6)


def test_what_several_kernels_need_is_kept_if_it_is_dear(device, kernels, rng):
    data = rng.standard_normal(100).astype(np.float32)
    e = td.asarray(data)
    for _ in range(5):  # a GPU computes a few of them again
        e = td.exp(-e)
    total, scaled = td.sum(e), e * 2
    both = td.concat([scaled, td.reshape(total, (1,))])
    right = data.astype(np.float64)
    for _ in range(5):
        right = np.exp(-right)
    np.testing.assert_allclose(both.numpy()[:-1], right * 2, rtol=1e-6)
    np.testing.assert_allclose(both.numpy()[-1], right.sum(), rtol=1e-5)
    assert sum("exp" in name for name in names(kernels)) == 1


def test_reshapes_are_not_copied_for_the_library(device, kernels, rng):
    data = rng.standard_normal((3, 5, 7)).astype(np.float32)
    x = td.asarray(data)
    y = x + 1
    wanted = np.sort((data + np.float32(1)).reshape(15, 7), axis=1)
    np.testing.assert_array_equal(td.sort(y.reshape(15, 7), axis=1).numpy(), wanted)
    np.testing.assert_array_equal(td.sort(x.reshape(-1)).numpy(), np.sort(data.reshape(-1)))
    at = np.array([2, 0, 2], np.int32)
    found = td.take(y.reshape(15, 7), td.asarray(at), axis=0).numpy()
    np.testing.assert_array_equal(found, (data + np.float32(1)).reshape(15, 7)[at])
    assert "copy" not in names(kernels)


def test_reshapes_that_the_library_reads_have_the_values_of_then(device, rng):
    data = rng.standard_normal((4, 6)).astype(np.float32)
    x = td.asarray(data.copy()).realize()
    seen = x.reshape(3, 8)
    first, second = td.sort(seen, axis=1), td.cumulative_sum(seen, axis=1)
    double = seen * 2
    np.testing.assert_array_equal(first.numpy(), np.sort(data.reshape(3, 8), axis=1))
    x[1:3] = 0
    wanted = data.copy()
    wanted[1:3] = 0
    third = td.sort(seen, axis=1)
    x += 1
    close = {"rtol": 1e-5, "atol": 1e-5}
    np.testing.assert_allclose(second.numpy(), np.cumsum(data.reshape(3, 8), axis=1), **close)
    np.testing.assert_array_equal(double.numpy(), data.reshape(3, 8) * 2)
    np.testing.assert_array_equal(third.numpy(), np.sort(wanted.reshape(3, 8), axis=1))
    np.testing.assert_array_equal(x.numpy(), wanted + np.float32(1))


def test_of_a_cast_to_more_bytes_the_source_is_kept(device, kernels, rng):
    x, w = rng.standard_normal((8, 16)), rng.standard_normal((16, 8))
    x, w = (td.asarray(each.astype(np.float16)).realize() for each in (x, w))
    wide = (x @ w).reshape(64).to(td.float32)
    square, more = (wide * wide).sum(), wide + 1
    exact = (x.numpy().astype("f8") @ w.numpy().astype("f8")).reshape(64)
    np.testing.assert_allclose(more.numpy(), exact + 1, atol=2e-2)
    stored = [group.node.dtype for group in kernels]
    assert stored[-2:] == [td.float16, td.float32]
    np.testing.assert_allclose(square.numpy(), np.square(exact).sum(), rtol=2e-2)
    assert len(kernels) == len(stored) + 1


def test_common_subexpressions_are_computed_once(device, kernels):
    x = td.asarray([1.0, 2.0])
    found = (td.exp(x) + td.exp(x)).numpy()
    np.testing.assert_allclose(found, 2 * np.exp([1.0, 2.0]), rtol=1e-6)
    assert names(kernels) == ["exp_add"]


def test_zeros_of_both_signs_are_two_constants(device):
    x = td.zeros(3)
    found = td.copysign(x + 1, -0.0) + td.copysign(x + 1, 0.0) * 2
    assert found.tolist() == [1.0] * 3


def test_long_chains_are_cut(device, kernels):
    x = td.zeros(4)
    for _ in range(1500):
        x = x + 1
    assert x.tolist() == [1500.0] * 4
    assert len(kernels) < 40


def test_long_graphs_are_cut_between_functions(device, kernels, rng):
    """What is pending in a chain is computed, but not amid a function that is recorded as one: its
    reductions would be kernels of their own, and casts would be stored."""
    data = rng.standard_normal((6, 8)).astype(np.float32)
    x = td.asarray(data).requires_grad_()
    for before in range(86, 97):
        y = x
        for _ in range(before):
            y = y + 0.125
        kernels.clear()
        with td.autocast("float16"):  # where it is several nodes
            found = td.nn.functional.layer_norm(y, 8)
        stored = [group.node.shape for group in kernels]
        assert all(shape == (6, 8) for shape in stored)
        shifted = data.astype("f8") + before * 0.125
        right = (shifted - shifted.mean(1, keepdims=True)) / np.sqrt(
            shifted.var(1, keepdims=True) + 1e-5
        )
        np.testing.assert_allclose(found.detach().numpy(), right, atol=2e-4)


def test_many_arrays_are_more_than_one_kernel(device, kernels):
    parts = [td.asarray([float(i)]) for i in range(40)]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    assert total.tolist() == [sum(range(40))]


def test_a_gather_beside_a_reduction(device, rng):
    data = rng.integers(-9, 9, (4, 6)).astype(np.int32)
    x = td.asarray(data)
    rows = x[np.array([1, 3, 1])]
    found = td.sum(rows, axis=0, dtype=td.int32) + x[np.array([0])][0]
    np.testing.assert_array_equal(found.numpy(), data[[1, 3, 1]].sum(0) + data[0])


def test_loops_over_two_arrays_are_cut_in_the_same_places(device, kernels):
    x, v = td.asarray([1.0, 2.0]), td.asarray([0.0, 1.0])
    y, w = np.array([1.0, 2.0]), np.array([0.0, 1.0])
    for _ in range(150):
        v -= x * 0.125
        x += v * 0.125
        w -= y * 0.125
        y += w * 0.125
    np.testing.assert_allclose(x.numpy(), y, rtol=1e-4)
    assert len({group.program for group in kernels}) <= 20


def test_many_reductions_are_more_than_one_kernel(device, rng):
    data = rng.standard_normal((20, 33)).astype(np.float32)
    total = sum((td.sum(td.asarray(row)) for row in data[1:]), td.sum(td.asarray(data[0])))
    assert total.item() == pytest.approx(data.sum(dtype=np.float64), abs=1e-4)


def test_kernels_have_few_expensive_operations(device, kernels):
    values = np.linspace(0.1, 1.0, 8, dtype=np.float32)
    x = td.asarray(values)
    terms = [td.sin(x * (i + 0.5)) + (x + i) ** 2.5 for i in range(30)]
    expected = sum(np.sin(values * (i + 0.5)) + (values + i) ** 2.5 for i in range(30))
    np.testing.assert_allclose(sum(terms[1:], terms[0]).numpy(), expected, rtol=1e-4)
    counts = [sum(step.op in ("sin", "pow") for step in group.program.steps) for group in kernels]
    assert sum(counts) == 60
    assert max(counts) <= 50


def test_a_reduction_of_expensive_functions(device, rng):
    data = rng.random((3, 1000)).astype(np.float32)
    wide, x = data.astype(np.float64), td.asarray(data)
    np.testing.assert_allclose(td.sum(x**3.5).item(), np.sum(wide**3.5), rtol=1e-5)
    np.testing.assert_allclose(td.sum(x**3.5, axis=1).numpy(), np.sum(wide**3.5, 1), rtol=1e-5)
    np.testing.assert_allclose(td.sum(x**3.5, axis=0).numpy(), np.sum(wide**3.5, 0), rtol=1e-5)
    norms = td.linalg.vector_norm(x, ord=3, axis=1)
    np.testing.assert_allclose(norms.numpy(), np.sum(wide**3, 1) ** (1 / 3), rtol=1e-5)
    turned = td.mean(td.exp(x * 1j), axis=1)
    np.testing.assert_allclose(turned.numpy(), np.mean(np.exp(wide * 1j), 1), rtol=1e-4)


@td.elementwise
def expensive_steps(x: td.f32) -> td.f32:
    return td.sin(td.cos(x)) ** td.tan(x + 2.0)


def test_a_reduction_of_an_expensive_elementwise_function(device, rng):
    data = rng.random((2, 300)).astype(np.float32)
    wide = data.astype(np.float64)
    expected = np.sum(np.sin(np.cos(wide)) ** np.tan(wide + 2.0), 1)
    np.testing.assert_allclose(
        td.sum(expensive_steps(td.asarray(data)), axis=1).numpy(), expected, 1e-4
    )


def test_expressions_of_a_thousand_terms(device, kernels, rng):
    data = rng.random(8).astype(np.float32)
    x = td.asarray(data)
    terms = [x * (i + 0.5) for i in range(1000)]
    while len(terms) > 1:
        terms = [terms[i] + terms[i + 1] for i in range(0, len(terms) - 1, 2)] + (
            terms[-1:] if len(terms) % 2 else []
        )
    np.testing.assert_allclose(terms[0].numpy(), data * 500000.0, rtol=1e-4)
    assert len(kernels) < 60


# --- writes --------------------------------------------------------------------------------------


def test_what_was_made_before_a_write_has_the_old_values(device):
    x = td.asarray([1.0, 2.0, 3.0])
    before = x * 10
    x[1:] = 0.0
    after = x * 10
    assert after.tolist() == [10.0, 0.0, 0.0]
    assert before.tolist() == [10.0, 20.0, 30.0]


def test_what_was_made_before_a_kernel_wrote_has_the_old_values(device):
    kernel = td.kernel(source="def double(x: td.Array[td.f32]):\n    x[td.grid(1)] *= 2.0\n")
    x = td.asarray([1.0, 2.0, 3.0])
    before, view = x + 1, x[1:]
    kernel.launch(3, x)
    assert (before.tolist(), view.tolist(), x.tolist()) == ([2, 3, 4], [4, 6], [2, 4, 6])
    kernel.launch(2, x[1:])
    assert x.tolist() == [2, 8, 12]


def test_overlapping_parts(device):
    x = td.arange(6, dtype=td.float32)
    x[1:] = x[:-1]
    assert x.tolist() == [0, 0, 1, 2, 3, 4]
    x[:] = x[::-1]
    assert x.tolist() == [4, 3, 2, 1, 0, 0]
    x[::2] += x[1::2]
    assert x.tolist() == [7, 3, 3, 1, 0, 0]


def test_arrays_of_one_constant_are_apart(device):
    x, y = td.zeros(3), td.zeros(3)
    x[0] = 1.0
    y[1] = 2.0
    assert (x.tolist(), y.tolist()) == ([1, 0, 0], [0, 2, 0])


def test_a_copy_is_apart(device):
    x = td.asarray([1.0, 2.0])
    for copy in (td.asarray(x, copy=True), +x, td.astype(x, td.float32, copy=True), x * 1):
        x[0] = 5.0
        assert copy.tolist() == [1.0, 2.0]
        copy[1] = 9.0
        assert x.tolist() == [5.0, 2.0]
        x[0] = 1.0


def test_a_write_into_a_view_of_a_view(device):
    x = td.zeros((4, 6))
    x[1:3][:, ::2][1] = 7.0
    right = np.zeros((4, 6), np.float32)
    right[2, ::2] = 7
    np.testing.assert_array_equal(x.numpy(), right)
    td.permute_dims(x, (1, 0))[5, 3] = 2.0
    right[3, 5] = 2
    np.testing.assert_array_equal(x.numpy(), right)


def test_in_place_loops_stay_small(device):
    x = td.zeros(5)
    for i in range(700):
        x[i % 5] += 1.0
    assert x.tolist() == [140.0] * 5


def test_axes_of_a_reduction_are_split_behind_it(device):
    x = np.arange(720, dtype=np.float32).reshape(6, 24, 5)
    wanted = x.sum(axis=-1).reshape(6, 6, 4)
    split = td.asarray(x).sum(axis=-1).reshape(6, 6, 4)
    np.testing.assert_array_equal((split * 2).numpy(), wanted * 2)
    split = (td.asarray(x) + 1).sum(axis=-1).reshape(6, 6, 4)
    np.testing.assert_array_equal(split.sum(axis=-1).numpy(), wanted.sum(axis=-1) + 20)


def test_a_view_that_was_computed_sees_what_is_written_later(device):
    x = td.ones((3, 4))
    view = x[1]
    assert td.sort(view).tolist() == [1.0] * 4
    x[[1]] = 5.0
    assert (view * 2).tolist() == [10.0] * 4
    view[view > 3] = -1.0
    assert x[:, 0].tolist() == [1.0, -1.0, 1.0]


def test_numbers_that_do_not_fit_are_refused_where_they_are_written(device):
    x = td.asarray([1, 2, 3], dtype=td.uint8)
    for index in (0, x > 1, [0]):
        for number in (300, -1):
            with pytest.raises(OverflowError, match="uint8"):
                x[index] = number
    assert x.tolist() == [1, 2, 3]


def test_numbers_beyond_float32_are_infinite(device):
    x = td.asarray([1.0, -2.0])
    inf = float("inf")
    assert (x * 1e39).tolist() == [inf, -inf]
    assert td.minimum(x, 1e300).tolist() == [1.0, -2.0]
    assert (x + 2**200).tolist() == [inf, inf]
    x[0] = -1e40
    assert x.tolist() == [-inf, -2.0]


def test_lists_are_arrays_on_either_side(device):
    x = td.asarray([1.0, 2.0])
    assert (x == [1, 3]).tolist() == [True, False]
    assert x.__radd__([0.5, 0.5]).tolist() == [1.5, 2.5]


def test_memory_goes_back(device):
    x = td.ones(1 << 16)
    (x + 1).realize()
    gc.collect()
    used = td.memory_stats()["used"]
    for _ in range(10):
        y = (x * 2 + 1).realize()
        del y
    assert td.memory_stats()["used"] == used
