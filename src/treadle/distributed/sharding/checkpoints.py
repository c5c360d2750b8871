"""Checkpoints of models that several ranks train: in one file, as a single process writes it, or in
a file for each rank. Both are read by any number of ranks.

A file of a rank has pieces of flattened parameters, and of what the optimizer remembers of them;
its metadata says which elements these are. `checkpoint.safetensors`, which rank 0 writes when all
pieces are on the disk, names the files that belong together. What is replaced is deleted after it.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, TypeVar

import numpy as np

from treadle.autograd.modes import no_grad
from treadle.core.errors import DistributedError, FormatError, TreadleError
from treadle.core.paths import as_path
from treadle.data.saving import load, save
from treadle.distributed.data_parallel import DataParallel
from treadle.distributed.group import current
from treadle.distributed.members import Group
from treadle.distributed.sharding.gathered import Unit
from treadle.distributed.sharding.parts import Flat, Member
from treadle.distributed.sharding.sharded import Sharded
from treadle.distributed.sharding.whole_states import (
    load_others,
    members_of,
    on_host,
    whole_state,
    wholes,
)
from treadle.formats import safetensors
from treadle.formats.atomic import replaced
from treadle.formats.safetensors import Header, Source
from treadle.nn import state
from treadle.nn.module import Module
from treadle.optim.optimizer import Optimizer
from treadle.tensor.creation import asarray, zeros
from treadle.tensor.dtypes import dtype_of
from treadle.tensor.tensor import Tensor, from_numpy

MAIN = "checkpoint.safetensors"
_RANGES = "treadle.pieces"
Result = TypeVar("Result")


def save_checkpoint(
    path: str | os.PathLike[str],
    model: Module,
    optimizer: Optimizer | None = None,
    *,
    extra: Any = None,
    full: bool = False,
) -> None:
    """Save a model, what its optimizer remembers, and what `td.save` takes besides (the states of a
    learning rate schedule and of a `GradScaler`, the epoch). All ranks call it.

    The checkpoint of a `Sharded` model is a folder, into which each rank writes its parts. With
    `full`, and of other models, it is a file that rank 0 writes: what `td.load` gives is a dict
    with "model", "optimizer" and "extra", whose states fit the model that was given to `Sharded`,
    and its optimizer, without it. `extra` is that of rank 0.

    What was at the path is replaced when all is on the disk; if a rank cannot write, all ranks
    raise a `DistributedError` with its reason, and what was there stays as it was.

    >>> import tempfile
    >>> import treadle as td
    >>> model = td.distributed.Sharded(td.nn.Linear(2, 1, device="cpu"))
    >>> optimizer = td.optim.AdamW(model.parameters(), lr=0.1)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     td.distributed.save_checkpoint(f"{folder}/run", model, optimizer, extra={"epoch": 3})
    ...     td.distributed.load_checkpoint(f"{folder}/run", model, optimizer)
    {'epoch': 3}
    """
    target = as_path("save_checkpoint", path)
    if isinstance(model, Sharded):
        if full:
            _save_full(target, model, optimizer, extra)
        else:
            _save_pieces(target, model, optimizer, extra)
        return
    group = current()
    plain = model.module if isinstance(model, DataParallel) else model
    whole = {"model": plain.state_dict(), "optimizer": _plain(optimizer), "extra": extra}
    _together(group, f"{target} was not written", lambda: _save_by_first(group, whole, target))


def load_checkpoint(
    path: str | os.PathLike[str], model: Module, optimizer: Optimizer | None = None
) -> Any:
    """Go on from a checkpoint of `save_checkpoint`, of any number of ranks, or from a file of
    `td.save` with the state of a model: its `extra`. All ranks call it, and read the same files.

    A full checkpoint and a sharded one fit `Sharded` models that are divided in other ways, too.
    `StateDictError` or `ValueError` if the model or the optimizer is another one.
    """
    source = as_path("load_checkpoint", path)
    group = current()
    is_folder = source.is_dir()
    if is_folder and not isinstance(model, Sharded):
        raise DistributedError(
            f"{source} is the checkpoint of a Sharded model: load it into one (a single process is "
            "enough), and save it with full=True for others"
        )

    def read() -> Any:
        if is_folder:
            assert isinstance(model, Sharded)
            return _load_pieces(source, model, optimizer)
        return _load_full(source, model, optimizer)

    return _together(group, f"{source} was not loaded", read)


def _together(group: Group, what: str, work: Callable[[], Result]) -> Result:
    """What some work gives, which all ranks do. DistributedError on each of them if one fails."""
    error: Exception | None = None
    try:
        found = work()
    except (OSError, TreadleError, ValueError, TypeError) as caught:
        error = caught
    if group.engine is None:
        if error is not None:
            raise error
        return found
    own = None if error is None else f"{type(error).__name__}: {error}"
    for rank, text in enumerate(group.exchange("checkpoint", own, patient=True)):
        if text is not None:
            raise DistributedError(f"{what}: rank {rank}: {text}") from error
    return found


def _save_by_first(group: Group, whole: Any, target: Path) -> None:
    if group.rank == 0:
        save(whole, target)


def _plain(optimizer: Optimizer | None) -> Any:
    return None if optimizer is None else optimizer.state_dict()


# --- what optimizers remember --------------------------------------------------------------------


class _Remembered(NamedTuple):
    """What an optimizer remembers of a parameter: of its elements, and as numbers."""

    elements: dict[str, Tensor]
    numbers: dict[str, Any]


def _named_groups(model: Sharded, optimizer: Optimizer) -> list[list[str]]:
    """The names of the parameters of each group."""
    names = {id(member.piece): member.name for _, member in members_of(model.units)}
    found = []
    for group in optimizer.param_groups:
        for each in group["params"]:
            if id(each) not in names:
                raise DistributedError(
                    f"the optimizer has a parameter of shape {each.shape} that is not one of the "
                    "Sharded model: save its state with td.save"
                )
        found.append([names[id(each)] for each in group["params"]])
    return found


def _remembered(optimizer: Optimizer, piece: Tensor) -> _Remembered:
    elements, numbers = {}, {}
    for name, value in optimizer.state.get(piece, {}).items():
        if isinstance(value, Tensor) and value.shape == piece.shape:
            elements[name] = value
        elif value is None or (isinstance(value, Tensor) and value.ndim):
            raise DistributedError(
                f"{type(optimizer).__name__} remembers {name}, which is neither of a parameter's "
                "elements nor a number, and cannot be divided among ranks"
            )
        else:
            numbers[name] = value
    return _Remembered(elements, numbers)


# --- one file ------------------------------------------------------------------------------------


def _save_full(target: Path, model: Sharded, optimizer: Optimizer | None, extra: Any) -> None:
    group = model.group
    is_first = group.rank == 0

    def kept(tensor: Tensor) -> Any:
        """On the host of rank 0; nowhere else."""
        if is_first:
            return on_host(tensor)
        tensor.realize()
        return None

    whole: dict[str, Any] = {
        "model": whole_state(model.module, model.units, kept),
        "optimizer": None,
        "extra": extra,
    }
    if optimizer is not None:
        _named_groups(model, optimizer)
        whole["optimizer"] = _whole_optimizer(model, optimizer, kept)
    _together(group, f"{target} was not written", lambda: _save_by_first(group, whole, target))


def _whole_optimizer(
    model: Sharded, optimizer: Optimizer, kept: Callable[[Tensor], Any]
) -> dict[str, Any]:
    group = model.group
    own = {m.name: _remembered(optimizer, m.piece) for _, m in members_of(model.units)}
    # A rank may remember nothing of a parameter of which it has no elements.
    known = {name: sorted(each.elements) for name, each in own.items()}
    every = [known] if group.engine is None else group.exchange("states", known)
    names = {name: sorted({each for rank in every for each in rank[name]}) for name in own}
    found: dict[int, dict[str, Any]] = {}
    for unit in model.units:
        for flat in unit.flats:
            for member, values in _whole_states(unit, flat, own, names, kept):
                if values:
                    found[id(member.piece)] = values
    state_dict = optimizer.state_dict()
    pieces = [each for group in optimizer.param_groups for each in group["params"]]
    states = {n: found[id(piece)] for n, piece in enumerate(pieces) if id(piece) in found}
    return {"state": states, "param_groups": state_dict["param_groups"]}


def _whole_states(
    unit: Unit,
    flat: Flat,
    own: Mapping[str, _Remembered],
    names: Mapping[str, list[str]],
    kept: Callable[[Tensor], Any],
) -> list[tuple[Member, dict[str, Any]]]:
    """What is remembered of the whole parameters of a flat array."""
    members = flat.members
    found: list[tuple[Member, dict[str, Any]]] = [
        (each, {name: _number(value) for name, value in own[each.name].numbers.items()})
        for each in members
    ]
    for name in sorted({name for each in members for name in names[each.name]}):
        pieces = [own[each.name].elements.get(name, _nothing(each, flat)) for each in members]
        whole = wholes(flat, unit.group.rank, pieces, unit)
        for (member, values), value in zip(found, whole, strict=True):
            if name in names[member.name]:
                values[name] = kept(value)
    return found


def _nothing(member: Member, flat: Flat) -> Tensor:
    return zeros(member.piece.shape, dtype=flat.dtype, device=flat.device)


def _number(value: Any) -> Any:
    return on_host(value) if isinstance(value, Tensor) else value


def _load_full(source: Path, model: Module, optimizer: Optimizer | None) -> Any:
    whole = load(source, device="cpu")
    if not isinstance(whole, Mapping) or not {"model", "optimizer", "extra"} <= whole.keys():
        whole = {"model": whole, "optimizer": None, "extra": None}
    given = whole["optimizer"]
    if optimizer is not None and given is None:
        raise FormatError(f"{source} has no state of an optimizer: leave the optimizer away")
    target = model.module if isinstance(model, DataParallel) else model
    target.load_state_dict(whole["model"])
    if optimizer is not None:
        if isinstance(model, Sharded):
            given = {**given, "state": _cut(model, optimizer, given["state"])}
        optimizer.load_state_dict(given)
    return whole["extra"]


def _cut(model: Sharded, optimizer: Optimizer, states: Mapping[int, Any]) -> dict[int, Any]:
    """This rank's pieces of what is remembered of whole parameters."""
    members = {id(member.piece): (flat, member) for flat, member in members_of(model.units)}
    pieces = [each for group in optimizer.param_groups for each in group["params"]]
    found: dict[int, Any] = {}
    for number, values in states.items():
        flat, member = members[id(pieces[number])] if number < len(pieces) else (None, None)
        if flat is None or member is None:
            continue
        begin, end = flat.piece(member, model.group.rank)
        numbers = {"step", *optimizer._scalars}
        found[number] = {
            name: value
            if name in numbers or getattr(value, "shape", None) != member.shape
            else value.reshape((-1,))[begin:end]
            for name, value in values.items()
        }
    return found


