"""A web page in headless Chromium, whose GPU is its software one: what launches, reads and products
cost there, beside plain JavaScript in the same page and NumPy in WebAssembly.

`python -m benchmarks browser`; `tools/browser_parts.py` fetches what it needs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from benchmarks.harness import Figure

_SETUP = """
import time
import numpy as np
import treadle as td

td.set_default_device("webgpu")
handle = td.device("webgpu").handle
now = time.perf_counter

def least(work, repeats, count=1):
    "The shortest of several times of `work`, for each of the `count` things that it does."
    work()
    found = []
    for _ in range(repeats):
        began = now()
        work()
        found.append((now() - began) / count)
    return min(found)

@td.kernel
def increment(y: td.Array[td.f32]):
    i = td.grid(1)
    if i < y.size:
        y[i] = y[i] + 1.0

y = td.zeros(64)
"""
_LAUNCHES = """
launch = increment[1, 64]
launch(y)
td.device("webgpu").synchronize()

def launches():
    for _ in range(250):
        launch(y)

found = []
for _ in range(20):
    handle.batch.room = 1 << 30  # one open batch
    began = now()
    launches()
    found.append((now() - began) / 250)
    td.device("webgpu").synchronize()
driver = []
for _ in range(20):
    handle.batch.room = 1 << 30
    began = now()
    launches()
    handle.flush()
    driver.append((now() - began) / 250)
    td.device("webgpu").synchronize()
[min(found), min(driver)]
"""
_READS = """
x = td.ones(64).realize()
x.numpy()

def chain():
    z = x
    for i in range(100):
        z = z * 0.5 + 1.0 if i % 2 else td.sqrt(z)
    z.numpy()

def launched():
    for _ in range(100):
        increment[1, 64](y)
    y.numpy()

[least(x.numpy, 50), least(chain, 30), least(launched, 30)]
"""
_REPLAY = """
@td.compile
def step(x, w):
    for _ in range(20):
        x = td.tanh(x @ w) + x
    return x

x, w = td.ones((16, 16)), td.ones((16, 16)) * 0.01
for _ in range(4):
    step(x, w).realize()
td.device("webgpu").synchronize()

def calls():
    for _ in range(10):
        step(x, w).realize()
    handle.flush()

found = []
for _ in range(5):
    began = now()
    calls()
    found.append((now() - began) / 10)
    td.device("webgpu").synchronize()
min(found)
"""
# The product's own dispatch, seen in the stream, is done again by plain JavaScript.
_PRODUCT = """
from pyodide.code import run_js
from pyodide.ffi import run_sync, to_js
from treadle.drivers.webgpu_browser.stream import BrowserStream

rng = np.random.default_rng(1)
a = rng.standard_normal((512, 512)).astype(np.float32)
b = rng.standard_normal((512, 512)).astype(np.float32)
x, w = td.asarray(a), td.asarray(b)
(x @ w).numpy()
seen = []
usual = BrowserStream.launch

def launch(self, kernel, grid, buffers, parameters):
    seen.append((kernel, grid, tuple(buffers), parameters))
    usual(self, kernel, grid, buffers, parameters)

