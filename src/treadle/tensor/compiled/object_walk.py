"""The walk through objects that a function's names refer to. Each place on the way becomes a guard.

From an object that existed before the trace the walk follows the names that some code reads:
attributes with these names, the elements of containers, a function's closure and defaults. A table
at the end has a function for each type of object.
"""

from __future__ import annotations

import builtins
import ctypes
import functools
import gc
import io
import mmap
import operator
import sys
import types
import weakref
from array import array
from collections import deque
from collections.abc import Callable, Container, Iterable, Iterator
from contextvars import ContextVar
from typing import Any

import numpy as np

from treadle.graph.history import recording
from treadle.lang.decorators import Function, Kernel
from treadle.tensor.cells import Cell
from treadle.tensor.compiled.attributes import Attributes, place_of
from treadle.tensor.compiled.bytecode import NOTHING, Chain, Reads, reads_of
from treadle.tensor.compiled.code_origin import (
    IGNORED,
    is_library_class,
    is_library_module,
    origin_of,
)
from treadle.tensor.compiled.guards import MISSING, Guard, is_plain
from treadle.tensor.compiled.impure_functions import (
    OBJECTS,
    OTHER_VALUE,
    called,
    draws,
    impurity_of,
)
from treadle.tensor.generator import Generator
from treadle.tensor.tensor import Tensor

_ABOUT = frozenset({"__annotations__", "__doc__", "__name__", "__qualname__"})  # of functions
_ONE_BY_ONE = 64  # elements of a list that have a guard each
_CACHED = type(functools.lru_cache(lambda: None))
_OF_ARRAYS = ("__dlpack__", "__array_interface__", "__cuda_array_interface__")
# Values of variables that only a library's code reads: not looked at.
_DEFINED = (types.FunctionType, types.BuiltinFunctionType, types.ModuleType, type)
_BYTES = (bytearray, memoryview, array)
_BUFFERS = (ctypes.Array, ctypes._SimpleCData, ctypes.Structure, mmap.mmap)
ITERABLE = (list, tuple, set, frozenset, deque)


