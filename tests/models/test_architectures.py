"""Each architecture beside transformers' implementation, with random weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import treadle as td
from tests.models.peer_models import PEERS, references, write_peer


def check(name: str, folder: Path, device: str) -> None:
    """Logits within 1e-3 of transformers'."""
    given = references()[name]
    context = 64 if name == "phi3-short" else None
    path = write_peer(name, folder / "model.gguf")
    model = td.models.load(path, device, cache="f32", context=context)
    found = model.logits(given["tokens"]).numpy()
    for at, wanted in given["logits"].items():
        np.testing.assert_allclose(found[int(at)], wanted, atol=1e-3)


@pytest.mark.parametrize("name", PEERS)
def test_logits_are_those_of_transformers(name: str, tmp_path: Path) -> None:
    check(name, tmp_path, "cpu")


def test_experts_on_webgpu(tmp_path: Path) -> None:
    check("qwen3moe", tmp_path, "webgpu")
