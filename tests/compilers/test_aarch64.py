"""The cpu printer's code on 64-bit Arm: LLVM makes object files of it, they need nothing but a C
library, and they use the vector registers.
"""

from __future__ import annotations

import random
import re

import numpy as np
import pytest

import treadle as td
from benchmarks import kernels
from tests.compilers.test_wgsl import all_operations
from tests.support import math_references
from tests.support.flow_programs import draw
from tests.support.ir_programs import random_kernel
from tests.support.objects import Processor, architecture, assembly, object_file, undefined_symbols
from treadle.codegen import pipeline
from treadle.codegen.records import Options, Target
from treadle.ir import nodes as n
from treadle.ir import types as t
from treadle.ir.parser import from_text

ARM = "aarch64-unknown-linux-gnu"
GENERIC = Processor(ARM)
SERVER = Processor(ARM, "neoverse-n1", "-sve")
SCALABLE = Processor(ARM, "neoverse-v1")  # with SVE
PROCESSORS = [GENERIC, SERVER]
# Of the C library, which every process that runs Python has: the remainder of floats, and copies.
PROVIDED = {"fmod", "fmodf", "memcpy", "memmove", "memset"}
SOME = np.zeros(64, np.float32)
WHOLE = np.zeros(64, np.int32)
WIDTHS = [(name, v) for name in t.SCALARS for v in (1, 3, 4) if v == 1 or name != "bool"]


def printed(kernel: n.Kernel) -> str:
    """A kernel's LLVM assembly after all passes."""
    options = Options(kernel.block, tuple((b.name, i) for i, b in enumerate(kernel.buffers)))
    target = Target("llvm")
    return pipeline.print_code(pipeline.lower(kernel, options, target), options, target).source


def check(source: str, processor: Processor) -> None:
    image = object_file(source, processor)
    assert architecture(image) == "aarch64"
    assert undefined_symbols(image) <= PROVIDED


@pytest.mark.parametrize("processor", PROCESSORS, ids=lambda one: one.name)
@pytest.mark.parametrize(("name", "vector"), WIDTHS)
def test_every_operation(name, vector, processor):
    check(printed(all_operations(t.SCALARS[name], vector)), processor)


@pytest.mark.parametrize("processor", PROCESSORS, ids=lambda one: one.name)
@pytest.mark.parametrize("seed", range(12))
def test_random_programs(seed, processor):
    check(printed(random_kernel(seed)), processor)


@pytest.mark.parametrize("processor", PROCESSORS, ids=lambda one: one.name)
@pytest.mark.parametrize("seed", range(8))
def test_threads_that_meet(seed, processor):
    pick = random.Random(seed).randrange
    text = draw(pick, (8, 3, 2), sync=True, warps=True, returns=seed % 2 == 0)
    check(printed(from_text(text)), processor)


KERNELS = {
    "saxpy": kernels.saxpy.source("llvm", 1.0, SOME, SOME, block=64),
    "add": kernels.add.source("llvm", SOME, SOME, SOME, block=64),
    "mandelbrot": kernels.mandelbrot.source("llvm", WHOLE.reshape(8, 8), 9, block=(8, 8)),
    "nbody": kernels.nbody.source("llvm", *[SOME.reshape(2, 32)] * 2, block=64),
    "block_sums": kernels.block_sums.source("llvm", SOME, SOME, block=256),
    "transpose": kernels.transpose.source("llvm", *[SOME.reshape(8, 8)] * 2, block=(32, 8)),
    "histogram": kernels.histogram.source("llvm", *[WHOLE.astype(np.uint32)] * 2, block=256),
    "scan_blocks": kernels.scan_blocks.source("llvm", WHOLE, WHOLE, WHOLE, block=256),
}


@pytest.mark.parametrize("processor", [*PROCESSORS, SCALABLE], ids=lambda one: one.name)
@pytest.mark.parametrize("name", KERNELS)
def test_kernels(name, processor):
    check(KERNELS[name], processor)


@pytest.mark.parametrize(
    ("type", "processor"),
    [
        *((type, PROCESSORS[0]) for type in ("f16", "bf16", "f32", "f64")),
        *((type, one) for type in ("f32", "f64") for one in PROCESSORS[1:]),
    ],
    ids=lambda each: getattr(each, "name", each),
)
def test_the_math_library(type, processor):
    lines = [f"    out[{k}] = td.{call}" for k, call in enumerate(_calls())]
    heading = (
        f"def functions(x: td.Array[td.{type}], out: td.Array[td.{type}]):\n    i = td.grid(1)"
    )
    kernel = td.kernel(source="\n".join([heading, *lines]))
    array = td.zeros(64, dtype=getattr(td, type), device="cpu")
    check(kernel.source("llvm", array, array, block=64), processor)


def _calls() -> list[str]:
    """A call of each function of the math library."""
    of_two = {"atan2", "pow", "hypot", "logaddexp"}
    return [f"{f}(x[i], x[i + 1])" if f in of_two else f"{f}(x[i])" for f in MATH]


MATH = [name for name in math_references.FUNCTIONS if hasattr(td, name)]


@pytest.mark.parametrize("processor", PROCESSORS, ids=lambda one: one.name)
def test_saxpy_uses_vector_registers(processor):
    text = assembly(KERNELS["saxpy"], processor)
    assert re.search(r"\bfm(ul|la)\s+v\d+\.4s", text), "no product of four floats at once"
    assert re.search(r"\b(ldp|ldr)\s+q\d+", text), "no load of 16 bytes"
