"""ptxas makes machine code of whatever the PTX printer writes, for three generations of GPUs."""

from __future__ import annotations

import itertools
import random
import re
from dataclasses import replace

import numpy as np
import pytest

import treadle as td
from benchmarks import kernels
from benchmarks.matmul import matmul_of
from tests.compilers.test_wgsl import all_operations
from tests.support import math_references
from tests.support.flow_programs import draw
from tests.support.ir_programs import random_kernel
from tests.support.ptxas import assemble, ptxas_error
from treadle.codegen import pipeline
from treadle.codegen.records import KernelCode, Options, Target
from treadle.core.dim3 import Dim3
from treadle.core.limits import Limits
from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.ir.builder import Builder, builtin, check, constant, element, load
from treadle.ir.parser import from_text
from treadle.ir.rules import subgroup_type
from treadle.ir.signature import Signature
from treadle.kernels.tiles import TILES
from treadle.runtime.arguments import declared_arguments

ARCHITECTURES = ["sm_75", "sm_80", "sm_90"]
LIMITS = Limits(max_shared_memory=227 << 10, max_threads_per_block=1024)
SOME = np.zeros(64, np.float32)
WHOLE = np.zeros(64, np.int32)


def printed(kernel: n.Kernel, architecture: str, folded: bool = False) -> KernelCode:
    """A kernel's PTX after all passes."""
    slots = tuple((buffer.name, i) for i, buffer in enumerate(kernel.buffers))
    options = Options(kernel.block, slots, folded)
    target = Target("ptx", architecture, LIMITS)
    return pipeline.print_code(pipeline.lower(kernel, options, target), options, target)


def check_kernel(kernel: n.Kernel, architecture: str, folded: bool = False) -> str:
    source = printed(kernel, architecture, folded).source
    assert ptxas_error(source, architecture) is None
    return source


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("name", t.SCALARS)
def test_every_operation(name, architecture):
    check_kernel(all_operations(t.SCALARS[name]), architecture)


@pytest.mark.parametrize("count", [2, 3, 4])
@pytest.mark.parametrize("name", ["i8", "u16", "i32", "i64", "f16", "bf16", "f32", "f64"])
def test_every_operation_on_vectors(name, count):
    check_kernel(all_operations(t.SCALARS[name], count), "sm_90")


@pytest.mark.parametrize("architecture", ["sm_75", "sm_90"])
@pytest.mark.parametrize("seed", range(16))
def test_random_programs(seed, architecture):
    check_kernel(random_kernel(seed), architecture)


@pytest.mark.parametrize("seed", range(16))
def test_threads_that_meet(seed):
    pick = random.Random(seed).randrange
    text = draw(pick, (8, 3, 2), sync=True, warps=True, returns=seed % 2 == 0)
    check_kernel(from_text(text), ARCHITECTURES[seed % 3], folded=seed % 4 == 0)


# --- atomics and subgroups ------------------------------------------------------------------------


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("space", ["global", "shared", "local"])
def test_atomics_of_every_type(space, architecture):
    b = Builder("atomics", block=64)
    thread = b.let("thread", builtin("thread_idx"))
    for type in (t.I32, t.U32, t.I64, t.U64, t.F32, t.F64):
        out = b.buffer(f"out_{type}", type)
        memory = b.memory(space, f"own_{type}", type, 64) if space != "global" else out
        old = b.variable(f"old_{type}", type)
        for number, op in enumerate(n.ATOMICS):
            if type.is_float and op in ("and", "or", "xor"):
                continue
            if type != t.U32 and op in ("inc", "dec"):
                continue
            operands = (constant(3, type),) * (2 if op == "cas" else 1)
            place = element(memory, constant(number, t.I32))
            checked = element(memory, thread, [check(thread, 60)])
            b.emit(n.Atomic(op, place, operands), n.Atomic(op, checked, operands, old))
        b.store(out, thread, old)
    check_kernel(b.kernel(), architecture)


