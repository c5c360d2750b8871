"""Errors that PyTorch raises as RuntimeError and treadle as something else: both are caught."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np

from treadle.core.errors import (
    AutogradError,
    DeviceNotFound,
    DtypeError,
    LaunchError,
    OutOfMemory,
    ShapeError,
    TreadleError,
)
from treadle.tensor.tensor import Tensor as Inner

OutOfMemoryError = OutOfMemory


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


class TorchValueError(ValueError, RuntimeError):
    """An argument that has no such value: PyTorch raises one class or the other."""


class TorchOverflowError(OverflowError, RuntimeError):
    """A number that a dtype does not hold."""


_KINDS: dict[type[Exception], type[Exception]] = {
    np.linalg.LinAlgError: LinAlgError,
    ShapeError: TorchShapeError, DtypeError: TorchDtypeError,
    LaunchError: TorchLaunchError, DeviceNotFound: TorchDeviceNotFound,
    ValueError: TorchValueError, OverflowError: TorchOverflowError,
}  # fmt: skip
CAUGHT = (
    TreadleError, ValueError, OverflowError, IndexError, TypeError, AttributeError,
    NotImplementedError, BufferError,
)  # fmt: skip
# Names of treadle's functions in its messages.
_NAME = re.compile(r"\btd\.([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)")

_INNER = re.compile(r"[\w.]+\.<locals>\.\w+\(\)")


def of_another_library(given: Sequence[Any], name: str) -> TypeError | None:
    """What to do about an argument that is a tensor of PyTorch itself, if one is: what goes wrong
    with it rarely says so."""
    for value in given:
        each = value[0] if isinstance(value, (list, tuple)) and value else value
        if type(each).__module__.partition(".")[0] == "torch" and hasattr(each, "__dlpack__"):
            return TypeError(
                f"{name}() takes tensors of treadle.torch, not of PyTorch itself "
                f"({kind_of(each)}): torch.from_dlpack(x.detach()) makes one of it, which shares "
                "its memory"
            )
    return None


def instead_of(error: Exception, given: Sequence[Any], name: str) -> Exception:
    """What to raise for an error of a function called with arguments."""
    return of_another_library(given, name) or translated(error, given, name)


def translated(error: Exception, given: Sequence[Any] = (), name: str = "") -> Exception:
    """The same error in PyTorch's words, as one that is a RuntimeError too where PyTorch's is one.
    `given` are the arguments of the call, `name` the function's: what lacks an attribute of tensors
    is none."""
    if type(error) is AttributeError:
        wrong = [each for each in given if each is error.obj and not isinstance(each, Inner)]
        return TypeError(_no_tensor(name, wrong[0])) if wrong else error
    if len(error.args) == 1 and isinstance(error.args[0], str) and "td." in error.args[0]:
        error.args = (_NAME.sub(_spelled, error.args[0]),)
    if name and type(error) is TypeError and "<locals>" in str(error):
        error.args = (_INNER.sub(f"{name}()", str(error)),)
    if type(error) is AutogradError:
        for ours, theirs in _PHRASES.items():
            if ours in str(error):
                error.args = (f"{theirs}: {error}",)
    kind = _KINDS.get(type(error))
    return error if kind is None else kind(*error.args)


# Phrases of PyTorch's messages that programs look for, and parts of treadle's that say the same.
_PHRASES = {
    "a gradient can be left out for one element": (
        "grad can be implicitly created only for scalar outputs"
    ),
    "there is no backward pass from a tensor": (
        "element 0 of tensors does not require grad and does not have a grad_fn"
    ),
    "a second time, and the values that it needs are gone": (
        "Trying to backward through the graph a second time"
    ),
    "was changed in place after it was used": (
        "one of the variables needed for gradient computation has been modified by an inplace "
        "operation"
    ),
    "was not used for the outputs": (
        "One of the differentiated Tensors appears to not have been used in the graph"
    ),
    "a leaf that requires gradients is not written in place": (
        "a leaf Variable that requires grad is being used in an in-place operation"
    ),
    "this tensor is a view of a leaf that requires gradients": (
        "a view of a leaf Variable that requires grad is being used in an in-place operation"
    ),
}


def kind_of(value: Any) -> str:
    """The class of a value with its library, as several have tensors and arrays."""
    kind = type(value)
    library, *rest = kind.__module__.split(".")
    if library == "treadle" and rest[:1] in (["torch"], ["numpy"]):
        library += f".{rest[0]}"
    return kind.__name__ if library == "builtins" else f"{library}.{kind.__name__}"


def _no_tensor(name: str, value: Any) -> str:
    return (
        f"{name}() does not take a {kind_of(value)} there: torch.as_tensor makes tensors of "
        "numbers, lists and arrays"
    )


def _spelled(found: re.Match[str]) -> str:
    """A name of `td` as one of `torch`, if that has it."""
    value: Any = import_module("treadle.torch")
    for part in found[1].split("."):
        value = getattr(value, part, None)
    return f"{'treadle' if value is None else 'torch'}.{found[1]}"
