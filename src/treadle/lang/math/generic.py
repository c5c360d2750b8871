"""Functions that are written once for f32 and f64.

They are templates. Their types are called `Float`, `Bits` and `Integer` (`formats`). A global name
with different values in f32 and f64 is defined by `either`:

    LN2_LOW = either(1.428606765330187e-06, 5.497923018708371e-14)

    @generic
    def exp(x: Float) -> Float: …

`exp.f32` and `exp.f64` are its two functions of the kernel language: the same code with global
names bound to the types, constants and functions of one width. In kernels they are called "exp" and
"exp_f64". A template calls other templates by their plain names; a function of a single width calls
a version (`exp.f32(x)`).

If more than constants differ, the double precision version is defined separately, like the setter
of a property:

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
    """The values of a global name in each width."""

    __slots__ = ("f32", "f64")

    def __init__(self, f32: Any, f64: Any) -> None:
        self.f32 = f32
        self.f64 = f64


def either(f32: Any, f64: Any) -> Any:
    """A global name with one value in f32 and another in f64."""
    return Either(f32, f64)


# Versions are created at their first use, on any thread, together with the versions that they call.
_making = forks.lock()


class Generic:
    """A function for both widths, or for one (see `widths`); its versions are `f32` and `f64`."""

    def __init__(self, name: str, templates: dict[str, FunctionType]) -> None:
        self._name = name
        self._templates = templates
        self._versions: dict[str, FunctionType] = {}

    @property
    def widths(self) -> frozenset[str]:
        """The widths of its versions."""
        return frozenset(self._templates)

    def double(self, template: FunctionType) -> Generic:
        """Define the version for f64 separately."""
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
                # `_namespace` may have created this version too, with the others of its module.
                self._versions.setdefault(width, made)
            return self._versions[width]

    def _made(self, template: FunctionType, width: str, name: str) -> FunctionType:
        return rebound(template, _namespace(template.__globals__, width), name)


def generic(template: FunctionType) -> Generic:
    """Make a template a function for both widths."""
    return Generic(template.__name__, {F32: template, F64: template})


def rebound(template: FunctionType, names: dict[str, Any], name: str) -> FunctionType:
    """A function with the code of another one, but another name and other global names."""
    function = FunctionType(template.__code__, names, name, template.__defaults__)
    function.__annotations__ = dict(template.__annotations__)
    function.__doc__ = template.__doc__
    return function


_namespaces: dict[tuple[str, str], dict[str, Any]] = {}


def _namespace(module: dict[str, Any], width: str) -> dict[str, Any]:
    """A module's global names with their values in one width; the same dictionary at each call.

    It is created at the first use of a version, when all names of the module are defined.
    """
    key = module["__name__"], width
    if key not in _namespaces:
        names = _namespaces[key] = dict(module)  # before the versions, which look it up
        names.update((name, of_width(value, width)) for name, value in module.items())
    return _namespaces[key]


def of_width(value: Any, width: str) -> Any:
    """The value of a global name in one width."""
    if isinstance(value, Either):
        return value.f32 if width == F32 else value.f64
    if isinstance(value, Generic) and width in value.widths:
        return value.version(width)
    return value
