"""Modules of modules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar, overload

from treadle.nn.module import Module
from treadle.nn.parameter import Parameter
from treadle.nn.text import numbered
from treadle.tensor.annotations import ArrayLike

Own = TypeVar("Own", bound="_Numbered")


class _Numbered(Module):
    """Modules in an order, named by their places."""

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter([each for each in self._modules.values() if each is not None])

    @overload
    def __getitem__(self: Own, index: slice) -> Own: ...
    @overload
    def __getitem__(self, index: int) -> Any: ...
    def __getitem__(self, index: int | slice) -> Any:
        names = list(self._modules)
        if isinstance(index, slice):
            return self._of({name: self._modules[name] for name in names[index]})
        return self._modules[_at(names, index)]

    def _of(self, modules: dict[str, Any]) -> Any:
        """Another one, of modules of this one."""
        raise NotImplementedError

    def __setitem__(self, index: int, module: Module) -> None:
        self._modules[_at(list(self._modules), index)] = _module(module)

    def __delitem__(self, index: int | slice) -> None:
        names = list(self._modules)
        for name in names[index] if isinstance(index, slice) else [_at(names, index)]:
            del self._modules[name]
        self._number(list(self._modules.values()))

    def _number(self, modules: list[Any]) -> None:
        """Name the modules by their places."""
        self._modules.clear()
        for number, module in enumerate(modules):
            self._modules[str(number)] = _module(module)

    def append(self: Own, module: Module) -> Own:
        """Add a module at the end."""
        self._modules[str(len(self._modules))] = _module(module)
        return self

    def insert(self: Own, index: int, module: Module) -> Own:
        """Add a module before another one."""
        modules = list(self._modules.values())
        modules.insert(index, _module(module))
        self._number(modules)
        return self

    def extend(self: Own, modules: Iterable[Module]) -> Own:
        """Add modules at the end."""
        for module in list(modules):
            self._modules[str(len(self._modules))] = _module(module)
        return self

    def pop(self, key: int | slice) -> Any:
        """Take a module away."""
        found = self[key]
        del self[key]
        return found


class Sequential(_Numbered):
    """Modules that run one after the other: each gets the result of the one before it. They are
    named by their positions, or by the keys of a dict.

    >>> import treadle as td
    >>> model = td.nn.Sequential(td.nn.Linear(2, 3, device="cpu"), td.nn.Linear(3, 1, device="cpu"))
    >>> model(td.ones((5, 2), device="cpu")).shape
    (5, 1)
    >>> model
    Sequential(
      (0): Linear(in_features=2, out_features=3, bias=True)
      (1): Linear(in_features=3, out_features=1, bias=True)
    )
    """

    def __init__(self, *args: Module | Mapping[str, Module]) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], Mapping):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for number, each in enumerate(args):
                self.add_module(str(number), each)  # type: ignore[arg-type]

    def forward(self, input: ArrayLike) -> Any:
        """What the last of the modules makes."""
        for module in self._modules.values():
            assert module is not None
            input = module(input)
        return input

    def _of(self, modules: dict[str, Any]) -> Sequential:
        return type(self)(modules)


class ModuleList(_Numbered):
    """A list of modules. Their parameters are parameters of the module that holds the list.

    >>> import treadle as td
    >>> layers = td.nn.ModuleList(td.nn.Linear(2, 2, device="cpu") for _ in range(3))
    >>> len(layers), len(layers[1:])
    (3, 2)
    >>> layers
    ModuleList(
      (0-2): 3 x Linear(in_features=2, out_features=2, bias=True)
    )
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        self.extend(modules or ())

    def _of(self, modules: dict[str, Any]) -> ModuleList:
        return type(self)(modules.values())

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return type(self)([*self, *other])

    def __iadd__(self, modules: Iterable[Module]) -> ModuleList:
        return self.extend(modules)

    def __repr__(self) -> str:
        return numbered(self)


