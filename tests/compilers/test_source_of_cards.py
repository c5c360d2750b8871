"""Kernels of one's own as text for cards of a compute capability: `source(…, sm=80)`."""

from __future__ import annotations

import pytest

import treadle as td
from tests.support.ptxas import assemble
from treadle.core.errors import CompileError


@td.kernel
def product(x: td.Array[td.f16, 2], y: td.Array[td.f16, 2], z: td.Array[td.f32, 2]):
    tile = td.shared((16, 16), td.f16)
    for i in range(8):
        place = td.thread_idx.x + 32 * i
        tile[place // 16, place % 16] = x[place // 16, place % 16]
    td.sync_threads()
    a = td.fragment(16, 16, td.f16, "a")
    b = td.fragment(16, 8, td.f16, "b")
    sums = td.fragment(16, 8, td.f32, "accumulator")
    sums.fill(0.0)
    a.load(tile, (0, 0), aligned=True)
    b.load(y, (0, 0))
    sums.multiply_add(a, b)
    sums.store(z, (0, 0))


WMMA = """
#include <mma.h>
using namespace nvcuda;

__global__ void product(half *x, half *y, float *z) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> a;
    wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major> b;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums;
    wmma::fill_fragment(sums, 0.0f);
    wmma::load_matrix_sync(a, x, 16);
    wmma::load_matrix_sync(b, y, 16);
    wmma::mma_sync(sums, a, b, sums);
    wmma::store_matrix_sync(z, sums, 16, wmma::mem_row_major);
}
"""


def kernels():
    return {"python": product, "wmma": td.cuda_module(WMMA).kernel("product")}


@pytest.mark.parametrize("sm", [None, 70, 75, 80, 89, 90, "90a", "sm_100"])
@pytest.mark.parametrize("name", ["python", "wmma"])
def test_fragments_are_what_a_card_has(name, sm):
    text = kernels()[name].source("ptx", block=32, sm=sm)
    has = sm not in (None, 70)
    assert ("mma.sync" in text) == has
    assert ("ldmatrix" in text) == (has and name == "python")
    assembled = assemble(text, f"sm_{str(sm or 75).removeprefix('sm_').replace('70', '75')}")
    assert assembled.error is None


@pytest.mark.parametrize("name", ["python", "wmma"])
def test_fragments_in_cuda_cpp(name):
    kernel = kernels()[name]
    assert "mma.sync" in kernel.source("cuda", block=32, sm=80)
    assert "mma.sync" not in kernel.source("cuda", block=32)


@td.stencil(boundary="clamp")
def right(u: td.Array[td.f32, 2], out: td.Array[td.f32, 2], pos: td.GridPos):
    out[pos] = pos.east(u)


def test_stencils_take_it_too():
    assert right.source("ptx", sm=90).startswith("//")


@pytest.mark.parametrize(
    ("target", "sm", "words"),
    [
        ("ptx", 61, "sm is one of 70, 75, .* not 61"),
        ("ptx", "100a", "sm is one of .* and 90a, not '100a'"),
        ("ptx", "Hopper", "not 'Hopper'"),
        ("cuda", "90a", "sm 90a is for ptx"),
        ("wgsl", 80, "sm is for ptx and cuda, not for wgsl"),
        ("ir", 80, "not for ir"),
        ("fortran", 80, "unknown target"),
    ],
)
def test_what_is_no_card(target, sm, words):
    with pytest.raises(CompileError, match=words):
        product.source(target, sm=sm)