# --- a file for each rank ------------------------------------------------------------------------


def _save_pieces(folder: Path, model: Sharded, optimizer: Optimizer | None, extra: Any) -> None:
    group = model.group
    groups = None
    if optimizer is not None:
        named = _named_groups(model, optimizer)
        options = optimizer.state_dict()["param_groups"]
        groups = [{**each, "params": names} for each, names in zip(options, named, strict=True)]
    key = secrets.token_hex(4)
    if group.engine is not None:
        key = group.exchange("checkpoint", key)[0]
    files = [f"rank-{rank}-of-{group.size}-{key}.safetensors" for rank in range(group.size)]
    failed = f"{folder} was not written"

    def write_own() -> None:
        if folder.exists() and not folder.is_dir():
            raise FileExistsError(f"{folder} is a file, and the checkpoint is a folder")
        folder.mkdir(parents=True, exist_ok=True)
        _write_pieces(folder / files[group.rank], model, optimizer)

    def write_main() -> None:
        if group.rank == 0:
            parts = state.state_of(model.module, {}, "", True)
            known = {id(member.piece): member.shape for _, member in members_of(model.units)}
            shapes = {name: known[id(each)] for name, each in parts.items() if id(each) in known}
            others = {name: each for name, each in parts.items() if name not in shapes}
            main = {"files": files, "shapes": shapes, "others": others, "groups": groups}
            save({**main, "extra": extra}, folder / MAIN)

    try:
        _together(group, failed, write_own)
        _together(group, failed, write_main)
    except BaseException:
        with suppress(OSError):
            (folder / files[group.rank]).unlink(missing_ok=True)
        raise
    if group.rank == 0:
        for old in folder.glob("rank-*-of-*.safetensors"):
            if old.name not in files:
                with suppress(OSError):
                    old.unlink()


