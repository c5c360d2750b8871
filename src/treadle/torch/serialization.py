"""`torch.save` and `torch.load`: PyTorch's zip files, which PyTorch reads and writes as well, and
safetensors. No program in a file is ever run."""

from __future__ import annotations

import io
import os
import zipfile
from contextlib import contextmanager, nullcontext
from typing import IO, Any

import numpy as np

from treadle.core.dtypes import DType
from treadle.core.errors import FormatError
from treadle.core.paths import as_path, naming
from treadle.data import saving
from treadle.formats import torch_pickle
from treadle.formats.atomic import replaced
from treadle.formats.torch_pickle import Stored
from treadle.tensor.tensor import from_numpy
from treadle.torch.devices import device as Device
from treadle.torch.devices import place
from treadle.torch.layouts import Size
from treadle.torch.tensors import Tensor, unwrapped, wrap, wrapped

_Path = str | os.PathLike[str] | IO[bytes]


def save(
    obj: Any,
    f: _Path,
    pickle_module: Any = None,
    pickle_protocol: int = 2,
    _use_new_zipfile_serialization: bool = True,
) -> None:
    """Save a state: tensors, numbers, texts, truth values and None, in dictionaries, lists, tuples
    and sets of any depth, as `model.state_dict()` and `optimizer.state_dict()`.

    The file is PyTorch's, which `torch.load` of PyTorch reads, too; with a path that ends in
    ".safetensors" it is safetensors. Tensors of other devices than CUDA's are those of the CPU in
    it. TypeError for what cannot be saved, as a whole module: save its state dict.

    >>> import io
    >>> import treadle.torch as torch
    >>> file = io.BytesIO()
    >>> torch.save({"w": torch.ones(2), "epoch": 3}, file)
    >>> _ = file.seek(0)
    >>> torch.load(file)
    {'w': tensor([1., 1.]), 'epoch': 3}
    """
    is_path = isinstance(f, (str, os.PathLike))
    if is_path and os.fspath(f).endswith(".safetensors"):  # type: ignore[arg-type]
        saving.save(unwrapped(obj), f)
        return
    storages: dict[Any, tuple[str, Stored]] = {}

    def stored(value: Any) -> Stored | None:
        """A tensor's place in the file, or None for anything else."""
        if not isinstance(value, Tensor):
            return None
        inner = value._inner
        seen = inner._cell, inner._where
        if seen not in storages:
            kind = inner.device.id
            storages[seen] = (
                str(len(storages)),
                Stored(
                    inner.dtype, inner.shape, kind if kind.startswith("cuda") else "cpu",
                    inner.requires_grad, inner.numpy(), str(len(storages)),
                ),
            )  # fmt: skip
        found = storages[seen][1]
        return found._replace(requires_grad=inner.requires_grad)

    pickled = torch_pickle.dump(obj, stored, _global_of)
    target: Any = as_path("save", f) if is_path else f
    name = target.stem if is_path else "archive"
    opened = replaced(target) if is_path else nullcontext(target)
    with opened as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(f"{name}/data.pkl", pickled)
        archive.writestr(f"{name}/byteorder", "little")
        for key, each in storages.values():
            data = np.ascontiguousarray(each.data, each.dtype.numpy)
            archive.writestr(f"{name}/data/{key}", data.tobytes())
        archive.writestr(f"{name}/version", "3\n")


def _global_of(value: Any) -> tuple[str, str] | tuple[str, str, tuple[Any, ...]] | None:
    """The name of what is no container in PyTorch, or the function and arguments that make it."""
    if isinstance(value, DType):
        return "torch", value.name
    if isinstance(value, Size):
        return "torch", "Size", (tuple(value),)
    if isinstance(value, Device):
        parts = (value.type,) if value.index is None else (value.type, value.index)
        return "torch", "device", parts
    if hasattr(value, "state_dict") and hasattr(value, "parameters"):
        raise TypeError(
            f"a {type(value).__name__} is not saved as a whole, since only a program could make it "
            "again: save model.state_dict(), and load it with model.load_state_dict(...)"
        )
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
    """The state that `torch.save` saved, PyTorch's too, or a file of safetensors.

    `map_location` is the device for all tensors, a dict of devices by devices, or a function of a
    tensor and the device that it was saved from; None loads where it was saved from. Only tensors,
    numbers, texts and containers are loaded, also with `weights_only=False`: whatever else a file
    says is refused by name, and no program in it runs. FormatError for other files, among them
    PyTorch's from before version 1.6.
    """
    is_path = isinstance(f, (str, os.PathLike))
    if not is_path:
        return _loaded(f, map_location)
    source = as_path("load", f)
    with naming(source):
        opened = source.open("rb")
    with opened as file:
        try:
            return _loaded(file, map_location)
        except FormatError as error:
            raise FormatError(f"{source}: {error}") from None


def _loaded(file: Any, map_location: Any) -> Any:
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
        return _Reader(archive, map_location).state()


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
        self._made: dict[Any, Any] = {}

    def state(self) -> Any:
        """What was saved."""
        order = f"{self._root}byteorder"
        if order in self._archive.namelist() and self._archive.read(order) != b"little":
            raise FormatError("the file is from a machine with the other order of bytes")
        pickled = self._archive.read(f"{self._root}data.pkl")
        return torch_pickle.load(pickled, self._tensor, _named)

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
            data = place_.elements(raw)
            made = self._made[key] = from_numpy(data, self._where(place_.location, data))
        found = wrap(made)
        if place_.requires_grad:
            found = wrap(made.detach())
            found.requires_grad_()  # type: ignore[attr-defined]
        return found

    def _where(self, location: str, data: Any) -> Any:
        where = self._map_location
        if where is None:
            return place(location)
        if isinstance(where, dict):
            return place(where.get(location, location))
        if isinstance(where, (str, Device, int)):
            return place(where)
        if callable(where):
            found = where(wrap(from_numpy(np.zeros(0, np.uint8), place("cpu"))), location)
            if found is None or isinstance(found, Tensor):
                return place("cpu" if isinstance(found, Tensor) else location)
            return place(found)
        return place(where)


def _named(module: str, name: str) -> Any:
    """What a name of PyTorch's is here: dtypes, sizes and devices. None if it is nothing here."""
    if module != "torch":
        return None
    if name in ("Size", "device"):
        return {"Size": Size, "device": Device}[name]
    import treadle.torch as names

    found = getattr(names, name, None) if name.isidentifier() else None
    return found if isinstance(found, DType) else None


# --- what PyTorch's programs say of safety -------------------------------------------------------


def add_safe_globals(safe_globals: list[Any]) -> None:
    """Refused: nothing is loaded but tensors, numbers, texts and containers."""
    raise NotImplementedError(
        "classes in files are not made: only tensors, numbers, texts and containers are loaded"
    )


def get_safe_globals() -> list[Any]:
    """The classes that files may have besides: none."""
    return []


@contextmanager
def safe_globals(safe_globals: list[Any]) -> Any:
    """Refused, as `add_safe_globals`."""
    add_safe_globals(safe_globals)
    yield
