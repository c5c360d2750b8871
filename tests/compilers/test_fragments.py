"""Operations on the matrices of a subgroup, through ptxas for each generation of cards, and what it
says of the products that are made of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

import treadle as td
from tests.compilers.test_ptx import printed
from tests.support.ptxas import assemble, ptxas_error
from treadle.codegen import pipeline
from treadle.codegen.records import Options
from treadle.codegen.target import find_target
from treadle.core.dim3 import Dim3
from treadle.core.dtypes import BY_SHORT_NAME
from treadle.ir import nodes as n
from treadle.ir.builder import Builder, builtin, load
from treadle.ir.matrices import FIRST, PRODUCTS, operand_types
from treadle.ir.signature import Signature
from treadle.ir.types import F32, Vector
from treadle.kernels import attention_tiles
from treadle.kernels.convolve_fragments import TILES, WEIGHT_TILES, WEIGHT_TILES_OF_TF32
from treadle.kernels.device_code.attention_fragments import FragmentAttending, fragment_attender
from treadle.kernels.device_code.attention_gradients import (
    Deriving,
    key_gradients,
    query_gradient,
)
from treadle.kernels.device_code.attention_tiles import Rows
from treadle.kernels.device_code.fragment_convolution import fragment_convolver
from treadle.kernels.device_code.fragment_convolution_weights import fragment_weight_summer
from treadle.kernels.device_code.fragment_product import fragment_multiplier
from treadle.kernels.device_code.matrix_product import Form, Loading
from treadle.kernels.tiles import FRAGMENT_TILES
from treadle.runtime.arguments import declared_arguments

ARCHITECTURES = ["sm_70", "sm_75", "sm_80", "sm_89", "sm_90", "sm_100"]


def every_operation() -> n.Kernel:
    """A block of two warps that do each of them once, and that copy to shared memory."""
    b = Builder("matrices", block=64)
    out, source = b.buffer("out", Vector(F32, 4)), b.buffer("source", FIRST)
    tile = b.memory("shared", "tile", FIRST, 64)
    lane = b.let("lane", builtin("thread_idx"))
    place = n.Element(tile.name, lane, FIRST)
    b.emit(n.Assign(place, load(source, lane), later=True), n.Copies(), n.Copies(0), n.Barrier())
    for op in n.MATRIX_OPERATIONS:
        types = operand_types(op)
        operands = [b.variable(f"{op}.{at}", type) for at, type in enumerate(types)]
        b.assign(operands[0], n.Load(place, FIRST))
        given = (n.Load(place, FIRST),) if op not in PRODUCTS else tuple(operands)
        b.emit(n.Subgroup(op, given, operands[-1]))
        parts = tuple(
            n.Cast(n.Extract(operands[-1], c, types[-1].element), F32)  # type: ignore[union-attr]
            for c in "xyzw"
        )
        b.store(out, lane, n.Construct(parts, Vector(F32, 4)))
    return b.kernel()


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_operation(architecture):
    """Older cards have shuffles in place of what they lack, and copy at once. One of 7.5 makes a
    product of several."""
    number = int(architecture[3:])
    source = printed(every_operation(), architecture).source
    assert (
        ptxas_error(source, "sm_75" if number < 75 else architecture) is None
    )  # it knows no older one
    assert source.count("mma.sync") == {70: 0, 75: 18}.get(number, 7)
    assert source.count("ldmatrix") == (2 if number >= 75 else 0)
    assert ("cp.async.cg.shared.global" in source) == (number >= 80)
    assert ("shfl.sync" in source) == (number < 80)


@pytest.mark.parametrize("language", ["wgsl", "msl"])
def test_shuffles_elsewhere(language):
    options = Options(Dim3(64), (("out", 0), ("source", 1)))
    target = find_target(language).generic
    code = pipeline.print_code(pipeline.lower(every_operation(), options, target), options, target)
    assert ("subgroupShuffle" if language == "wgsl" else "simd_shuffle") in code.source


def lowered(kernel, threads: int) -> n.Kernel:
    made = kernel.lower(Signature(declared_arguments(kernel))).kernel
    return replace(made, block=Dim3(threads))


@pytest.mark.parametrize(
    ("architecture", "dtype", "along", "number"),
    [
        ("sm_80", "float16", False, 0),
        ("sm_90", "float16", False, 0),
        ("sm_100", "float16", False, 0),
        ("sm_75", "float16", False, 1),
        ("sm_90", "float32", True, 0),
        ("sm_90", "float32", False, 2),
        ("sm_90", "int8", True, 0),
        ("sm_90", "int8", False, 2),
    ],
)
def test_registers(architecture, dtype, along, number):
    """Tiles leave registers: nothing is spilled, and a block of them fits. That of the table is
    the largest for a dtype, whose second factor is `along` the inner axis or has to be turned."""
    dtype = getattr(td, dtype)
    tile = FRAGMENT_TILES["large"][number].of(dtype)
    aligned = Loading(True, 4, aligned=True), Loading(along, 4, aligned=True)
    kernel = fragment_multiplier(Form(dtype, 0, *aligned, 4, False, False), tile)
    text = printed(lowered(kernel, tile.threads), architecture).source
    assembled = assemble(text, architecture)
    assert assembled.error is None
    assert assembled.number("bytes spill stores") == 0
    assert assembled.number("registers") * tile.threads <= 1 << 16
    copies = ("cp.async.cg", "cp.async.wait_group") if architecture != "sm_75" else ()
    for word in ("ldmatrix", "mma.sync", *copies):
        assert word in text
    assert "shfl" not in text[: text.rindex("mma.sync")]
    assert ".local" not in text


def _of_attention() -> Iterator[Any]:
    """The kernels of attention for the first tiles of the tables."""
    for columns, tiles in attention_tiles._TILES.items():
        rows = Rows(td.float16, columns, True, True)
        what = FragmentAttending(rows, rows, None, False, False, 4)
        yield pytest.param(fragment_attender, what, tiles[0], id=f"{columns}")
    for columns, tiles in attention_tiles._QUERY_GRADIENTS.items():
        rows = Rows(td.float16, columns, True, True)
        what = Deriving(rows, rows, rows, None, False, td.float16, 4, 4)
        yield pytest.param(query_gradient, what, tiles[0], id=f"query-{columns}")
    for columns, choices in attention_tiles._KEY_GRADIENTS.items():
        rows = Rows(td.float16, columns, True, True)
        what = Deriving(rows, rows, rows, None, False, td.float16, 4, 4)
        tiles = choices[0]
        for i, tile in enumerate(tiles):
            part = what if len(tiles) == 1 else what._replace(keys=i == 0, values=i == 1)
            yield pytest.param(key_gradients, part, tile, id=f"keys-{columns}-{i}")


@pytest.mark.parametrize(("make", "what", "tile"), list(_of_attention()))
def test_registers_of_attention(make, what, tile):
    """Sums and scores are in registers, of which a block has enough."""
    kernel = lowered(make(what, tile), tile.threads)
    text = printed(kernel, "sm_90").source
    assembled = assemble(text, "sm_90")
    assert assembled.error is None
    assert assembled.number("bytes spill stores") == 0
    assert assembled.number("registers") * tile.threads <= 1 << 16
    assert ".local" not in text


def test_attention_with_everything():
    """bfloat16, masks, dropout, and rows that are not aligned, on the oldest cards."""
    rows = Rows(td.bfloat16, 48, False, False)
    tile, gradient_tile = attention_tiles._MODEST, attention_tiles._MODEST_GRADIENT
    kernel = fragment_attender(FragmentAttending(rows, rows, td.bool, True, True, 1), tile)
    text = printed(lowered(kernel, tile.threads), "sm_80").source
    assert assemble(text, "sm_80").error is None
    what = Deriving(rows, rows, rows, td.float32, True, td.float32, 1, 1)
    for make in (query_gradient, key_gradients):
        kernel = make(what, gradient_tile)
        text = printed(lowered(kernel, gradient_tile.threads), "sm_80").source
        assert assemble(text, "sm_80").error is None


@pytest.mark.parametrize(
    ("architecture", "dtype"), [("sm_80", "f16"), ("sm_90", "f16"), ("sm_90", "f32")]
)
@pytest.mark.parametrize("weights", [False, True], ids=["forward", "weights"])
def test_registers_of_convolutions(architecture, dtype, weights):
    """Of the largest tiles, too."""
    if weights:
        tiles = {"f16": WEIGHT_TILES, "f32": WEIGHT_TILES_OF_TF32}
        tile = tiles[dtype][0]
        kernel = fragment_weight_summer(BY_SHORT_NAME[dtype], tile)
    else:
        tile = TILES[0]
        kernel = fragment_convolver(BY_SHORT_NAME[dtype], tile, True, 4)
    text = printed(lowered(kernel, tile.threads), architecture).source
    assembled = assemble(text, architecture)
    assert assembled.error is None
    assert assembled.number("bytes spill stores") == 0
    assert assembled.number("registers") * tile.threads <= 1 << 16
    assert "cp.async.cg" in text
    assert ("ldmatrix" in text) == (not weights or dtype == "f16")
    # Only sums are exchanged, at the end.
    sums = tile.warp_rows // 16 * (tile.warp_columns // 8)
    assert text.count("shfl.sync") == 2 * sums
    assert ".local" not in text
