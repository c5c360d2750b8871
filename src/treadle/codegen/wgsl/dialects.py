"""Where the compilers of WGSL differ, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Dialect:
    """One compiler. `headers` are the lines that a used feature puts at the top of the text."""

    name: str
    features: frozenset[str]  # the features, of those a device may have, that it can express
    headers: Mapping[str, tuple[str, ...]]
    checks_uniformity: bool  # whether a barrier must provably be reached by all
    rounds_u32: bool  # whether every driver behind it rounds f32(u32) to the nearest


DIALECTS: dict[str, Dialect] = {
    "naga": Dialect(
        name="naga",
        features=frozenset({
            "float16", "float64", "int64", "subgroups", "float_atomics", "int64_atomics",
            "device_fences",
        }),
        headers={"float16": ("enable f16;",)},
        checks_uniformity=False,
        rounds_u32=True,
    ),
    "tint": Dialect(
        name="tint",
        features=frozenset({"float16", "subgroups", "tensor_cores"}),
        headers={
            "float16": ("enable f16;",),
            # CUDA code shuffles under conditions that are uniform in fact but not provably so.
            "subgroups": ("enable subgroups;", "diagnostic(off, subgroup_uniformity);"),
            "tensor_cores": (
                "enable chromium_experimental_subgroup_matrix;",
                "diagnostic(off, chromium.subgroup_matrix_uniformity);",
            ),
        },
        checks_uniformity=True,
        rounds_u32=False,  # SwiftShader, in Chrome without a GPU, rounds twice from 2³¹ on
    ),
}  # fmt: skip
