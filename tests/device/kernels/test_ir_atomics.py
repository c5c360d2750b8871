"""Every atomic operation on every type, in the arrays of a launch and of a block, with the values
that were there before: one thread's against Python's, many threads' by what they must add up to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.support.ir_kernels import ir_kernel

TYPES: dict[str, Any] = {
    "i32": np.int32, "u32": np.uint32, "i64": np.int64, "u64": np.uint64, "f32": np.float32,
    "f64": np.float64, "f16": np.float16, "u16": np.uint16,
}  # fmt: skip
UPDATES: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda old, value: old + value,
    "sub": lambda old, value: old - value,
    "min": min,
    "max": max,
    "and": lambda old, value: old & value,
    "or": lambda old, value: old | value,
    "xor": lambda old, value: old ^ value,
    "exchange": lambda old, value: value,
    "inc": lambda old, value: old + 1 if old < value else 0,
    "dec": lambda old, value: value if old == 0 or old > value else old - 1,
}
INTEGERS = [op for op in UPDATES if op not in ("inc", "dec")]
FLOATS = ["add", "sub", "min", "max", "exchange"]
OPS = {
    "i32": INTEGERS, "u32": list(UPDATES), "i64": INTEGERS, "u64": INTEGERS, "f32": FLOATS,
    "f64": ["add"], "f16": FLOATS, "u16": INTEGERS,
}  # fmt: skip


def lacks(device: td.Device, name: str) -> bool:
    """Whether a device has no atomics on a type: WGSL has them on 64 bits by feature alone."""
    return (
        device.backend == "webgpu"
        and name.endswith("64")
        and "int64_atomics" not in device.features
    )


def launch(
    device: td.Device, name: str, space: str, text: str, block: int, *arrays: object
) -> bool:
    """Launch a kernel; False where the device says that it has no such atomics."""
    if not lacks(device, name):
        ir_kernel(text)[1, block](*arrays)
        return True
    with pytest.raises((td.errors.UnsupportedOnTarget, td.errors.DtypeError)):
        ir_kernel(text)[1, block](*arrays)
    return False


def program(name: str, space: str, many: bool = False) -> str:
    """Each operation on an element of its own, and compare-and-swap on the last two."""
    ops = OPS[name]
    count = len(ops) + 2
    place = "part" if space == "shared" else "x"
    lines = [
        f"kernel atomics {{\n  buffer x: {name}\n  buffer value: {name}\n  buffer old: {name}",
        f"  shared part: {name}[{count}]\n" if space == "shared" else "",
        f"  var i: i32 = thread_idx.x\n  var o: {name}",
    ]
    if space == "shared":
        lines += [f"  if (i < {count}) {{\n    part[i] = x[i]\n  }}\n  barrier block"]
    for k, op in enumerate(ops):
        lines += [f"  o = atomic {op} {place}[{k}], value[i]", f"  old[(i * {count}) + {k}] = o"]
    for k in (len(ops), len(ops) + 1):
        lines += [
            f"  o = atomic cas {place}[{k}], value[{k - len(ops)}], value[2]",
            f"  old[(i * {count}) + {k}] = o",
        ]
    if space == "shared":
        lines += [f"  barrier block\n  if (i < {count}) {{\n    x[i] = part[i]\n  }}"]
    return "\n".join([*lines, "}"])


@pytest.mark.parametrize("space", ["global", "shared"])
@pytest.mark.parametrize("name", TYPES)
def test_old_values_and_new_ones(device: td.Device, name: str, space: str) -> None:
    ops, dtype = OPS[name], TYPES[name]
    count = len(ops) + 2
    values = np.array([5, 12, 9], dtype)
    for start in (3, 5, 0):
        x, old = np.full(count, start, dtype), np.zeros(count, dtype)
        block = max(count, 1) if space == "shared" else 1
        text = program(name, space)
        if space == "shared":  # one thread updates, all copy
            head, _, rest = text.partition("barrier block\n")
            middle, _, tail = rest.partition("  barrier block\n")
            text = f"{head}barrier block\n  if (i == 0) {{\n{middle}  }}\n  barrier block\n{tail}"
        if not launch(device, name, space, text, block, x, values, old):
            return
        with np.errstate(over="ignore"):
            expected = [UPDATES[op](dtype(start), values[0]) for op in ops]
        expected += [values[2] if dtype(start) == one else dtype(start) for one in values[:2]]
        np.testing.assert_array_equal(x, np.array(expected, dtype), err_msg=f"{ops}")
        np.testing.assert_array_equal(old, np.full(count, start, dtype))


@pytest.mark.parametrize("space", ["global", "shared"])
@pytest.mark.parametrize("name", ["u32", "f32", "u64"])
def test_many_threads_take_turns(device: td.Device, name: str, space: str) -> None:
    ops, dtype = OPS[name], TYPES[name]
    count, threads = len(ops) + 2, 70
    values = np.arange(1, threads + 1).astype(dtype)
    x, old = np.zeros(count, dtype), np.zeros(count * threads, dtype)
    text = program(name, space)
    if not launch(device, name, space, text, threads, x, values, old):
        return
    found = dict(zip(ops, old.reshape(threads, count).T, strict=False))
    sums = np.sort(np.append(found["add"], x[0]))
    np.testing.assert_array_equal(np.sort(np.diff(sums)), values)  # each was added once
    taken = np.append(found["exchange"], x[ops.index("exchange")])
    np.testing.assert_array_equal(np.sort(taken), np.append(dtype(0), values))
    assert x[ops.index("max")] == threads
    if name == "u32":
        most = x[ops.index("inc")]
        assert most <= threads
        np.testing.assert_array_equal(np.sort(found["dec"])[:1], [0])
