"""The driver for browsers: waiting or not, errors, limits, the order of work, crossings."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from tests.browser.conftest import Way
from tests.browser.harness import Browser, Page, running

KERNELS = """
import numpy as np
import treadle as td

@td.kernel
def saxpy(a: td.f32, x: td.Array[td.f32], y: td.Array[td.f32]):
    i = td.grid(1)
    if i < y.size:
        y[i] = a * x[i] + y[i]

@td.kernel
def increment(y: td.Array[td.f32]):
    i = td.grid(1)
    if i < y.size:
        y[i] = y[i] + 1.0
"""


@pytest.fixture
def own_page(visits: Visits) -> Iterator[Page]:
    """A page whose device tests may break: each leaves a new one."""
    yield visits.page
    assert visits.page.complaints() == []


def test_without_init_a_device_is_waited_for_or_refused(way: Way) -> None:
    if way.switches:
        assert way.first == "webgpu:0"
    else:
        assert way.first.startswith("WouldBlock: ")
        assert "`await td.init()` first" in way.first


def test_everything_can_be_awaited(way: Way) -> None:
    page = way.page
    assert page.run("import treadle as td; td.runtime.sync_available()") is way.switches
    page.run("import treadle as td; await td.init(); await td.init()")
    found = page.run(
        KERNELS
        + """
td.set_default_device("webgpu")
x, y = td.ones(1000), td.zeros(1000)
saxpy.launch(1000, 2.0, x, y)
whole = await y.numpy_async()
graph = td.Graph()
with graph.capture():
    increment.launch(1000, y)
for _ in range(3):
    graph.replay()
step = td.compile(lambda a: (a * 2 + 1).sum())
start, end = td.Event(), td.Event()
start.record()
results = [await step(y + i).item_async() for i in range(4)]
end.record()
await end.synchronize_async()
await start.synchronize_async()
await td.device("webgpu").synchronize_async()
[
    whole.dtype.name, float(whole.sum()), (await y[:3].tolist_async()), results,
    start.elapsed(end) >= 0,
]
"""
    )
    assert found == ["float32", 2000.0, [5.0] * 3, [11e3, 13e3, 15e3, 17e3], True]


def test_calls_that_wait_do_or_name_what_does_not(way: Way) -> None:
    found = way.page.run(
        """
import treadle as td
await td.init()
x = td.ones(4, device="webgpu") + 1

def outcome(call):
    try:
        return str(call())
    except td.errors.WouldBlock as error:
        return f"WouldBlock: {error}"

