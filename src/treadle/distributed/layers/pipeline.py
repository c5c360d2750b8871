"""A model in stages, each on a rank of its own, through which a batch goes in microbatches."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from treadle.autograd.engine import backward, zeros_of
from treadle.autograd.modes import no_grad
from treadle.core.dtypes import DType, int64, uint8
from treadle.core.errors import DistributedError
from treadle.distributed.collectives import broadcast
from treadle.distributed.data_parallel import DataParallel
from treadle.distributed.group import current
from treadle.distributed.holders import held_by
from treadle.distributed.layers.parts import Part
from treadle.distributed.layers.schedules import (
    BACKWARD,
    FORWARD,
    RECEIVE,
    RECEIVE_GRADIENT,
    SEND,
    SEND_GRADIENT,
    steps_of,
)
from treadle.distributed.members import Group
from treadle.distributed.messages import received, sent
from treadle.distributed.recordings import end_recordings
from treadle.distributed.request import Request
from treadle.graph.realize import realize
from treadle.nn.module import Module
from treadle.runtime.devices import Device, default_device
from treadle.tensor.assembly import concat
from treadle.tensor.creation import asarray, zeros
from treadle.tensor.dtypes import dtype_of
from treadle.tensor.tensor import Tensor

_REDUCTIONS = ("mean", "sum")


class Pipeline(Module):
    """A model whose stages are on the ranks of a group, one each, trained by batches in parts.

    `stages` are modules, or functions that make them, of which a rank calls its own; the others are
    let go of. What a stage returns is given to the next one: a tensor, or a list or dict of some; a
    tuple is given as several arguments. `loss(output, target)` is computed by the last stage, from
    a part of the batch: with `reduction="mean"` it is a mean over that part.

    `forward_backward(x, target)` trains: the batch is cut into `microbatches` parts, and while one
    is in a stage, others are in other stages (the schedule 1F1B). A stage keeps what the backward
    pass needs of at most `len(stages)` parts. A call of the pipeline only computes.

    >>> import treadle as td
    >>> stages = [td.nn.Linear(3, 1, device="cpu")]  # of one rank
    >>> pipeline = td.distributed.Pipeline(stages, 2, td.nn.functional.mse_loss)
    >>> x, y = td.ones((4, 3), device="cpu"), td.ones((4, 1), device="cpu")
    >>> loss = pipeline.forward_backward(x, y)
    >>> loss.shape, pipeline.stage.weight.grad.shape
    ((), (1, 3))
    """

    stage: Module

    def __init__(
        self,
        stages: Sequence[Module | Callable[[], Module]],
        microbatches: int,
        loss: Callable[[Any, Any], Tensor] | None = None,
        reduction: str = "mean",
        group: Group | None = None,
    ) -> None:
        super().__init__()
        self.group = group = current() if group is None else group
        if len(stages) != group.size:
            raise ValueError(
                f"Pipeline: {len(stages)} stages for {group.size} ranks: each rank has one stage; "
                "join several to one by td.nn.Sequential"
            )
        if microbatches < 1:
            raise ValueError(f"Pipeline: microbatches is 1 at least, not {microbatches}")
        if reduction not in _REDUCTIONS:
            raise ValueError(f'Pipeline: reduction is "mean" or "sum", not {reduction!r}')
        own = stages[group.rank]
        made = own if isinstance(own, Module) else own()
        if not isinstance(made, Module):
            raise TypeError(f"Pipeline: stage {group.rank} is a {type(made).__name__}, no module")
        self.stage = made
        if group.size > 1:
            held_by(made.parameters(), group, divides=False)
        self.microbatches = microbatches
        self.reduction = reduction
        self.loss = loss
        self._known: dict[Any, _Known] = {}  # by what all ranks know of a batch

    def forward_backward(self, x: Any, target: Any) -> Tensor:
        """The loss of a batch, on all ranks, whose gradients are added to those of the stages.

        All ranks give the same batch, or others of the same shapes: the first stage uses `x`, the
        last one `target`. Both are tensors, or tuples of them, whose first axis is the batch's.
        """
        if self.loss is None:
            raise ValueError("Pipeline: there is no loss: give one, Pipeline(stages, 4, loss)")
        run = _Run(self, x, target)
        steps = steps_of(self.group.rank, self.group.size, self.microbatches)
        last = max(number for number, step in enumerate(steps) if step.what == BACKWARD)
        for number, (what, k) in enumerate(steps):
            if what == BACKWARD and number < last and isinstance(self.stage, DataParallel):
                with self.stage.no_sync():
                    run.backward(k)
                continue
            _DO[what](run, k)
        return run.whole_loss()

    def forward(self, x: Any) -> Any:
        """The result of the last stage, on its rank; None on the others. Nothing is kept for a
        backward pass."""
        run = _Run(self, x, None)
        found = []
        with no_grad():
            for k in range(self.microbatches):
                if not run.is_first:
                    run.receive(k)
                run.forward(k)
                outputs = run.alive.pop(k).output
                if run.is_last:
                    found.append(outputs)
                else:
                    run.send_output(k, outputs)
        return _joined(found) if run.is_last else None

    def extra_repr(self) -> str:
        """The schedule."""
        return f"microbatches={self.microbatches}, stage={self.group.rank} of {self.group.size}"


# --- one batch -----------------------------------------------------------------------------------


class _Known:
    """What a stage has learned from the first batch of some shapes, for each microbatch: what it
    receives, what it gives, and the dtype of the loss."""

    def __init__(self) -> None:
        self.received: dict[int, Any] = {}
        self.given: dict[int, Any] = {}
        self.loss: DType | None = None


class _Alive(NamedTuple):
    """A microbatch between its forward and its backward pass."""

    inputs: list[Tensor]
    output: Any


class _Run:
    """A batch on its way through a stage."""

    def __init__(self, pipeline: Pipeline, x: Any, target: Any) -> None:
        self.pipeline = pipeline
        self.group = pipeline.group
        self.is_first = self.group.rank == 0
        self.is_last = self.group.rank == self.group.size - 1
        self.inputs, self.targets = (_tensors(each) for each in (x, target))
        count = pipeline.microbatches
        extents = {each.shape[0] if each.ndim else 0 for each in (*self.inputs, *self.targets)}
        if len(extents) != 1 or min(extents) < count:
            raise ValueError(
                f"Pipeline: x and target have one first axis, the batch's, of at least {count} "
                f"elements, one for each microbatch, not {sorted(extents)}"
            )
        self.part = Part(extents.pop(), count)
        shapes = [(each.shape, each.dtype.short) for each in (*self.inputs, *self.targets)]
        key = (*shapes, len(self.inputs), target is None, pipeline.training)
        self.known = pipeline._known.setdefault(key, _Known())
        self.is_tuple = isinstance(x, tuple), isinstance(target, tuple)
        self.arrived: dict[int, Any] = {}
        self.alive: dict[int, _Alive] = {}
        self.losses: list[Tensor] = []
        self.device = _device_of(pipeline.stage)

    def receive(self, k: int) -> None:
        """Begin to receive what the stage before gives."""
        source = self.group.rank - 1
        known = self.known.received
        if k not in known:
            known[k] = _received_form(self.group, source, self.device)
        self.arrived[k] = _built(known[k], lambda leaf: self._received(leaf, source))

    def _received(self, leaf: Any, source: int) -> Tensor:
        request = Request("recv", dtype_of(leaf["dtype"]), tuple(leaf["shape"]), peer=source)
        found = received(self.group, request, self.device)
        return found.requires_grad_() if leaf["gradient"] else found

    def forward(self, k: int) -> None:
        """The stage's result, and the loss after the last one."""
        if self.is_first:
            own = [self.part.of(k, each) for each in self.inputs]
            given: Any = tuple(own) if self.is_tuple[0] else own[0]
        else:
            given = self.arrived.pop(k)
        inputs: list[Tensor] = []
        if not self.is_first:
            _leaves(given, inputs)
        pipeline = self.pipeline
        output = pipeline.stage(*given) if isinstance(given, tuple) else pipeline.stage(given)
        if self.is_last and self.targets:
            assert pipeline.loss is not None
            own = [self.part.of(k, each) for each in self.targets]
            output = pipeline.loss(output, tuple(own) if self.is_tuple[1] else own[0])
            if not isinstance(output, Tensor) or output.shape != ():
                raise ValueError("Pipeline: the loss is a tensor of shape (), such as a mean")
            if pipeline.reduction == "mean":
                start, stop = self.part.bounds[k]
                output = output * ((stop - start) / self.part.extent)
            self.losses.append(output.detach())
        self.alive[k] = _Alive(inputs, output)

    def send(self, k: int) -> None:
        """Begin to give the next stage what this one has made."""
        self.send_output(k, self.alive[k].output)

    def send_output(self, k: int, output: Any) -> None:
        """Begin to give something to the next stage."""
        to = self.group.rank + 1
        leaves: list[Tensor] = []
        form = _form(output, leaves)
        known = self.known.given
        if k not in known:
            known[k] = form
            _send_form(self.group, form, to, self.device)
        elif known[k] != form:
            raise DistributedError(
                f"stage {self.group.rank} gives {_words(form)} now, and gave {_words(known[k])} "
                "for a batch of the same shapes before. A stage's results have shapes that depend "
                "on those of the batch alone: pad them"
            )
        for leaf in leaves:
            sent(self.group, leaf, to)

    def receive_gradient(self, k: int) -> None:
        """Begin to receive the gradients of what this stage has given."""
        source = self.group.rank + 1
        leaves: list[Tensor] = []
        _leaves(self.alive[k].output, leaves)
        self.arrived[k] = [
            received(self.group, Request("recv", each.dtype, each.shape, peer=source), each.device)
            for each in leaves
            if each.requires_grad
        ]

    def backward(self, k: int) -> None:
        """Add to the gradients of the stage, and compute them, so that what they are made of is
        released."""
        inputs, output = self.alive[k]
        if self.is_last:
            backward(output)
        else:
            leaves: list[Tensor] = []
            _leaves(output, leaves)
            tracked = [each for each in leaves if each.requires_grad]
            if tracked:
                backward(tracked, self.arrived.pop(k))
        del self.alive[k]
        self.arrived_gradients = [
            zeros_of(each) if each.grad is None else each.grad
            for each in inputs
            if each.requires_grad
        ]
        for each in inputs:  # which nothing else looks at: a trace may not leave gradients
            each.grad = None
        gradients = [each.grad for each in self.pipeline.stage.parameters()]
        nodes = [each._node for each in (*gradients, *self.arrived_gradients) if each is not None]
        realize([*nodes, *(each._node for each in self.losses)])

    def send_gradient(self, k: int) -> None:
        """Begin to give the stage before the gradients of what it has given."""
        for each in self.arrived_gradients:
            sent(self.group, each, self.group.rank - 1)

    def whole_loss(self) -> Tensor:
        """The loss of the batch, from the last stage."""
        found = None
        if self.is_last:
            found = self.losses[0]
            for each in self.losses[1:]:
                found = found + each
        if self.group.engine is None:
            assert found is not None
            return found
        known = self.known
        if known.loss is None:
            names = self.group.exchange("loss", None if found is None else str(found.dtype))
            known.loss = dtype_of(names[-1])
        if found is None:
            found = zeros((), dtype=known.loss, device=self.device)
        return broadcast(found, self.group.size - 1, self.group)


