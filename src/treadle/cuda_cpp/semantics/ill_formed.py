"""The error of what no compiler of C++ takes, as opposed to what kernels cannot have here."""

from __future__ import annotations

from treadle.core.errors import CompileError


class IllFormed(CompileError):
    """An ill-formed program: it is reported when the file is opened, whatever is launched."""
