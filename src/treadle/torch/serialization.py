"""`torch.save` and `torch.load`: PyTorch's zip files, which PyTorch reads and writes as well, and
safetensors. A program in a file is run only for who asks for it by `weights_only=False`."""

from __future__ import annotations

import io
import math
import os
import pickle
import sys
import zipfile
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from importlib import import_module
from typing import IO, Any

import numpy as np

from treadle.core.dtypes import DType
from treadle.core.errors import FormatError
from treadle.core.paths import as_path, naming
from treadle.data import saving
from treadle.formats import torch_pickle
from treadle.formats.atomic import replaced
from treadle.formats.torch_pickle import Makers, Name, Stored
from treadle.graph.views import View, is_in_order
from treadle.tensor.tensor import Tensor as Inner
from treadle.tensor.tensor import from_cell, from_numpy
from treadle.torch.devices import device as Device
from treadle.torch.devices import place
from treadle.torch.layouts import Size, layout
from treadle.torch.nn.parameter import Parameter
from treadle.torch.tensors import Tensor, kept, unwrapped, wrap, wrapped

_Path = str | os.PathLike[str] | IO[bytes]


def save(
    obj: Any,
    f: _Path,
    pickle_module: Any = None,
    pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
) -> None:
    """Save tensors, numbers, texts, containers, and any object that Python pickles: a state
    (`model.state_dict()`, `optimizer.state_dict()`), or a whole module or optimizer.

    The file is PyTorch's, and `torch.load` of PyTorch reads states from it, too; with a path that
    ends in ".safetensors" it is safetensors. Tensors that share memory share it in the file, which
    has all of that memory. Tensors on WebGPU's devices are loaded on these again, by PyTorch with
    `map_location="cpu"`. Classes and functions are saved by their names, as by `pickle`: whoever
    loads a whole module needs the program that defines it, and `weights_only=False`. What `pickle`
    refuses, as a lambda, raises its error.

    >>> import io
    >>> import treadle.torch as torch
    >>> file = io.BytesIO()
    >>> torch.save({"w": torch.ones(2), "epoch": 3}, file)
    >>> _ = file.seek(0)
    >>> torch.load(file)
    {'w': tensor([1., 1.]), 'epoch': 3}
    """
    _check_pickle(pickle_module)
    is_path = isinstance(f, (str, os.PathLike))
    if is_path and os.fspath(f).endswith(".safetensors"):  # type: ignore[arg-type]
        saving.save(unwrapped(obj), f)
        return
    parts = _Parts()
    pickled = torch_pickle.dump(obj, parts.reduced, _name_of, pickle_protocol)
    target: Any = as_path("save", f) if is_path else f
    name = target.stem if is_path else "archive"
    opened = replaced(target) if is_path else nullcontext(target)
    with opened as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(f"{name}/data.pkl", pickled)
        archive.writestr(f"{name}/byteorder", "little")
        for each in parts.storages.values():
            data = np.ascontiguousarray(each.data, each.dtype.numpy)
            archive.writestr(f"{name}/data/{each.key}", data.tobytes())
        archive.writestr(f"{name}/version", "3\n")


def _check_pickle(module: Any) -> None:
    if module not in (None, pickle):
        raise ValueError(
            f"pickle_module={module!r}: files are pickled by Python's pickle alone; leave the "
            "argument out"
        )


class _Parts:
    """The elements that a file is to have, and how what is PyTorch's is made of them."""

    def __init__(self) -> None:
        self.storages: dict[Any, Stored] = {}

    def reduced(self, value: Any) -> Any:
        """How a value is made, as `__reduce__` says; NotImplemented for what is not PyTorch's."""
        kind = type(value)
        if kind is Tensor:
            return self._tensor(value)
        if kind is Inner:  # within a module of treadle's own
            return getattr, (kept(value), "td")
        if kind is DType:
            return value.name  # a name: `_name_of` says whose
        if kind is Size:
            return Name("torch", "Size"), (tuple(value),)
        if isinstance(value, Tensor):  # a sparse one
            return Name("torch._utils", "_rebuild_sparse_tensor"), _sparse().parts(value)
        if isinstance(value, layout):
            return Name("torch.serialization", "_get_layout"), (repr(value),)
        if kind is Device:
            parts = (value.type,) if value.index is None else (value.type, value.index)
            return Name("torch", "device"), parts
        return NotImplemented

    def _tensor(self, value: Tensor) -> Any:
        inner = value._inner
        own = dict(vars(value))
        if isinstance(value, Parameter):
            given: tuple[Any, ...] = wrap(inner.detach()), inner.requires_grad, OrderedDict()
            if own:
                return Name("torch._utils", "_rebuild_parameter_with_state"), (*given, own)
            return Name("torch._utils", "_rebuild_parameter"), given
        function, arguments = torch_pickle.rebuilt(self._stored(inner))
        if own:
            return Name("torch._utils", "_rebuild_from_type_v2"), (function, Tensor, arguments, own)
        return function, arguments

    def _stored(self, inner: Inner) -> Stored:
        """The tensor's memory, which is in the file once, and its place there: tensors that are
        views of one another are that again when they are loaded, as in PyTorch."""
        requires_grad, seen = inner.requires_grad, inner._where
        if inner._cell.base is not None or min(seen.strides, default=0) < 0:
            inner = inner.detach().copied()  # PyTorch has no words for such a view
            seen = inner._where
        found = self.storages.get(inner._cell)
        if found is None:
            whole = from_cell(inner._cell, None)
            found = self.storages[inner._cell] = Stored(
                inner.dtype, str(Device(inner.device)), whole.numpy(), str(len(self.storages)),
                (), (), 0, False,
            )  # fmt: skip
        return found._replace(
            shape=seen.shape, strides=seen.strides, offset=seen.offset, requires_grad=requires_grad
        )


