"""Every WGSL that a test launches through naga also goes through Tint."""

from __future__ import annotations

import re
from dataclasses import replace

from tests.support.tint import tint_error
from treadle.codegen import pipeline
from treadle.codegen.records import KernelCode, Options, Target
from treadle.core.dim3 import Dim3
from treadle.core.errors import UnsupportedOnTarget

# What Dawn's WGSL has at all; kernels that need more are refused for it, which is no fault.
_TINT_FEATURES = frozenset({"float16", "subgroups"})
_TINT_THREADS = 256  # in a workgroup, on the adapter that checks
_TINT_BUFFERS = 8
_TINT_SHARED = 16 << 10
# Beyond that adapter's 16 KiB and 8 buffers; Tint had nothing against the text itself by then.
_TOO_MUCH_SHARED = "total use of workgroup storage"
_TOO_MANY_BUFFERS = "number of storage buffers"


# What may be spelled in another way for Tint: barriers, which it must see to be uniform, subgroups,
# fences and types of 64 bits. A text without any is the same for both, but for a cast that both
# take.
_ANOTHER_SPELLING = re.compile(
    r"Barrier|UniformLoad|subgroup|@coherent|[fiu]64|\dl[fiu]\b|atomic<f32|^enable (?!f16)", re.M
)


def check_with_tint() -> None:
    """From here on, WGSL that is printed for a device is printed for Tint too where that may be
    another text, and Tint is asserted to take it."""
    plain = pipeline.print_code

    def print_code(lowered: pipeline.Lowered, options: Options, target: Target) -> KernelCode:
        code = plain(lowered, options, target)
        if target.language == "wgsl" and target.dialect == "naga":
            if not _is_for_both(code, lowered):
                _assert_tint_takes(plain, lowered, options, target)
            elif error := tint_error(code.source):
                raise AssertionError(f"Tint refuses what naga takes:\n{error}\n{code.source}")
        return code

    pipeline.print_code = print_code


def _is_for_both(code: KernelCode, lowered: pipeline.Lowered) -> bool:
    """Whether Tint may be given a text that was printed for naga, on the adapter that checks."""
    return (
        lowered.workgroup.count <= _TINT_THREADS
        and len(code.bindings) <= _TINT_BUFFERS
        and code.shared_bytes <= _TINT_SHARED
        and not _ANOTHER_SPELLING.search(code.source)
    )


def _assert_tint_takes(
    plain: object, lowered: pipeline.Lowered, options: Options, target: Target
) -> None:
    features = target.features & _TINT_FEATURES
    if lowered.workgroup.count > _TINT_THREADS:  # only the head of the text would differ
        lowered = replace(lowered, workgroup=Dim3(_TINT_THREADS))
    try:
        code = plain(lowered, options, replace(target, dialect="tint", features=features))  # type: ignore[operator]
    except UnsupportedOnTarget:
        return
    error = tint_error(code.source)
    if error and _TOO_MUCH_SHARED in error and code.shared_bytes > _TINT_SHARED:
        return
    if error and _TOO_MANY_BUFFERS in error and len(code.bindings) > _TINT_BUFFERS:
        return
    assert error is None, f"Tint refuses what naga takes:\n{error}\n{code.source}"
