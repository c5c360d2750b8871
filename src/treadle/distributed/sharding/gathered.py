"""The whole parameters of a unit during its forward and its backward pass.

They are gathered when a unit is called, and let go of when it has returned: what derivatives keep
of them are views of a node that has no memory then. When the first gradient reaches the unit's
results, the node gets memory again; when the parameters' gradient is whole, it is reduced and
scattered, and the memory goes for the second time.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any
from weakref import ref

from treadle.autograd import engine
from treadle.autograd.function import Function
from treadle.autograd.modes import no_grad
from treadle.autograd.trees import leaves, with_values
from treadle.core.dtypes import DType
from treadle.core.errors import AutogradError
from treadle.distributed.collectives import gather_parts, scatter_mean
from treadle.distributed.members import Group
from treadle.distributed.sharding.parts import Flat
from treadle.graph import views
from treadle.graph.history import History, recording
from treadle.graph.memory_let_go import bring_back, let_go
from treadle.graph.node import FAILED, Node, view_of
from treadle.graph.placeholders import record_composite
from treadle.graph.realize import realize
from treadle.nn.module import Module
from treadle.tensor.tensor import Tensor, from_node


class Unit:
    """Modules whose parameters are gathered together, by a flat array for each dtype."""

    def __init__(self, name: str, module: Module, flats: Sequence[Flat], group: Group) -> None:
        self.name = name
        self.module = module
        self.flats = tuple(flats)
        self.group = group
        self.dtype: DType | None = None  # in which floating parameters are gathered
        self.reduced: DType | None = None  # in which gradients are added up
        # Of whole arrays: what passes within `no_sync` have left, which is not reduced yet.
        self.unreduced: list[Tensor | None] = [None] * len(self.flats)
        self._absent: list[Tensor] = []

    @property
    def reason(self) -> str:
        """Why a parameter cannot be read."""
        return (
            f"a parameter of {self.name} is read when it is not gathered: it is whole only while "
            "that module runs; model.gathered() has all parameters whole"
        )

    def absent(self) -> list[Tensor]:
        """Parameters that cannot be read."""
        if not self._absent:
            for flat in self.flats:
                dtype = flat.dtype if self.dtype is None else self.dtype
                for each in flat.members:
                    node = Node(FAILED, (), each.shape, dtype, flat.device, self.reason)
                    self._absent.append(from_node(node))
        return self._absent

    def gathered(self, flat: Flat) -> Node:
        """A flat array as a whole, under way."""
        dtype = flat.dtype if self.dtype is None else self.dtype
        with no_grad():
            pieces = [each.piece.detach() for each in flat.members]
            own = flat.joined(pieces, self.group.rank, dtype)
            return gather_parts(self.group, own)._node

    def put(self, parameters: Iterable[Tensor]) -> list[Tensor]:
        """Have modules see these as their parameters; those that they saw before."""
        given = iter(parameters)
        before = []
        for flat in self.flats:
            for member in flat.members:
                module, name = member.places[0]
                before.append(module.__dict__["_parameters"][name])
                tensor = next(given)
                for module, name in member.places:
                    module.__dict__["_parameters"][name] = tensor
        return before

    def reduce(self, number: int, gradient: Tensor | None) -> list[Tensor]:
        """The gradients of a flat array's pieces, from all ranks' gradients of the whole, and what
        is left of earlier passes."""
        flat, group = self.flats[number], self.group
        left, self.unreduced[number] = self.unreduced[number], None
        if left is not None:
            gradient = left if gradient is None else gradient + left
        assert gradient is not None
        if self.reduced is not None:
            gradient = gradient.to(self.reduced)
        part = scatter_mean(group, gradient.reshape((group.size, flat.part)))
        return flat.pieces(part.to(flat.dtype), group.rank)


class Run:
    """What the units of one forward pass have in common."""

    def __init__(self, owner: Any) -> None:
        self.owner = owner
        self.last: Gathered | None = None  # that has returned

    def reduces(self) -> bool:
        """Whether gradients are reduced at once."""
        return bool(self.owner._is_reducing)


class Gathered:
    """The parameters of a unit, for one call of it."""

    def __init__(self, unit: Unit, run: Run) -> None:
        self.unit = unit
        self.run = run
        self.coming: list[Node] | None = None  # under way
        self.wholes: list[Tensor] = []
        self.parameters: list[Tensor] = []
        self.before: Gathered | None = None  # whose results were made before
        self._replaced: list[Tensor] | None = None  # what modules saw before
        self._used: list[Node] = []  # the pieces as they were
        self._left: set[int] = set()  # wholes whose gradient has not come yet
        self.is_tracked = False

    # --- forward ---------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to gather."""
        if self.coming is None:
            self.coming = [self.unit.gathered(flat) for flat in self.unit.flats]

    def use(self) -> None:
        """Have the modules see the whole parameters."""
        self.start()
        coming, self.coming = self.coming, None
        assert coming is not None
        for number, (flat, node) in enumerate(zip(self.unit.flats, coming, strict=True)):
            pieces = [each.piece for each in flat.members]
            self._used += [each._node for each in pieces]
            whole = _Whole.apply(node, ref(self), number, *pieces)
            self.wholes.append(whole)
            self.parameters += flat.wholes(whole)
        self.is_tracked = any(each.requires_grad for each in self.wholes)
        self._replaced = self.unit.put(self.parameters)

    def leave(self, returned: Any, keep: bool) -> Any:
        """The results of the unit, computed. The parameters' memory goes, unless it is kept for a
        backward pass."""
        listed = leaves(returned)
        tensors = [each for each in listed if isinstance(each, Tensor)]
        realize([each._node for each in tensors])
        tracked = [each for each in tensors if each._history is not None]
        if not tracked or not recording.get():
            self.let_go()
            return returned
        if keep:
            self._put_back()
        else:
            self.let_go()
        self.before, self.run.last = self.run.last, self
        passed = dict(zip(map(id, tracked), _passed(tracked, _Arrival(self)), strict=True))
        return with_values(returned, iter([passed.get(id(each), each) for each in listed]))

    def let_go(self) -> None:
        """Release the memory, and have the modules see what they saw before."""
        self._put_back()
        for whole in self.wholes:
            if whole._cell.value.op != FAILED:
                let_go(whole._cell.value, self.unit.reason)

    def _put_back(self) -> None:
        if self._replaced is not None:
            replaced, self._replaced = self._replaced, None
            self.unit.put(replaced)

    @property
    def is_away(self) -> bool:
        """Whether the memory was released."""
        return any(whole._cell.value.op == FAILED for whole in self.wholes)

    def drop(self) -> None:
        """End a gathering that was begun and not used."""
        coming, self.coming = self.coming, None
        realize(coming or ())

    # --- backward --------------------------------------------------------------------------------

    def arrive(self) -> None:
        """A backward pass has come to the unit's results."""
        if any(node.overwritten for each in self._used for node in each.chain()):
            raise AutogradError(
                f"parameters of {self.unit.name} were changed between its forward and its backward "
                "pass: call backward() before the optimizer's step, or compute again after it"
            )
        ending = engine.of_this_pass(self.run.owner, partial(Ending, self.run.owner))
        ending.arrive(self)
        if self.is_away:
            self.start()
            coming, self.coming = self.coming, None
            assert coming is not None
            for whole, node in zip(self.wholes, coming, strict=True):
                bring_back(whole._cell.value, node)
        if self._replaced is None:
            self._replaced = self.unit.put(self.parameters)
        self._left = {n for n, whole in enumerate(self.wholes) if whole.requires_grad}
        ending.here.append(self)
        if self.before is not None and self.before.is_away:
            self.before.start()
            ending.begun.append(self.before)

    def arrived(self, number: int, gradient: Tensor) -> Sequence[Any]:
        """The gradient of a whole array is complete: what its pieces get."""
        unit = self.unit
        if recording.get():
            raise AutogradError(
                "parameters of td.distributed.Sharded have no second derivatives: they are let go "
                "of after the first (create_graph=True, td.grad of td.grad)"
            )
        if not self.run.reduces():
            left = unit.unreduced[number]
            added = gradient if left is None else left + gradient
            unit.unreduced[number] = added
            found: Sequence[Any] = ()
            engine.compute_so_far(added)
        else:
            engine.compute_so_far(gradient)
            found = unit.reduce(number, gradient)
        self._left.discard(number)
        if not self._left:
            self.let_go()
        members = unit.flats[number].members
        if not found:
            return [None] * len(members)
        if not engine.leaves_are_given():
            return found
        ending = engine.of_this_pass(self.run.owner, partial(Ending, self.run.owner))
        ending.give([each.piece for each in members], found)
        return [None] * len(members)


