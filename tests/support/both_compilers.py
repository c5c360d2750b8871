"""Every WGSL that a test launches through naga also goes through Tint."""

from __future__ import annotations

from dataclasses import replace

from tests.support.tint import tint_error
from treadle.codegen import pipeline
from treadle.codegen.records import KernelCode, Options, Target
from treadle.core.dim3 import Dim3
from treadle.core.errors import UnsupportedOnTarget

# What Dawn's WGSL has at all; kernels that need more are refused for it, which is no fault.
_TINT_FEATURES = frozenset({"float16", "subgroups"})
_TINT_THREADS = 256  # in a workgroup, on the adapter that checks
# Beyond that adapter's 16 KiB and 8 buffers; Tint had nothing against the text itself by then.
_TOO_MUCH_SHARED = "total use of workgroup storage"
_TOO_MANY_BUFFERS = "number of storage buffers"


def check_with_tint() -> None:
    """From here on, printing WGSL for a device prints it for Tint too, and asserts that Tint takes
    it."""
    plain = pipeline.print_code

    def print_code(lowered: pipeline.Lowered, options: Options, target: Target) -> KernelCode:
        code = plain(lowered, options, target)
        if target.language == "wgsl" and target.dialect == "naga":
            _assert_tint_takes(plain, lowered, options, target)
        return code

    pipeline.print_code = print_code


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
    if error and _TOO_MUCH_SHARED in error and code.shared_bytes > 16 << 10:
        return
    if error and _TOO_MANY_BUFFERS in error and len(code.bindings) > 8:
        return
    assert error is None, f"Tint refuses what naga takes:\n{error}\n{code.source}"
