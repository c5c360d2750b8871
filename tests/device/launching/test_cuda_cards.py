"""NVIDIA's cards as processes see them: shared, hidden, full, lost, and their code kept on disk."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from uuid import uuid4

import numpy as np
import pytest

import treadle as td
from treadle.codegen import pipeline
from treadle.codegen.records import Options
from treadle.core.dim3 import Dim3
from treadle.drivers.cuda.modules import link_ptx
from treadle.ir.signature import Signature
from treadle.kernels import attention_tiles
from treadle.kernels.convolve_groups import TILES, WEIGHT_TILES
from treadle.kernels.device_code.group_attention import GroupAttending, group_attender, lines_of
from treadle.kernels.device_code.group_attention_gradients import (
    GroupDeriving,
    group_key_gradients,
    group_query_gradient,
)
from treadle.kernels.device_code.group_convolution import group_convolver
from treadle.kernels.device_code.group_convolution_weights import group_weight_summer
from treadle.kernels.device_code.group_product import group_multiplier
from treadle.kernels.device_code.matrix_product import Form, Loading
from treadle.kernels.matrix_check import usable_groups, usable_products
from treadle.kernels.tiles import GROUP_TILES
from treadle.lang.decorators import Kernel
from treadle.runtime import settings
from treadle.runtime.arguments import declared_arguments
from treadle.runtime.build import target_of

pytestmark = pytest.mark.cuda

_DOUBLE = """
import sys
import numpy as np
import treadle as td

@td.kernel
def double(x: td.Array[td.f32]):
    i = td.grid(1)
    if i < x.size:
        x[i] = x[i] * 2.0
"""
_FAULT = """
@td.kernel(checked=False)
def astray(x: td.Array[td.f32]):
    x[td.grid(1) + 1_000_000_000] = 1.0

x = td.ones(64, device="cuda")
double.launch(64, x)
assert x.tolist() == [2.0] * 64
astray[1, 64](x)
for use in (x.numpy, lambda: double.launch(64, x), lambda: td.ones(3, device="cuda").realize(),
            td.device("cuda").synchronize):
    try:
        use()
    except td.errors.DeviceLost as error:
        assert "astray" in str(error) and "new process" in str(error), error
    else:
        raise AssertionError("used after the fault")
td.device("cuda").close()
try:
    td.ones(3, device="cuda").realize()
except td.errors.DeviceLost as error:
    print(error)
for name in ("cpu", "webgpu"):
    if td.is_available(name):
        y = td.ones(64, device=name)
        double.launch(64, y)
        assert y.tolist() == [2.0] * 64
        print(name, "works")
"""
_CONDITIONAL = """
device = td.device("cuda")
if device.handle.library.version < 12040:
    print("too old: nothing to decide")
    sys.exit()
td.set_default_device(device)
x, n, odd, total = td.ones(1000), *(td.zeros((), dtype=td.int32) for _ in range(3))
more, inner = td.ones((), dtype=td.bool), td.ones(3)
graph = td.Graph()
with graph.capture():
    n[...], total[...], more[...] = 0, 0, True
    with graph.while_(more):
        double.launch(1000, x)
        n += 1
        odd[...] = n & 1
        with graph.if_(odd):
            x *= 0.5
        inner[1] = 1.0
        with graph.while_(inner[1], limit=4):
            total += 1
        more[...] = n < 10
assert graph._decided is None, "the driver has not taken the graph"
for replay in range(1, 4):
    graph.replay()
    assert (n.item(), total.item()) == (10, 40), (n.item(), total.item())
    assert x.tolist() == [2.0 ** (5 * replay)] * 1000
more[...] = False
print("decided by the card")
"""
_SHARE = """
x = td.ones(1 << 20, device="cuda")
for step in range(200):
    double.launch(x.size, x)
    if step % 100 == 99:
        assert (x.numpy() == 2.0**100).all()
        x = td.ones(1 << 20, device="cuda")
print("done")
"""
_HIDDEN = """
assert not td.is_available("cuda") and "cuda" not in [d.backend for d in td.devices()]
try:
    td.device("cuda")