event = td.Event()
event.record(td.device("webgpu").default_stream)
[
    outcome(lambda: x.numpy().tolist()),
    outcome(lambda: x.sum().item()),
    outcome(lambda: td.device("webgpu").synchronize()),
    outcome(lambda: event.synchronize()),
]
"""
    )
    if way.switches:
        assert found == ["[2.0, 2.0, 2.0, 2.0]", "8.0", "None", "None"]
    else:
        for text, instead in zip(
            found,
            ("numpy_async", "item_async", "synchronize_async", "event.synchronize_async"),
            strict=True,
        ):
            assert text.startswith("WouldBlock"), text
            assert f"{instead}" in text


# Functions that read elements on their way: calls of `x` (and `m`, a matrix; `z`,
# the same with complex elements), and what they give.
READERS = {
    "nonzero": ("td.nonzero(x)[0]", "np.nonzero(x)[0]"),
    "argwhere": ("td.argwhere(x)", "np.argwhere(x)"),
    "unique_values": ("td.unique_values(x)", "np.unique(x)"),
    "unique_counts": ("td.unique_counts(x).counts", "np.unique(x, return_counts=True)[1]"),
    "unique_inverse": (
        "td.unique_inverse(x).inverse_indices", "np.unique(x, return_inverse=True)[1]",
    ),
    "unique_all": ("td.unique_all(x).indices", "np.unique(x, return_index=True)[1]"),
    "__getitem__": ("x[x > 0]", "x[x > 0]"),
    "masked_select": ("x.masked_select(x > 0)", "x[x > 0]"),
    "repeat": ("td.repeat(x, (x > 0) + 1)", "np.repeat(x, (x > 0) + 1)"),
    "histogram": ("td.histogram(x, 3)[0]", "np.histogram(x, 3)[0]"),
    "bincount": ("td.bincount(x.to(td.int32))", "np.bincount(x.astype(int))"),
    "svdvals": ("td.linalg.svdvals(z)", "np.linalg.svd(m)[1]"),
    "svd": ("td.linalg.svd(z)[1]", "np.linalg.svd(m)[1]"),
    "eigh": ("td.linalg.eigh(z)[0]", "np.linalg.eigh(m)[0]"),
    "eigvalsh": ("td.linalg.eigvalsh(z)", "np.linalg.eigvalsh(m)"),
    "eig": ("td.sort(td.real(td.linalg.eig(m)[0]))", "np.linalg.eigvalsh(m)"),
    "eigvals": ("td.sort(td.real(td.linalg.eigvals(m)))", "np.linalg.eigvalsh(m)"),
    "matrix_rank": ("td.linalg.matrix_rank(z)", "np.linalg.matrix_rank(m)"),
    "pinv": ("td.linalg.pinv(z)", "np.linalg.inv(m)"),
    "cond": ("td.linalg.cond(z)", "np.linalg.cond(m)"),
    "norm": ("td.linalg.matrix_norm(z, ord='nuc')", "np.linalg.norm(m, 'nuc')"),
    "solve": ("td.linalg.solve(m, x[:3])", "np.linalg.solve(m, x[:3])"),
    "inv": ("td.linalg.inv(m)", "np.linalg.inv(m)"),
    "cholesky": ("td.linalg.cholesky(m)", "np.linalg.cholesky(m)"),
    "lstsq": ("td.linalg.lstsq(m, x[:3])[0]", "np.linalg.solve(m, x[:3])"),
    "matrix_exp": ("td.linalg.matrix_exp(m * 0)", "np.eye(3)"),
    "quantize": (
        "td.quant.quantize(td.stack([x[1:2] * 63.5] * 32, axis=1), 'q8_0').dequantize()",
        "np.full((1, 32), 127.0)",
    ),
    "one_hot": ("td.nn.functional.one_hot(x.to(td.int32))", "np.eye(4)[x.astype(int)]"),
}  # fmt: skip
LAZY_READERS = (
    "svdvals", "svd", "eigh", "eigvalsh", "eig", "eigvals", "matrix_rank", "pinv", "cond", "norm",
)  # fmt: skip
# Those that another one here stands for where Python waits: they have no message there.
ALIKE = {
    "argwhere", "unique_values", "unique_counts", "unique_inverse", "masked_select", "bincount",
    "svdvals", "eigh", "eigvalsh", "eigvals", "pinv", "cond", "norm", "inv", "cholesky", "lstsq",
}  # fmt: skip
# And those whose elements are asked for, with what is awaited instead.
ASKED = {
    "float(x.sum())": "item_async", "bool(x.sum())": "item_async", "int(x.sum())": "item_async",
    "str(x)": "numpy_async", "f'{x.sum():.2f}'": "numpy_async", "np.asarray(x)": "numpy_async",
    "q.numpy()": "numpy_async", "q.blocks()": "blocks_async", 'q.to("cpu")': "to_async",
    'x.to("cpu")': "to_async", 'td.save({"x": x}, io.BytesIO())': "to_async",
    'td.nn.Linear(2, 2, device="webgpu").to("cpu")': "load_state_dict(state)",
    'td.compile(lambda a: a + 1, device="auto")(x)': 'td.compile(f, device="webgpu")',
}  # fmt: skip


@pytest.mark.parametrize("way", ["window", "window without stack switching"], indirect=True)
def test_functions_that_read_on_their_way_do_or_say_what_to_do(way: Way) -> None:
    tried = {name: READERS[name] for name in READERS if not (way.switches and name in ALIKE)}
    found = way.page.run(
        f"""
