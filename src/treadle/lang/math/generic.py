"""Functions that are written once and computed in f32 and in f64.

The functions here are templates. They call their types `Float`, `Bits` and `Integer` (`formats`);
a name that means one thing in f32 and another in f64 is made by `either`:

    LN2_LOW = either(1.428606765330187e-06, 5.497923018708371e-14)

    @generic
    def exp(x: Float) -> Float: …

`exp.f32` and `exp.f64` are the functions of the kernel language that this stands for: the same code
with global names bound to one width's types, constants and functions. In kernels they are called
"exp" and "exp_f64". Inside a template other templates are called by their plain names; in a
function of one width the width is said (`exp.f32(x)`).

Where not only constants differ, the double precision version is written out, as the setter of a
property is:

    @exp.double
    def exp(x: Float) -> Float: …
"""

from __future__ import annotations

from types import FunctionType
from typing import Any

from treadle.core import forks

F32 = "f32"
F64 = "f64"


class Either:
    """What a global name means in each width."""

    __slots__ = ("f32", "f64")

    def __init__(self, f32: Any, f64: Any) -> None:
        self.f32 = f32
        self.f64 = f64


def either(f32: Any, f64: Any) -> Any:
    """The value of a global name: the first one in f32, the second one in f64."""
    return Either(f32, f64)


# Versions are made when they are first asked for, by whichever thread that is: all that belong
# together at once.
_making = forks.lock()


class Generic:
    """A function for both widths, or (see `widths`) for one: `f32` and `f64` are its versions."""

    def __init__(self, name: str, templates: dict[str, FunctionType]) -> None:
        self._name = name
        self._templates = templates
        self._versions: dict[str, FunctionType] = {}

    @property
    def widths(self) -> frozenset[str]:
        """The widths that there is a version for."""
        return frozenset(self._templates)

    def double(self, template: FunctionType) -> Generic:
        """Take another function for f64."""
        self._templates[F64] = template
        return self

    @property
    def f32(self) -> FunctionType:
        """The version in single precision."""
        return self.version(F32)

    @property
    def f64(self) -> FunctionType:
        """The version in double precision."""
        return self.version(F64)

    def version(self, width: str) -> FunctionType:
        """The version for a width: the same function at each call."""
        with _making:
            if width not in self._versions:
                name = self._name if width == F32 else f"{self._name}_{width}"
                made = self._made(self._templates[width], width, name)
                # The names of the module, this one among them, may have got their versions by it.
                self._versions.setdefault(width, made)
            return self._versions[width]

    def _made(self, template: FunctionType, width: str, name: str) -> FunctionType:
        return rebound(template, _namespace(template.__globals__, width), name)


def generic(template: FunctionType) -> Generic:
    """The function for both widths that a template stands for."""
    return Generic(template.__name__, {F32: template, F64: template})


def rebound(template: FunctionType, names: dict[str, Any], name: str) -> FunctionType:
    """A function with the same code as another one, under a name of its own, whose global names
    mean something else."""
    function = FunctionType(template.__code__, names, name, template.__defaults__)
    function.__annotations__ = dict(template.__annotations__)
    function.__doc__ = template.__doc__
    return function


_namespaces: dict[tuple[str, str], dict[str, Any]] = {}


def _namespace(module: dict[str, Any], width: str) -> dict[str, Any]:
    """A module's global names as they are in one width; the same dictionary at each call.

    It is made when a version is first asked for, when all names of the module have their values.
    """
    key = module["__name__"], width
    if key not in _namespaces:
        names = _namespaces[key] = dict(module)  # before the versions, which look it up
        names.update((name, of_width(value, width)) for name, value in module.items())
    return _namespaces[key]


def of_width(value: Any, width: str) -> Any:
    """What the value of a global name is in one width."""
    if isinstance(value, Either):
        return value.f32 if width == F32 else value.f64
    if isinstance(value, Generic) and width in value.widths:
        return value.version(width)
    return value