except td.errors.DeviceNotFound as error:
    assert "CUDA_VISIBLE_DEVICES" in str(error), error
print("hidden")
"""


@pytest.fixture
def card():
    try:
        found = td.device("cuda")
    except td.errors.DeviceNotFound as error:
        pytest.skip(str(error))
    with td.use_device(found):
        yield found


def start(tmp_path, text, **environment):
    script = tmp_path / f"{len(list(tmp_path.iterdir()))}.py"
    script.write_text(_DOUBLE + text, encoding="utf-8")
    return subprocess.Popen(
        [sys.executable, script],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ | environment,
    )  # fmt: skip


def test_an_illegal_address_names_the_kernel_and_spares_other_devices(card, tmp_path):
    process = start(tmp_path, _FAULT)
    out, err = process.communicate(timeout=100)
    assert process.returncode == 0, err
    assert "astray" in out
    assert "cpu works" in out


def test_conditional_nodes(card, tmp_path):
    """In a process of its own, since a fault would end the use of the card."""
    process = start(tmp_path, _CONDITIONAL)
    out, err = process.communicate(timeout=100)
    assert process.returncode == 0, err
    assert "decide" in out


def test_two_processes_share_a_card(card, tmp_path):
    for process in [start(tmp_path, _SHARE) for _ in range(2)]:
        out, err = process.communicate(timeout=100)
        assert out == "done\n", err


def test_hidden_cards_are_not_found(card, tmp_path):
    process = start(tmp_path, _HIDDEN, CUDA_VISIBLE_DEVICES="")
    out, err = process.communicate(timeout=100)
    assert out == "hidden\n", err


def test_a_full_card_says_the_numbers_and_goes_on(card):
    total = card.memory_stats()["driver"]["total"]
    kept = td.ones(1000)
    with pytest.raises(td.errors.OutOfMemory, match=r"[\d,]{10,} bytes: .* in use .* free"):
        # More than there is, in arrays that each could be.
        hold = [td.zeros(total // 5).realize() for _ in range(6)]  # noqa: F841
    assert (kept.numpy() == 1).all()
    assert td.ones(1 << 20).numpy().sum() == 1 << 20


def test_code_kept_for_another_driver_is_not_used(card, monkeypatch, tmp_path):
    monkeypatch.setenv("TREADLE_CACHE_DIR", str(tmp_path))
    td.ones(64).realize()  # whose kernel is not counted
    built = []
    plain = type(card.handle).compile

    def compile(self, code, binary=None):
        built.append(binary is not None)
        return plain(self, code, binary)

    monkeypatch.setattr(type(card.handle), "compile", compile)
    for _ in range(2):
        launch_new()
    assert built == [False, True]  # made, and found on disk
    card.compiled.clear()
    key = card.handle.cache_key()
    monkeypatch.setattr(type(card.handle), "cache_key", lambda self: key.replace("driver", "older"))
    launch_new()
    assert built == [False, True, False]


def launch_new():
    """Launch a kernel that this process has not built yet."""

    @td.kernel
    def triple(x: td.Array[td.f32]):
        x[td.grid(1)] *= 3.0

    td.device("cuda").compiled.clear()
    x = td.ones(64)
    triple[1, 64](x)
    np.testing.assert_array_equal(x.numpy(), np.full(64, 3.0))


def test_what_the_driver_says_of_tiles(card):
    """Hopper's products and attention as the card's own assembler makes them: sums in registers,
    and no advice (C75..) that multiplications were made to wait for each other."""
    device = td.device("cuda")
    if not device.traits.group_products:
        return
    first = Loading(True, 4, aligned=True)
    form = Form(td.float16, 0, first, first._replace(inner=False), 4, True, False)
    others = [
        Form(dtype, 0, first, first, 4, True, False, result=result, other=other)
        for dtype, result, other in (
            (td.float32, None, None), (td.int8, td.int32, None), (td.uint8, td.int32, td.int8),
        )
    ]  # fmt: skip
    largest = next(iter(GROUP_TILES))
    kernels = [
        *((group_multiplier(form, tile), tile.threads) for tile in GROUP_TILES),
        *((group_multiplier(form, tile), tile.threads) for tile in [largest.for_operands(8)]),
        *_attention(),
        *((group_multiplier(other, largest), largest.threads) for other in others),
        *((group_convolver(td.float16, tile, True, True), tile.threads) for tile in TILES),
        *((group_weight_summer(td.float16, tile), tile.threads) for tile in WEIGHT_TILES),
    ]
    for kernel, threads in kernels:
        lowered = kernel.lower(Signature(declared_arguments(kernel))).kernel
        target = target_of(device.info)
        slots = tuple((buffer.name, at) for at, buffer in enumerate(lowered.buffers))
        options = Options(Dim3(threads), slots)
        code = pipeline.print_code(pipeline.lower(lowered, options, target), options, target)
        # The driver keeps what it has assembled, and says nothing of it a second time.
        code = replace(code, source=f"{code.source}// {uuid4()}\n")
        _, remarks = link_ptx(device.handle, code)
        assert "C75" not in remarks
        # Spilled registers are local memory, and where there are some, another line counts them.
        assert "registers" in remarks
        assert re.search(r"\b[1-9]\d* (bytes spill|bytes lmem|stack)", remarks) is None, remarks


def _attention() -> Iterator[tuple[Kernel, int]]:
    """The kernels of the tables, for heads of each number of columns."""
    for columns, tile in attention_tiles._GROUP_TILES.items():
        lines = lines_of(columns)
        yield group_attender(GroupAttending(td.float16, lines, lines, 4), tile), tile.threads
    for columns, (query, keys) in attention_tiles._GROUP_GRADIENTS.items():
        lines = lines_of(columns)
        what = GroupDeriving(td.float16, lines, lines, td.float16, 4, 4, shared=False)
        yield group_query_gradient(what, query), query.threads
        for i, tile in enumerate(keys):
            part = what._replace(keys=i == 0, values=i == 1) if len(keys) > 1 else what
            yield group_key_gradients(part, tile), tile.threads


@pytest.mark.parametrize("how", ["float16", "float32", "tf32"])
@pytest.mark.parametrize("stride", [1, 2])
def test_convolutions_of_many_channels(card, how, stride, monkeypatch):
    """Large enough for the instructions of cards, and for Winograd: results and gradients beside
    the CPU's in float64."""
    monkeypatch.setattr(settings, "float32_products", "high" if how == "tf32" else "highest")
    seed = np.random.SeedSequence().entropy
    print(f"seed {seed}")
    rng = np.random.default_rng(seed)
    dtype = td.float16 if how == "float16" else td.float32
    shapes = (24, 64, 31, 30), (72, 64, 3, 3), (72,)
    arrays = [rng.standard_normal(shape).astype(dtype.numpy) for shape in shapes]
    arrays[1] /= np.asarray(24, dtype.numpy)
    outs = -(-31 // stride), -(-30 // stride)
    g = rng.standard_normal((24, 72, *outs)).astype(dtype.numpy)
    found = []
    for device, kind in (("cuda", dtype), ("cpu", td.float64)):
        with td.use_device(device):
            given = [td.asarray(each).astype(kind).requires_grad_() for each in arrays]
            made = td.nn.functional.conv2d(*given, stride=stride, padding=1)
            made.backward(td.asarray(g).astype(kind))
            results = [made.detach(), *(each.grad for each in given)]
            found.append([each.astype(td.float64).numpy() for each in results])
    bound = 4e-5 if how == "float32" else 2e-3  # of sums over 22,000 places
    for mine, right in zip(*found, strict=True):
        assert np.abs(mine - right).max() <= bound * np.abs(right).max()


def test_all_products_that_are_offered_are_used(card):
    """None is computed wrongly by the card, or refused by its driver."""
    device = td.device("cuda")
    assert set(usable_products(device)) == device.traits.matrix_products
    assert set(usable_groups(device)) == device.traits.group_products