import io, warnings
import numpy as np, treadle as td
await td.init()
warnings.simplefilter("ignore", td.errors.HostWarning)
host = dict(
    x=np.array([0, 2, 0, 3, 1, 2], np.float32),
    m=np.array([[4, 1, 0], [1, 3, 1], [0, 1, 2]], np.float32),
)
host["z"] = host["m"].astype(np.complex64)
there = {{name: td.asarray(value, device="webgpu") for name, value in host.items()}}
here = {{name: await value.to_async("cpu") for name, value in there.items()}}
there["q"] = td.quant.quantize(np.full((2, 32), 127.0), "q8_0", device="webgpu")
for back in (await there["q"].numpy_async(), (await there["q"].to_async("cpu")).numpy()):
    np.testing.assert_array_equal(back, np.full((2, 32), 127.0))
assert (await there["q"].blocks_async()).shape == (2, 1, 34)
READERS, ASKED = {tried!r}, {ASKED!r}
outcomes = {{}}

def value_of(code, names):
    result = eval(code, {{"td": td, "np": np, "io": io, **names}})
    return result.realize() if isinstance(result, td.Tensor) else result

for name, (code, plain) in READERS.items():
    wanted = value_of(plain, host)
    try:
        result = await value_of(code, there).numpy_async()
        outcomes[name] = "done"
    except td.errors.WouldBlock as error:
        outcomes[name] = str(error)
        result = value_of(code, here).numpy()
    np.testing.assert_allclose(result, wanted, rtol=2e-4, atol=1e-4, err_msg=name)
for code in ASKED:
    try:
        value_of(code, there)
        outcomes[code] = "done"
    except td.errors.WouldBlock as error:
        outcomes[code] = str(error)
outcomes
"""
    )
    if way.switches:
        assert set(found.values()) == {"done"}
        return
    for name in READERS:
        asked = "x[...]" if name == "__getitem__" else f"{name}()"
        if f"{asked} waits for the GPU" not in found[name]:  # it is computed when it is read
            assert "Tensor.realize() waits for the GPU" in found[name], found[name]
            assert name in LAZY_READERS
        instead = 'Write it with tensors on the CPU: first `x = await x.to_async("cpu")` for each'
        assert instead in found[name]
    for code, instead in ASKED.items():
        assert instead in found[code], found[code]


def test_a_callback_of_javascript_cannot_wait(page: Page) -> None:
    text = page.run(
        """
import asyncio, js, treadle as td
from pyodide.ffi import create_once_callable
heard = asyncio.get_event_loop().create_future()
x = td.ones(4, device="webgpu").realize()

def called():
    try:
        x.numpy()
    except Exception as error:
        heard.set_result(f"{type(error).__name__}: {error}")

js.setTimeout(create_once_callable(called), 0)
await heard
"""
    )
    assert text.startswith("WouldBlock")
    assert "numpy_async" in text


@pytest.mark.parametrize("use", ["x.numpy()", "td.ones(5).realize().numpy()", "td.zeros(4) + x"])
def test_a_lost_device_says_so_and_another_is_opened(own_page: Page, use: str) -> None:
    own_page.run(
        f"""
import treadle as td
td.set_default_device("webgpu")
x = td.ones(4).realize()
x.numpy()
td.device("webgpu").handle.gpu_device.destroy()
try:
    ({use}).numpy()
except td.errors.DeviceLost as error:
    assert "are gone, and stay so: `await td.init()` opens it again" in str(error), error
else:
    raise AssertionError("nothing was said")
try:
    td.device("webgpu").synchronize()
except td.errors.DeviceLost as error:
    assert "destroyed" in str(error), error
else:
    raise AssertionError("nothing was said")
await td.init()
assert (td.ones(4) + 1).tolist() == [2.0] * 4
try:
    x.numpy()
