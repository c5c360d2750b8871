"""The math library through real kernels: the same sweep as `tests/unit/math`, on every device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.support import math_references as references
from tests.support.graphics import may_rearrange
from tests.support.kernel_shim import run
from treadle.lang.math import FUNCTIONS, ULP_BOUNDS, random

MEASURED = [name for name in FUNCTIONS if name != "nextafter"]
# Several functions to a kernel: compiling takes longer than running.
GROUPS = {
    arity: [
        [name for name in MEASURED if FUNCTIONS[name].arity == arity][start : start + 6]
        for start in range(0, len(MEASURED), 6)
    ]
    for arity in (1, 2)
}
UNARY = [group for group in GROUPS[1] if group]
BINARY = [group for group in GROUPS[2] if group]


def launch(names: list[str], dtype: Any, *arguments: Any) -> Any:
    """Results of unary or binary functions, a row for each."""
    parameters = "xy"[: len(arguments)]
    takes = ", ".join(f"{p}: td.Array[td.{dtype.short}]" for p in parameters)
    values = ", ".join(f"{p}[i]" for p in parameters)
    lines = [f"def apply({takes}, out: td.Array[td.{dtype.short}, 2]):", "    i = td.grid(1)"]
    lines += ["    if i < x.size:"]
    lines += [f"        out[{row}, i] = td.{name}({values})" for row, name in enumerate(names)]
    source = "\n".join(lines) + "\n"
    namespace: dict[str, Any] = {"td": td}
    exec(source, namespace)
    kernel = td.kernel(source=source)(namespace["apply"])
    out = td.zeros((len(names), arguments[0].size), dtype=dtype)
    kernel.launch(arguments[0].size, *(td.asarray(argument) for argument in arguments), out)
    return out.numpy()


def check(names: list[str], dtype: Any, device: td.Device, step: int, dense: int) -> None:
    arity = FUNCTIONS[names[0]].arity
    arguments = references.arguments(
        "pow" if "pow" in names else "", arity, dtype.short, step, dense
    )
    rows = launch(names, dtype, *arguments)
    # A GPU's Vulkan driver may rearrange float64 sums; docs/limitations.md says what was seen.
    rearranges = dtype == td.f64 and may_rearrange(device)
    wrong = []
    for name, got in zip(names, rows, strict=True):
        high, low = references.reference(name, dtype.short, *arguments)
        size = references.scale(name, high, *arguments)
        errors = references.ulp_errors(got, high, low, size)
        if device.backend == "webgpu":
            errors = np.where(references.flushed(got, high, *arguments), 0.0, errors)
        if rearranges:
            close = np.isclose(got, high, 1e-9, 1e-13, equal_nan=True)
            errors = np.where(close | (np.abs(high) > 1e9), 0.0, errors)  # or at a pole
        at = int(np.argmax(errors))
        if errors[at] > ULP_BOUNDS[name][dtype.short]:
            where = ", ".join(repr(argument[at]) for argument in arguments)
            wrong.append(f"{name}({where}) = {got[at]!r}, not {high[at]!r}: {errors[at]:.2f} ULP")
    assert wrong == []


@pytest.mark.parametrize("names", UNARY + BINARY, ids=lambda names: names[0])
def test_float32_stays_within_its_bounds(device: td.Device, names: list[str]) -> None:
    check(names, td.f32, device, step=65_537 * 3, dense=2000)


@pytest.mark.parametrize("names", UNARY + BINARY, ids=lambda names: names[0])
def test_float64_stays_within_its_bounds(device: td.Device, names: list[str]) -> None:
    if "float64" not in device.features:
        with pytest.raises(td.errors.DtypeError, match="float64"):
            td.zeros(1, dtype=td.f64)
        return
    check(names, td.f64, device, step=2**24, dense=50)


def test_nextafter(device: td.Device) -> None:
    x, y = references.arguments("nextafter", 2, "f32", step=2**20, dense=100)
    normal = (np.abs(x) > 2e-38) | ~np.isfinite(x)  # a neighbour of 0 is denormal
    x, y = x[normal], y[normal]
    (got,) = launch(["nextafter"], td.f32, x, y)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(got, np.nextafter(x, y))


def test_random_numbers_are_the_same_everywhere(device: td.Device) -> None:
    @td.kernel
    def draw(seed: td.u32, uniform: td.Array[td.f32], normal: td.Array[td.f32]):
        i = td.grid(1)
        if i < uniform.size:
            uniform[i] = td.rand_uniform(seed, i)
            normal[i] = td.rand_normal(seed, i)

    n = 10_007
    uniform, normal = td.zeros(n, dtype=td.f32), td.zeros(n, dtype=td.f32)
    draw.launch(n, 0xDEADBEEF, uniform, normal)
    counters = np.arange(n, dtype=np.uint32)
    seed = np.uint32(0xDEADBEEF)
    np.testing.assert_array_equal(uniform.numpy(), run(random.rand_uniform, seed, counters))
    expected = run(random.rand_normal, seed, counters)
    np.testing.assert_allclose(normal.numpy(), expected, rtol=1e-6, atol=1e-6)


def test_the_interpreter_runs_the_library() -> None:
    @td.kernel
    def several(x: td.Array[td.f32], out: td.Array[td.f32, 2]):
        i = td.grid(1)
        if i < x.size:
            out[0, i] = td.sin(x[i])
            out[1, i] = td.pow(x[i], 1.5)
            out[2, i] = td.erf(x[i])

    x = np.array([0.3, 2.5, 1e10], np.float32)
    out = np.zeros((3, 3), np.float32)
    with td.interpret():
        several[1, 4](x, out)
    np.testing.assert_allclose(out[0], np.sin(x.astype(np.float64)), rtol=4e-7)
    np.testing.assert_allclose(out[1], x.astype(np.float64) ** 1.5, rtol=4e-7)
    np.testing.assert_allclose(out[2][:2], [0.3286267594591274, 0.9995930479825550], rtol=4e-7)
