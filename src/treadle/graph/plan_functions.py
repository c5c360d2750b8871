"""Plans as Python functions: what runs a plan that was run before.

A plan is a list of tasks, and to go through it costs more than small kernels take: each task finds
its arrays, its launches and their parameters anew, though only the arrays differ. So a plan that
comes up again becomes a generated function, one line after the other: allocate a result, launch,
and let the node become it. What is the same each time, such as a kernel's grid and its parameters,
is a constant of the function; sizes that differ are variables (`values`), and where a kernel's
extents are among them its launches are looked up by these.

The function refers to an array no longer than it is needed: memory goes back to the pool as soon
as the last reader was launched.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from treadle.core.dtypes import DType
from treadle.core.recent_cache import RecentCache
from treadle.core.sizes import Size
from treadle.graph.emit.body import dtype_named
from treadle.graph.fused import Runner, Sized
from treadle.graph.node import CALL, CONSTANT, WRITE, Node, without_history
from treadle.graph.program import Program
from treadle.graph.runners import JoinedParts, ProductRunner, runner_for
from treadle.kernels.product import filling
from treadle.runtime.arrays import DeviceArray
from treadle.runtime.devices import Device
from treadle.runtime.launch import Repeat
from treadle.runtime.lazy import TrackedMemory

_RECENT_SIZES = 64  # of a kernel whose extents differ from run to run


class Executor(NamedTuple):
    """What a function calls."""

    finish_readers: Callable[[TrackedMemory, Node], None]
    run_constant: Callable[..., None]  # node, constants, integers, runner, result, launches


# Runs a plan for a graph's nodes (which it takes out of the list) and the values of its variables.
PlanFunction = Callable[[list[Any], tuple[int, ...]], None]


class Step(NamedTuple):
    """A task with numbers for its nodes (see `recipes`). Integers are numbers or, where they differ
    from run to run, sizes; so are extents of `shape`, which is None for what writes into its last
    leaf, and what is added in `moving` to where a part begins. `runner` and `repeats` are those of
    a run before; where extents differ only the runner's kind counts, and `programs` (one, or those
    of a joined array's parts) are run."""

    node: int
    leaves: tuple[int, ...]
    constants: tuple[int, ...]
    integers: tuple[Any, ...]
    moving: tuple[tuple[int, int, Any], ...]
    runner: Runner | None
    dtype: DType
    shape: tuple[Any, ...] | None
    repeats: list[Repeat]
    programs: tuple[Program, ...] = ()


class Inner(NamedTuple):
    """A node inside of a composite one, that a plan computes or has as a constant. Its shape and
    detail may have sizes. The detail of a constant is its number in the graph, since its value is
    not the plan's."""

    op: str
    shape: tuple[Any, ...]
    dtype: DType
    detail: Any


class Numbered(NamedTuple):
    """The nodes of a graph: pending ones by their numbers, computed ones by ~number, and those
    inside of composite nodes behind the pending ones. (In the list that a function takes, the
    graph's Python numbers are behind the pending ones.)"""

    order: Sequence[Node]
    computed: Sequence[Node]
    inner: Sequence[Inner]

    def op(self, number: int) -> str:
        """The operation of a node that is not computed."""
        count = len(self.order)
        return self.order[number].op if number < count else self.inner[number - count].op


def plan_function(
    device: Device,
    nodes: Numbered,
    steps: Sequence[Step],
    executor: Executor,
    names: Mapping[Size, str] | None = None,
) -> PlanFunction | None:
    """The function that runs these steps; None if one of them needs a task. `names` has the
    variables for sizes, in the order of the values that the function takes; it is None if no size
    differs from run to run. (It is empty where only sizes differ that the nodes' details have.)"""
    writer = _Writer(device, nodes, steps, names)
    writer.scope.update(executor._asdict())
    try:
        return writer.function()
    except _NeedsTask:
        return None


class _NeedsTask(Exception):
    """A step that no line can be written for."""