def _write_pieces(path: Path, model: Sharded, optimizer: Optimizer | None) -> None:
    ranges: dict[str, tuple[int, int]] = {}
    table: dict[str, Tensor] = {}
    for flat, member in members_of(model.units):
        begin, end = flat.piece(member, model.group.rank)
        if begin == end and member.size:
            continue
        ranges[member.name] = begin, end
        table[f"model.{member.name}"] = member.piece.detach()
        if optimizer is not None:
            found = _remembered(optimizer, member.piece)
            for name, value in {**found.elements, **found.numbers}.items():
                table[f"optimizer.{member.name}.{name}"] = _as_tensor(value)
    sources = {name: Source(dtype_of(each.dtype), each.shape) for name, each in table.items()}
    with replaced(path) as file:
        safetensors.write(
            file, sources,
            ((name, np.ascontiguousarray(table[name].numpy(), dtype=sources[name].dtype.numpy))
             for name in safetensors.in_order(sources)),
            {_RANGES: json.dumps(ranges)},
        )  # fmt: skip


def _as_tensor(value: Any) -> Tensor:
    return value if isinstance(value, Tensor) else asarray(value, device="cpu")


class _Piece(NamedTuple):
    """Elements of a flattened parameter, in a file."""

    begin: int
    end: int
    file: BinaryIO
    header: Header


