"""Sharded training: each rank has a part of the parameters, of their gradients and of the
optimizer's states, and gathers the parameters of a unit of the model while it computes with them.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any
from weakref import ref

from treadle.autograd.modes import no_grad
from treadle.core.dtypes import DType
from treadle.core.errors import DistributedError
from treadle.distributed.collectives import broadcast
from treadle.distributed.data_parallel import check_equal, equalize
from treadle.distributed.group import current
from treadle.distributed.holders import held_by
from treadle.distributed.members import Group
from treadle.distributed.sharding.gathered import Gathered, Run, Unit
from treadle.distributed.sharding.parts import Flat, Member, starts
from treadle.distributed.sharding.whole_states import load_whole_state, on_host, whole_state
from treadle.nn.containers import ModuleList, Sequential
from treadle.nn.conversion import conversion
from treadle.nn.module import Module
from treadle.nn.state import IncompatibleKeys
from treadle.nn.utils.clipping import clip_grad_norm_
from treadle.runtime.devices import Device
from treadle.runtime.devices import device as find_device
from treadle.tensor.dtypes import dtype_of
from treadle.tensor.tensor import Tensor

Units = type[Module] | tuple[type[Module], ...] | Sequence[Module] | None


_FIXED = (
    "a Sharded model's parts stay where and what they are: move, cast or assign the model's "
    "parameters before (or Sharded(model, device=…), and dtype=… for the dtype of the computation)"
)


class Sharded(Module):
    """A model whose parameters, gradients and optimizer's states are divided among the ranks, each
    of which trains on its part of the batches.

    The model is divided into units: the children of its longest `ModuleList` (or `Sequential`),
    unless `units` says which: a class of modules, or several, or a list of modules. What is in no
    unit is gathered with the model itself. While a unit runs, forward and backward, its parameters
    are whole, and those of the next one are under way; then they are let go of. Gradients become
    their means over all ranks, and each rank gets its part of them.

    `parameters()` are this rank's parts, tensors of one axis with the names of the whole
    parameters: make the optimizer of these, after this. With `dtype` floating parameters are
    gathered in this dtype, and floating arguments of the model are cast to it; the parts, the
    gradients that the optimizer sees, and its states keep the model's. `reduce_dtype` is the dtype
    in which ranks' gradients are sent and added up, that of the gathered parameters if it is None.
    With `device` the parts are there, whatever device the model was made on.

    All ranks begin with the parameters and buffers of rank 0, and call the units in the same order.
    In training, buffers are those of rank 0 at the beginning of each forward pass, unless
    `broadcast_buffers` is False. With a `group`, all this is among its ranks, whose checkpoints
    have paths of their own.

    >>> import treadle as td
    >>> model = td.distributed.Sharded(td.nn.Linear(2, 1, device="cpu"))
    >>> model(td.ones((3, 2), device="cpu")).shape
    (3, 1)
    >>> [(name, each.shape) for name, each in model.named_parameters()]  # of a single rank
    [('module.weight', (2,)), ('module.bias', (1,))]
    """

    def __init__(
        self,
        module: Module,
        units: Units = None,
        *,
        dtype: Any = None,
        reduce_dtype: Any = None,
        device: str | Device | None = None,
        broadcast_buffers: bool = True,
        group: Group | None = None,
    ) -> None:
        super().__init__()
        self.group = group = current() if group is None else group
        self.module = module
        self._broadcasts = broadcast_buffers
        self._is_reducing = True
        self._dtype = None if dtype is None else dtype_of(dtype)
        if group.engine is not None:
            check_equal(group, module)
        where = None if device is None else find_device(device)
        self.units = _divided(module, _chosen(module, units), group, where)
        if where is not None:
            _move_buffers(module, where)
        with no_grad():
            equalize([*module.buffers()], group)
        self.root = self.units[0]
        for unit in self.units:
            unit.dtype = self._dtype
            unit.reduced = None if reduce_dtype is None else dtype_of(reduce_dtype)
            forward = unit.module.forward
            unit.module.__dict__["forward"] = (
                partial(self._of_model, forward)
                if unit is self.root
                else partial(self._call, unit, forward)
            )
        module.__dict__["state_dict"] = self.state_dict  # not of the parts
        module.__dict__["load_state_dict"] = self.load_state_dict
        self._run: Run | None = None  # while the model runs
        self._order: list[Unit] = []  # in which the last forward pass called the units
        self._called: list[Unit] = []  # by the one that runs
        self._ahead: dict[Unit, Gathered] = {}
        self._is_gathered = False
        self._kept: ref[Gathered] | None = None  # the model's own parameters, for a backward pass

    # --- running ---------------------------------------------------------------------------------

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The model's result."""
        if self.training and self._broadcasts and self.group.engine is not None:
            with no_grad():
                equalize([*self.module.buffers()], self.group)
        if self._dtype is not None:
            args = tuple([self._cast(each) for each in args])
            kwargs = {name: self._cast(each) for name, each in kwargs.items()}
        if self._is_gathered:
            return self.module(*args, **kwargs)
        kept = None if self._kept is None else self._kept()
        if kept is not None:  # it is gathered again if there is a backward pass to it
            kept.let_go()
        run = self._run = Run(self)
        self._called = []
        # What a module reads of another unit must not be a part.
        before = [unit.put(unit.absent()) for unit in self.units]
        try:
            made = self._call(self.root, self.module, *args, **kwargs)
            self._order = self._called
        finally:
            self._run = run.last = None
            for unit, parameters in zip(self.units, before, strict=True):
                unit.put(parameters)
            ahead, self._ahead = self._ahead, {}
            for each in ahead.values():
                each.drop()
        return made

    def _cast(self, value: Any) -> Any:
        is_number = isinstance(value, Tensor) and getattr(value.dtype, "kind", "") == "float"
        return value.to(self._dtype) if is_number else value

    def _of_model(self, forward: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """The forward of the model that was given, which is called within this one's."""
        if self._run is None and not self._is_gathered:
            raise DistributedError(
                "the parameters of the model are divided among the ranks: call the Sharded model "
                "itself, or this one within model.gathered()"
            )
        return forward(*args, **kwargs)

    def _call(self, unit: Unit, forward: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """What a unit gives, with its parameters gathered."""
        if self._is_gathered:
            return forward(*args, **kwargs)
        gathered = self._entered(unit)
        gathered.use()
        try:
            made = gathered.leave(forward(*args, **kwargs), unit is self.root)
        except BaseException:
            gathered.let_go()
            raise
        if unit is self.root:
            self._kept = ref(gathered)
        return made

    def _entered(self, unit: Unit) -> Gathered:
        """The gathering of a unit that is called; that of the next one is begun."""
        if self._run is None:  # called by itself, or again in a backward pass
            return Gathered(unit, Run(self))
        found = self._ahead.pop(unit, None) or Gathered(unit, self._run)
        found.start()
        number = len(self._called)
        self._called.append(unit)
        if self._order[number : number + 1] == [unit]:
            for following in self._order[number + 1 : number + 2]:
                if following not in self._ahead:
                    self._ahead[following] = Gathered(following, self._run)
                    self._ahead[following].start()
        return found

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Within the block backward passes add up this rank's own gradients, whole and in memory,
        and nothing is sent: for all but the last of several passes before a step. Several passes
        without it give the same gradients and take less memory."""
        before, self._is_reducing = self._is_reducing, False
        try:
            yield
        finally:
            self._is_reducing = before

    @contextlib.contextmanager
    def gathered(self) -> Iterator[Module]:
        """Within the block all parameters are whole, on each rank: to look at them, or to call
        functions of the model other than its forward. All ranks enter it. What is written to them
        is lost.

        >>> import treadle as td
        >>> model = td.distributed.Sharded(td.nn.Linear(2, 1, device="cpu"))
        >>> with model.gathered() as whole:
        ...     print(whole.weight.shape)
        (1, 2)
        """
        held = []
        try:
            with no_grad():
                for unit in self.units:
                    held.append(Gathered(unit, Run(self)))
                    held[-1].use()
            self._is_gathered = True
            yield self.module
        finally:
            self._is_gathered = False
            for each in reversed(held):
                each.let_go()

    def clip_grad_norm_(self, max_norm: float, norm_type: float = 2.0) -> Tensor:
        """Scale the gradients so that the norm of those of all ranks is `max_norm` at most; the
        norm that they had. `td.nn.utils.clip_grad_norm_(model.parameters(), …)` does the same."""
        return clip_grad_norm_(self.parameters(), max_norm, norm_type)

    # --- state -----------------------------------------------------------------------------------

    def _apply(self, fn: Callable[[Tensor], Tensor]) -> Any:
        raise DistributedError(_FIXED)

    def state_dict(
        self,
        *,
        destination: dict[str, Any] | None = None,
        prefix: str = "",
        keep_vars: bool = False,
    ) -> dict[str, Any]:
        """All whole parameters and persistent buffers by their names in the model that was given,
        in the memory of each host: each rank calls it, and gets all of them. `save_checkpoint`
        takes less memory."""
        found = {} if destination is None else destination
        for name, value in whole_state(self.module, self.units, on_host).items():
            found[prefix + name] = value
        return found

    def load_state_dict(
        self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False
    ) -> IncompatibleKeys:
        """Take on whole parameters and buffers, of which each rank takes its parts. All ranks have
        the same state dict. The names are those of the model that was given."""
        if assign:
            raise DistributedError("a Sharded model copies what it loads: leave assign away")
        return load_whole_state(self.module, self.units, state_dict, strict)


# --- making it -----------------------------------------------------------------------------------


def _chosen(module: Module, units: Units) -> list[tuple[str, Module]]:
    """The units that are wanted, with their names, but for the model itself."""
    named = [(name, each) for name, each in module.named_modules() if each is not module]
    if units is None:
        for kind in (ModuleList, Sequential):
            lists = [each for each in module.modules() if isinstance(each, kind)]
            longest = max(lists, key=len, default=None)
            if longest is not None and len(longest) > 1:
                wanted = {id(each) for each in longest.children()}
                break
        else:
            return []
    elif isinstance(units, (type, tuple)):
        wanted = {id(each) for _, each in named if isinstance(each, units)}
        if not wanted:
            kinds = units if isinstance(units, tuple) else (units,)
            names = " or ".join([each.__name__ for each in kinds])
            raise ValueError(f"the model has no {names} within it that could be a unit")
    else:
        wanted = {id(each) for each in units}
        known = {id(each) for _, each in named}
        for each in units:
            if id(each) not in known:
                raise ValueError(
                    f"a unit is not a module within the model: {type(each).__name__}"
                    + (" is the model itself" if each is module else "")
                )
    return [(name, each) for name, each in named if id(each) in wanted]


def _divided(
    module: Module, chosen: Sequence[tuple[str, Module]], group: Group, device: Device | None
) -> list[Unit]:
    """The units, the model itself first. Each parameter is in the innermost unit that has it; one
    that several units have is in the model's."""
    owner: dict[int, Module] = {}
    within: dict[int, Module] = {id(each): module for each in module.modules()}
    for _, unit in chosen:  # outer ones come before those within them
        within |= {id(each): unit for each in unit.modules()}
    places: dict[int, list[tuple[Module, str]]] = {}
    for each in module.modules():
        for name, parameter in each._parameters.items():
            if parameter is not None:
                places.setdefault(id(parameter), []).append((each, name))
                unit = within[id(each)]
                known = owner.setdefault(id(parameter), unit)
                if known is not unit:
                    owner[id(parameter)] = module
    named: dict[int, list[tuple[str, Tensor]]] = {}
    for name, parameter in module.named_parameters():
        if not isinstance(parameter.dtype, DType):
            raise ValueError(f"{name} is of {parameter.dtype}, which is not sharded")
        leaf = parameter._own_leaf
        if leaf is not None and leaf.home is not None:
            raise DistributedError(
                f"an optimizer has {name} already: make the optimizer after td.distributed.Sharded"
            )
        named.setdefault(id(owner[id(parameter)]), []).append((name, parameter))
    units = []
    with no_grad():
        for name, each in [("the model", module), *chosen]:
            flats = _flats(named.get(id(each), []), places, group, device)
            if flats or each is module:
                units.append(Unit(name, each, flats, group))
    return units


def _flats(
    named: Sequence[tuple[str, Tensor]],
    places: Mapping[int, list[tuple[Module, str]]],
    group: Group,
    device: Device | None,
) -> list[Flat]:
    """Flat arrays of parameters of one dtype and device, with or without gradients. The parameters
    become this rank's pieces of rank 0's."""
    kinds: dict[Any, list[tuple[str, Tensor]]] = {}
    for name, each in named:
        kinds.setdefault((each.dtype, each.device, each.requires_grad), []).append((name, each))
    found = []
    for (dtype, here, _), same in kinds.items():
        begins, part = starts([each.size for _, each in same], dtype, group.size)
        members = [
            Member(name, tuple(places[id(each)]), each, each.shape, start)
            for (name, each), start in zip(same, begins, strict=True)
        ]
        flat = Flat(tuple(members), dtype, device or here, part, group.size)
        for member in members:
            begin, end = flat.piece(member, group.rank)
            line = member.piece.detach().reshape((-1,)).to(device=flat.device)
            value = line if group.engine is None else broadcast(line, group=group)
            member.piece.grad = None
            member.piece.data = value[begin:end].clone().realize()
        held_by([member.piece for member in members], group)
        for member in members:
            leaf = member.piece._own_leaf
            assert leaf is not None
            leaf.fixed = _FIXED
        found.append(flat)
    return found


def _move_buffers(module: Module, device: Device) -> None:
    move, moved = conversion(device=device), dict[int, Tensor]()
    for each in module.modules():
        for name, buffer in each._buffers.items():
            if buffer is not None:
                each._buffers[name] = moved.setdefault(id(buffer), move(buffer))
