"""`td.CommandBatch`: nothing runs before `execute`, and then everything at once."""

from __future__ import annotations

import asyncio
import math

import numpy as np
import pytest

import treadle as td


@td.kernel
def add_index(x: td.Array[td.f32], by: td.f32):
    i = td.grid(1)
    x[i] = x[i] + by * td.f32(i)


DATA = [[0.5, -1.0, 3.0], [2.0, 0.0, -0.25]]
X = np.array(DATA, np.float64)
ERF = np.vectorize(math.erf)
SIGMOID = 1 / (1 + np.exp(-X))
OPERATIONS = {
    "add": (lambda b, x: b.add(x, x), X + X),
    "sub": (lambda b, x: b.sub(1.0, x), 1 - X),
    "mul": (lambda b, x: b.mul(x, b.upload([[2.0], [3.0]])), X * [[2], [3]]),
    "div": (lambda b, x: b.div(x, 4), X / 4),
    "scale": (lambda b, x: b.scale(x, -2.0), X * -2),
    "dot": (lambda b, x: b.dot(b.upload([1.0, 2.0]), b.upload([3.0, 4.0])), 11.0),
    "matmul": (lambda b, x: b.matmul(x, b.upload(X.T.astype(np.float32))), X @ X.T),
    "relu": (lambda b, x: b.relu(x), np.maximum(X, 0)),
    "sigmoid": (lambda b, x: b.sigmoid(x), SIGMOID),
    "tanh": (lambda b, x: b.tanh(x), np.tanh(X)),
    "gelu": (lambda b, x: b.gelu(x), X / 2 * (1 + ERF(X / math.sqrt(2)))),
    "swish": (lambda b, x: b.swish(x), X * SIGMOID),
    "softmax": (lambda b, x: b.softmax(x), np.exp(X) / np.exp(X).sum(1, keepdims=True)),
    "softmax of columns": (lambda b, x: b.softmax(x, axis=0), np.exp(X) / np.exp(X).sum(0)),
    "sum": (lambda b, x: b.sum(x), X.sum()),
    "sum of rows": (lambda b, x: b.sum(x, axis=1), X.sum(1)),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations(device, name):
    make, expected = OPERATIONS[name]
    batch = td.CommandBatch(device)
    result = make(batch, batch.upload(DATA))
    assert result.shape == np.shape(expected)
    assert result.dtype == td.float32
    batch.execute()
    np.testing.assert_allclose(batch.read(result), expected, rtol=2e-6, atol=1e-6)


def test_nothing_runs_before_it_is_executed(device):
    batch = td.CommandBatch(device)
    x = batch.upload([1.0, 2.0, -3.0, 4.0])
    y = batch.scale(batch.relu(x), 2.0)
    assert "not executed yet" in repr(y)
    with pytest.raises(td.errors.LaunchError, match=r"call execute\(\) first"):
        batch.read(y)
    batch.execute()
    assert batch.read(y) == [2.0, 4.0, 0.0, 8.0]
    assert batch.tensor(y).device is device
    z = batch.sum(batch.add(y, 1))
    batch.execute()
    assert batch.read(z) == 18.0


def test_one_submission(device):
    batch = td.CommandBatch(device)
    x = batch.upload(np.arange(6, dtype=np.float32).reshape(2, 3))
    results = [batch.softmax(x), batch.matmul(x, batch.upload([1.0, 2.0, 3.0]))]
    batch.launch(add_index, 3, batch.upload([0.0, 0.0, 0.0]), 1.0)
    results.append(batch.tanh(results[1]))
    device.synchronize()
    before = getattr(device.handle, "serial", None)
    batch.execute()
    if before is not None:  # where work is submitted
        assert device.handle.serial == before + 1
    assert batch.read(results[1]) == [8.0, 26.0]


def test_launches_keep_their_place(device):
    batch = td.CommandBatch(device)
    x = batch.upload([1.0, 1.0, 1.0, 1.0])
    before = batch.scale(x, 10.0)
    batch.launch(add_index, 4, x, 1.0)
    middle = batch.scale(x, 10.0)
    batch.launch(add_index, 4, x, -1.0)
    batch.launch(add_index, 4, middle, 100.0)
    after = batch.scale(x, 10.0)
    batch.execute()
    assert batch.read(before) == [10.0, 10.0, 10.0, 10.0]
    assert batch.read(middle) == [10.0, 120.0, 230.0, 340.0]
    assert batch.read(after) == [10.0, 10.0, 10.0, 10.0]
    assert batch.read(x) == [1.0, 1.0, 1.0, 1.0]


def test_uploads_are_copies(device):
    data = np.ones(3, np.float32)
    tensor = td.asarray(data)
    batch = td.CommandBatch(device)
    x, y = batch.upload(data), batch.upload(tensor)
    data[:] = 5
    tensor[:] = 5
    total = batch.add(x, y)
    batch.execute()
    assert batch.read(total) == [2.0, 2.0, 2.0]
    assert batch.upload([1, 2], dtype=td.uint8).dtype == td.uint8


def test_awaiting(device):
    async def work():
        batch = td.CommandBatch(device)
        y = batch.sum(batch.upload([1.0, 2.0, 3.0]))
        await batch.execute_async()
        return await batch.read_async(y)

    assert asyncio.run(work()) == 6.0


def test_refusals():
    batch, other = td.CommandBatch("cpu"), td.CommandBatch("cpu")
    x, theirs = batch.upload([1.0, 2.0]), other.upload([1.0, 2.0])
    with pytest.raises(td.errors.LaunchError, match="of another batch, on cpu"):
        batch.add(x, theirs)
    with pytest.raises(td.errors.LaunchError, match="of another batch"):
        batch.read(theirs)
    with pytest.raises(td.errors.LaunchError, match="of another batch"):
        batch.launch(add_index, 2, theirs, 1.0)
    with pytest.raises(TypeError, match="upload it first"):
        batch.add(x, np.ones(2, np.float32))
    with pytest.raises(TypeError, match="upload it first"):
        batch.relu(td.ones(2, device="cpu"))
    with pytest.raises(TypeError, match="scale takes a number"):
        batch.scale(x, x)
    with pytest.raises(TypeError, match=r"made by @td\.kernel"):
        batch.launch(print, 2, x)
    with pytest.raises(td.errors.ShapeError, match="do not broadcast"):
        batch.add(x, batch.upload([1.0, 2.0, 3.0]))
    with pytest.raises(td.errors.ShapeError, match="must be equal"):
        batch.matmul(x, batch.upload([1.0, 2.0, 3.0]))
    with pytest.raises(IndexError, match="axis 1"):
        batch.sum(x, axis=1)
    y = batch.add(x, 1)
    batch.execute()
    assert batch.read(y) == [2.0, 3.0]