def _load_pieces(folder: Path, model: Sharded, optimizer: Optimizer | None) -> Any:
    main = folder / MAIN
    if not main.is_file():
        raise FormatError(f"{folder} is not a checkpoint, or not a whole one: {MAIN} is missing")
    kept = load(main, device="cpu")
    groups = kept["groups"]
    if optimizer is not None and groups is None:
        raise FormatError(f"{folder} has no state of an optimizer: leave the optimizer away")
    with ExitStack() as stack:
        pieces = _opened(folder, kept["files"], stack)
        state_dict = None
        if optimizer is not None:
            state_dict = _optimizer_state(folder, model, optimizer, groups, pieces)
        own = {
            member.name: _read(f"model.{member.name}", flat, member, model.group, pieces)
            for flat, member in members_of(model.units)
        }
    load_others(model.module, model.units, kept["shapes"], kept["others"])
    with no_grad():
        for _, member in members_of(model.units):
            value = from_numpy(own.pop(member.name), member.piece.device)
            member.piece.detach()[...] = value.to(dtype=member.piece.dtype)
    if optimizer is not None and state_dict is not None:
        optimizer.load_state_dict(state_dict)
    return kept["extra"]


def _opened(folder: Path, files: list[str], stack: ExitStack) -> dict[str, list[_Piece]]:
    """The pieces of each parameter, in order."""
    found: dict[str, list[_Piece]] = {}
    for name in files:
        path = folder / Path(name).name
        try:
            file = stack.enter_context(path.open("rb"))
        except FileNotFoundError:
            raise FormatError(
                f"{path} is missing: it belongs to the checkpoint (a folder that ranks of several "
                "machines write is on a disk that all of them have)"
            ) from None
        header = safetensors.read_header(file, path.stat().st_size)
        ranges = json.loads(header.metadata.get(_RANGES, "{}"))
        for parameter, (begin, end) in ranges.items():
            found.setdefault(parameter, []).append(_Piece(begin, end, file, header))
    for pieces in found.values():
        pieces.sort(key=lambda each: each[:2])
    return found


def _read(
    name: str, flat: Flat, member: Member, group: Group, pieces: Mapping[str, list[_Piece]]
) -> np.ndarray[Any, Any]:
    """This rank's elements of a parameter, or of what is remembered of it."""
    begin, end = flat.piece(member, group.rank)
    found = [np.empty(0, flat.dtype.stored)]
    at = begin
    for piece in pieces[member.name]:
        if piece.begin <= at < min(piece.end, end):
            data = safetensors.read_tensor(piece.file, piece.header, name)
            stop = min(piece.end, end)
            found.append(data[at - piece.begin : stop - piece.begin])
            at = stop
    if at != end:
        raise FormatError(f"elements {at} to {end} of {name} are in no file of the checkpoint")
    return np.concatenate(found[1:] or found)


def _optimizer_state(
    folder: Path,
    model: Sharded,
    optimizer: Optimizer,
    groups: list[dict[str, Any]],
    pieces: Mapping[str, list[_Piece]],
) -> dict[str, Any]:
    """The optimizer's state dict, with this rank's pieces."""
    named = _named_groups(model, optimizer)
    if [each["params"] for each in groups] != named:
        raise ValueError(
            f"the optimizer has other parameters, in other groups, than that of {folder}: it has "
            f"{[len(each) for each in named]} parameters in its groups, and the checkpoint "
            f"{[len(each['params']) for each in groups]}"
        )
    members = {member.name: (flat, member) for flat, member in members_of(model.units)}
    order = [name for group in named for name in group]
    states = {}
    for number, name in enumerate(order):
        flat, member = members[name]
        first = next((each for each in pieces[name]), None)
        prefix = f"optimizer.{name}."
        if first is None:
            continue
        values: dict[str, Any] = {}
        for key, entry in first.header.tensors.items():
            if not key.startswith(prefix):
                continue
            is_number = entry.shape == ()
            values[key.removeprefix(prefix)] = (
                safetensors.read_tensor(first.file, first.header, key)
                if is_number
                else _read(key, flat, member, model.group, pieces)
            )
        if values:
            states[number] = values
    numbers = iter(range(len(order)))
    packed = [{**each, "params": [next(numbers) for _ in each["params"]]} for each in groups]
    return {"state": states, "param_groups": packed}