class _Writer:
    """Writes the lines of a function."""

    def __init__(
        self,
        device: Device,
        nodes: Numbered,
        steps: Sequence[Step],
        names: Mapping[Size, str] | None,
    ) -> None:
        self.device = device
        self.nodes = nodes
        self.steps = steps
        self.names = names or {}
        self.has_varying_sizes = names is not None
        self.scope: dict[str, Any] = {}
        self.lines: list[list[str]] = []  # of each step
        self._line: list[str] = []
        self._used: dict[str, int] = {}  # variables, and the last step that uses each
        self._made: set[int] = set()  # nodes inside of composite ones that are made
        self._buffers: dict[int, object] = {}  # which memory an array has; equal for the same

    def function(self) -> PlanFunction:
        """All steps, and what is around them."""
        for number, step in enumerate(self.steps):
            self._line = []
            self.lines.append(self._line)
            self._step(step)
            for name in self._names_in(self._line):
                self._used[name] = number
        text = ["def run(nodes, values):"]
        if self.names:
            text.append(f"    {', '.join(self.names.values())}, = values")
        first = [name for name in self._used if name[0] == "n" or name[0] == "c"]
        text += [f"    {name} = {self._fetched(name)}" for name in first if self._is_fetched(name)]
        text.append(f"    numbers = nodes[{len(self.nodes.order)}]")
        text += ["    nodes.clear()", "    writing = None", "    try:", "        pass"]
        for number, lines in enumerate(self.lines):
            text += [f"        {line}" for line in lines]
            gone = [name for name, last in self._used.items() if last == number]
            if gone:
                text.append(f"        del {', '.join(gone)}")
        text += [
            "    except BaseException as error:",
            "        if writing is not None: writing.fail(error)",
            "        raise",
        ]
        self.scope["launch"] = self.device.default_stream.handle.launch
        exec(compile("\n".join(text), "<plan>", "exec"), self.scope)
        found: PlanFunction = self.scope["run"]
        return found

    # --- names -----------------------------------------------------------------------------------

    def _names_in(self, lines: list[str]) -> set[str]:
        names = set()
        for line in lines:
            names |= {w for w in _words(line) if w[0] in "nac" and w[1:].isdigit()}
        return names

    def _is_fetched(self, name: str) -> bool:
        return name[0] == "c" or int(name[1:]) < len(self.nodes.order)

    def _fetched(self, name: str) -> str:
        number = int(name[1:])
        return f"nodes[{~number}].array" if name[0] == "c" else f"nodes[{number}]"

    def _array(self, number: int) -> str:
        return f"c{~number}" if number < 0 else f"a{number}"

    def _constant(self, prefix: str, value: Any) -> str:
        name = f"{prefix}_{len(self.scope)}"
        self.scope[name] = value
        return name

    def _text(self, value: Any) -> str:
        """A number, or tuples of them, with variables for sizes."""
        if type(value) is Size:
            return self.names[value]
        if isinstance(value, tuple):
            inside = "".join(f"{self._text(each)}, " for each in value)
            if hasattr(value, "_fields"):
                return f"{self._constant('T', type(value))}({inside})"
            return f"({inside})"
        if type(value) in (int, bool):
            return repr(value)
        return self._constant("v", value)

    def _node(self, number: int) -> str:
        """The variable of a node; one inside of a composite node is made first."""
        count = len(self.nodes.order)
        if number >= count and number not in self._made:
            self._made.add(number)
            op, shape, dtype, detail = self.nodes.inner[number - count]
            self.scope["made"], self.scope["device"] = without_history, self.device
            what = f"{op!r}, (), {self._text(shape)}, {self._constant('D', dtype)}, device, "
            value = f"numbers[{detail}]" if op == CONSTANT else self._text(detail)
            self._line.append(f"n{number} = made({what}{value}, 0)")
        return f"n{number}"

    # --- steps -----------------------------------------------------------------------------------

    def _step(self, step: Step) -> None:
        number = step.node
        op = self.nodes.op(number)
        target = self._array(number)
        arrays = [self._array(leaf) for leaf in step.leaves]
        if op == CALL:
            node = self._node(number)
            self._line += [
                f"if {node}.array is None: {node}.detail.run({node}, [{', '.join(arrays)}])",
                f"{target} = {node}.array",
            ]
            self._buffers[number] = object()
            return
        if op == CONSTANT:
            self._materialized_constant(step)
            return
        is_graph_node = number < len(self.nodes.order)
        if step.shape is None:
            if op != WRITE:
                raise _NeedsTask
            self._write(step, arrays)
            return
        if _are_integers(step.shape):
            like = DeviceArray.described(self.device, step.dtype, step.shape)
            self._line.append(f"{target} = {self._constant('like', like)}.another()")
        else:
            self.scope["allocate"], self.scope["device"] = DeviceArray.allocate, self.device
            dtype, shape = self._constant("dtype", step.dtype), self._text(step.shape)
            self._line.append(f"{target} = allocate(device, {dtype}, {shape})")
        self._buffers[number] = target
        self._run(step, [*arrays, target])
        if is_graph_node:
            self._line.append(f"n{number}.become({target})")

    def _materialized_constant(self, step: Step) -> None:
        """An array of one number, which is cleared or written by a kernel."""
        if step.shape is None or not _are_integers((*step.integers, *step.shape)):
            raise _NeedsTask
        node = self._node(step.node)
        constants = "".join(f"{self._node(each)}, " for each in step.constants)
        like = DeviceArray.described(self.device, step.dtype, step.shape)
        given = [step.integers, step.runner, like, step.repeats]
        texts = ", ".join(self._constant("given", each) for each in given)
        self._line += [
            f"run_constant({node}, ({constants}), {texts})",
            f"{self._array(step.node)} = {node}.array",
        ]

    def _write(self, step: Step, arrays: list[str]) -> None:
        node, last = f"n{step.node}", step.leaves[-1]
        target = arrays[-1]
        self._line += [
            f"if {target}.key.read_only:",
            '    raise ValueError("this tensor is read-only: copy it first")',
            f"writing = {node}",
            f"{node}.sources = ()",
            f"if {target}.storage.readers is not None: finish_readers({target}.storage, {node})",
        ]
        self._run(step, arrays)
        self._line += [
            "writing = None",
            f"{node}.become({target})",
            f"{self._array(step.node)} = {target}",
        ]
        self._buffers[step.node] = self._buffer(last)

    def _buffer(self, number: int) -> object:
        if number < 0:
            return id(self.nodes.computed[~number].whole_array.buffer)
        return self._buffers.get(number, number)

    def _run(self, step: Step, arrays: list[str]) -> None:
        runner = step.runner
        if type(runner) is ProductRunner:
            self._product(step, arrays)
            return
        integers: list[Any] = list(step.integers)
        for at, node, rest in step.moving:
            integers[at] = f"n{node}.detail.offset + {self._text(rest)}"
        scalars = [self._scalars(each) for each in step.constants]
        numbers = list(step.leaves)
        if step.shape is not None:
            numbers.append(step.node)
        if type(runner) is JoinedParts:
            programs = step.programs or (None,) * len(runner.parts)
            for part, program in zip(runner.parts, programs, strict=True):
                own = [*arrays[part.arrays], arrays[-1]]
                self._kernel(
                    part.runner, program, part.repeats, own,
                    [*numbers[part.arrays], numbers[-1]], integers[part.integers],
                    _joined(scalars[part.scalars]),
                )  # fmt: skip
        else:
            program = step.programs[0] if step.programs else None
            own = _joined(scalars)
            self._kernel(runner, program, step.repeats, arrays, numbers, integers, own)

    def _scalars(self, number: int) -> list[str]:
        """The number of a constant; of a complex one its parts."""
        count = len(self.nodes.order)
        if number >= count:
            inner = self.nodes.inner[number - count]
            text, dtype = f"numbers[{inner.detail}]", inner.dtype
        else:
            text, dtype = f"n{number}.detail", self.nodes.order[number].dtype
        return [f"{text}.real", f"{text}.imag"] if dtype.is_complex else [text]

    def _product(self, step: Step, arrays: list[str]) -> None:
        number = step.node
        count = len(self.nodes.order)
        if not self.has_varying_sizes:
            assert isinstance(step.runner, ProductRunner)
            fill = self._constant("fill", step.runner.fill)
            self._line.append(f"{fill}({', '.join(arrays)})")
            return
        detail = f"n{number}.detail"
        if number >= count:
            detail = self._text(self.nodes.inner[number - count].detail)
        fill = self._constant("fill", _Fillings(self.device, step.dtype))
        self._line.append(f"{fill}({detail}, {', '.join(arrays)})")

    def _kernel(
        self, runner: Runner | None, program: Program | None, repeats: list[Repeat],
        arrays: list[str], numbers: list[int], integers: list[Any], scalars: list[str],
    ) -> None:  # fmt: skip
        """The launches of a kernel."""
        axes = len(integers) if program is None else program.kept + program.reduced
        texts = [each if type(each) is str else self._text(each) for each in integers]
        if program is not None and not _are_integers(integers[:axes]):
            varying = self._constant("kernel", _Varying(self.device, program))
            given = f"[{', '.join(arrays)}], ({', '.join([*texts, ''])}), [{', '.join(scalars)}]"
            self._line.append(f"{varying}({given})")
            return
        if runner is None:  # it is empty
            return
        if type(runner) is not Sized or len(repeats) != len(runner.launches):
            raise _NeedsTask
        scratch: list[str] = []
        for short, count in runner.scratch:
            name = f"x{len(scratch)}"
            scratch.append(name)
            like = DeviceArray.described(self.device, dtype_named(short), (count,))
            self._line.append(f"{name} = {self._constant('like', like)}.another()")
        for repeat, (_, stage) in zip(repeats, runner.launches, strict=True):
            own = [scratch[each] for each in stage.scratch]
            values = [*arrays, *own, *texts, *map(str, stage.integers), *scalars]
            prepared = repeat.prepared
            if scalars or prepared.of_arrays or not _are_integers(integers):
                pack = self._constant("pack", prepared.pack)
                grid, threads = map(repr, (tuple(repeat.grid), tuple(repeat.threads)))
                block = f"{pack}([{', '.join(values)}], {grid}, {threads})"
            else:
                nothing = [None] * (len(arrays) + len(own))
                bytes_ = prepared.pack(
                    [*nothing, *integers, *stage.integers], repeat.grid, repeat.threads
                )
                block = self._constant("block", bytes_)
            compiled = self._constant("k", prepared.compiled)
            grid = self._constant("grid", repeat.grid)
            bound = self._buffers_of(arrays, numbers, own, twice=repeat.twice)
            self._line.append(f"launch({compiled}, {grid}, {bound}, {block})")
        if scratch:
            self._line.append(f"del {', '.join(scratch)}")

    def _buffers_of(
        self, arrays: list[str], numbers: list[int], scratch: list[str], twice: bool
    ) -> str:
        found = dict.fromkeys([*arrays, *scratch])
        if twice:
            first: dict[object, str] = {}
            for name, number in zip(arrays, numbers, strict=True):
                first.setdefault(self._buffer(number), name)
            found = dict.fromkeys([*first.values(), *scratch])
        return f"({', '.join([f'{name}.buffer' for name in found] + [''])})"


