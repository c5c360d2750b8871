"""Errors that PyTorch raises as RuntimeError and treadle as something else: both are caught."""

from __future__ import annotations

from treadle.core.errors import ShapeError


class TorchShapeError(ShapeError, RuntimeError):
    """Shapes that do not fit: a RuntimeError, as PyTorch's programs expect."""

    @classmethod
    def of(cls, error: ShapeError) -> ShapeError:
        """The same error, as this one."""
        return error if isinstance(error, RuntimeError) else cls(*error.args)
