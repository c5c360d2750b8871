"""`Fused`: optimizers that change all parameters of a group by one kernel."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, ClassVar

from treadle.core.errors import LaunchError
from treadle.graph.history import recorded
from treadle.graph.node import Node
from treadle.graph.realize import realize
from treadle.graph.views import View
from treadle.kernels import update
from treadle.kernels.device_code import optimizer_steps
from treadle.kernels.update import Derivation
from treadle.lang.decorators import Kernel
from treadle.optim.flat_parameters import Flat, full, partition
from treadle.optim.groups import Group
from treadle.optim.optimizer import Optimizer
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.devices import Device
from treadle.tensor.cells import Cell
from treadle.tensor.compiled import tracing
from treadle.tensor.tensor import Tensor, from_cell


class Fused(Optimizer):
    """An optimizer whose step is a kernel over all elements.

    `grad_scale` and `found_inf`, where they are set, are tensors of one float32: gradients are
    divided by the first, and no step is taken if the second is not 0. Both are read on the device.
    """

    grad_scale: Tensor | None = None
    found_inf: Tensor | None = None
    _step_supports_amp_scaling = True
    _derivation: ClassVar[Derivation] = optimizer_steps.nothing
    _has_steps = True  # whether the state of a parameter has `step`
    _remembers_at_once = False  # whether it is there before the first step

    def __init__(self, params: Iterable[Any], defaults: dict[str, Any]) -> None:
        self._flats: dict[int, list[Flat]] = {}  # by the groups' identities
        self._constants: dict[Device, tuple[DeviceArray, DeviceArray]] = {}
        self._switches: dict[int, Any] = {}  # of the groups, and which states they have
        super().__init__(params, defaults)
        tracing.preparing.add(self)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._flats, self._constants, self._switches = {}, {}, {}
        with recorded(False):
            for group in self.param_groups:
                self._begin(group)
            self._loaded()
        tracing.preparing.add(self)

    # --- what an algorithm says ------------------------------------------------------------------

    def _numbers(self, group: Group) -> tuple[float, ...]:
        """The numbers that its kernel reads."""
        raise NotImplementedError

    def _states(self, group: Group) -> dict[str, float]:
        """What is remembered of each element, and the first values."""
        raise NotImplementedError

    def _remembered_numbers(self, group: Group) -> dict[str, tuple[int, float]]:
        """What is remembered of each parameter: where rows of `now` have it, and the first value.
        The names are those of `_scalars`."""
        return {}

    def _arrays(self, group: Group) -> tuple[str | None, ...]:
        """The kernel's arrays after parameters and gradients: names of states, None for one that
        it takes and does not use."""
        return tuple(self._states(group))

    def _algorithm(self, group: Group) -> Callable[[optimizer_steps.Form], Kernel]:
        """Its kernels."""
        raise NotImplementedError

    # --- groups ----------------------------------------------------------------------------------

    def add_param_group(self, param_group: Any) -> None:
        """Add a group: a dict with `params`, and options where they are not the defaults."""
        super().add_param_group(param_group)
        with recorded(False):
            self._begin(self.param_groups[-1])

    def _begin(self, group: Group) -> None:
        self._flats[id(group)] = []
        group.changed = self._changed
        self._changed(group)
        self._place(group)
        self._settle()

    def _changed(self, group: Group) -> None:
        """An option has changed."""
        numbers = self._numbers(group)
        for flat in self._flats.get(id(group), ()):
            flat.give(numbers)
        switches = [(name, value) for name, value in group.items() if isinstance(value, bool)]
        before, now = self._switches.get(id(group)), (self._arrays(group), switches)
        self._switches[id(group)] = now
        if before not in (None, now):
            tracing.training_structure[0] += 1  # traces that were recorded do not fit any more

    def _place(self, group: Group) -> None:
        """Give memory to parameters that require gradients and have none yet, or have moved to
        another device or dtype."""
        flats = self._flats.setdefault(id(group), [])
        if not all(flat.fits() for flat in flats):
            flats.clear()
        known = {id(each) for flat in flats for each in flat.params}
        new = [p for p in group["params"] if p.requires_grad and id(p) not in known]
        if not new:
            return
        if tracing.is_tracing.get():
            raise LaunchError(
                f"{type(self).__name__} would make memory for parameters within a compiled "
                "function, whose replays would begin with it anew: have requires_grad_(), "
                "model.to() and add_param_group() done before it is called"
            )
        numbers, states = self._numbers(group), self._states(group)
        for parameters in partition(new):
            flat = Flat(parameters, len(numbers))
            flat.give(numbers)
            flats.append(flat)
            self._controls(flat.device)
            scalars = self._remembered_numbers(group)
            if scalars:
                flat.remember_numbers(scalars)
            if any(self.state.get(each) for each in parameters):
                self._load(flat, states)
                continue
            for name, value in states.items():
                flat.state(name, value)
            if self._remembers_at_once:
                self._remember(flat, states, range(len(parameters)))

    def _settle(self) -> None:
        """Move parameters and their gradients home."""
        flats = [flat for each in self._flats.values() for flat in each]
        realize([node for flat in flats for node in flat.pending()])
        for flat in flats:
            flat.settle()
            for parameter, home in zip(flat.params, flat.homes, strict=True):
                leaf = parameter._leaf
                if leaf is not None and leaf.home is not home:
                    leaf.home = home

    def prepare_trace(self, device: Device) -> None:
        """Prepare for the trace of a function that may call `step`."""
        with recorded(False):
            for group in self.param_groups:
                self._place(group)
                for flat in self._flats.setdefault(id(group), []):
                    for name, value in self._states(group).items():
                        flat.state(name, value)
            self._settle()

    def gradients(self) -> list[Tensor]:
        """The gradients, as few tensors as they are contiguous: to read all of them, or to change
        them in place."""
        found: list[Tensor] = []
        with recorded(False):
            for group in self.param_groups:
                self._place(group)
                for flat in self._flats.setdefault(id(group), []):
                    for run in flat.runs(_with_gradients(flat)):
                        run_view = View((run.end - run.start,), (1,), run.start)
                        found.append(from_cell(flat.gradients, run_view))
        return found

    # --- a step ----------------------------------------------------------------------------------

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Change the parameters once. `closure` computes the loss anew, with its gradients, and
        returns it: the result."""
        loss = None
        if closure is not None:
            with recorded(True):
                loss = closure()
        with recorded(False):
            self._step()
        return loss

    def _step(self) -> None:
        taking: list[tuple[Group, Flat, tuple[int, ...]]] = []
        pending: list[Node] = []
        for group in self.param_groups:
            self._place(group)
            for flat in self._flats.setdefault(id(group), []):
                present = _with_gradients(flat)
                if present:
                    taking.append((group, flat, present))
                    pending.append(flat.gradients.value)
        realize(pending)
        self._settle()
        for group, flat, present in taking:
            self._update(group, flat, present)

    def _update(self, group: Group, flat: Flat, present: tuple[int, ...]) -> None:
        flat.give(self._numbers(group))
        found, scale = self._controls(flat.device)
        states = self._states(group)
        for name, initial in states.items():
            if name not in flat.states and tracing.is_tracing.get():
                raise LaunchError(f"{type(self).__name__} makes {name} within a compiled function")
            flat.state(name, initial)
        self._remember(flat, states, present)
        arrays = [flat.values, _in_place(flat.gradients)]
        remembered: list[DeviceArray | None] = [
            None if name is None else _in_place(flat.states[name][0])
            for name in self._arrays(group)
        ]
        steps, now = _in_place(flat.steps), _in_place(flat.now)
        algorithm = self._algorithm(group)
        for run in flat.runs(present):
            if run.first in flat.copied_params:
                flat.take(run.first)
            update.advance(
                type(self)._derivation, steps, flat.given, now, found, scale, run.first,
                run.members,
            )  # fmt: skip
            update.update(
                algorithm, [*arrays, *remembered], flat.given, now, run.first, run.start,
                run.end, bool(group.get("maximize")), self.grad_scale is not None,
            )  # fmt: skip
            flat.written(run)

    def _controls(self, device: Device) -> tuple[DeviceArray, DeviceArray]:
        """Where the kernel reads whether something was found, and the scale."""
        known = self._constants.get(device)
        if known is None:
            known = self._constants[device] = full(device, 0.0), full(device, 1.0)
        found = known[0] if self.found_inf is None else self.found_inf.reshape(1)._array
        scale = known[1] if self.grad_scale is None else self.grad_scale.reshape(1)._array
        return found, scale

    def _remember(self, flat: Flat, names: Collection[str], present: Iterable[int]) -> None:
        """Have `state` show the flat states; values that the user has put there are taken over."""
        if not (self._has_steps or names or flat.scalars):
            return
        for k in present:
            own = self.state[flat.params[k]]
            if self._has_steps and own.get("step") is not flat.counts[k]:
                if "step" in own:
                    flat.set_step(k, _count(own["step"], True))
                own["step"] = flat.counts[k]
            for name in (*names, *flat.scalars):
                kept = flat.scalars.get(name)
                part = flat.states[name][1][k] if kept is None else kept[k]
                if own.get(name) is not part:
                    if own.get(name) is not None:
                        part[...] = _on(flat.device, own[name])
                    own[name] = part

    # --- state -----------------------------------------------------------------------------------

    def _loaded(self) -> None:
        for group in self.param_groups:
            states = self._states(group)
            for flat in self._flats.setdefault(id(group), []):
                self._load(flat, states)

    def _load(self, flat: Flat, states: dict[str, float]) -> None:
        """Take over what `state` has, where it has something."""
        counts: list[int] = []
        for k, parameter in enumerate(flat.params):
            own = self.state.get(parameter) or {}
            counts.append(_count(own.pop("step", None), bool(own)))
            for name, initial in states.items():
                value = own.pop(name, None)
                value = initial if value is None else _on(flat.device, value)
                flat.state(name, initial)[1][k][...] = value
            for name, parts in flat.scalars.items():
                value = own.pop(name, None)
                if value is not None:
                    parts[k][...] = _on(flat.device, value)
        flat.set_steps(counts)
        taken = [k for k, parameter in enumerate(flat.params) if parameter in self.state]
        self._remember(flat, states, taken)


def _count(step: Any, is_there: bool) -> int:
    """The step count of a state; 1 for a state without a count."""
    return int(is_there) if step is None else int(float(step))


def _on(device: Device, value: Any) -> Any:
    return value.to(device=device) if isinstance(value, Tensor) else value


def _with_gradients(flat: Flat) -> tuple[int, ...]:
    """The parameters with gradients. Gradients that are not at home are copied there."""
    present = []
    for k, parameter in enumerate(flat.params):
        leaf = parameter._leaf
        if leaf is None or leaf.gradient is None:
            continue
        present.append(k)
        if leaf.gradient is not flat.homes[k]:
            flat.homes[k][...] = leaf.gradient
    return tuple(present)


def _in_place(cell: Cell) -> DeviceArray:
    """The array of a cell, computed, which is never moved."""
    realize((cell.value,))
    return cell.value.whole_array