BrowserStream.launch = launch
z = (x @ w).realize()
td.device("webgpu").synchronize()
BrowserStream.launch = usual
assert len(seen) == 1, [each[0].code.name for each in seen]
kernel, grid, buffers, parameters = seen[0]
plain = await run_js('''
async (device, code, entry, types, buffers, parameters, grid) => {
  const module = device.createShaderModule({ code });
  const layout = device.createBindGroupLayout({ entries: types.map((type, binding) => (
    { binding, visibility: 4, buffer: { type } }
  )) });
  const uniform = device.createBindGroupLayout({ entries: [
    { binding: 0, visibility: 4, buffer: { type: "uniform" } },
  ] });
  const bindGroupLayouts = parameters.length ? [layout, uniform] : [layout];
  const pipeline = await device.createComputePipelineAsync({
    layout: device.createPipelineLayout({ bindGroupLayouts }),
    compute: { module, entryPoint: entry },
  });
  const group = device.createBindGroup({ layout, entries: buffers.map((buffer, binding) => (
    { binding, resource: { buffer } }
  )) });
  let block = null;
  if (parameters.length) {
    const buffer = device.createBuffer({ size: Math.max(parameters.length, 256), usage: 72 });
    device.queue.writeBuffer(buffer, 0, parameters);
    block = device.createBindGroup({ layout: uniform, entries: [
      { binding: 0, resource: { buffer } },
    ] });
  }
  return async (count) => {
    const began = performance.now();
    const encoder = device.createCommandEncoder();
    const pass = encoder.beginComputePass();
    pass.setPipeline(pipeline);
    pass.setBindGroup(0, group);
    if (block) pass.setBindGroup(1, block);
    for (let i = 0; i < count; i++) pass.dispatchWorkgroups(...grid);
    pass.end();
    device.queue.submit([encoder.finish()]);
    await device.queue.onSubmittedWorkDone();
    return (performance.now() - began) / 1000;
  };
}
''')(
    handle.gpu_device, kernel.code.source, kernel.code.entry,
    to_js(["storage" if each.writes else "read-only-storage" for each in kernel.code.bindings]),
    to_js([each.gpu_buffer() for each in buffers]), to_js(parameters), to_js(list(grid)),
)
stream = td.device("webgpu").default_stream.handle
count = 4

def ours():
    began = now()
    for _ in range(count):
        stream.launch(kernel, grid, buffers, parameters)
    stream.synchronize()
    return (now() - began) / count

def theirs():
    return run_sync(plain(count)) / count

def arrays():
    began = now()
    for _ in range(count):
        (x @ w).realize()
    stream.synchronize()
    return (now() - began) / count

ours(), theirs(), arrays()
rounds = [(ours(), theirs(), arrays()) for _ in range(10)]
np_rounds = []
for _ in range(3):
    began = now()
    host = a @ b
    np_rounds.append(now() - began)
assert np.allclose((x @ w).numpy(), host, atol=1e-3)
[*(min(each) for each in zip(*rounds)), min(np_rounds)]
"""


@functools.cache
def _page() -> Any:
    from tests.browser.harness import running

    context = running()
    browser = context.__enter__()
    page = browser.python()
    page.context = context  # type: ignore[attr-defined]
    return page


def _run(code: str) -> Any:
    return _page().run(_SETUP + code)


def measurements() -> list[Callable[[], list[Figure]]]:
    """What this suite measures."""
    return [_start, _launches, _reads, _replay, _product, _close]


def _start() -> list[Figure]:
    code = "import time; t = time.perf_counter(); import treadle; time.perf_counter() - t"
    return [Figure("browser", "import treadle", "s", _page().run(code), 1.0)]


def _launches() -> list[Figure]:
    launch, submitted = _run(_LAUNCHES)
    return [
        Figure("browser", "launch into an open batch", "µs", launch * 1e6, 12.0),
        Figure("browser", "launch, with its share of the submission", "µs", submitted * 1e6),
    ]


def _reads() -> list[Figure]:
    read, chain, launched = _run(_READS)
    return [
        Figure("browser", "read of 256 bytes", "ms", read * 1e3, 1.5),
        Figure("browser", "100 chained operations of arrays, and a read", "ms", chain * 1e3, 5.0),
        Figure("browser", "100 launches of a kernel, and a read", "ms", launched * 1e3, 5.0),
    ]


def _replay() -> list[Figure]:
    name = "a compiled step of 20 products and activations, replayed"
    return [Figure("browser", name, "µs", _run(_REPLAY) * 1e6)]


def _product() -> list[Figure]:
    ours, theirs, arrays, numpy = _run(_PRODUCT)
    return [
        Figure(
            "browser", "512³ product: the driver", "ms", ours * 1e3, 1.05,
            peer="the same WGSL from plain JavaScript", peers=theirs * 1e3, ratio=True,
        ),
        Figure(
            "browser", "512³ product: arrays", "ms", arrays * 1e3, 1.0,
            peer="NumPy in WebAssembly", peers=numpy * 1e3, ratio=True,
        ),
    ]  # fmt: skip


def _close() -> list[Figure]:
    context = _page().context
    _page.cache_clear()
    context.__exit__(None, None, None)
    return []
