"""Errors that PyTorch raises as RuntimeError and treadle as something else: both are caught."""

from __future__ import annotations

import numpy as np

from treadle.core.errors import (
    DeviceNotFound,
    DtypeError,
    LaunchError,
    OutOfMemory,
    ShapeError,
    TreadleError,
)


class OutOfMemoryError(OutOfMemory, RuntimeError):
    """An allocation that the device has no room for."""


class TorchShapeError(ShapeError, RuntimeError):
    """Shapes that do not fit: a RuntimeError, as PyTorch's programs expect."""


class TorchDtypeError(DtypeError, RuntimeError):
    """A dtype that does not fit, or that the device does not have."""


class TorchLaunchError(LaunchError, RuntimeError):
    """An operation that is refused, as one on tensors of two devices."""


class TorchDeviceNotFound(DeviceNotFound, RuntimeError):
    """A device that this machine does not have."""


class LinAlgError(np.linalg.LinAlgError, RuntimeError):
    """A matrix that is singular, or not positive definite."""


_KINDS: dict[type[Exception], type[Exception]] = {
    np.linalg.LinAlgError: LinAlgError,
    OutOfMemory: OutOfMemoryError, ShapeError: TorchShapeError, DtypeError: TorchDtypeError,
    LaunchError: TorchLaunchError, DeviceNotFound: TorchDeviceNotFound,
}  # fmt: skip
CAUGHT = (TreadleError, np.linalg.LinAlgError)


def translated(error: Exception) -> Exception:
    """The same error, as one that is a RuntimeError too where PyTorch's is one."""
    kind = _KINDS.get(type(error))
    return error if kind is None else kind(*error.args)
