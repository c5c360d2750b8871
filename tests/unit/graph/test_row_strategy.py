"""How rows are spread over a GPU, and what their kernels do to memory."""

from __future__ import annotations

import numpy as np
import pytest

import treadle as td
import treadle.nn.functional as F
from tests.support.ptx_device import ptx_device
from treadle.graph.emit.row_kernels import emit_rows
from treadle.graph.emit.row_strategy import row_strategy
from treadle.graph.emit.row_walk import Neighbours, RowVariant
from treadle.graph.groups import groups_of
from treadle.graph.program import Phase
from treadle.graph.schedule import Plan
from treadle.ir import nodes as n
from treadle.ir.traverse import walk
from treadle.kernels.machine import Machine

CARD = Machine(1024, 48 << 10, 32)
BROWSER = Machine(256, 16 << 10, 0)


def program_of(function, shape=(8, 8192)):
    with ptx_device("sm_90") as device, td.use_device(device):
        (group,) = groups_of(Plan([function(td.zeros(shape).realize())._node]))
        return group.program


def variant_of(program, extents, machine):
    (stage,) = row_strategy(program, extents, machine).stages
    assert isinstance(stage.variant, RowVariant)
    return stage.variant


@pytest.mark.parametrize(
    ("length", "threads", "held", "even", "rows"),
    [
        (32, 4, 2, True, 32),
        (1024, 32, 8, True, 4),
        (8192, 256, 8, True, 1),
        (8196, 512, 5, False, 1),
        (32768, 1024, 8, True, 1),
        (32772, 256, 0, False, 1),  # too long: read again
    ],
)
def test_a_row_is_held_by_as_many_threads_as_it_takes(length, threads, held, even, rows):
    program = program_of(lambda x: F.softmax(x, dim=1))
    variant = variant_of(program, (1 << 16, length), CARD)
    assert (variant.threads, variant.held, variant.even, variant.rows) == (
        threads,
        held,
        even,
        rows,
    )


def test_few_rows_get_more_threads_and_small_devices_fewer():
    program = program_of(lambda x: F.softmax(x, dim=1))
    assert variant_of(program, (16, 1024), CARD).threads == 256
    assert (
        variant_of(program, (1 << 16, 8192), BROWSER)[2:5]
        == RowVariant(Phase.WHOLE, Neighbours.ELEMENTS, 1, 256, 1)[2:5]
    )
    assert not variant_of(program, (1 << 16, 16384), BROWSER).held


@pytest.mark.parametrize("machine", [CARD, BROWSER])
def test_elements_are_loaded_once_as_vectors(machine):
    for function in (lambda x: F.softmax(x, dim=1), lambda x: F.layer_norm(x, 8192)):
        program = program_of(function)
        variant = variant_of(program, (4096, 8192), machine)
        found = list(walk(emit_rows(program, variant).body))
        loads = [
            each
            for each in found
            if isinstance(each, n.Load)
            and isinstance(each.place, n.Element)
            and each.place.memory.startswith("a")
        ]
        assert len(set(map(id, loads))) == 8
        assert not any(isinstance(each, (n.While, n.For)) for each in found)
        barriers = sum(isinstance(each, n.Barrier) for each in found)
        assert barriers == (2 if machine is CARD else 2 * 10)


def test_a_long_row_is_read_by_two_passes_that_many_blocks_share():
    program = program_of(lambda x: F.softmax(x, dim=1))
    stages = row_strategy(program, (1, 10_000_000), CARD).stages
    assert [stage.variant.phase for stage in stages] == [Phase.PART, Phase.JOIN, Phase.LAST]
    assert all(stage.variant.online for stage in stages)
    assert stages[0].grid.y > 500
    stages = row_strategy(program_of(lambda x: F.layer_norm(x, 8192)), (1, 10_000_000), CARD).stages
    assert [stage.variant.phase for stage in stages] == [
        Phase.PART, Phase.JOIN, Phase.PART, Phase.JOIN, Phase.LAST,
    ]  # fmt: skip


def test_neighbouring_threads_have_neighbouring_columns():
    program = program_of(lambda x: F.softmax(x, dim=0), (1000, 4096))
    variant = variant_of(program, (4096, 1000), CARD)
    assert (variant.along, variant.rows, variant.threads, variant.held) == (
        Neighbours.ROWS,
        32,
        32,
        32,
    )
    assert not row_strategy(program, (4096, 2000), CARD).stages[0].variant.held


def test_what_is_expensive_is_held_and_what_is_cheap_is_computed_again():
    from treadle.graph.emit.row_analysis import row_analysis

    softmax = program_of(lambda x: F.softmax(x, dim=1))
    held = [[softmax.steps[step].op for step in steps] for steps in row_analysis(softmax).held]
    assert held == [["load"], ["exp"]]
    assert row_analysis(softmax).words == 1
    norm = program_of(lambda x: F.layer_norm(x, 8192))
    held = [[norm.steps[step].op for step in steps] for steps in row_analysis(norm).held]
    assert held == [["load"], []]


def test_parts_are_joined_by_threads_that_share_them():
    """And not by one thread for each row, which would wait for one part after the other."""
    columns = program_of(lambda x: F.softmax(x, dim=0), (8192, 4096))
    part, join, last = row_strategy(columns, (4096, 8192), CARD).stages
    assert (part.grid.y, last.grid.y) == (64, 64)
    assert (join.variant.rows, join.variant.threads, join.variant.unroll) == (32, 8, 4)
    row = program_of(lambda x: F.softmax(x, dim=1))
    _, join, _ = row_strategy(row, (1, 10_000_000), CARD).stages
    assert (join.variant.rows, join.variant.threads, join.variant.unroll) == (1, 256, 4)


@pytest.mark.parametrize("length", [64, 255, 256, 257, 319, 321, 4097])
def test_passes_of_a_cpu_over_long_rows_take_more_vectors(length):
    x = np.random.default_rng().standard_normal((3, length)).astype(np.float32)
    x[1, length // 3] = np.nan
    x[2, ::2] = -np.inf
    with td.use_device("cpu"):
        result = F.softmax(td.asarray(x), dim=1)
        (group,) = groups_of(Plan([result._node]))
        variant = variant_of(group.program, (3, length), CARD)
    assert variant.long == (length >= 256)
    wide = x.astype(np.float64)
    powers = np.exp(wide - wide.max(1, keepdims=True))
    wanted = powers / powers.sum(1, keepdims=True)
    np.testing.assert_allclose(result.numpy(), wanted, rtol=3e-6, atol=1e-38)
