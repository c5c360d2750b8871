"""Modules of modules and of parameters."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from treadle.nn import containers as inner
from treadle.torch.nn.module import Module
from treadle.torch.nn.parameter import Parameter
from treadle.torch.tensors import Tensor


class Sequential(inner.Sequential, Module):
    """Modules that run one after the other: each gets the result of the one before it.

    >>> import treadle.torch as torch
    >>> model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.ReLU(), torch.nn.Linear(3, 1))
    >>> model(torch.zeros(5, 2)).shape, len(model)
    (torch.Size([5, 1]), 3)
    """

    def __add__(self, other: Iterable[Any]) -> Sequential:
        return Sequential(*self, *other)

    def __iadd__(self, other: Iterable[Any]) -> Sequential:
        self.extend(other)
        return self

    def __mul__(self, count: int) -> Sequential:
        if count <= 0:
            raise ValueError(f"Sequential is repeated at least once, not {count} times")
        return Sequential(*(list(self) * count))

    __rmul__ = __mul__


class ModuleList(inner.ModuleList, Module):
    """A list of modules, whose parameters are parameters of the module that holds the list.

    >>> import treadle.torch as torch
    >>> layers = torch.nn.ModuleList([torch.nn.Linear(2, 2) for _ in range(3)])
    >>> len(layers[1:])
    2
    """

    # A list has no forward of its own.
    forward = Module.forward


class ModuleDict(inner.ModuleDict, Module):
    """Modules by their names.

    >>> import treadle.torch as torch
    >>> list(torch.nn.ModuleDict({"first": torch.nn.Linear(2, 3)}))
    ['first']
    """

    forward = Module.forward


class ParameterList(Module):
    """A list of parameters. Tensors that are put into it become parameters; other objects are kept.

    >>> import treadle.torch as torch
    >>> factors = torch.nn.ParameterList([torch.zeros(2), torch.zeros(3, 4)])
    >>> [name for name, _ in factors.named_parameters()], len(factors)
    (['0', '1'], 2)
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        self.extend(values or ())

    def _at(self, index: int) -> str:
        if not -self._size <= index < self._size:
            raise IndexError(f"index {index} is out of range")
        return str(index % self._size)

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return type(self)([self[at] for at in range(self._size)[index]])
        return getattr(self, self._at(index))

    def __setitem__(self, index: int, value: Any) -> None:
        setattr(self, self._at(index), _as_parameter(value))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter([self[at] for at in range(self._size)])

    def __iadd__(self, values: Iterable[Any]) -> ParameterList:
        return self.extend(values)

    def append(self, value: Any) -> ParameterList:
        """Add one at the end."""
        self._size += 1
        self[-1] = value
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Add some at the end."""
        if isinstance(values, (str, Tensor)):
            raise TypeError(f"ParameterList.extend takes a list, not a {type(values).__name__}")
        for each in list(values):
            self.append(each)
        return self

    def extra_repr(self) -> str:
        """What there is."""
        return "\n".join(f"  ({at}): {_described(each, True)}" for at, each in enumerate(self))


class ParameterDict(Module):
    """Parameters by their names. Tensors that are put into it become parameters.

    >>> import treadle.torch as torch
    >>> scales = torch.nn.ParameterDict({"gain": torch.zeros(3)})
    >>> [name for name, _ in scales.named_parameters()]
    ['gain']
    """

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        self.update(parameters or {})

    def __getitem__(self, key: str) -> Any:
        if key not in self._keys:
            raise KeyError(key)
        return getattr(self, key)

    def __setitem__(self, key: str, value: Any) -> None:
        if not isinstance(key, str):
            raise TypeError(f"a parameter's name is a string, not {key!r}")
        self._keys[key] = None
        setattr(self, key, _as_parameter(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(list(self._keys))

    def __reversed__(self) -> Iterator[str]:
        return reversed(list(self._keys))

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def __or__(self, other: Any) -> ParameterDict:
        made = self.copy()
        made.update(other)
        return made

    def __ior__(self, other: Any) -> ParameterDict:
        self.update(other)
        return self

    def keys(self) -> Iterable[str]:
        """The names."""
        return list(self._keys)

    def values(self) -> Iterable[Any]:
        """The parameters."""
        return [self[key] for key in self._keys]

    def items(self) -> Iterable[tuple[str, Any]]:
        """Both."""
        return [(key, self[key]) for key in self._keys]

    def copy(self) -> ParameterDict:
        """Another one with the same parameters."""
        return ParameterDict(OrderedDict(self.items()))

    def get(self, key: str, default: Any = None) -> Any:
        """A parameter, if it is there."""
        return getattr(self, key) if key in self._keys else default

    def setdefault(self, key: str, default: Any = None) -> Any:
        """A parameter, which is put there if there is none."""
        if key not in self:
            self[key] = default
        return self[key]

    def pop(self, key: str) -> Any:
        """Take a parameter away."""
        found = self[key]
        del self[key]
        return found

    def popitem(self) -> tuple[str, Any]:
        """Take the last one away."""
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def clear(self) -> None:
        """Take all away."""
        for key in list(self._keys):
            del self[key]

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """Another one, with one value for all names."""
        return ParameterDict([(key, default) for key in keys])

    def update(self, parameters: Any) -> None:
        """Add or replace several."""
        pairs = (
            parameters.items() if isinstance(parameters, (Mapping, ParameterDict)) else parameters
        )
        for key, value in pairs:
            self[key] = value

    def extra_repr(self) -> str:
        """What there is."""
        return "\n".join(f"  ({key}): {_described(each, False)}" for key, each in self.items())


def _as_parameter(value: Any) -> Any:
    if isinstance(value, Tensor) and not isinstance(value, Parameter):
        return Parameter(value)
    return value


def _described(value: Any, by_dtype: bool) -> str:
    if not isinstance(value, Tensor):
        return f"Object of type: {type(value).__name__}"
    what = "Parameter" if isinstance(value, Parameter) else "Tensor"
    x = value._inner
    kind = f"torch.{x.dtype.name}" if by_dtype else value.type()  # type: ignore[operator]
    extents = "x".join(map(str, x.shape))
    where = "" if x.device.id.startswith("cpu") else f" ({x.device.id})"
    return f"{what} containing: [{kind} of size {extents}{where}]"