_DO: dict[str, Callable[[_Run, int], None]] = {
    RECEIVE: _Run.receive,
    FORWARD: _Run.forward,
    SEND: _Run.send,
    RECEIVE_GRADIENT: _Run.receive_gradient,
    BACKWARD: _Run.backward,
    SEND_GRADIENT: _Run.send_gradient,
}


# --- what stages give each other -----------------------------------------------------------------


def _form(value: Any, leaves: list[Tensor]) -> Any:
    """What a value is made of, as JSON has it; its tensors are appended to a list."""
    if isinstance(value, Tensor):
        leaves.append(value)
        kind = {"shape": [*value.shape], "dtype": str(value.dtype)}
        return {**kind, "gradient": value.requires_grad}
    if isinstance(value, (tuple, list)):
        return [type(value).__name__, [_form(each, leaves) for each in value]]
    if isinstance(value, dict) and all(isinstance(each, str) for each in value):
        return ["dict", [_form(each, leaves) for each in value.values()], [*value]]
    raise TypeError(
        f"a stage of a pipeline gives tensors, and tuples, lists and dicts of them, not "
        f"{type(value).__name__}"
    )


def _leaves(value: Any, leaves: list[Tensor]) -> None:
    _form(value, leaves)


def _built(form: Any, leaf: Callable[[Any], Tensor]) -> Any:
    """A value of some form, of which a function makes the tensors."""
    if isinstance(form, dict):
        return leaf(form)
    kind, parts, *names = form
    found = [_built(each, leaf) for each in parts]
    if kind == "dict":
        return dict(zip(*names, found, strict=True))
    return tuple(found) if kind == "tuple" else found