except td.errors.DeviceLost as error:  # it does not advise what has been done
    assert "destroyed" in str(error), error
    assert "make them again from your data" in str(error), error
    assert "td.init()" not in str(error), error
else:
    raise AssertionError("nothing was said")
"""
    )


def test_what_is_nothing_for_python_is_undefined(own_page: Page) -> None:
    """A null is None in Pyodide 0.27, and another object in newer ones."""
    found = own_page.run(
        """
import treadle as td
from pyodide.code import run_js
from treadle.drivers.webgpu_browser.backend import _helper
from treadle.runtime.page_storage import _storage
await td.init()
ask = run_js('''(async (top, helper, storage) => {
  const gpu = navigator.gpu;
  const hidden = (value) => Object.defineProperty(navigator, "gpu", { value, configurable: true });
  hidden(undefined);
  const found = [await top.findAdapter("low-power")];
  hidden({ requestAdapter: async () => null });
  found.push(await top.findAdapter("low-power"));
  delete navigator.gpu;
  found.push(helper.allocate(900001, 64, false), await helper.allocate(900002, 64, true));
  found.push(await storage.load(), await storage.saved());
  helper.device.destroy();
  found.push(await helper.read(900001, 0, 64));
  return JSON.stringify(found.map(String));
})''')
import json
found = json.loads(await ask(_helper(), td.device("webgpu").handle.helper, _storage()))
await td.device("webgpu").handle.helper.finished()
await td.init()
found
"""
    )
    assert found == ["undefined"] * 7


def test_what_is_over_the_limits_is_refused(page: Page) -> None:
    text = page.run(
        """
import treadle as td
from dataclasses import replace
from treadle.runtime.devices import Device, _backend
info = td.device("webgpu").info
small = Device(_backend("webgpu"), info, limits=replace(info.limits, max_shared_memory=16384))
assert small.limits.max_shared_memory == 16384

@td.kernel
def share(y: td.Array[td.f32]):
    tile = td.shared((5120,), td.f32)
    i = td.thread_idx.x
    tile[i] = y[i]
    td.sync_threads()
    y[i] = tile[63 - i] + 1.0

y = td.zeros(64, device=small)
try:
    share[1, 64](y)
except td.errors.LaunchError as error:
    found = str(error)
y = td.zeros(64, device="webgpu")
share[1, 64](y)
assert y.tolist() == [1.0] * 64
small.close()
found
"""
    )
    assert "20480 bytes of shared memory" in text
    assert "the device has 16384" in text


def test_a_kernel_that_the_browser_refuses_is_named(page: Page) -> None:
    text = page.run(
        """
from dataclasses import replace
import treadle as td
from treadle.codegen.records import Binding, KernelCode, ParameterLayout
from treadle.core.dim3 import Dim3
device = td.device("webgpu").handle
source = '''@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(64)
fn main(@builtin(global_invocation_id) thread: vec3<u32>) {
  y[thread.x] = wrong(1.0);
}'''
code = KernelCode(
    target="wgsl", dialect="tint", name="mistaken", entry="main", source=source, block=Dim3(64),
    workgroup=Dim3(64), bindings=(Binding(("y",), writes=True),),
    layout=ParameterLayout((), 0, "<"),
)
buffer, stream = device.allocate(256), device.default_stream
said = []
kernel = device.compile(code)
stream.launch(kernel, Dim3(1), (buffer,), b"")
for _ in range(2):  # where it is waited for, and where it is launched again
    try:
        stream.launch(kernel, Dim3(1), (buffer,), b"")
        stream.synchronize()
    except td.errors.CompileError as error:
        said.append(str(error))
assert device.default_stream.synchronize() is None
assert (td.ones(3, device="webgpu") + 1).tolist() == [2.0] * 3
said
"""
    )
    assert len(text) == 2
    for each in text:
        assert "mistaken" in each
        assert "generated line 4: y[thread.x] = wrong(1.0);" in each


def test_work_is_in_order_while_kernels_are_made(page: Page) -> None:
    """Launches of kernels that are still compiled, copies, uploads of all sizes and reads."""
    page.run(
        """