class ObjectWalk(Attributes):
    """The guards found so far. `before` has the arrays that existed before the trace."""

    def __init__(self, before: Container[Cell]) -> None:
        super().__init__()
        self._before = before
        self._held: dict[int, Any] = {}  # objects from before the trace that have been looked at
        self._walked: set[tuple[int, int, bool]] = set()
        self._todo: deque[tuple[Any, Reads, str, bool, bool]] = deque()
        self._is_walking = False
        self._codes: dict[types.CodeType, Reads] = {}  # that have run
        self._functions: dict[types.CodeType, list[types.FunctionType]] = {}
        self._ran: set[tuple[int, int]] = set()
        self._names: dict[str, None] = {}  # that objects such as `attrgetter` read
        self._contents: dict[int, list[Any]] = {}  # of containers, before the trace changed them
        self._caches: dict[Any, int] = {}  # with the number of results of each
        # Names of modules that are imported when they are first used.
        self._deferred: list[tuple[types.ModuleType, str]] = []
        self.cells: set[Cell] = set()  # arrays that guards cover

    # ------------------------------------------------------------------ variables and functions

    def _variables(self, space: dict[str, Any], reads: Reads, is_library: bool = False) -> None:
        is_library = is_library and is_library_module(space.get("__name__"))
        for name, is_used in reads.variables.items():
            if is_library and isinstance(space.get(name), _DEFINED):
                continue
            if name in space:
                self._place("{0}[{1}]", space, name, space[name], name, reads, is_used, True)
            elif not is_library and (hasattr(builtins, name) or name in reads.optional):
                self._add("{1} not in {0}", space, name, name)
        for name in reads.stores:
            if name in space:
                self._note_earlier("{0}[{1}]", space, name, space[name])
        for chain in reads.chains if not is_library else ():
            module = sys.modules.get(chain.module or "")
            if module is not None:
                self._chain(module, chain.names, chain)
            elif chain.names[0] in space:
                self._chain(space[chain.names[0]], chain.names[1:], chain)
            elif hasattr(builtins, chain.names[0]):
                self._chain(getattr(builtins, chain.names[0]), chain.names[1:], chain)
        for name in self._named_indirectly(space, reads):
            module = sys.modules.get(name)
            if module is not None and not is_library_module(name):
                self._place("{0}[{1}]", sys.modules, name, module, name, reads)
            elif module is not None:
                self._walk(module, reads, name)

    def _chain(self, value: Any, names: Iterable[str], chain: Chain) -> None:
        """Follow a chain of attributes of modules and classes to a function, which may be impure
        and whose calls may cause no event."""
        for name in names:
            if not isinstance(value, (types.ModuleType, type)):
                return
            owner, value = value, getattr(value, name, MISSING)
            if value is MISSING:
                return
            if isinstance(owner, types.ModuleType):
                if _is_library(owner):
                    self._name_of_library(owner, name, value)
            elif is_library_class(owner):
                found = self._found(owner, name)
                if found is not None:
                    self._attribute_of_library(owner, found, name)
        name = ".".join(chain.names)
        if isinstance(value, types.MethodType):
            self._method(value, NOTHING, name)
        elif type(value) is types.BuiltinFunctionType and not chain.is_called:
            self._passed(value, name)

    def _passed(self, function: Any, name: str) -> None:
        """Note a function that C may call, as `map` does."""
        what = impurity_of(function)
        if what and function is not id:  # as an object's identity, in sorted(parts, key=id)
            self.unreachable.setdefault(called(function), what)

    def _named_indirectly(self, space: dict[str, Any], reads: Reads) -> Iterator[str]:
        """The modules that code imports or takes from `sys.modules`. Guards the variables that it
        takes from `globals()`."""
        yield from reads.modules
        if "globals" in reads.variables and "globals" not in space:
            known = [name for name in reads.attributes if name in space]
            for name in known:
                self._place("{0}[{1}]", space, name, space[name], name, reads, True, True)
            if not known:
                self.unreachable.setdefault("globals()", "which it reads by names that it makes")
        if "modules" in reads.attributes and any(
            space.get(name) is sys for name in reads.variables
        ):
            yield from reads.attributes
            yield str(space.get("__name__"))

    def _begins(self, function: types.FunctionType, reads: Reads) -> None:
        """Guard the code, the closure and the defaults of a function that runs or is compiled."""
        if (id(function), id(reads)) in self._ran:
            return
        self._ran.add((id(function), id(reads)))
        self._held[id(function)] = function
        name = function.__qualname__
        code = function.__code__
        if not is_library_module(function.__module__):
            self._add("{0}.__code__ is {1}", function, code, f"the code of {name}")
        for each, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            try:
                value = cell.cell_contents
            except ValueError:  # it has no value yet
                self._add("not hasattr({0}, 'cell_contents')", cell, None, each)
                continue
            for chain in reads.chains:
                if chain.names[0] == each and chain.module is None:
                    self._chain(value, chain.names[1:], chain)
            if each in reads.stores:
                self._note_earlier("{0}.cell_contents", cell, None, value)
            if each in reads.cells:
                self._place(
                    "{0}.cell_contents", cell, None, value, each, reads, reads.cells[each], True
                )
        for what in ("__defaults__", "__kwdefaults__"):
            given = getattr(function, what)
            if given is not None:
                self._place(f"{{0}}.{what}", function, None, given, f"{name}.{what}", reads)

    def _register(self, function: Any, reads: Reads, name: str) -> None:
        """Register a function that may run."""
        if not isinstance(function, types.FunctionType):
            self._walk(function, reads, name)
            return
        known = self._functions.setdefault(function.__code__, [])
        if any(each is function for each in known):
            return
        known.append(function)
        if origin_of(function.__code__) == IGNORED:  # a library's wrapper around something
            for cell in function.__closure__ or ():
                try:
                    value = cell.cell_contents
                except ValueError:
                    continue
                self._place("{0}.cell_contents", cell, None, value, name, reads)
        elif function.__code__ in self._codes:
            self._begins(function, reads_of(function.__code__))

    # ------------------------------------------------------------------ places and their values

    def _place(
        self, read: str, holder: Any, key: Any, value: Any, name: str, reads: Reads,
        is_used: bool = True, is_variable: bool = False,
    ) -> None:  # fmt: skip
        """Guard the value at a place that the function reads: `read` with a holder and a key."""
        if isinstance(value, Tensor) and value._cell not in self._before:
            return  # the function stored it there itself
        self._guard(read, holder, key, value, name, is_replaced=not is_variable)
        if isinstance(value, Tensor):
            self._tensor(value, name, is_variable)
        elif not is_plain(value):
            self._walk(value, reads, name, is_used)

    def _guard(
        self, read: str, holder: Any, key: Any, value: Any, name: str, is_replaced: bool
    ) -> None:
        """Guard the value at a place: a plain one by what it is, another one by its identity."""
        known = place_of(read, holder, key)
        if known in self._guards:
            return
        there = self._earlier.get(known, value)
        test = f"{read} is {{2}}"
        if is_plain(there):
            test, is_replaced = f"{test} or same({read}, {{2}})", False
        self._guards[known] = Guard(test, (holder, key, there), name, read, there, is_replaced)

    def _walk(
        self, value: Any, reads: Reads, name: str, is_used: bool = True, is_given: bool = False
    ) -> None:
        """Look at an object from before the trace and at everything reachable from it, without
        recursion."""
        self._todo.append((value, reads, name, is_used, is_given))
        if self._is_walking:
            return
        self._is_walking = True
        try:
            while self._todo:
                self._look(*self._todo.popleft())
        finally:
            self._is_walking = False
            self._todo.clear()

    def _look(self, value: Any, reads: Reads, name: str, is_used: bool, is_given: bool) -> None:
        """Look at an object, for the names that are read."""
        kind = type(value)
        if kind is Tensor:
            self._tensor(value, name)
            return
        if is_plain(value):
            return
        self._held[id(value)] = value
        known = (id(value), id(reads), is_used)
        if known in self._walked:
            return
        self._walked.add(known)
        if is_given and isinstance(value, (*ITERABLE, dict)):
            self._attributes(value, reads, name)
            return
        walk = _WALKS.get(kind)
        if walk is None:
            for base, each in _WALKS.items():
                if isinstance(value, base):
                    walk = each
                    break
        if walk is None:
            self._object(value, reads, name)
        elif is_used:
            walk(self, value, reads, name)
        elif isinstance(value, (*ITERABLE, dict)):  # it is changed: its content from before counts
            self._content(value)
        if walk is not None and kind not in _WALKS and not isinstance(value, types.ModuleType):
            self._attributes(value, reads, name)

    def _tensor(self, tensor: Tensor, name: str, is_variable: bool = False) -> None:
        cell, view, boundary = tensor._cell, tensor._view, tensor._boundary
        if cell in self._before:
            self.cells.add(cell)
            self._held[id(tensor)] = tensor
            test = "{0}._cell is {1} and {0}._view is {2} and {0}._boundary is {3}"
            gone = not is_variable
            self._add(test, tensor, cell, name, view, boundary, is_replaced=gone)
            leaf = None if boundary is None else boundary.leaf
            if leaf is not None and recording.get():
                for hooks in ("hooks", "accumulated"):
                    held, called = getattr(leaf, hooks), f"the hooks of {name}"
                    self._place(f"{{0}}.{hooks}", leaf, None, held, called, NOTHING)

    # ------------------------------------------------------------------ containers

    def _content(self, value: Any) -> list[Any]:
        """The elements of a container, or the keys of a dict, from before the trace changed it. The
        trace made any later change, and this content must be back at the end."""
        known = self._contents.get(id(value))
        if known is None:
            known = self._contents[id(value)] = list(value)
            if isinstance(value, dict):
                for key in known:
                    self._note_earlier("{0}[{1}]", value, key, dict.__getitem__(value, key))
        return known

    def _list(self, value: list[Any], reads: Reads, name: str) -> None:
        content = self._content(value)
        if len(content) > _ONE_BY_ONE:
            self._elements("{0}", value, content, reads, name)
            return
        self._add("len({0}) == {1}", value, len(content), f"the length of {name}")
        for at, each in enumerate(content):
            self._place("{0}[{1}]", value, at, each, f"{name}[{at}]", reads)

    def _elements(
        self, read: str, holder: Any, values: Iterable[Any], reads: Reads, name: str
    ) -> None:
        """Guard many elements, or elements without places, by one comparison."""
        known = list(values)
        if any(isinstance(each, Tensor) and each._cell not in self._before for each in known):
            known_own = [each for each in known if not isinstance(each, Tensor)]
            for at, each in enumerate(known_own):
                self._walk(each, reads, f"{name}[{at}]")
            return
        is_replaced = not all(map(is_plain, known))
        self._add(f"same_elements({read}, {{1}})", holder, known, name, is_replaced=is_replaced)
        for at, each in enumerate(known):
            if not is_plain(each):
                self._walk(each, reads, f"{name}[{at}]")

    def _tuple(self, value: tuple[Any, ...], reads: Reads, name: str) -> None:
        for at, each in enumerate(value):
            if not is_plain(each):
                self._walk(each, reads, f"{name}[{at}]")

    def _dict(self, value: dict[Any, Any], reads: Reads, name: str) -> None:
        keys, called = self._content(value), f"the keys of {name}"
        if not keys:
            self._add("not {0}", value, None, called)
        elif all(type(each) is str for each in keys):
            self._add("[*{0}] == {1}", value, keys, called)
        else:
            self._elements("[*{0}]", value, keys, NOTHING, called)
        values = [self._earlier[place_of("{0}[{1}]", value, key)] for key in keys]
        if type(value).__getitem__ is not dict.__getitem__ or len(keys) > _ONE_BY_ONE:
            self._elements("[*{0}.values()]", value, values, reads, name)
            return
        for key, each in zip(keys, values, strict=True):
            self._place("{0}[{1}]", value, key, each, f"{name}[{key!r}]", reads)

    def _set(self, value: Any, reads: Reads, name: str) -> None:
        known = {id(each): each for each in self._content(value)}
        if not known:
            self._add("not {0}", value, None, name)
        elif not any(isinstance(e, Tensor) and e._cell not in self._before for e in known.values()):
            self._add("same_members({0}, {1})", value, known, name)
        for each in known.values():
            self._walk(each, reads, f"a member of {name}")

    def _deque(self, value: deque[Any], reads: Reads, name: str) -> None:
        self._elements("{0}", value, self._content(value), reads, name)

    def _array(self, value: Any, reads: Reads, name: str) -> None:
        held = value.copy()
        self._add("same_numbers({0}, {1}, {2})", value, held, name, held.tobytes())
        if value.dtype == object:
            for each in value.flat:
                self._walk(each, reads, f"an element of {name}")

    def _bytes(self, value: Any, reads: Reads, name: str) -> None:
        data = memoryview(value).tobytes()
        self._add("same_bytes({0}, {1})", value, data, name)

    # ------------------------------------------------------------------ functions

    def _function(self, value: types.FunctionType, reads: Reads, name: str) -> None:
        self._register(value, reads, name)
        if not _ABOUT.isdisjoint(reads.attributes) and not is_library_module(value.__module__):
            for each in sorted(_ABOUT.intersection(reads.attributes)):
                read = f"{{0}}.{each}"
                self._place(read, value, None, getattr(value, each), f"{name}.{each}", reads)
        if value.__dict__:
            self._attributes(value, reads, name)

    def _method(self, value: types.MethodType, reads: Reads, name: str) -> None:
        if isinstance(value.__self__, OBJECTS):
            if draws(value):
                self.unreachable.setdefault(name, OTHER_VALUE)
            return
        self._walk(value.__self__, reads, f"{name}.__self__")
        self._register(value.__func__, reads, name)

    def _partial(self, value: functools.partial[Any], reads: Reads, name: str) -> None:
        for part in ("func", "args", "keywords"):
            read = f"{{0}}.{part}"
            self._place(read, value, None, getattr(value, part), f"{name}.{part}", reads)
        self._passed(value.func, name)

    def _partial_method(self, value: functools.partialmethod[Any], reads: Reads, name: str) -> None:
        names = dict.fromkeys(("func", "args", "keywords"), True)
        self._attributes(value, reads._replace(attributes=names), name)

    def _wrapped(self, value: Any, reads: Reads, name: str) -> None:
        self._register(value.__func__, reads, name)

    def _property(self, value: property, reads: Reads, name: str) -> None:
        for each in (value.fget, value.fset):
            if each is not None:
                self._register(each, reads, name)

    def _cached(self, value: Any, reads: Reads, name: str) -> None:
        """Guard a function with a cache: what it reads, which counts if it runs, and the results
        that the cache has, which stay until it is cleared or full."""
        self._register(value.__wrapped__, reads, name)
        info = value.cache_info()
        known = self._caches.setdefault(value, info.currsize)
        if not known:  # what is found in it later was computed by this trace
            return
        called = f"the cache of {name}"
        results = gc.get_referents(value)  # of a bounded cache, with the links of a list of them
        for each in list(results):
            if type(each) is dict and each is not value.__dict__:
                entries = dict(each)
                keys, found = list(entries), list(entries.values())
                test = "same_entries({0}, {1}, {2})"
                self._add(test, each, keys, called, found, is_replaced=True)
                results += found
        for each in results:
            is_result = type(each) is not dict and type(each).__name__ != "_lru_list_elem"
            if is_result and not isinstance(each, (types.FunctionType, type)):
                self._walk(each, reads, f"{name}()")
        if info.maxsize is not None:  # a full cache puts new results into the links of old ones
            self._add(
                "{0}.cache_info().currsize < {1} or {0}.cache_info().misses == {2}",
                value, info.maxsize, called, info.misses, is_replaced=True,
            )  # fmt: skip

    def _kernel(self, value: Any, reads: Reads, name: str) -> None:
        """Guard the captures of a kernel, for which it is compiled."""
        self._compiled_later(value.definition, name)

    def _compiled_later(self, function: Any, name: str) -> None:
        if isinstance(function, types.FunctionType):
            reads = reads_of(function.__code__)
            self._variables(function.__globals__, reads)
            self._begins(function, reads)
        else:
            self._walk(function, NOTHING, name)

    def _context_variable(self, value: ContextVar[Any], reads: Reads, name: str) -> None:
        self._place("{0}.get({1})", value, MISSING, value.get(MISSING), f"{name}.get()", reads)

    def _reference(self, value: Any, reads: Reads, name: str) -> None:
        self._place("{0}()", value, None, value(), f"{name}()", reads)

    def _proxy(self, value: Any, reads: Reads, name: str) -> None:
        try:
            self._walk(value.__repr__.__self__, reads, name)
        except (ReferenceError, AttributeError):
            self.unreachable.setdefault(name, "a proxy of another object")

    def _getter(self, value: Any, reads: Reads, name: str) -> None:
        """`operator.attrgetter` and `methodcaller`, which read attributes by their own names."""
        for text in value.__reduce__()[1]:
            if isinstance(text, str):
                self._names.update(dict.fromkeys(text.split(".")))

    def _module(self, value: types.ModuleType, reads: Reads, name: str) -> None:
        own = vars(value)
        deferred = (reads.attributes.keys() & set(own.get("__all__", ()))) - own.keys()
        self._deferred.extend((value, each) for each in sorted(deferred))
        if not _is_library(value):
            self._attributes(value, reads, name)
            return
        for attribute in reads.attributes:
            each = own.get(attribute, MISSING)
            if each is not MISSING and not attribute.startswith("__"):
                self._name_of_library(value, attribute, each)
                if isinstance(each, types.ModuleType):
                    self._walk(each, reads, f"{name}.{attribute}")

    def _imported(self) -> None:
        """Guard the names of modules that the function was the first to use."""
        for module, attribute in self._deferred:
            if attribute in vars(module):
                self._name_of_library(module, attribute, vars(module)[attribute])
        self._deferred.clear()

    def _name_of_library(self, module: types.ModuleType, attribute: str, value: Any) -> None:
        """Guard a name of a library's module, which a test or a user may replace. What the library
        reads itself is not looked at."""
        name = f"{module.__name__}.{attribute}"
        self._guard(f"{{0}}.{attribute}", module, None, value, name, is_replaced=False)
        if isinstance(value, types.FunctionType) and not is_library_module(value.__module__):
            self._walk(value, NOTHING, name)

    def _referents(self, value: Any, reads: Reads, name: str) -> None:
        """A view of a dict."""
        for each in gc.get_referents(value):
            self._walk(each, reads, name)

    def _nothing(self, value: Any, reads: Reads, name: str) -> None:
        """Objects that do not change, or that traces check by other means."""

    def _random_state(self, value: Any, reads: Reads, name: str) -> None:
        self.unreachable.setdefault(
            name, f"a {type(value).__name__}, which goes on when it is used"
        )

    def _builtin(self, value: Any, reads: Reads, name: str) -> None:
        owner = value.__self__
        if owner is not None and not isinstance(owner, (types.ModuleType, type)):
            self._walk(owner, reads, name)

    # ------------------------------------------------------------------ attributes

    def _object(self, value: Any, reads: Reads, name: str) -> None:
        kind = type(value)
        inner = getattr(kind, "_traced_inside", None)
        if inner is not None:
            self._place(f"{{0}}.{inner}", value, None, getattr(value, inner), name, reads)
            return
        if hasattr(kind, "__next__") and not isinstance(value, io.IOBase):
            self._random_state(value, reads, name)
        elif isinstance(value, _BUFFERS):
            self._bytes(value, reads, name)
        elif any(hasattr(kind, each) for each in _OF_ARRAYS):
            self.unreachable.setdefault(name, f"an array of another library ({kind.__name__})")
        call = self._found(kind, "__call__")
        if call is not None:
            self._register(call.raw, reads, f"{name}.__call__")
        self._attributes(value, reads, name)


