"""Modules of modules."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, overload

from treadle.nn.module import Module


class Sequential(Module):
    """Modules one after the other, each given what the one before it made; named by their places,
    or by the keys of a dict.

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

    def forward(self, input: Any) -> Any:
        """What the last of the modules makes."""
        for module in self._modules.values():
            assert module is not None
            input = module(input)
        return input

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter([each for each in self._modules.values() if each is not None])

    @overload
    def __getitem__(self, index: slice) -> Sequential: ...
    @overload
    def __getitem__(self, index: int) -> Module: ...
    def __getitem__(self, index: int | slice) -> Module:
        names = list(self._modules)
        if isinstance(index, slice):
            return type(self)({name: self._modules[name] for name in names[index]})  # type: ignore[misc]
        return self._modules[_at(names, index)]  # type: ignore[return-value]

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, _at(list(self._modules), index), module)

    def __delitem__(self, index: int | slice) -> None:
        names = list(self._modules)
        for name in names[index] if isinstance(index, slice) else [_at(names, index)]:
            del self._modules[name]
        self._number()

    def _number(self) -> None:
        """Name the modules by their places."""
        modules = list(self._modules.values())
        self._modules.clear()
        self._modules.update({str(number): module for number, module in enumerate(modules)})

    def append(self, module: Module) -> Sequential:
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def insert(self, index: int, module: Module) -> Sequential:
        """Add a module before another one."""
        modules = list(self._modules.values())
        modules.insert(index, module)
        self._modules.clear()
        for number, each in enumerate(modules):
            self.add_module(str(number), each)
        return self

    def extend(self, sequential: Iterable[Module]) -> Sequential:
        """Add modules at the end."""
        for module in sequential:
            self.append(module)
        return self

    def pop(self, key: int | slice) -> Module:
        """Take a module away."""
        found = self[key]
        del self[key]
        return found


def _at(names: list[str], index: int) -> str:
    number = index.__index__()
    if not -len(names) <= number < len(names):
        raise IndexError(f"there are {len(names)} modules, and none at {number}")
    return names[number]
