"""Tiles in stages of shared memory, through ptxas: what it says of the products that are made of
them, and what other cards and languages get."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import pytest

import treadle as td
from tests.support.ptxas import assemble, disassembled
from treadle.codegen import pipeline
from treadle.codegen.records import KernelCode, Options
from treadle.codegen.target import find_target
from treadle.core.dim3 import Dim3
from treadle.core.errors import UnsupportedOnTarget
from treadle.drivers import offline
from treadle.ir.signature import Signature
from treadle.kernels import attention_tiles
from treadle.kernels.device_code.group_attention import GroupAttending, group_attender, lines_of
from treadle.kernels.device_code.group_attention_gradients import (
    GroupDeriving,
    group_key_gradients,
    group_query_gradient,
)
from treadle.kernels.device_code.group_product import GroupTile, group_multiplier
from treadle.kernels.device_code.matrix_product import Form, Loading
from treadle.kernels.tiles import GROUP_TILES, OTHER_GROUP_TILES
from treadle.lang.decorators import Kernel
from treadle.runtime.arguments import declared_arguments
from treadle.runtime.devices import Device

TILES = [*GROUP_TILES, OTHER_GROUP_TILES[0], *OTHER_GROUP_TILES[4:6]]


def _printed(
    language: str,
    dialect: str,
    tile: GroupTile,
    near: tuple[bool, bool],
    dtype: td.DType = td.float16,
    result: td.DType | None = None,
    other: td.DType | None = None,
) -> KernelCode:
    first, second = (Loading(each, 4, aligned=True) for each in near)
    form = Form(dtype, 0, first, second, 4, True, False, result=result, other=other)
    form = form._replace(parts=tile.streamed)
    return _print(language, dialect, group_multiplier(form, tile), tile.threads)


def _print(language: str, dialect: str, kernel: Kernel, threads: int) -> KernelCode:
    generic = find_target(language).generic
    limits = replace(generic.limits, max_shared_memory=227 << 10)
    target = replace(generic, dialect=dialect, limits=limits)
    lowered = kernel.lower(Signature(declared_arguments(kernel))).kernel
    slots = tuple((buffer.name, at) for at, buffer in enumerate(lowered.buffers))
    options = Options(Dim3(threads), slots)
    return pipeline.print_code(pipeline.lower(lowered, options, target), options, target)


@pytest.mark.parametrize("near", [(True, False), (True, True)], ids=["row", "column"])
@pytest.mark.parametrize("tile", TILES, ids=lambda tile: "x".join(map(str, tile[:3])))
def test_products_of_the_table(tile, near):
    """Sums stay in registers, and no multiplication waits where it need not: the assembler's
    advice C75.. says that it made them wait for each other."""
    assert_good(_printed("ptx", "sm_90", tile, near), tile)


@pytest.mark.parametrize(
    ("tile", "dtype", "result"),
    [
        (tile, *each)
        for number, tile in enumerate(TILES)
        for each in ((td.float32, None), (td.int8, (td.int32, None)[number % 2]))
    ],
    ids=lambda each: "x".join(map(str, each[:3])) if isinstance(each, GroupTile) else str(each),
)
def test_products_of_other_elements(tile, dtype, result):
    """TF32, and 8-bit integers whose results are the sums, or wrap."""
    assert_good(_printed("ptx", "sm_90", tile, (True, True), dtype, result), tile)


@pytest.mark.parametrize(
    ("dtype", "other"), [(td.uint8, None), (td.uint8, td.int8), (td.int8, td.uint8)]
)
def test_products_of_bytes_without_signs(dtype, other):
    """With one factor that has signs they need a newer PTX."""
    tile = GroupTile(64, 64, 2)
    code = _printed("ptx", "sm_90", tile, (True, True), dtype, td.int32, other)
    assert (".version 8.4\n" in code.source) == (other is not None)
    assert_good(code, tile)


def assert_good(code: KernelCode, tile: GroupTile) -> None:
    assert ".target sm_90a\n" in code.source
    assert len(code.maps) == 2
    found = assemble(code.source, "sm_90a")
    assert found.error is None
    assert "C75" not in found.log
    assert found.number("bytes spill stores") == 0
    assert found.number("registers") <= 65536 // tile.threads


_ROW, _COLUMN, _MATRIX = (4096,), (4096, 1), (4096, 4096)


@pytest.mark.parametrize(
    ("operands", "dtype", "takes"),
    [
        ([_ROW], td.float16, False),
        ([_MATRIX], td.bfloat16, False),
        ([_ROW, _MATRIX], td.float16, True),
        ([_MATRIX], td.float32, True),
        ([_COLUMN, _ROW, _ROW, _MATRIX, _MATRIX], td.float16, True),
    ],
    ids=["row", "matrix", "row and matrix", "float32", "several"],
)
def test_epilogues_have_registers_for_their_operands(operands, dtype, takes):
    """Beside the sums of the largest tile only one 16-bit operand has room: for more, its groups
    take registers from a group that copies."""
    info = offline.nvidia_card(90, "ptx", own=True)
    device = Device(offline.Backend(info), info)
    with td.use_device(device), td.Graph(device).capture():
        factor = td.float16 if dtype is td.float32 else dtype
        found = td.empty(_MATRIX, dtype=factor) @ td.empty(_MATRIX, dtype=factor)
        for shape in operands:
            found = found + td.empty(shape, dtype=dtype)
        found.realize()
    (launch,) = device.handle.default_stream.launches
    assert "m64n256k16" in launch.code.source
    assert ("setmaxnreg.inc.sync.aligned.u32 240" in launch.code.source) == takes
    assembled = assemble(launch.code.source, "sm_90a")
    assert assembled.error is None
    assert "C75" not in assembled.log
    assert assembled.number("bytes spill stores") == 0


def test_the_loops_are_short():
    """Copies are begun from uniform registers, and no step waits for all that was written: either
    would take about as long as the multiplications of a step."""
    code = _printed("ptx", "sm_90", TILES[0]._replace(tall=2), (True, False))
    lines = disassembled(code.source, "sm_90a")
    kinds = [line.split()[0] if not line.startswith("@") else line.split()[1] for line in lines]
    copies = [at for at, kind in enumerate(kinds) if kind.startswith("UTMALDG")]
    first, last = kinds.index("UCGABAR_WAIT"), len(kinds) - 1 - kinds[::-1].index("UCGABAR_ARV")
    assert copies
    assert not any(kind.startswith("MEMBAR") for kind in kinds[first:last])
    between = [kinds[a:b] for a, b in itertools.pairwise(copies) if b - a < 40]
    assert not any("R2UR" in some for some in between)


def _attention() -> Iterator[object]:
    """The kernels of the tables, for heads of each number of columns."""
    for columns, tile in attention_tiles._GROUP_TILES.items():
        lines = lines_of(columns)
        what = GroupAttending(td.float16, lines, lines, 4)
        yield pytest.param(group_attender, what, tile, id=f"{columns}")
    for columns, (query, keys) in attention_tiles._GROUP_GRADIENTS.items():
        lines = lines_of(columns)
        deriving = GroupDeriving(td.float16, lines, lines, td.float16, 4, 4, shared=False)
        yield pytest.param(group_query_gradient, deriving, query, id=f"{columns} query")
        for i, tile in enumerate(keys):
            part = deriving
            if len(keys) > 1:
                part = deriving._replace(keys=i == 0, values=i == 1)
            yield pytest.param(group_key_gradients, part, tile, id=f"{columns} keys {i}")


@pytest.mark.parametrize(("make", "what", "tile"), [*_attention()])
def test_attention_of_the_tables(make, what, tile):
    """As products; the exponentials of a step are computed while its values are multiplied."""
    code = _print("ptx", "sm_90", make(what, tile), tile.threads)
    found = assemble(code.source, "sm_90a")
    assert found.error is None
    assert "C75" not in found.log
    assert found.number("bytes spill stores") == 0
    if make is group_attender and what.depth == 1:
        lines = disassembled(code.source, "sm_90a")
        waits = [at for at, line in enumerate(lines) if "WARPGROUP.DEPBAR" in line]
        powers = [at for at, line in enumerate(lines) if "MUFU.EX2" in line]
        between = [sum(a < at < b for at in powers) for a, b in itertools.pairwise(waits)]
        assert between[:3] == [tile.keys // 2 + 2, tile.keys // 2 + 2, 0]


def test_kernels_without_tiles_are_for_all_cards():
    @td.kernel
    def plain(x: td.Array[td.f32]):
        x[0] = 1.0

    assert ".target sm_90a" not in plain.source("ptx", block=32)


@pytest.mark.parametrize("dialect", ["sm_80", "sm_89", "sm_100"])
def test_other_cards_refuse(dialect):
    with pytest.raises(UnsupportedOnTarget, match="for cards of compute capability"):
        _printed("ptx", dialect, GroupTile(64, 64, 2), (True, False))


@pytest.mark.parametrize("language", ["wgsl", "msl", "cuda"])
def test_at_once_elsewhere(language):
    dialect = {"wgsl": "naga", "cuda": "sm_90"}.get(language, "")
    source = _printed(language, dialect, GroupTile(64, 64, 2), (True, False)).source
    assert "wgmma" not in source
