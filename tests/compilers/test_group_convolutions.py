"""Convolutions by groups of 128 threads, through ptxas: sums stay in registers, no multiplication
waits where it need not (the assembler's advice C75..), and as many blocks fit as the planner counts
on."""

from __future__ import annotations

from dataclasses import replace

import pytest

import treadle as td
from tests.support.ptxas import assemble
from treadle.codegen import pipeline
from treadle.codegen.records import Options
from treadle.codegen.target import find_target
from treadle.core.dim3 import Dim3
from treadle.ir.signature import Signature
from treadle.kernels.convolve_groups import TILES, WEIGHT_TILES
from treadle.kernels.device_code.group_convolution import ConvolutionTile, group_convolver
from treadle.kernels.device_code.group_convolution_weights import group_weight_summer
from treadle.lang.decorators import Kernel
from treadle.runtime.arguments import declared_arguments

_SHARED = 227 << 10


def _name(tile: ConvolutionTile) -> str:
    return "x".join(map(str, tile))


@pytest.mark.parametrize("dtype", [td.float16, td.float32], ids=["f16", "tf32"])
@pytest.mark.parametrize("tile", TILES, ids=_name)
def test_convolutions(tile, dtype):
    narrow = dtype is td.float16
    _check(group_convolver(dtype, tile, True, narrow), tile)


def test_parts_of_the_inner_axis():
    tile = next(iter(TILES))
    _check(group_convolver(td.float16, tile, False, False, True), tile)


@pytest.mark.parametrize("tile", WEIGHT_TILES, ids=_name)
def test_gradients_of_weights(tile):
    _check(group_weight_summer(td.float16, tile), tile)


def _check(kernel: Kernel, tile: ConvolutionTile) -> None:
    generic = find_target("ptx").generic
    limits = replace(generic.limits, max_shared_memory=_SHARED)
    target = replace(generic, dialect="sm_90", limits=limits)
    lowered = kernel.lower(Signature(declared_arguments(kernel))).kernel
    slots = tuple((buffer.name, at) for at, buffer in enumerate(lowered.buffers))
    options = Options(Dim3(tile.threads), slots)
    code = pipeline.print_code(pipeline.lower(lowered, options, target), options, target)
    assert ".target sm_90a\n" in code.source
    assert code.shared_bytes <= tile.shared_bytes <= _SHARED
    found = assemble(code.source, "sm_90a")
    assert found.error is None
    assert "C75" not in found.log
    assert found.number("bytes spill stores") == 0
    blocks = min(_SHARED // tile.shared_bytes, 2)
    assert found.number("registers") <= 65536 // (tile.threads * blocks)
