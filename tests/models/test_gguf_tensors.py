"""The tensors of a published file, on devices, beside gguf's reading of the same bytes."""

from __future__ import annotations

import re
from pathlib import Path

import gguf
import numpy as np
import pytest

import treadle as td


@pytest.mark.parametrize("device", ["cpu", "webgpu"])
@pytest.mark.parametrize("model", ["gemma", "smollm"])
def test_tensors_of_published_files(request, model, device):
    g = td.load_gguf(request.getfixturevalue(model), device=device)
    g.check()
    seen = set()
    for name, tensor in g.tensors.items():
        if tensor.type in seen:
            continue
        seen.add(tensor.type)
        found = g[name]
        assert found.shape == tensor.shape
        if isinstance(found, td.Tensor):
            assert np.isfinite(found.numpy()).all()
            continue
        assert found.format.name == tensor.type
        row_bytes = tensor.nbytes // tensor.shape[0]
        raw = g._file.raw(name)[: 64 * row_bytes].reshape(64, row_bytes)
        kind = gguf.GGMLQuantizationType(found.format.number)
        assert np.array_equal(found[:64].numpy(), gguf.quants.dequantize(raw, kind))
        assert np.array_equal(found[:64].blocks().reshape(64, -1), raw)
        # What was rounded once loses almost nothing when it is rounded again.
        again = td.quant.quantize(found[:64].dequantize(), found.format)
        lost = again.numpy() - found[:64].numpy()
        assert np.sqrt((lost**2).mean()) < 0.02 * found[:64].numpy().std()
    assert seen >= ({"q4_k", "q5_0", "q6_k", "q8_0", "f32"} if model == "gemma" else {"q4_1"})


def test_what_was_copied_is_not_held_twice(gemma):
    """The bytes of the file are mapped: once a tensor is on the device they need no memory here."""
    status = Path("/proc/self/status")
    if not status.exists():  # Linux alone says what memory is the files'
        return
    g = td.load_gguf(gemma, device="cpu")

    def mapped() -> int:
        found = re.search(r"RssFile:\s+(\d+) kB", status.read_text())
        return int(found[1]) >> 10

    before = mapped()
    raw = g._file.raw("token_embd.weight")
    assert raw.sum(dtype=np.int64) > 0
    assert mapped() > before + 100
    kept = g["token_embd.weight"]
    assert mapped() < before + 20
    assert np.array_equal(kept[:1].blocks().reshape(-1), raw[: kept.format.nbytes * 20])
