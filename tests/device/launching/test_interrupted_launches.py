"""Ctrl-C anywhere in a launch, a wait or a compilation: the device goes on, with right values.

Python hears a signal in the main thread when a function is called, so one is sent here at calls all
along the way through treadle.
"""

from __future__ import annotations

import signal
import sys
from pathlib import Path

import numpy as np
import pytest

import treadle as td

_INSIDE = tuple(str(Path(td.__file__).parent / part) for part in ("runtime", "drivers"))
_COUNT = 300


class _Interrupt:
    """Sends SIGINT at a call of a function of the runtime or a driver, counted from 1."""

    def __init__(self, at: int) -> None:
        self.at, self.calls = at, 0

    def __enter__(self) -> _Interrupt:
        self.before = sys.gettrace()
        sys.settrace(self._called)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self.before)

    def _called(self, frame, event, _):
        if frame.f_code.co_filename.startswith(_INSIDE) and not _is_dropping(frame):
            self.calls += 1
            if self.calls == self.at:
                signal.raise_signal(signal.SIGINT)


def _is_dropping(frame) -> bool:
    """Whether an object is being dropped, from where errors cannot go anywhere."""
    while frame is not None:
        if frame.f_code.co_name == "__del__":
            return True
        frame = frame.f_back
    return False


def _spread(act, points: int):
    """Run it interrupted at so many calls along its way; yields after each."""
    with _Interrupt(0) as whole:
        act()
    assert whole.calls > 3
    heard = 0
    for at in sorted({*np.linspace(1, whole.calls, points).astype(int)}):
        with _Interrupt(int(at)):
            try:
                act()
            except KeyboardInterrupt:
                heard += 1
        yield
    assert heard > 1


def _adder(number: int):
    return td.kernel(
        source=f"def add{number}(x: td.Array[td.i32]):\n    i = td.grid(1)\n"
        f"    if i < x.shape[0]:\n        x[i] += {number}\n"
    )


def _check(device, add) -> None:
    """A launch from here on is right, and arrays are."""
    x = td.asarray(np.arange(_COUNT), dtype=td.int32, device=device)
    add[2, 256](x)
    assert x.tolist() == list(range(1, _COUNT + 1))
    assert (td.ones(_COUNT, device=device) * 3 + 1).tolist() == [4.0] * _COUNT


def test_a_launch(device):
    add = _adder(1)
    _check(device, add)
    x = td.zeros(_COUNT, dtype=td.int32, device=device).realize()
    add[2, 256](x)
    x.numpy()
    least = known = int(x[0].item())
    for _ in _spread(lambda: add[2, 256](x), 40):
        values = x.numpy()
        assert (values == values[0]).all()  # all of it or nothing
        assert least <= values[0] <= known + 1
        least, known = known, int(values[0])
        _check(device, add)


def test_a_wait(device):
    add = _adder(1)
    x = td.zeros(_COUNT, dtype=td.int32, device=device).realize()
    launches = 0

    def launch_and_read():
        nonlocal launches
        sys_trace = sys.gettrace()
        sys.settrace(None)
        add[2, 256](x)
        sys.settrace(sys_trace)
        launches += 1
        x.numpy()

    launch_and_read()
    for _ in _spread(launch_and_read, 30):
        assert x.numpy().tolist() == [launches] * _COUNT
        _check(device, add)


def test_a_compilation(device):
    adders = [(number, _adder(number)) for number in range(1, 20)]
    x = td.zeros(_COUNT, dtype=td.int32, device=device).realize()
    at = 0

    def compile_and_launch():
        nonlocal at
        at += 1
        adders[at][1][2, 256](x)

    for _ in _spread(compile_and_launch, 12):
        before = x.numpy()
        number, add = adders[at]
        add[2, 256](x)
        assert (x.numpy() - before == number).all()
        _check(device, adders[0][1])


@pytest.mark.parametrize("act", [lambda x: td.sum(x * 2 + 1), lambda x: td.sort(x)])
def test_arrays(device, act):
    x = td.asarray(np.arange(_COUNT)[::-1].astype(np.float32), device=device).realize()
    right = act(x).numpy()
    for _ in _spread(lambda: act(x).numpy(), 12):
        np.testing.assert_array_equal(act(x).numpy(), right)