def _words(form: Any) -> str:
    if isinstance(form, dict):
        return f"{form['dtype']}{form['shape']}"
    return f"{form[0]} of {', '.join(_words(each) for each in form[1])}"


def _send_form(group: Group, form: Any, to: int, device: Device) -> None:
    end_recordings("a stage tells the next one what it gives")
    data = [*json.dumps(form).encode()]
    sent(group, asarray([len(data)], dtype=int64, device=device), to)
    sent(group, asarray(data, dtype=uint8, device=device), to)


def _received_form(group: Group, source: int, device: Device) -> Any:
    """What the stage before is about to give, which this waits for."""
    length = received(group, Request("recv", int64, (1,), peer=source), device).tolist()[0]
    data = received(group, Request("recv", uint8, (length,), peer=source), device).tolist()
    return json.loads(bytes(data))


# --- batches -------------------------------------------------------------------------------------


def _tensors(value: Any) -> list[Tensor]:
    if value is None:
        return []
    return [asarray(each) for each in (value if isinstance(value, tuple) else (value,))]


def _joined(parts: list[Any]) -> Any:
    """The results of all microbatches as one."""
    leaves: list[list[Tensor]] = []
    form: Any = None
    for part in parts:
        own: list[Tensor] = []
        form = _form(part, own)
        leaves.append(own)
    columns = iter([concat([*each]) for each in zip(*leaves, strict=True)])
    return _built(form, lambda leaf: next(columns))


def _device_of(stage: Module) -> Device:
    return next((each.device for each in stage.parameters()), default_device())