def _name_of(value: Any) -> Name | None:
    """PyTorch's name of one of its dtypes or its class of tensors; the public name of what is
    treadle's, which stays where files of the library change. None for others."""
    if value is Tensor:
        return Name("torch", "Tensor")
    if type(value) is DType:
        return Name("torch", value.name)
    place_, name = getattr(value, "__module__", None), getattr(value, "__qualname__", "")
    if not isinstance(place_, str) or not place_.startswith("treadle."):
        return None
    parts = place_.split(".")
    for count in range(1, len(parts)):
        public = ".".join(parts[:count])
        if getattr(sys.modules[public], name, None) is value:
            return Name(public, name)
    return None


def load(
    f: _Path,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = None,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """What `torch.save` saved, PyTorch's too, or a file of safetensors.

    `map_location` is the device for all tensors, a dict of devices by devices, or a function of a
    tensor and the device that it was saved from; None loads where it was saved from. RuntimeError
    if that device is not here.

    Tensors, numbers, texts and containers are loaded, and what `add_safe_globals` admits. A file
    that names anything else, as one of a whole module, raises a `pickle.UnpicklingError` that says
    so, unless `weights_only=False`: then what the file names is imported and called, which can be
    any program, so that only files should be loaded so whose source is trusted. FormatError for
    other files, among them PyTorch's from before version 1.6.
    """
    _check_pickle(pickle_module)
    is_trusted = weights_only is not None and not weights_only
    is_path = isinstance(f, (str, os.PathLike))
    if not is_path:
        return _loaded(f, map_location, is_trusted)
    source = as_path("load", f)
    with naming(source):
        opened = source.open("rb")
    with opened as file:
        try:
            return _loaded(file, map_location, is_trusted)
        except FormatError as error:
            raise type(error)(f"{source}: {error}") from None


def _loaded(file: Any, map_location: Any, is_trusted: bool) -> Any:
    if not (hasattr(file, "seek") and hasattr(file, "tell")):
        file = io.BytesIO(file.read())
    start = file.tell()
    magic = file.read(4)
    file.seek(start)
    if magic[:2] == b"\x80\x02" or magic[:1] == b"\x80":
        raise FormatError(
            "this is a file of PyTorch from before version 1.6, or a plain pickle: load it with "
            "PyTorch and save its state_dict() again"
        )
    if magic != b"PK\x03\x04":
        where = "cpu" if map_location is None or callable(map_location) else map_location
        return wrapped(saving.load(file, place(where)))
    try:
        archive = zipfile.ZipFile(file)
    except zipfile.BadZipFile as error:
        raise FormatError(f"the file is damaged: {error}") from None
    with archive:
        return _Reader(archive, map_location).state(is_trusted)


class _Reader:
    """An open file of PyTorch's, whose tensors are made once each."""

    def __init__(self, archive: zipfile.ZipFile, map_location: Any) -> None:
        names = [each for each in archive.namelist() if each.endswith("/data.pkl")]
        if len(names) != 1:
            is_script = any("/code/" in each for each in archive.namelist())
            raise FormatError(
                "this is a program of torch.jit, which is not loaded: save the state dict"
                if is_script
                else "this zip file is not one of torch.save: it has no data.pkl"
            )
        self._archive, self._root = archive, names[0].removesuffix("data.pkl")
        self._map_location = map_location
        self._storages: dict[str, np.ndarray[Any, Any]] = {}
        self._made: dict[Any, Inner] = {}  # the tensors of all elements, and those of places

    def state(self, is_trusted: bool) -> Any:
        """What was saved. The program in a file is run if it is trusted."""
        order = f"{self._root}byteorder"
        if order in self._archive.namelist() and self._archive.read(order) != b"little":
            raise FormatError("the file is from a machine with the other order of bytes")
        pickled = self._archive.read(f"{self._root}data.pkl")
        named = _imported if is_trusted else _named
        makers = Makers(self._tensor, Parameter, named, is_trusted)
        return torch_pickle.load(pickled, makers)

    def _tensor(self, place_: torch_pickle.Place) -> Tensor:
        key = place_._replace(requires_grad=False)
        made = self._made.get(key)
        if made is None:
            raw = self._storages.get(place_.key)
            if raw is None:
                try:
                    content = self._archive.read(f"{self._root}data/{place_.key}")
                except KeyError:
                    raise FormatError(f"the elements {place_.key!r} are missing") from None
                raw = self._storages[place_.key] = np.frombuffer(content, np.uint8)
            made = self._made[key] = self._part(place_, place_.elements(raw))
        found = wrap(made)
        if place_.requires_grad:
            found = wrap(made.detach())
            found.requires_grad_()  # type: ignore[attr-defined]
        return found

    def _part(self, place_: torch_pickle.Place, elements: np.ndarray[Any, Any]) -> Inner:
        """A tensor of elements of a part of the file. Those of one part share their memory."""
        shape, strides, offset = place_.shape, place_.strides, place_.offset
        if 0 in shape:
            return from_numpy(np.zeros(shape, elements.dtype), self._where(place_.location))
        seen = View(shape, strides, offset)
        of_part = place_.key, place_.dtype, place_.location
        whole = self._made.get(of_part)
        if whole is None:
            if elements.size == math.prod(shape) and is_in_order(seen):
                elements = elements.reshape(shape)
            whole = self._made[of_part] = from_numpy(elements, self._where(place_.location))
        is_whole = is_in_order(seen) and whole.shape == shape
        return from_cell(whole._cell, None if is_whole else seen)

    def _where(self, location: str) -> Any:
        where = self._map_location
        if where is None:
            return _saved_from(location)
        if isinstance(where, dict):
            named = where.get(location, where.get(location.partition(":")[0]))
            return _saved_from(location) if named is None else place(named)
        if isinstance(where, (str, Device, int)):
            return place(where)
        if callable(where):
            found = where(wrap(from_numpy(np.zeros(0, np.uint8), place("cpu"))), location)
            if found is None or isinstance(found, Tensor):
                return place("cpu") if isinstance(found, Tensor) else _saved_from(location)
            return place(found)
        return place(where)


def _saved_from(location: str) -> Any:
    """The device that a tensor was saved from. RuntimeError if there is none."""
    try:
        return place(location)
    except RuntimeError as error:
        raise type(error)(
            f"the file has tensors of the device {location!r}, which is not here: load it with "
            f'map_location="cpu", or with that of another device. ({error})'
        ) from None


def _named(module: str, name: str) -> Any:
    """What a name of PyTorch's is here: dtypes, sizes, devices and tensors; and names that were
    admitted. None for others."""
    if (module, name) in _OF_SPARSE:
        return getattr(_sparse(), _OF_SPARSE[module, name])
    admitted = _admitted.get((module, name))
    if admitted is not None or module != "torch":
        return admitted
    if name in _CLASSES:
        return _CLASSES[name]
    found = getattr(import_module("treadle.torch"), name, None) if name.isidentifier() else None
    return found if isinstance(found, DType) else None


def _sparse() -> Any:
    return import_module("treadle.torch.sparse.pickling")  # which few files need


# What files with sparse tensors name.
_OF_SPARSE = {
    ("torch._utils", "_rebuild_sparse_tensor"): "rebuilt",
    ("torch.serialization", "_get_layout"): "layout_named",
}
_CLASSES = {"Size": Size, "device": Device, "Tensor": Tensor}


def _imported(module: str, name: str) -> Any:
    """Any of PyTorch's names, which are treadle.torch's. None for what is not PyTorch's."""
    if (module, name) in _OF_SPARSE:
        return _named(module, name)
    if module != "torch" and not module.startswith("torch."):
        return None
    try:
        found: Any = import_module(f"treadle.{module}")
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as error:
        raise FormatError(f"the file has a {module}.{name}: {error}") from None
    return found


# --- what may be loaded beside tensors, numbers, texts and containers ----------------------------

_admitted: dict[tuple[str, str], Any] = {}


def _names_of(classes: list[Any]) -> dict[tuple[str, str], Any]:
    found: dict[tuple[str, str], Any] = {}
    for each in classes:
        if isinstance(each, tuple):
            each, path = each
            module, _, name = path.rpartition(".")
        else:
            public = _name_of(each)
            if public is not None:
                found[public.module, public.name] = each
            module, name = each.__module__, each.__qualname__
        found[module, name] = each
    return found


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Admit classes and functions, or pairs of one and its name "module.name", in files that are
    loaded by `torch.load`: it calls them as the file says.

    >>> import io
    >>> import treadle.torch as torch
    >>> file = io.BytesIO()
    >>> torch.save(torch.nn.Identity(), file)
    >>> _ = file.seek(0)
    >>> with torch.serialization.safe_globals([torch.nn.Identity, set]):
    ...     torch.load(file)
    Identity()
    """
    _admitted.update(_names_of(safe_globals))


def get_safe_globals() -> list[Any]:
    """The classes and functions that were admitted."""
    return list({id(each): each for each in _admitted.values()}.values())


def clear_safe_globals() -> None:
    """Admit none any more."""
    _admitted.clear()


@contextmanager
def safe_globals(safe_globals: list[Any]) -> Iterator[None]:
    """The same as `add_safe_globals` within a with statement."""
    before = dict(_admitted)
    add_safe_globals(safe_globals)
    try:
        yield
    finally:
        _admitted.clear()
        _admitted.update(before)