def _are_integers(values: Iterable[Any]) -> bool:
    """Whether none of the values is a size, or the text of an expression."""
    return all(type(each) is int for each in values)


def _joined(texts: Iterable[Sequence[str]]) -> list[str]:
    return [each for own in texts for each in own]


def _words(line: str) -> list[str]:
    return "".join(c if c.isalnum() or c == "_" else " " for c in line).split()


class _Varying:
    """A kernel whose extents differ from run to run."""

    __slots__ = ("_axes", "_device", "_known", "_program")

    def __init__(self, device: Device, program: Program) -> None:
        self._device = device
        self._program = program
        self._axes = program.kept + program.reduced
        self._known: RecentCache[tuple[int, ...], tuple[Runner, list[Repeat]]] = RecentCache(
            _RECENT_SIZES
        )

    def __call__(
        self, arrays: list[DeviceArray], integers: tuple[int, ...], scalars: list[Any]
    ) -> None:
        """Compute the last of the arrays."""
        extents = integers[: self._axes]
        known = self._known.get(extents)
        if known is None:
            if 0 in extents[: self._program.kept]:
                return
            memory = tuple([array.buffer.size for array in arrays])
            runner = runner_for(self._device, self._program, integers, memory)
            known = runner, []
            if type(runner) is Sized:  # chunks hold where their parts begin
                self._known[extents] = known
        runner, repeats = known
        runner.run(arrays, integers, scalars, repeats)


class _Fillings:
    """Products of a dtype whose sizes differ from run to run."""

    __slots__ = ("_device", "_dtype", "_known")

    def __init__(self, device: Device, dtype: Any) -> None:
        self._device = device
        self._dtype = dtype
        self._known: RecentCache[Any, Callable[..., None]] = RecentCache(_RECENT_SIZES)

    def __call__(self, product: Any, *arrays: DeviceArray) -> None:
        """Compute the last of the arrays from the others."""
        fill = self._known.get(product)
        if fill is None:
            fill = self._known[product] = filling(self._device, self._dtype, product)
        fill(*arrays)