import numpy as np
import treadle as td
td.set_default_device("webgpu")
rng = np.random.default_rng(5)
for size in (3, 1000, 40_000):
    x = td.asarray(rng.standard_normal(size).astype(np.float32))
    host = x.numpy()
    for step in range(6):
        x = x * (1.0 + step) - step  # a kernel of its own
        host = host * np.float32(1.0 + step) - np.float32(step)
        data = rng.standard_normal(size).astype(np.float32)
        x = td.where(td.asarray(data) > 0, x, td.asarray(data)).realize()
        host = np.where(data > 0, host, data)
        y = td.zeros(size)
        y[1:] = x[:-1]
        shifted = np.zeros(size, np.float32)
        shifted[1:] = host[:-1]
        x = (x + y).realize()
        host = host + shifted
    np.testing.assert_allclose(x.numpy(), host, rtol=1e-4, atol=1e-2)
"""
    )


def test_recordings_keep_what_is_forgotten(page: Page) -> None:
    """Buffers that are freed, and bind groups of theirs, while a recording lives."""
    page.run(
        KERNELS
        + """
import gc
td.set_default_device("webgpu")
y = td.zeros(64)
graph = td.Graph()
with graph.capture():
    x = td.ones(64) * 3
    saxpy.launch(64, 2.0, x, y)
    x.realize()
    del x
    increment.launch(64, y)
gc.collect()
for _ in range(40):  # others take the memory that is free
    (td.ones(64) * 9).realize()
for _ in range(5):
    graph.replay()
assert y.tolist() == [35.0] * 64, y.tolist()
"""
    )


def test_events_where_the_device_has_no_timestamps(page: Page) -> None:
    assert page.run(
        KERNELS
        + """
from dataclasses import replace
from treadle.runtime.devices import Device, _backend
info = td.device("webgpu").info
device = Device(_backend("webgpu"), info, limits=replace(info.limits, max_shared_memory=16384))
device.handle.info = replace(device.handle.info, features=frozenset())
stream, y = device.default_stream, td.zeros(1 << 20, device=device)
points = [td.Event() for _ in range(3)]
for event in points:
    event.record(stream)
    increment.launch(y.size, y)
await points[1].synchronize_async()
times = [points[0].elapsed(points[1]), points[1].elapsed(points[2])]
device.close()
all(each >= 0 for each in times)
"""
    )


def test_a_compiled_step_replays_in_one_crossing(page: Page) -> None:
    crossings = page.run(
        """
import js
from pyodide.code import run_js
import treadle as td
td.set_default_device("webgpu")

@td.compile
def step(x, w):
    for _ in range(10):
        x = td.tanh(x @ w) + x
    return x

x, w = td.ones((32, 32)), td.ones((32, 32)) * 0.01
for _ in range(4):
    y = step(x, w).realize()
td.device("webgpu").synchronize()
handle = td.device("webgpu").handle
count = run_js('''
(helper) => {
  const count = { calls: 0 };
  for (const name of Object.getOwnPropertyNames(Object.getPrototypeOf(helper))) {
    if (name === "constructor") continue;
    const call = helper[name];
    helper[name] = function (...args) {
      if (!count.inside) count.calls += 1;
      const before = count.inside;
      count.inside = true;
      try { return call.apply(helper, args); } finally { count.inside = before; }
    };
  }
  return count;
}
''')(handle.helper)
submit, handle._submit = handle._submit, handle.helper.submit
y = step(x, w)
td.device("webgpu").default_stream.flush()
for name in ("submit", "read", "allocate", "write", "compile", "layout"):
    run_js("(helper, name) => { delete helper[name]; }")(handle.helper, name)
handle._submit = submit
count.calls
"""
    )
    assert crossings == 1


def test_arrays_of_256_mib(own_page: Page) -> None:
    own_page.run(
        """
