"""Arrays beyond what a kernel may see of one, at the sizes that devices really have."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td


def _bytes(device):
    """Three GiB where a GPU has that in a buffer; elsewhere little, which takes no minutes."""
    slow = device.kind == "software" or device.backend == "cpu"
    return 3 << 20 if slow or device.limits.max_buffer_size < 3 << 30 else 3 << 30


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("dtype", [td.float32, td.uint8])
def test_arrays_of_three_gibibytes(device, dtype):
    rows, columns = _bytes(device) // dtype.itemsize // 4096, 4096
    small = td.astype(td.arange(columns) % 13, dtype)
    x = td.broadcast_to(small, (rows, columns)) + td.astype(td.arange(rows) % 7, dtype)[:, None]
    x.realize()
    line, column = np.arange(columns) % 13, np.arange(rows) % 7
    y = x * 2 + 1
    for row in (0, 1, rows // 2 + 3, rows - 1):
        np.testing.assert_array_equal(y[row].numpy(), (line + column[row]) * 2 + 1)
    del y
    np.testing.assert_array_equal(x[:, 77].numpy(), line[77] + column)
    np.testing.assert_array_equal(td.max(x, axis=1).numpy(), 12 + column)
    np.testing.assert_array_equal(td.max(x, axis=0).numpy(), 6 + line)
    sums = td.sum(x, axis=0, dtype=td.float32).numpy()
    np.testing.assert_allclose(sums, column.sum() + rows * line, rtol=1e-5)
    total = int(column.sum()) * columns + int(line.sum()) * rows
    np.testing.assert_allclose(td.sum(x, dtype=td.float32).item(), total, rtol=1e-5)
    x[rows - 5, 4000] = 100
    x[rows - 2, 9] = 100
    assert td.max(x).item() == 100
    place = td.argmax(x).item() if x.size < 1 << 31 else (rows - 5) * columns + 4000
    assert place == (rows - 5) * columns + 4000
    assert td.sum(td.astype(x == 100, td.int32)).item() == 2
    del x


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_three_gibibytes_there_and_back(device):
    data = np.arange(_bytes(device) // 4, dtype=np.int32)
    x = td.asarray(data)
    np.testing.assert_array_equal((x ^ 5)[::-1].numpy(), (data ^ 5)[::-1])
    x[1:] = x[:-1]
    data[1:] = data[:-1].copy()
    np.testing.assert_array_equal(x.numpy(), data)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_products_with_three_gibibytes(device):
    """Places beyond 2**31, or pieces of what a kernel sees; bytes wrap around."""
    rows, columns = _bytes(device) // 4096, 4096
    line, column = np.arange(columns) % 13, np.arange(rows) % 7
    x = td.asarray(line.astype(np.uint8)) + td.asarray(column.astype(np.uint8))[:, None]
    x.realize()
    found = x @ td.full((columns, 8), 3, dtype=td.uint8)
    expected = ((int(line.sum()) + columns * column) * 3 % 256).astype(np.uint8)
    np.testing.assert_array_equal(found.numpy(), np.broadcast_to(expected[:, None], (rows, 8)))
    found = td.full((8, rows), 3, dtype=td.uint8) @ x
    expected = ((int(column.sum()) + rows * line) * 3 % 256).astype(np.uint8)
    np.testing.assert_array_equal(found.numpy(), np.broadcast_to(expected, (8, columns)))
