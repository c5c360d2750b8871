"""Opaque matrices as a target's own: WGSL's through Tint, and Metal's on the CPU."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import treadle as td
from tests.support.cpp_kernels import Batch
from tests.support.tint import tint_error
from treadle.codegen import pipeline
from treadle.codegen.records import KernelCode, Options, Target
from treadle.codegen.target import find_target
from treadle.core.dim3 import Dim3
from treadle.core.limits import Limits
from treadle.ir import nodes as n
from treadle.ir.parser import from_text
from treadle.ir.printer import to_text
from treadle.ir.signature import Signature
from treadle.ir.traverse import walk
from treadle.kernels.attention_tiles import rows_of
from treadle.kernels.device_code.matrix_product import Form, Loading
from treadle.kernels.device_code.opaque_attention import (
    OpaqueAttending,
    OpaqueAttentionTile,
    opaque_attender,
)
from treadle.kernels.device_code.opaque_product import OpaqueTile, opaque_multiplier
from treadle.runtime.arguments import declared_arguments

UNITS = [((16, 16, 16),), ((8, 8, 8),), ((8, 16, 16), (16, 8, 8)), ((16, 8, 16),)]
FEATURES = frozenset({"float16", "subgroups", "tensor_cores"})
LAYOUTS = [("row", "row", "row"), ("column", "row", "row"), ("row", "column", "column")]


def _multiplier(a_layout: str, b_layout: str, sums_layout: str):
    @td.kernel
    def multiply(x: td.Array[td.f16], y: td.Array[td.f16], z: td.Array[td.f32], first: td.i32):
        left = td.shared(16 * 40, td.f16)
        right = td.shared(32 * 24, td.f16)
        out = td.shared(16 * 20, td.f32)
        for i in range(td.thread_idx.x, 512, td.block_dim.x):
            left[i] = x[i]
            right[i] = y[i]
        td.sync_threads()
        a = td.fragment(16, 32, td.f16, use="a", indexed=False)
        b = td.fragment(32, 16, td.f16, use="b", indexed=False)
        sums = td.fragment(16, 16, td.f32, use="accumulator", indexed=False)
        sums.fill(0.5)
        a.load(left, first, 16 if a_layout == "column" else 32, layout=a_layout)
        b.load(right, 0, 32 if b_layout == "column" else 16, layout=b_layout)
        sums.multiply_add(a, b)
        sums.store(out, 0, 20, layout=sums_layout)
        td.sync_threads()
        for i in range(td.thread_idx.x, 256, td.block_dim.x):
            z[i] = out[i // 16 * 20 + i % 16]

    return multiply


def _lowered(kernel: object) -> n.Kernel:
    return kernel.lower(Signature(declared_arguments(kernel))).kernel  # type: ignore[attr-defined]


def _printed(kernel: n.Kernel, target: Target, threads: int) -> KernelCode:
    slots = tuple((buffer.name, number) for number, buffer in enumerate(kernel.buffers))
    options = Options(Dim3(threads), slots)
    return pipeline.print_code(pipeline.lower(kernel, options, target), options, target)


def _tint(units: tuple[tuple[int, int, int], ...], **changes: object) -> Target:
    limits = Limits(256, max_shared_memory=1 << 14, subgroup_size=32)
    return replace(Target("wgsl", "tint", limits, FEATURES, units), **changes)  # type: ignore[arg-type]


@pytest.mark.parametrize("units", UNITS, ids=str)
def test_tint_takes_subgroup_matrices(units):
    for layouts in LAYOUTS:
        code = _printed(_lowered(_multiplier(*layouts)), _tint(units), 128)
        assert tint_error(code.source) is None
        assert "tensor_cores" in code.requires
        assert "subgroupMatrixMultiplyAccumulate" in code.source
        assert "subgroupShuffle(" not in code.source.replace("subgroupShuffle(value, from", "")


@pytest.mark.parametrize(
    "target",
    [
        _tint(()),
        _tint(((32, 8, 16),)),
        _tint(UNITS[0], features=frozenset({"float16", "subgroups"})),
        _tint(UNITS[0], limits=Limits(64, Dim3(64, 64, 64), subgroup_size=32)),
        _tint(UNITS[0], limits=Limits(256)),
        _tint(UNITS[0], dialect="naga"),
    ],
    ids=["no units", "32 x 8", "no feature", "small blocks", "no subgroups", "naga"],
)
def test_words_elsewhere(target):
    """Also where several threads are run by one invocation."""
    code = _printed(_lowered(_multiplier(*LAYOUTS[0])), target, 128)
    assert "subgroup_matrix" not in code.source
    assert "tensor_cores" not in code.requires
    if target.dialect == "tint":
        assert tint_error(code.source) is None


LOADINGS = [
    (Loading(True, 4, aligned=True), Loading(False, 4, aligned=True)),
    (Loading(False, 4), Loading(True, 4)),
    (Loading(False, 1), Loading(True, 4, computed=True)),
]


@pytest.mark.parametrize("loadings", LOADINGS, ids=["aligned", "vectors", "computed"])
def test_the_product(loadings):
    """It has no more shared memory than its tile says."""
    tile = OpaqueTile(64, 64, 16, 32, 32)
    kernel = opaque_multiplier(Form(td.float16, 0, *loadings, 4, False, False), tile)
    code = _printed(_lowered(kernel), _tint(UNITS[0]), tile.threads)
    assert tint_error(code.source) is None
    assert code.source.count("subgroupMatrixStore") == 16 // 4
    assert code.shared_bytes <= tile.shared_bytes(2)


@pytest.mark.parametrize(("depth", "width", "split"), [(64, 48, False), (40, 16, True)])
def test_attention(depth, width, split):
    """Barriers under a condition that is read from shared memory, which Tint wants to be proved."""
    tile = OpaqueAttentionTile(64, 16)
    query, value = (rows_of(td.float16, columns, ()) for columns in (depth, width))
    kernel = opaque_attender(OpaqueAttending(query, value, split), tile)
    for units in UNITS:
        code = _printed(_lowered(kernel), _tint(units), tile.threads)
        assert tint_error(code.source) is None
        assert "tensor_cores" in code.requires
        assert code.shared_bytes == tile.bytes(query, value)


@cache
def _on_the_cpu() -> Batch:
    target = find_target("msl").generic
    kernels = {layouts: _lowered(_multiplier(*layouts)) for layouts in LAYOUTS}
    return Batch("msl", {"-".join(k): _printed(v, target, 64) for k, v in kernels.items()})


@pytest.mark.parametrize("layouts", LAYOUTS, ids="-".join)
def test_metal(layouts):
    name, rng = "-".join(layouts), np.random.default_rng()
    x, y = rng.standard_normal((16, 32)), rng.standard_normal((32, 16))
    x, y = x.astype(np.float16), y.astype(np.float16)
    assert "simdgroup_multiply_accumulate" in _on_the_cpu().codes[name].source
    given = [
        np.ascontiguousarray(each.T if layout == "column" else each).reshape(-1)
        for each, layout in zip((x, y), layouts, strict=False)
    ]
    for first in (0, 400):  # of which the second leaves the array
        z = np.zeros(256, np.float32)
        sizes = {"x.size": 512, "y.size": 512, "z.size": 256, "first": first}
        _on_the_cpu().run(name, 1, {"x": given[0], "y": given[1], "z": z}, sizes)
        found = z.reshape(16, 16).T if layouts[2] == "column" else z.reshape(16, 16)
        wanted = 0.5 + (x.astype("f8") @ y.astype("f8")) * (first == 0)
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)


def test_the_text_of_the_ir_has_them():
    kernel = _lowered(_multiplier(*LAYOUTS[2]))
    text = to_text(kernel)
    again = from_text(text)
    assert to_text(again) == text
    stores = [node for node in walk(again.body) if isinstance(node, n.OpaqueStore)]
    assert stores
    assert all(node.columns for node in stores)
    for words in ("subgroup opaque_rows", "subgroup opaque_columns", "opaque columns out["):
        assert words in text
