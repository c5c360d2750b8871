"""What a traced function depends on besides its arguments, as guards.

Each Python function is looked at when it begins to run (`call_events.py`). Its bytecode lists the
names that it reads (`bytecode.py`). What these names refer to at that moment is looked up
(`object_walk.py`): variables of its module and of enclosing functions, its defaults, attributes of
its arguments, and so on through objects and containers, as far as the names lead. The trace depends
on what is found first; what the function stores there later is its own.
"""

from __future__ import annotations

import abc
import gc
import io
import random
import types
import weakref
from collections.abc import Container, Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Protocol

import numpy as np

from treadle.tensor.cells import Cell
from treadle.tensor.compiled.attributes import found_in
from treadle.tensor.compiled.bytecode import NOTHING, Reads, reads_of
from treadle.tensor.compiled.call_sites import ENTERS, MEASURED, first_argument, use_of_time
from treadle.tensor.compiled.code_origin import (
    LIBRARY,
    MEMBERS,
    MODULE,
    is_implementation,
    is_library_class,
    is_package_file,
    origin_of,
)
from treadle.tensor.compiled.guards import is_plain
from treadle.tensor.compiled.impure_functions import NAMES, called, called_in, impurity_of, is_clock
from treadle.tensor.compiled.object_walk import ITERABLE, ObjectWalk
from treadle.tensor.compiled.reachable_tensors import tensors_within
from treadle.tensor.tensor import Tensor

# C functions whose calls matter, and the checks of abstract classes and protocols.
CALLS = NAMES | {"__subclasses__", "get_cache_token"}
_CLASS_CHECKS = frozenset(
    {abc.ABCMeta.__instancecheck__.__code__, abc.ABCMeta.__subclasscheck__.__code__}
)
_PROTOCOL: type = type(Protocol)
_PROTOCOL_CHECK = _PROTOCOL.__instancecheck__.__code__
CHECKS = _CLASS_CHECKS | {_PROTOCOL_CHECK}