import treadle as td
td.set_default_device("webgpu")
n = 64 << 20
x = td.ones(n).realize()
assert (x * 2).sum().item() == 2 * n
x[n - 1] = 7
assert x[n - 3 :].tolist() == [1.0, 1.0, 7.0]
"""
    )


def test_out_of_memory(own_page: Page) -> None:
    """What the browser says is made up here: a real lack of memory ends this browser's process for
    GPUs, which the next test has."""
    found = own_page.run(
        """
import treadle as td
from pyodide.code import run_js
td.set_default_device("webgpu")
handle = td.device("webgpu").handle
run_js('''(device) => {
  device.popErrorScope = async () => new GPUOutOfMemoryError("no memory, where it is waited for");
}''')(handle.gpu_device)
said = []
try:
    td.zeros(80 << 20).realize()
except td.errors.OutOfMemory as error:
    said.append(str(error))
run_js("(device) => { delete device.popErrorScope; }")(handle.gpu_device)
assert (td.zeros(64 << 20) + 1)[5].item() == 1
run_js("(helper) => helper.fail(new GPUOutOfMemoryError('no memory, heard later'))")(handle.helper)
try:
    (td.ones(3) + 1).numpy()
except td.errors.OutOfMemory as error:
    said.append(str(error))
assert (td.ones(3) + 1).tolist() == [2.0] * 3
said
"""
    )
    assert "335,544,320 bytes" in found[0]
    assert "where it is waited for" in found[0]
    assert "heard later" in found[1]


@pytest.mark.slow
def test_no_memory_at_all() -> None:
    """In a browser of its own, since its process for GPUs may end, and the next one be refused."""
    with running() as browser:
        page = browser.python()
        kept, said = page.run(
            """
import treadle as td
handle = td.device("webgpu").handle
kept, said = [], ""
try:
    while len(kept) < 4096:
        kept.append(handle.allocate(256 << 20))
except (td.errors.OutOfMemory, td.errors.DeviceLost) as error:
    said = str(error)
[len(kept), said]
"""
        )
        assert kept >= 3
        assert said
        assert page.run("1 + 1") == 2
        page.close()


@dataclass
class Visits:
    """What a program found in storage and computed at two visits, and the page of the second."""

    first: list[Any]
    second: list[Any]
    printers: list[list[str]]  # the module that prints WGSL, where it was needed
    page: Page


@pytest.fixture(scope="module")
def visits(browser: Browser) -> Iterator[Visits]:
    code = """
import treadle as td
from treadle.runtime import disk_cache, page_storage
await td.init()
before = disk_cache.usage().entries
td.set_default_device("webgpu")
x = td.ones(100)
y = [(td.cos(x) * 3).sum().item(), ((x @ x) + 1).item()]
await page_storage.saved()
[before, disk_cache.usage().entries, round(y[0], 3), y[1]]
"""
    printer = "[name for name in __import__('sys').modules if name == 'treadle.codegen.wgsl']"
    context = browser.browser.new_context()
    page = browser.python(context=context)
    first, printers = page.run(code), [page.run(printer)]
    page.close()
    page = browser.python(context=context)
    second = page.run(code)
    yield Visits(first, second, [*printers, page.run(printer)], page)
    assert page.complaints() == []
    context.close()


def test_a_second_visit_loads_the_kernels(visits: Visits) -> None:
    empty, entries, *values = visits.first
    assert empty == 0
    assert entries > 0
    assert visits.second == [entries, entries, *values]
    assert visits.printers == [["treadle.codegen.wgsl"], []]


def test_a_tab_in_the_background_goes_on(browser: Browser, visits: Visits) -> None:
    front = visits.page.tab.context.new_page()
    front.goto(browser.address + "/harness/index.html")
    front.bring_to_front()
    assert visits.page.run(
        """
import treadle as td
td.set_default_device("webgpu")
x = td.ones(1000)
for _ in range(20):
    x = (x + 1).realize()
[(await x.sum().item_async()), x.sum().item()]
"""
    ) == [21000.0, 21000.0]