class _Named(Module):
    """A dict of what a module has: `_members` says what."""

    _members: str

    @property
    def _dict(self) -> dict[str, Any]:
        found: dict[str, Any] = self.__dict__[self._members]
        return found

    def __getitem__(self, key: str) -> Any:
        return self._dict[key]

    def __delitem__(self, key: str) -> None:
        del self._dict[key]

    def __len__(self) -> int:
        return len(self._dict)

    def __iter__(self) -> Iterator[str]:
        return iter(self._dict)

    def __contains__(self, key: object) -> bool:
        return key in self._dict

    def keys(self) -> Iterable[str]:
        """The names."""
        return self._dict.keys()

    def values(self) -> Iterable[Any]:
        """What they name."""
        return self._dict.values()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Both."""
        return self._dict.items()

    def clear(self) -> None:
        """Take everything away."""
        self._dict.clear()

    def pop(self, key: str) -> Any:
        """Take one away."""
        return self._dict.pop(key)

    def get(self, key: str, default: Any = None) -> Any:
        """One, if it is there."""
        return self._dict.get(key, default)

    def __setitem__(self, key: str, value: Any) -> None:
        raise NotImplementedError

    def update(self, other: Mapping[str, Any] | Iterable[tuple[str, Any]]) -> None:
        """Add or replace several."""
        for key, value in other.items() if hasattr(other, "items") else other:
            self[key] = value


class ModuleDict(_Named):
    """Modules by their names.

    >>> import treadle as td
    >>> td.nn.ModuleDict({"first": td.nn.Linear(2, 3, device="cpu")})
    ModuleDict(
      (first): Linear(in_features=2, out_features=3, bias=True)
    )
    """

    _members = "_modules"

    def __init__(
        self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] | None = None
    ) -> None:
        super().__init__()
        self.update(modules or {})

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)


class ParameterDict(_Named):
    """Parameters by their names. Tensors that are put into it become parameters.

    >>> import treadle as td
    >>> scales = td.nn.ParameterDict({"gain": td.ones(3, device="cpu")})
    >>> [(name, p.shape) for name, p in scales.named_parameters()]
    [('gain', (3,))]
    """

    _members = "_parameters"

    def __init__(
        self, parameters: Mapping[str, Any] | Iterable[tuple[str, Any]] | None = None
    ) -> None:
        super().__init__()
        self.update(parameters or {})

    def __setitem__(self, key: str, parameter: Any) -> None:
        self.register_parameter(key, as_parameter(parameter))

    def extra_repr(self) -> str:
        """What the parameters are."""
        return _described(self._parameters)


class ParameterList(Module):
    """A list of parameters. Tensors that are put into it become parameters.

    >>> import treadle as td
    >>> factors = td.nn.ParameterList([td.ones(2, device="cpu"), td.ones((3, 4), device="cpu")])
    >>> [name for name, _ in factors.named_parameters()]
    ['0', '1']
    """

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self.extend(values or ())

    def __len__(self) -> int:
        return len(self._parameters)

    def __iter__(self) -> Iterator[Any]:
        return iter(list(self._parameters.values()))

    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return ParameterList(list(self)[index])
        return self._parameters[_at(list(self._parameters), index)]

    def __setitem__(self, index: int, parameter: Any) -> None:
        self._parameters[_at(list(self._parameters), index)] = as_parameter(parameter)

    def append(self, value: Any) -> ParameterList:
        """Add a parameter at the end."""
        self._parameters[str(len(self))] = as_parameter(value)
        return self

    def extend(self, values: Iterable[Any]) -> ParameterList:
        """Add parameters at the end."""
        for value in list(values):
            self.append(value)
        return self

    def extra_repr(self) -> str:
        """What the parameters are."""
        return _described(self._parameters)


def as_parameter(value: Any) -> Any:
    """A parameter, made of a tensor if it is none."""
    return value if value is None or isinstance(value, Parameter) else Parameter(value)


def _described(parameters: Mapping[str, Any]) -> str:
    return "\n".join(
        f"({name}): Parameter containing: [{each.dtype} of shape {each.shape} on {each.device.id}]"
        for name, each in parameters.items()
        if each is not None
    )


def _module(module: Any) -> Module:
    if not isinstance(module, Module):
        raise TypeError(f"a {type(module).__name__} is not a module")
    return module


def _at(names: list[str], index: int) -> str:
    if not hasattr(index, "__index__"):
        raise TypeError(f"a module's place is an integer or a slice, not {type(index).__name__}")
    number = index.__index__()
    if not -len(names) <= number < len(names):
        raise IndexError(f"there are {len(names)} modules, and none at {number}")
    return names[number]