class Dependencies(ObjectWalk):
    """The dependencies of one run of a function. `before` has the arrays that existed before."""

    def __init__(self, before: Container[Cell]) -> None:
        super().__init__(before)
        self._wider: dict[tuple[types.CodeType, int], Reads] = {}
        # Objects that may be the function's own, each with the names that are read and its name.
        self._pending: list[tuple[Any, Reads, str]] = []
        self._runs: dict[tuple[int, int, int], Any] = {}  # code with its module's variables
        self._asked: set[tuple[int, int]] = set()
        self._inner: set[types.CodeType] = set()  # of functions defined in others
        self.measured: dict[str, str] = {}  # clocks that only measure, and the call sites
        self._seeded: dict[int, random.Random] = {}  # by the function
        self._of_tensors: dict[str, bool] = {}  # attributes that may be a tensor's
        self._called_by_library: set[types.CodeType] = set()  # code that only the library calls
        self.asks_for_types = ""  # a function that does, as type(n) is int does

    @property
    def roots(self) -> list[Any]:
        """The objects that were looked at."""
        return list(self._held.values())

    # ------------------------------------------------------------------ functions that run

    def begin(self, function: Any, given: Iterable[tuple[str, Any]]) -> None:
        """Begin with the traced function and its arguments."""
        self._walk(function, NOTHING, _name_of(function))
        for name, value in given:
            if not isinstance(value, (*ITERABLE, dict)):
                self._walk(value, NOTHING, f"argument {name}")

    def entered(self, frame: types.FrameType) -> None:
        """A function begins or is resumed."""
        code = frame.f_code
        is_library = origin_of(code) == LIBRARY
        if is_library and code not in self._functions and not self._has_run(frame.f_back):
            return
        caller = frame.f_back
        if caller is not None and (
            is_implementation(caller.f_code.co_filename) or caller.f_code in self._called_by_library
        ):
            self._called_by_library.add(code)
            return
        values = frame.f_locals
        if code not in self._functions and code.co_argcount:
            self._method_of(values.get(code.co_varnames[0]), code)
        while True:
            names = len(self._names)
            self._begun(code, frame.f_globals, values, is_library)
            if len(self._names) == names:  # otherwise a new object reads further names
                return

    def _begun(
        self, code: types.CodeType, space: dict[str, Any], values: dict[str, Any], is_library: bool
    ) -> None:
        reads = self._reads(code)
        run = (id(code), id(space), id(reads))  # different code objects may be equal
        if run not in self._runs:
            self._runs[run] = (code, space, reads)
            self._codes[code] = reads
            if asks_for_types(code):
                self.asks_for_types = code.co_qualname
            self._inner.update(each for each in code.co_consts if isinstance(each, types.CodeType))
            self._variables(space, reads, is_library)
            if not is_library:
                self._of_tensors.update(reads.attributes)
        for function in self._functions.get(code, ()):
            self._begins(function, reads)
        for name in _given_names(code):
            value = values.get(name)
            if value is not None:
                self._given(value, reads, name)

    def _reads(self, code: types.CodeType) -> Reads:
        """The names that code reads, with those that objects such as `attrgetter` read."""
        reads = reads_of(code)
        if reads.any_name and code.co_filename == MODULE:
            reads = _of_module(code)
        if not self._names:
            return reads
        known = self._wider.get((code, len(self._names)))
        if known is None:
            attributes = {**reads.attributes, **dict.fromkeys(self._names, True)}
            known = reads._replace(attributes=attributes)
            self._wider[code, len(self._names)] = known
        return known

    def _has_run(self, frame: types.FrameType | None) -> bool:
        return frame is not None and frame.f_code in self._codes

    def _method_of(self, owner: Any, code: types.CodeType) -> None:
        """A method that was called without its name, such as an operator's."""
        kind = owner if isinstance(owner, type) else type(owner)
        found = self._found(kind, code.co_name)
        raw = None if found is None else found.raw
        for each in (raw, *(getattr(raw, name, None) for name in ("__func__", "fget", "func"))):
            if isinstance(each, types.FunctionType) and each.__code__ is code:
                self._functions.setdefault(code, []).append(each)

    def left(self, frame: types.FrameType, value: Any) -> None:
        """A function returns a value to another one."""
        caller = frame.f_back
        if caller is not None and self._has_run(caller):
            self._given(value, self._codes[caller.f_code], f"{frame.f_code.co_name}()")

    # ------------------------------------------------------------------ calls of C functions

    def calls(
        self, frame: types.FrameType, function: Any, owner: Any, at: int, given: Sequence[Any] = ()
    ) -> None:
        """A C function is called at an offset of the bytecode, with `given` if the arguments are
        known."""
        if not self._has_run(frame):
            return
        if function.__name__ == "__subclasses__":
            if isinstance(owner, type):
                subclasses: list[type] = owner.__subclasses__()
                known = [weakref.ref(each) for each in subclasses]
                name = f"{owner.__name__}.__subclasses__()"
                self._add("same_subclasses({0}, {1})", owner, known, name, is_replaced=True)
                for each in subclasses:
                    self._walk(each, self._codes[frame.f_code], each.__name__)
            return
        if function is abc.get_cache_token:  # which counts registrations of classes
            token = abc.get_cache_token()
            self._add("{0}() == {1}", function, token, "an abstract class", is_replaced=True)
            return
        what = impurity_of(function, owner)
        if not what or self._is_own(frame, function, owner):
            return
        name, inner = called(function, owner), frame
        user: types.FrameType | None = frame
        while user is not None and origin_of(user.f_code) == LIBRARY:
            inner, user = user, user.f_back
        if user is None or is_package_file(user.f_code.co_filename):
            return
        if user is not frame:
            if function is id:  # as an object's identity, as in `copy`
                return
            name = called_in(inner)
        elif function is id:
            if any(id(each) in self._held for each in given or first_argument(frame, at)):
                return
        elif is_clock(function):
            use = use_of_time(frame.f_code, at)
            if use == MEASURED:
                self.measured.setdefault(name, f"{frame.f_code.co_filename}:{frame.f_lineno}")
            if use != ENTERS:
                return
        self.unreachable.setdefault(name, f"{what} ({user.f_code.co_filename}:{user.f_lineno})")

    def _is_own(self, frame: types.FrameType, function: Any, owner: Any) -> bool:
        """Whether the function itself seeded a random generator, or made a file. That one is in
        memory, since `open` is a dependency."""
        if isinstance(owner, random.Random):
            if function.__name__ == "seed" and frame.f_locals.get("a", 0) is not None:
                self._seeded[id(owner)] = owner
            return id(owner) in self._seeded
        return isinstance(owner, io.IOBase) and id(owner) not in self._held

    def checks(self, frame: types.FrameType) -> None:
        """An instance check of an abstract class or a protocol: classes may be registered later,
        and objects may get attributes."""
        code, caller = frame.f_code, frame.f_back
        if caller is None or not self._has_run(caller):
            return
        abstract, value = (frame.f_locals[each] for each in code.co_varnames[:2])
        is_object = code.co_name == "__instancecheck__"
        kind = type(value) if is_object else value
        if not isinstance(kind, type):
            return
        if code is _PROTOCOL_CHECK:
            holder = value if id(value) in self._held else kind
            for name in _protocol_names(abstract):
                test, called = "hasattr({0}, {1}) is {2}", f"{abstract.__name__}.{name}"
                self._add(test, holder, name, called, hasattr(holder, name))
        elif not (is_library_class(abstract) and is_library_class(kind)):
            known = issubclass(kind, abstract)
            name = f"whether {kind.__name__} is a subclass of {abstract.__name__}"
            self._add("issubclass({0}, {1}) is {2}", kind, abstract, name, known)

    def end(self) -> None:
        """The function has returned: keep objects that it may have made only weakly."""
        pending, self._pending = self._pending, []
        for value, reads, name in pending:
            if id(value) in self._held:
                self._walk(value, reads, name)
                continue
            try:
                self._pending.append((weakref.ref(value), reads, name))
            except TypeError:
                continue

    def settle(self) -> None:
        """Look at the objects that survived, which others gave to it or keep."""
        for reference, reads, name in self._pending:
            value = reference()
            if value is not None:
                self._walk(value, reads, name)
        self._pending = []
        self._imported()
        for name in self._of_tensors:  # those that were used are imported now
            found = found_in(Tensor, name)
            if found is not None:
                self._attribute_of_library(Tensor, found, name)
        unknown = [
            code
            for code in self._codes.keys() - self._functions.keys() - self._inner
            if code.co_freevars or code.co_argcount or code.co_kwonlyargcount
        ]
        for function in gc.get_referrers(*unknown) if unknown else ():
            if isinstance(function, types.FunctionType) and function.__code__ in unknown:
                self._begins(function, reads_of(function.__code__))

    @property
    def fills_caches(self) -> bool:
        """Whether a cache of functools has new results, which it has at the next call."""
        return any(each.cache_info().currsize > size for each, size in self._caches.items())

    def forget(self) -> None:
        """Drop all references to objects, so that only others keep them alive."""
        noted: list[dict[Any, Any]] = [
            self._held, self._guards, self._runs, self._functions, self._classes, self._caches,
            self._earlier, self._seeded, self._contents,
        ]  # fmt: skip
        for each in noted:
            each.clear()
        self._todo.clear()
        self._pending.clear()
        self._deferred.clear()

    def check_reached(self, used: Iterable[Cell], gradients: Iterable[Any]) -> None:
        """Note the arrays from outside that a trace uses and that no guard covers. Those of
        gradients, optimizers and scalers are checked by other means."""
        library = [each for each in self._held.values() if hasattr(type(each), "_traced_never")]
        known = {each._cell for each in gradients if each is not None}
        known.update(each._cell for each in tensors_within(library))
        unknown = [each for each in used if each not in self.cells and each not in known]
        for tensor in gc.get_referrers(*unknown) if unknown else ():
            if isinstance(tensor, Tensor):
                name = f"a tensor of shape {tensor.shape} and dtype {tensor.dtype}"
                self.unreachable.setdefault(name, "which no name leads to")

    # ------------------------------------------------------------------ arguments and results

    def _given(self, value: Any, reads: Reads, name: str) -> None:
        """A value passed from one function to another. If it is new, nothing depends on it."""
        kind = type(value)
        if kind is Tensor or is_plain(value) or kind is np.ndarray or kind is types.CodeType:
            return
        todo, seen = [(value, name)], set[int]()
        while todo:
            each, called = todo.pop()
            kind = type(each)
            if kind is Tensor or is_plain(each) or kind is np.ndarray or id(each) in seen:
                continue
            seen.add(id(each))
            if isinstance(each, ITERABLE):
                todo += [(inner, f"{called}[{at}]") for at, inner in enumerate(each)]
                if kind in ITERABLE:
                    continue
            elif isinstance(each, dict):
                todo += [(inner, f"{called}[{key!r}]") for key, inner in list(each.items())]
                if kind is dict:
                    continue
            elif _is_view(each):
                todo += [(inner, called) for inner in gc.get_referents(each)]
                continue
            if id(each) in self._held:
                self._walk(each, reads, called, is_given=True)
            elif (id(each), id(reads)) not in self._asked:
                self._asked.add((id(each), id(reads)))
                self._walk(type(each), reads, type(each).__name__)  # which existed before
                self._pending.append((each, reads, called))


