"""State that goes through a file: a snapshot as NumPy saves it starts and restores actors."""

from __future__ import annotations

import io
from typing import Any

import numpy as np
import pytest

import treadle as td


@td.struct
class Motor:
    gain: td.f32
    limits: td.vec2[td.f32]  # after 4 bytes of padding


@td.actor
def steer(
    message: td.f32,
    motor: Motor,
    count: td.i32,
    bias: td.f32,
    way: td.vec3[td.f32],
    total: td.Array[td.f32],
    table: td.Array[td.f32],
) -> td.f32:
    step = message * motor.gain + motor.limits.y + td.f32(count) + td.f32(bias)
    total[0] += step + way.z + table[0]
    return total[0]


def test_a_snapshot_in_a_file(device: td.Device, mode: str | None) -> None:
    given: dict[str, Any] = {
        "motor": Motor(2, (1, 2)), "count": 3, "bias": 1.5, "way": td.vec3[td.f32](1, 2, 3),
        "total": np.zeros(1, np.float32), "table": np.ones(1, np.float32),
    }  # fmt: skip
    with steer.spawn(mode=mode, **given) as ref:
        assert ref.ask(1.0, timeout=60) == 12.5
        snapshot = ref.snapshot(timeout=60)
        file = io.BytesIO()
        np.savez(file, **snapshot)
        file.seek(0)
        loaded = dict(np.load(file))
        ref.ask(0.0, timeout=60)
        ref.restore(loaded, timeout=60)
        assert ref.ask(1.0, timeout=60) == 25
        for name, other in (("motor", Motor(2, (1, 3))), ("way", (0, 0, 0)), ("count", 4)):
            value = td.vec3[td.f32](*other) if name == "way" else other
            with pytest.raises(td.errors.LaunchError, match=f"only reads its state {name}"):
                ref.restore({name: value}, timeout=60)
    for state in (snapshot, loaded):
        with steer.spawn(mode=mode, **state) as ref:
            assert ref.ask(1.0, timeout=60) == 25
