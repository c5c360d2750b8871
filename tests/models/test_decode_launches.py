"""How many launches a step of decoding takes on a GPU, where each costs microseconds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import treadle as td
from tests.models.peer_models import write_peer
from treadle.kernels import quantized_products
from treadle.models.cache import Cache
from treadle.models.model import Model
from treadle.models.sampler import Sampler, Stages
from treadle.models.steps import DecodeStep
from treadle.nn.containers import ModuleList
from treadle.runtime.profile import session

FUSED = ["multiply", "attend_new", "multiply", "multiply", "multiply"]
"""Query, key and value; attention, with their norms and rotations; its output; gate and up; down.
What comes before a product (norms, sums, gates, rounding) is in the product's kernel."""
PACKED = [
    "pack_rows", "multiply", "attend_new", "pack_rows", "multiply", "pack_rows", "multiply",
    "pack_rows", "multiply",
]  # fmt: skip
"""The same where products are too large for that."""


def launches(model: Model, layers: int, count: int = 1) -> tuple[list[str], list[int]]:
    """The kernels of a greedy step of a model cut to a few layers, and the tokens."""
    decoder = model.decoder
    whole, decoder.layers = decoder.layers, ModuleList(list(decoder.layers)[:layers])
    try:
        cache = Cache(model.config, model.device, 4, "f16")
        cache.layers = cache.layers[:layers]
        sampler = Sampler(count + 1, model.config.vocabulary, model.device)
        step = DecodeStep(decoder, cache, sampler, count, (count + 1, 3))
        table = np.arange(3 * count + 3, dtype=np.int32).reshape(-1, 3) % 4
        step.set([5] * count, [0] * count, list(range(count)), table)
        with td.profile() as found:
            tokens = step(Stages())[0].tolist()
        (replay,) = [entry for entry in found.entries if entry.kind == "replay"]
        return replay.name.split(), tokens
    finally:
        decoder.layers = whole


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("name", ["llama", "gemma3"])
def test_launches_of_a_layer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, fused: bool
) -> None:
    monkeypatch.setattr(quantized_products, "is_fused", lambda *_: fused)
    monkeypatch.setattr(session, "_replay_name", " ".join)
    path = write_peer(name, tmp_path / "model.gguf", "q8_0")
    wanted = td.models.load(path, "cpu", activations="float")
    model = td.models.load(path, "webgpu", activations="float")
    names, tokens = launches(model, 2, 2 if fused else 1)
    layer = FUSED if fused else PACKED
    before, after = names[:1], names[len(layer) * 2 + 1 :]
    assert names[1 : len(layer) * 2 + 1] == 2 * layer
    assert (len(before), after) == (1, [*layer[: 1 if fused else 2], "argmax", "advance"])
    assert tokens == launches(wanted, 2, len(tokens))[1]