@lru_cache(64)
def asks_for_types(code: types.CodeType | None) -> bool:
    """Whether code may ask whether the type of something is `int`, which that of a size is not."""
    return code is not None and {"type", "int"} <= {*code.co_names}


def _of_module(code: types.CodeType) -> Reads:
    """The names that code of `nn.Module` reads: always the same of its `__dict__`."""
    reads = reads_of(code)
    attributes = {**reads.attributes, **dict.fromkeys(MEMBERS, True)}
    return reads._replace(attributes=attributes, any_name=False, all_names=False)


def _given_names(code: types.CodeType) -> Iterator[str]:
    """The names of a function's arguments and closure variables."""
    count = code.co_argcount + code.co_kwonlyargcount
    count += bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)  # *args and **kwargs
    yield from code.co_varnames[:count]
    yield from code.co_freevars


def _is_view(value: Any) -> bool:
    """Whether a value is an iterator over others, or a view of a dict."""
    kind = type(value)
    return kind.__module__ in ("builtins", "itertools", "collections") and (
        hasattr(kind, "__next__") or kind.__name__ in ("dict_keys", "dict_values", "dict_items")
    )


def _protocol_names(protocol: type) -> Iterable[str]:
    """The attributes that a protocol requires."""
    found = getattr(protocol, "__protocol_attrs__", None)  # missing before Python 3.12
    if found is None:
        found = {name for each in protocol.__mro__ if getattr(each, "_is_protocol", False)
                 and each.__module__ != "typing"
                 for name in (*vars(each), *vars(each).get("__annotations__", ()))
                 if not name.startswith(("_abc_", "__", "_is_"))}  # fmt: skip
    return sorted(found)


def _name_of(function: Any) -> str:
    return getattr(function, "__qualname__", None) or type(function).__name__
