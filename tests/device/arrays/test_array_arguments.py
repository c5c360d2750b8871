"""What a launch asks of arrays that are not the runtime's own: the protocol that tensors have."""

from __future__ import annotations

import pytest

import treadle as td
from treadle.core.errors import AutogradError
from treadle.runtime.arrays import as_array


class Later:
    """An array that is made when it is asked for."""

    def __init__(self, value, device, refuse=False):
        self.value, self.device, self.refuse = value, device, refuse
        self.array = None
        self.asked, self.written = [], 0

    def __treadle_array__(self, kernel=None):
        if kernel is not None:
            self.asked.append(kernel)
            if self.refuse:
                raise AutogradError(f"not for {kernel}")
        if self.array is None:
            self.array = as_array(td.full(4, self.value, dtype=td.float32, device=self.device))
        return self.array

    def __treadle_written__(self):
        self.written += 1


@td.kernel
def scale(a: td.f32, x: td.Array[td.f32], y: td.Array[td.f32]):
    i = td.grid(1)
    if i < y.size:
        y[i] = a * x[i]


def test_an_argument_is_asked_for_its_array_and_hears_of_writes(device):
    x, y = Later(3.0, device), Later(0.0, device)
    scale.launch(4, 2.0, x, y)
    scale[1, 4](4.0, y, y)
    assert y.array.to_host().tolist() == [24.0] * 4
    assert (x.asked, x.written) == (["scale"], 0)
    assert (y.asked, y.written) == (["scale"] * 3, 2)


def test_arguments_beside_another_librarys_are_asked_too(device):
    import numpy as np

    out = np.zeros(4, np.float32)
    x = Later(5.0, device)
    scale.launch(4, 2.0, x, out)
    assert out.tolist() == [10.0] * 4
    assert x.written == 0


def test_an_argument_may_refuse_a_kernel(device):
    y = Later(1.0, device)
    with pytest.raises(AutogradError, match="not for scale"):
        scale[1, 4](2.0, Later(1.0, device, refuse=True), y)
    assert y.written == 0
    with pytest.raises(AutogradError, match=r"kernel scale is launched with a tensor"):
        scale[1, 4](2.0, td.ones(4).requires_grad_(), y)


def test_pending_readers_are_computed_before_a_kernel_writes(device):
    x = td.ones(4).realize()
    before = x + 1  # pending: it reads what the kernel writes
    scale[1, 4](5.0, td.ones(4), x)
    assert before.tolist() == [2.0] * 4
    assert x.tolist() == [5.0] * 4


def test_a_capture_computes_what_was_pending_before_and_records_what_is_within(device):
    x = td.ones(4).realize()
    before = x + 1
    graph = td.Graph(device)
    with graph.capture():
        within = x * 10
    scale[1, 4](5.0, td.ones(4), x)
    graph.replay()
    assert before.tolist() == [2.0] * 4
    assert within.tolist() == [50.0] * 4