@pytest.mark.parametrize(
    ("block", "architecture"),
    [
        *((256, each) for each in ARCHITECTURES),
        *zip([16, 7, (11, 3, 2)], itertools.cycle(ARCHITECTURES)),
    ],
)
def test_subgroup_operations_of_every_type(block, architecture):
    b = Builder("subgroups", block=block)
    lane = b.let("lane", builtin("lane"))
    for name, type in t.SCALARS.items():
        out = b.buffer(f"out_{name}", type)
        value = b.let(f"value_{name}", load(out, lane))
        for op, count in n.SUBGROUP_OPERATIONS.items():
            votes = op in ("vote_all", "vote_any", "ballot")
            if votes != (type == t.BOOL) and not (type == t.BOOL and count == 2):
                continue
            if op in ("and", "or", "xor") and not type.is_integer:
                continue
            result = b.variable(f"{op}_{name}", subgroup_type(op, type))
            operands = (value, constant(3, t.I32))[:count]
            b.emit(n.Subgroup(op, operands, result))
            if count == 2:
                b.emit(n.Subgroup(op, (value, lane), result))
            reduces = type.is_integer and type.bits == 32 and architecture != "sm_75"
            if op != "prefix_sum" and (op not in n.REDUCTIONS or reduces):
                b.emit(n.Subgroup(op, operands, result, constant(0x55, t.U32)))
            if result.type == type:
                b.store(out, lane, result)
    b.emit(n.Barrier("subgroup"), n.Fence("block"), n.Fence("device"))
    b.emit(n.Barrier("subgroup", constant(0x55, t.U32)))
    source = check_kernel(b.kernel(), architecture)
    assert ("redux.sync" in source) == (architecture != "sm_75")


# --- kernels of the language ----------------------------------------------------------------------

KERNELS = {
    "saxpy": kernels.saxpy.source("ptx", 1.0, SOME, SOME, block=64),
    "add": kernels.add.source("ptx", SOME, SOME, SOME, block=64),
    "mandelbrot": kernels.mandelbrot.source("ptx", WHOLE.reshape(8, 8), 9, block=(8, 8)),
    "nbody": kernels.nbody.source("ptx", *[SOME.reshape(2, 32)] * 2, block=64),
    "block_sums": kernels.block_sums.source("ptx", SOME, SOME, block=256),
    "transpose": kernels.transpose.source("ptx", *[SOME.reshape(8, 8)] * 2, block=(32, 8)),
    "histogram": kernels.histogram.source("ptx", *[WHOLE.astype(np.uint32)] * 2, block=256),
    "scan_blocks": kernels.scan_blocks.source("ptx", WHOLE, WHOLE, WHOLE, block=256),
}


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("name", KERNELS)
def test_kernels(name, architecture):
    assert ptxas_error(KERNELS[name], architecture) is None


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("tile", TILES[True, 4, "large"][:3], ids=["wide", "copied", "loaded"])
def test_the_tiled_matmul_stays_in_registers(tile, turned):
    kernel = matmul_of(tile, turned)
    lowered = kernel.lower(Signature(declared_arguments(kernel))).kernel
    source = printed(replace(lowered, block=Dim3(tile.threads)), "sm_90").source
    assert ("cp.async" in source) == tile.is_copied
    if tile.is_copied or not turned:
        # Those that a thread reads of shared memory for each step.
        vectors = tile.across + (tile.down if tile.is_copied else 0)
        assert len(re.findall(r"ld\.shared\.v4", source)) == vectors * tile.depth
    done = assemble(source, "sm_90")
    assert done.error is None
    # Two blocks run on a multiprocessor, or one of a large tile.
    assert done.number("registers") <= (128 if tile.rows * tile.columns <= 128 * 128 else 255)
    assert done.number("bytes stack frame") == 0
    assert done.number("bytes spill stores") == 0


@pytest.mark.parametrize("type", ["f16", "bf16", "f32", "f64"])
@pytest.mark.parametrize("fastmath", [False, True])
def test_the_math_library(type, fastmath):
    of_two = {"atan2", "pow", "hypot", "logaddexp"}
    lines = [
        f"    out[{k}] = td.{f}(x[i], x[i + 1])" if f in of_two else f"    out[{k}] = td.{f}(x[i])"
        for k, f in enumerate(f for f in math_references.FUNCTIONS if hasattr(td, f))
    ]
    heading = (
        f"def functions(x: td.Array[td.{type}], out: td.Array[td.{type}]):\n    i = td.grid(1)"
    )
    kernel = td.kernel(source="\n".join([heading, *lines]), fastmath=fastmath)
    array = td.zeros(64, dtype=getattr(td, type), device="cpu")
    assert ptxas_error(kernel.source("ptx", array, array, block=64), "sm_80") is None


def test_a_wrong_module_is_refused():
    error = ptxas_error(KERNELS["saxpy"].replace("mul.f32", "mul.b32"), "sm_90")
    assert error is not None
    assert "mul" in error