def _is_library(module: types.ModuleType) -> bool:
    name = module.__name__
    return sys.modules.get(name) is module and is_library_module(name)


_Walk = Callable[[ObjectWalk, Any, Reads, str], None]
_WALKS: dict[type, _Walk] = {
    list: ObjectWalk._list, tuple: ObjectWalk._tuple, dict: ObjectWalk._dict, set: ObjectWalk._set,
    frozenset: ObjectWalk._set, deque: ObjectWalk._deque, np.ndarray: ObjectWalk._array,
    types.FunctionType: ObjectWalk._function, types.MethodType: ObjectWalk._method,
    functools.partial: ObjectWalk._partial, functools.partialmethod: ObjectWalk._partial_method,
    classmethod: ObjectWalk._wrapped, staticmethod: ObjectWalk._wrapped,
    property: ObjectWalk._property,
    _CACHED: ObjectWalk._cached, Kernel: ObjectWalk._kernel, Function: ObjectWalk._kernel,
    ContextVar: ObjectWalk._context_variable, weakref.ref: ObjectWalk._reference,
    types.ModuleType: ObjectWalk._module, types.BuiltinFunctionType: ObjectWalk._builtin,
    Generator: ObjectWalk._nothing, np.dtype: ObjectWalk._nothing, np.ufunc: ObjectWalk._nothing,
    weakref.ProxyType: ObjectWalk._proxy, weakref.CallableProxyType: ObjectWalk._proxy,
    operator.attrgetter: ObjectWalk._getter, operator.methodcaller: ObjectWalk._getter,
    types.MappingProxyType: ObjectWalk._referents, type({}.keys()): ObjectWalk._referents,
    type({}.values()): ObjectWalk._referents, type({}.items()): ObjectWalk._referents,
    types.CodeType: ObjectWalk._nothing, slice: ObjectWalk._nothing,
    **dict.fromkeys(_BYTES, ObjectWalk._bytes), **dict.fromkeys(OBJECTS, ObjectWalk._random_state),
    type: ObjectWalk._class,
}  # fmt: skip
