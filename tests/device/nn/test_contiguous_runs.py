"""Tensors that lie one after the other, seen as one; gradients that are clipped there."""

import numpy as np

import treadle as td
from treadle.tensor.contiguous_runs import contiguous_runs


def test_that_neighbours_are_joined(device):
    x, y = td.arange(20, dtype=td.float32), td.ones(3)
    parts = [x[8:12], x[:4], y, x[4:8].reshape(2, 2), x[13:16], x[16:20:2], x[18:18]]
    found = sorted(each.tolist() for each in contiguous_runs(parts))
    assert found == [list(range(12)), [1, 1, 1], [13, 14, 15], [16, 18]]
    for each in contiguous_runs(parts[:4]):
        each[...] = -each
    assert x.tolist() == [-k for k in range(12)] + list(range(12, 20))
    assert y.tolist() == [-1] * 3


def test_that_clipped_gradients_of_an_optimizer_lie_together(device, rng):
    start = [rng.standard_normal(shape).astype(np.float32) for shape in [(4, 8), (16,), (3,), (5,)]]
    parameters = [td.asarray(each).requires_grad_() for each in start]
    optimizer = td.optim.SGD(parameters, lr=1.0)
    loss = td.zeros(())
    for each in parameters:
        loss = loss + (each * each).sum() / 2
    loss.backward()
    assert len(contiguous_runs([each.grad for each in parameters])) == 2
    norm = td.nn.utils.clip_grad_norm_(parameters, 0.5)
    expected = np.sqrt(sum((each**2).sum() for each in start))
    np.testing.assert_allclose(norm.item(), expected, 1e-5)
    optimizer.step()
    for mine, each in zip(parameters, start, strict=True):
        np.testing.assert_allclose(mine.numpy(), each * (1 - 0.5 / expected), 1e-4, 1e-6)
