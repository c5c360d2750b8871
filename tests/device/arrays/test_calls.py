"""Nodes that are computed by functions of the kernel library."""

from __future__ import annotations

import gc

import numpy as np

import treadle as td
from treadle.core.dtypes import float32, i32
from treadle.graph.calls import call, call_of_several
from treadle.kernels.sort import sort, sort_with_order
from treadle.tensor.tensor import from_node


def _pair(x):
    results = [(x.shape, float32), (x.shape, i32)]
    return [from_node(node) for node in call_of_several(sort_with_order, [x._node], results)]


def test_several_results_come_from_one_run(device):
    x = td.asarray([3.0, 1.0, 2.0])
    values, order = _pair(x)
    together = values * 10 + order
    assert order.tolist() == [1, 2, 0]
    assert values._cell.value.array is not None, "who is asked for first computes the others"
    np.testing.assert_array_equal(together.numpy(), [11.0, 22.0, 30.0])


def test_a_result_that_nobody_has_is_dropped(device):
    x = td.asarray([3.0, 1.0, 2.0])
    values, order = _pair(x)
    del values
    gc.collect()
    assert order.tolist() == [1, 2, 0]


def test_sources_are_read_before_they_are_written(device):
    x = td.asarray([3.0, 1.0, 2.0])
    values, order = _pair(x + 1)
    plain = from_node(call(sort, [x._node], x.shape, float32))
    x[:] = 0.0
    assert values.tolist() == [2.0, 3.0, 4.0]
    assert (order.tolist(), plain.tolist()) == ([1, 2, 0], [1.0, 2.0, 3.0])


def test_an_explanation_names_the_function(device):
    assert "sort_with_order" in str(td.explain(_pair(td.asarray([2.0, 1.0]))[0]))
