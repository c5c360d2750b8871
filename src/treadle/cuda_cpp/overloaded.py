"""Several kernels of one name: a launch selects the one whose parameters its arguments fit best."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from treadle.core.dtypes import as_dtype
from treadle.core.errors import DtypeError, LaunchError
from treadle.cuda_cpp.kernel import Kernel
from treadle.ir.signature import DeclaredPointer
from treadle.ir.types import Scalar, Vector

_NEVER = 1000  # more than the sum of all ranks
_KINDS: dict[type, str] = {bool: "bool", int: "int", float: "float"}
_OF_NUMPY = {"i": "int", "u": "int", "f": "float", "b": "bool"}
# How well a number of Python fits a kind of parameter.
_RANKS: dict[tuple[str, str], int] = {
    ("bool", "bool"): 0, ("bool", "int"): 1, ("bool", "uint"): 1, ("bool", "float"): 2,
    ("int", "int"): 0, ("int", "uint"): 1, ("int", "float"): 2, ("int", "bool"): 3,
    ("float", "float"): 0,
}  # fmt: skip


class OverloadedKernel:
    """Kernels that share a name: `module.scale[grid, block](x)` launches the one for x's dtype."""

    def __init__(self, name: str, kernels: Sequence[Kernel]) -> None:
        self._name = name
        self._kernels = tuple(kernels)

    def __getitem__(self, launch: Any) -> _Launch:
        return _Launch(self, launch)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """LaunchError that says how a grid and a block are given."""
        return self._kernels[0](*arguments, **keywords)

    def chosen(self, arguments: tuple[Any, ...]) -> Kernel:
        """The kernel for these arguments. LaunchError if none or several fit."""
        ranks = [_rank(kernel, arguments) for kernel in self._kernels]
        best = min(ranks)
        if best < _NEVER and ranks.count(best) == 1:
            return self._kernels[ranks.index(best)]
        listed = " and ".join(kernel.name for kernel in self._kernels)
        which = "no one" if best >= _NEVER else "several"
        raise LaunchError(
            f"of the kernels {listed} {which} take these arguments: name the one that is meant, as "
            f"in module.kernel({self._kernels[0].name!r})"
        )

    def __repr__(self) -> str:
        listed = "; ".join(kernel.name for kernel in self._kernels)
        return f"<treadle CUDA C++ kernels {listed}>"


class _Launch:
    def __init__(self, overloaded: OverloadedKernel, launch: Any) -> None:
        self._overloaded = overloaded
        self._launch = launch

    def __call__(self, *arguments: Any) -> None:
        """Launch the kernel for these arguments."""
        self._overloaded.chosen(arguments)[self._launch](*arguments)


def _rank(kernel: Kernel, arguments: tuple[Any, ...]) -> int:
    """How well arguments fit a kernel's parameters: 0 exactly, `_NEVER` not at all."""
    instance = kernel.instance
    if instance.layouts or len(arguments) != len(instance.parameters):
        return 1 if instance.layouts and len(arguments) == len(instance.arguments) else _NEVER
    return sum(
        _fit(parameter.declared, value)
        for parameter, value in zip(instance.parameters, arguments, strict=True)
    )


def _fit(declared: Any, value: Any) -> int:
    if isinstance(declared, DeclaredPointer):
        if value is None:
            return 0
        given = getattr(value, "dtype", None)
        if given is None:
            return _NEVER
        element = declared.element
        scalar = element.element if isinstance(element, Vector) else element
        if not isinstance(scalar, Scalar):
            return 1
        try:
            return 0 if as_dtype(given).short == scalar.name else _NEVER
        except DtypeError:
            return _NEVER
    if isinstance(declared, Scalar):
        of_numpy = str(getattr(getattr(value, "dtype", None), "kind", ""))
        kind = _KINDS.get(type(value)) or _OF_NUMPY.get(of_numpy, "")
        return _RANKS.get((kind, declared.kind), _NEVER)
    return 1