class Ending:
    """What is done later in a backward pass: gradients that are under way are added to those of the
    pieces when the pass has come a unit further, so that nothing waits for them before."""

    def __init__(self, owner: Any) -> None:
        self._owner = owner
        self._given: list[tuple[Tensor, Tensor]] = []  # gradients since the last arrival
        self._due: list[tuple[Tensor, Tensor]] = []  # those before
        self.here: list[Gathered] = []  # that the pass has come to
        self.begun: list[Gathered] = []  # whose gathering was begun ahead

    def give(self, pieces: Sequence[Tensor], gradients: Sequence[Tensor]) -> None:
        """Have gradients added later."""
        self._given += zip(pieces, gradients, strict=True)

    def _add(self) -> None:
        due, self._due, self._given = self._due, self._given, []
        for piece, gradient in due:
            engine.add_to_leaf(piece, gradient)

    def arrive(self, arrived: Gathered) -> None:
        """The pass has come to another unit. It has left those which that is not a part of: let go
        of those whose parameters get no gradients."""
        self._add()
        here, self.here = self.here, []
        for each in here:
            if not each._left and arrived.unit.module not in {*each.unit.module.modules()}:
                each.let_go()
            else:
                self.here.append(each)

    def __call__(self) -> None:
        """The pass has ended: what earlier ones have left in units that it did not come to is
        reduced now."""
        if self._owner._is_reducing:
            for unit in self._owner.units:
                for number, flat in enumerate(unit.flats):
                    if unit.unreduced[number] is not None:
                        pieces = [each.piece for each in flat.members]
                        self.give(pieces, unit.reduce(number, None))
        self._add()
        self._add()
        for each in self.here:
            each.let_go()
        for each in self.begun:
            each.drop()

    def failed(self) -> None:
        """The pass ends by an error: have the modules see their pieces again."""
        for end in [*[each.let_go for each in self.here], *[each.drop for each in self.begun]]:
            with contextlib.suppress(Exception):  # the error of the pass is the one to be seen
                end()


