"""What a model's first token waits for."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import treadle as td
from tests.support import small_llama
from treadle.formats.gguf import GgufSource, write_gguf
from treadle.quant.blocks import FORMATS
from treadle.runtime import counters

TOKENS = [10, 20, 30, 40, 50]


def written(path: Path, layers: int, kind: str) -> Path:
    """A file of a model of so many layers, with the same sizes as all others."""
    metadata = {**small_llama.METADATA, "llama.block_count": layers}
    given = small_llama.tensors(np.float32)
    tensors = {}
    for name, value in given.items():
        blocks = FORMATS[kind].quantize(value).reshape(-1) if value.ndim == 2 else None
        sources = [name]
        if name.startswith("blk.0."):
            sources = [name.replace("blk.0.", f"blk.{layer}.") for layer in range(layers)]
        elif name.startswith("blk."):
            continue
        for each in sources:
            tensors[each] = (
                value if blocks is None else GgufSource(value.shape, kind, lambda b=blocks: b)
            )
    write_gguf(path, metadata, tensors)
    return path


@pytest.mark.parametrize(("device", "kind"), [("cpu", "q4_1"), ("webgpu", "q8_0")])
def test_more_layers_need_no_more_kernels(device: str, kind: str, tmp_path: Path) -> None:
    """All layers have the kernels of the first three, for a prompt and for one more token."""
    made = []
    for layers in (3, 9):
        path = written(tmp_path / f"{layers}.gguf", layers, kind)
        model = td.models.load(path, device, context=32, progress=False)
        before = counters.counts()
        assert len(list(model.generate(TOKENS, max_tokens=3))) >= 0
        made.append((counters.counts() - before).kernels)
    assert made[0] > 0
    assert made[1] == 0, made


def test_a_model_on_the_cpu_opens_no_other_driver(tmp_path: Path) -> None:
    """To find the default device would load WebGPU's drivers, and 90 MB with them."""
    import subprocess
    import sys

    path = written(tmp_path / "model.gguf", 2, "q8_0")
    program = f"""
import treadle as td
from treadle.runtime import devices

def refused(name, *rest):
    assert name == "cpu", name
    return found(name, *rest)

found, devices._infos = devices._infos, refused
model = td.models.load({str(path)!r}, "cpu", context=32, progress=False)
for _ in model.generate({TOKENS!r}, max_tokens=2):
    pass
assert devices.known_default() is None
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.returncode == 0, ran.stderr