class _Whole(Function):
    """A flat array as a whole, whose gradient goes to the pieces."""

    @staticmethod
    def forward(ctx: Any, whole: Node, gathered: Any, number: int, *pieces: Tensor) -> Tensor:
        ctx.gathered, ctx.number, ctx.count = gathered, number, len(pieces)
        return from_node(whole)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:
        gathered: Gathered | None = ctx.gathered()
        assert gathered is not None, "the histories above know it"
        return (None, None, None, *gathered.arrived(ctx.number, gradient))


class _Arrival:
    """The derivative of a unit's results, which changes nothing: gradients have come to them."""

    name = "a unit's results"

    def __init__(self, gathered: Gathered) -> None:
        self._gathered = gathered

    def needs(self, tracked: Sequence[bool]) -> Sequence[int]:
        """Nothing."""
        return ()

    def backward(
        self, made: History, gradients: Sequence[Any]
    ) -> Iterable[tuple[History | None, Any]]:
        """The gradients as they are."""
        self._gathered.arrive()
        return zip(made.edges, gradients, strict=True)


def _passed(tensors: Sequence[Tensor], arrival: _Arrival) -> list[Tensor]:
    """The same tensors, with an arrival behind them."""
    sources = [each._node for each in tensors]
    nodes = [view_of(source, views.whole(source.shape)) for source in sources]
    for node in nodes:
        node.history = None
    record_composite(arrival, nodes, sources)
    return [from_node(node) for node in nodes]
