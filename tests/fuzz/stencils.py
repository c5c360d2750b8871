"""Drawn stencils, and what they compute by NumPy.

A stencil is drawn as data: its rules, its arrays, the terms that it sums. From that come the text
in the kernel language, and the same sums with NumPy's indexing. All numbers are small integers, so
that results are exact in every dtype.
"""

from __future__ import annotations

import linecache
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

import treadle as td
from treadle.runtime import settings as switches
from treadle.stencils import launcher, launching, marching
from treadle.stencils.march_plan import March

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]
UNTOUCHED = 99  # around views, and in outputs before they are written
CONSTANT = 3
EXTRA = 5  # what a function adds to the nearest element (else the axis with an index below 0)
AXES = "kij"
RULES = ("clamp", "wrap", "mirror", "zero", "constant", "skip", "function")
DTYPES = {"f32": np.float32, "i32": np.int32, "u32": np.uint32, "i16": np.int16, "u8": np.uint8}


@dataclass(frozen=True)
class Read:
    """An element of an input near the cell."""

    array: int
    offsets: tuple[int, ...]

    @property
    def text(self) -> str:
        name = f"u{self.array}"
        if not any(self.offsets):
            return f"td.i32({name}[pos])"
        return f"td.i32(pos.at({name}, {', '.join(map(str, self.offsets))}))"


@dataclass(frozen=True)
class Term:
    """What is added: a read with a weight; where `test` is greater than 2, `other` instead. Or
    the sum of a window along an axis, a coefficient times an index, a neighbour by a function."""

    kind: str  # "read", "if", "window", "index", "function"
    weight: int
    read: Read
    other: Read
    test: Read
    axis: int


@dataclass(frozen=True)
class Place:
    """How an array lies in memory, how much larger it is than the smallest, and whether it is the
    second grid of a stack of two."""

    dtype: str
    layout: str  # "plain", "sliced", "turned"
    extra: tuple[int, ...]
    stacked: bool = False


@dataclass(frozen=True)
class Drawn:
    """A stencil, and the grids that it runs on."""

    rules: tuple[str, ...]
    inputs: tuple[Place, ...]
    outputs: tuple[Place, ...]
    updates: tuple[bool, ...]  # for each output whether it is added to
    terms: tuple[Term, ...]
    shapes: tuple[Shape, ...]
    seed: int
    host: bool  # whether the arrays are NumPy's
    small: bool  # whether threads of the CPU have few cells each
    checked: bool  # whether each access is checked on the CPU
    bounded: bool = False  # whether all results are small, as those of many steps must be

    @property
    def ndim(self) -> int:
        return len(self.rules)

    def reads(self) -> list[Read]:
        """All reads of neighbours, those of windows and functions among them."""
        found = []
        for term in self.terms:
            if term.kind in ("read", "if"):
                found.append(term.read)
            if term.kind == "if":
                found += [term.other, term.test]
            if term.kind == "window":
                found += [Read(term.read.array, along(self.ndim, term.axis, d)) for d in (-1, 0, 1)]
            if term.kind == "function":
                own = along(self.ndim, 0, 0)
                west = along(self.ndim, self.ndim - 1, -1)
                found += [Read(term.read.array, own), Read(term.read.array, west)]
        return found

    def source(self) -> str:
        """The text of the stencil `fuzzed`."""
        names = AXES[3 - self.ndim :]
        rules = ", ".join("outside" if rule == "function" else f'"{rule}"' for rule in self.rules)
        values = ", ".join(str(CONSTANT) if rule == "constant" else "None" for rule in self.rules)
        value = f", value=[{values}]" if "constant" in self.rules else ""
        nearest = ", ".join(f"min(max({x}, 0), u.shape[{a}] - 1)" for a, x in enumerate(names))
        lines = [
            "import treadle as td",
            f"def outside(u, {', '.join(names)}):",
            *(f"    if {x} < 0: return u[{nearest}] + {a}" for a, x in enumerate(names)),
            f"    return u[{nearest}] + {EXTRA}",
            "@td.func",
            "def both(u, pos):",
            "    return td.i32(u[pos]) - 2 * td.i32(pos.west(u))",
            f"@td.stencil(boundary=[{rules}]{value})",
            f"def fuzzed({self.parameters}):",
            *(f"    u{at} = s{at}[1]" for at, place in enumerate(self.inputs) if place.stacked),
            f"    {', '.join(names)}, = pos.index",
            "    t = td.i32(n)",
        ]
        for term in self.terms:
            lines += [f"    {line}" for line in self._lines(term, names)]
        for at, (place, update) in enumerate(zip(self.outputs, self.updates, strict=True)):
            bounded = self.bounded or place.dtype != "f32"
            number = f"(t + {at}) & 63" if bounded else f"t - {at}"
            out = f"out{at}[1][pos]" if place.stacked else f"out{at}[pos]"
            lines.append(f"    {out} {'+=' if update else '='} td.{place.dtype}({number})")
        return "\n".join(lines) + "\n"

    @property
    def parameters(self) -> str:
        inputs = [f"{'s' if each.stacked else 'u'}{at}" for at, each in enumerate(self.inputs)]
        outputs = [f"out{at}" for at in range(len(self.outputs))]
        return ", ".join((*inputs, "c", "n", *outputs, "pos"))

    def _lines(self, term: Term, names: str) -> list[str]:
        weight = term.weight
        match term.kind:
            case "read":
                return [f"t += {weight} * {term.read.text}"]
            case "if":
                return [
                    f"if {term.test.text} > 2:",
                    f"    t += {weight} * {term.other.text}",
                    "else:",
                    f"    t -= {term.read.text}",
                ]
            case "window":
                offsets = ", ".join("d" if a == term.axis else "0" for a in range(self.ndim))
                near = f"td.i32(pos.at(u{term.read.array}, {offsets}))"
                return ["for d in td.static_range(-1, 2):", f"    t += (d + {weight}) * {near}"]
            case "index":
                index = names[term.axis]
                return [f"t += td.i32({index}) * td.i32(c[(td.i32({index}) + {abs(weight)}) % 3])"]
            case _:
                return [f"t += {weight} * both(u{term.read.array}, pos)"]


def along(ndim: int, axis: int, step: int) -> tuple[int, ...]:
    return tuple(step if each == axis else 0 for each in range(ndim))


_numbers = count()


def stencil_of(drawn: Drawn) -> Any:
    """The stencil, with lines that errors can show."""
    text = drawn.source()
    file = f"<fuzzed stencil {next(_numbers)}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    scope: dict[str, Any] = {"__name__": "fuzzed"}
    exec(compile(text, file, "exec"), scope)
    return scope["fuzzed"]


# --- arrays ------------------------------------------------------------------------------------


def extents(place: Place, shape: Shape) -> Shape:
    return tuple(extent + more for extent, more in zip(shape, place.extra, strict=True))


def view(place: Place, whole: Any, shape: Shape) -> Any:
    """The array of a stencil in the memory around it."""
    shape = extents(place, shape)
    if place.layout == "sliced":
        where = [slice(1, 1 + extent) for extent in shape]
        where[-1] = slice(1, 1 + 2 * shape[-1], 2)
        return whole[(..., *where)]
    if place.layout == "turned":
        return whole.transpose()
    return whole


def grid_of(place: Place, array: Any) -> Any:
    """The grid of an array: of a stack the second one."""
    return array[1] if place.stacked else array


def whole(place: Place, shape: Shape, numbers: np.random.Generator | None) -> Array:
    """Memory with an array in it, of small numbers or untouched."""
    shape = extents(place, shape)
    if place.layout == "sliced":
        shape = (*(extent + 2 for extent in shape[:-1]), 2 * shape[-1] + 2)
    elif place.layout == "turned":
        shape = shape[::-1]
    if place.stacked:  # turned, the stack's axis is the last one
        shape = (*shape, 2) if place.layout == "turned" else (2, *shape)
    if numbers is None:
        return np.full(shape, UNTOUCHED, DTYPES[place.dtype])
    return numbers.integers(0, 6, shape).astype(DTYPES[place.dtype])


# --- by NumPy ----------------------------------------------------------------------------------


def refused(drawn: Drawn, shape: Shape) -> bool:
    """Whether these extents are an error: some arrays are empty and others are not, or a halo is
    wider than an array."""
    grid = grid_extents(drawn, shape)
    accessed = {read.array for read in drawn.reads()}
    used = [extents(drawn.inputs[at], shape) for at in accessed]
    used += [extents(place, shape) for place in drawn.outputs]
    for axis, rule in enumerate(drawn.rules):
        if any((each[axis] == 0) != (grid[axis] == 0) for each in used):
            return True
        if rule not in ("wrap", "mirror"):
            continue
        for at in accessed:
            extent = extents(drawn.inputs[at], shape)[axis]
            steps = [read.offsets[axis] for read in drawn.reads() if read.array == at]
            most = extent if rule == "wrap" else extent - 1
            beyond = max(-min(steps), max(steps) + grid[axis] - extent)
            if extent > 1 and beyond > most:
                return True
    return False


def grid_extents(drawn: Drawn, shape: Shape) -> Shape:
    every = [extents(place, shape) for place in drawn.outputs]
    return tuple(max(each[axis] for each in every) for axis in range(drawn.ndim))


class ByNumPy:
    """A stencil on arrays of NumPy's."""

    def __init__(self, drawn: Drawn, shape: Shape, inputs: list[Array], c: Array, n: int) -> None:
        self.drawn = drawn
        self.inputs = inputs
        self.c = c.astype(np.int64)
        self.grid = grid_extents(drawn, shape)
        self.cells = np.indices(self.grid)
        total = np.full(self.grid, n, np.int64)
        for term in drawn.terms:
            total += self.term(term)
        self.total = total

    def term(self, term: Term) -> Any:
        match term.kind:
            case "read":
                return term.weight * self.near(term.read)
            case "if":
                chosen, other = self.near(term.other), self.near(term.read)
                return np.where(self.near(term.test) > 2, term.weight * chosen, -other)
            case "window":
                ndim, array = self.drawn.ndim, term.read.array
                return sum(
                    (d + term.weight) * self.near(Read(array, along(ndim, term.axis, d)))
                    for d in (-1, 0, 1)
                )
            case "index":
                index = self.cells[term.axis]
                return index * self.c[(index + abs(term.weight)) % 3]
            case _:
                ndim, array = self.drawn.ndim, term.read.array
                own = self.near(Read(array, along(ndim, 0, 0)))
                return term.weight * (own - 2 * self.near(Read(array, along(ndim, ndim - 1, -1))))

    def near(self, read: Read) -> Array:
        """The neighbours of all cells; what lies outside by the rules of the axes."""
        array = self.inputs[read.array]
        if 0 in array.shape:
            return np.zeros(self.grid, np.int64)
        raw = [cells + offset for cells, offset in zip(self.cells, read.offsets, strict=True)]
        inside = []
        for index, extent, rule in zip(raw, array.shape, self.drawn.rules, strict=True):
            if rule == "wrap":
                index = index % extent
            elif rule == "mirror" and extent > 1:
                index = index % (2 * extent - 2)
                index = np.minimum(index, 2 * extent - 2 - index)
            inside.append(np.clip(index, 0, extent - 1))
        value = array[tuple(inside)].astype(np.int64)
        beyond = {"zero": 0, "constant": CONSTANT, "function": value + self.extra(raw)}
        for index, extent, rule in reversed(
            list(zip(raw, array.shape, self.drawn.rules, strict=True))
        ):
            if rule in beyond:
                value = np.where((index < 0) | (index >= extent), beyond[rule], value)
        return value

    def extra(self, raw: list[Array]) -> Array:
        """What the boundary's function adds. Indices along axes with other rules are inside."""
        found = np.full(self.grid, EXTRA)
        for axis in reversed(range(len(raw))):
            if self.drawn.rules[axis] in ("zero", "constant", "function"):
                found = np.where(raw[axis] < 0, axis, found)
        return found

    def computed(self, shape: Shape) -> Array:
        """Which cells are computed: all but those with neighbours outside along skipped axes."""
        found = np.ones(self.grid, bool)
        of_outputs = [
            (extents(place, shape), (0,) * self.drawn.ndim) for place in self.drawn.outputs
        ]
        of_inputs = [(self.inputs[read.array].shape, read.offsets) for read in self.drawn.reads()]
        for axis, rule in enumerate(self.drawn.rules):
            if rule != "skip":
                continue
            for extent, offsets in (*of_outputs, *of_inputs):
                index = self.cells[axis] + offsets[axis]
                found &= (index >= 0) & (index < extent[axis])
        return found

    def write(self, at: int, shape: Shape, out: Array) -> None:
        """The output of this number, into its array."""
        place = self.drawn.outputs[at]
        number = (self.total + at) & 63 if place.dtype != "f32" else self.total - at
        if self.drawn.updates[at]:
            part = tuple(slice(0, extent) for extent in out.shape)
            before = np.zeros(self.grid, np.int64)
            before[part] = out
            number = number + before
        where = tuple(slice(0, extent) for extent in out.shape)
        chosen = self.computed(shape)[where]
        out[chosen] = number[where][chosen].astype(out.dtype)


# --- running -----------------------------------------------------------------------------------


def _small_march(columns: Any, vectors: bool, *_: Any) -> March:
    return March((4, 2), 2, 4 if vectors else 1)


@contextmanager
def launched_as(drawn: Drawn, device: td.Device | None) -> Iterator[None]:
    """Launches as drawn: with small parts for each thread, checked, or interpreted."""
    with pytest.MonkeyPatch.context() as patch:
        if drawn.small:
            for name in ("_MOST_BYTES", "_CACHE_BYTES", "_LEAST_THREADS"):
                patch.setattr(launching, name, 200)
            form = launching.GpuForm(2, None, 4)  # columns of cells, as a card has them
            patch.setattr(launcher, "gpu_form", lambda *_: form)
            patch.setattr(marching, "march_of", _small_march)
            patch.setattr(marching, "march_planes", lambda *_: 4)
        if drawn.checked and device is not None and device.id == "cpu":
            patch.setattr(switches, "check", True)
        with td.interpret() if device is None else nullcontext():
            yield


# --- drawing -----------------------------------------------------------------------------------


@st.composite
def drawn_stencils(draw: st.DrawFn) -> Drawn:
    """Stencils of one to three dimensions."""
    ndim = draw(st.integers(1, 3))
    rules = tuple(draw(st.sampled_from(RULES)) for _ in range(ndim))
    staggered = draw(st.booleans())
    halo = draw(st.integers(0, 4 if ndim < 3 else 2))

    def place(dtypes: tuple[str, ...]) -> Place:
        extra = tuple(draw(st.integers(0, 1)) if staggered else 0 for _ in range(ndim))
        layout = draw(st.sampled_from(("plain", "plain", "sliced", "turned")))
        return Place(draw(st.sampled_from(dtypes)), layout, extra, draw(st.integers(0, 3)) == 3)

    inputs = tuple(place(tuple(DTYPES)) for _ in range(draw(st.integers(1, 3))))
    outputs = tuple(place(tuple(DTYPES)) for _ in range(draw(st.integers(1, 2))))

    def read() -> Read:
        offsets = [0] * ndim
        for axis in range(ndim) if draw(st.booleans()) else (draw(st.integers(0, ndim - 1)),):
            offsets[axis] = draw(st.integers(-halo, halo))
        return Read(draw(st.integers(0, len(inputs) - 1)), tuple(offsets))

    def term() -> Term:
        kinds = ("read", "read", "read", "if", "window", "index", "function")
        kind = draw(st.sampled_from(kinds))
        axis = draw(st.integers(0, ndim - 1))
        return Term(kind, draw(st.integers(-5, 5)), read(), read(), read(), axis)

    extent = st.sampled_from((0, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 33) if ndim < 3 else (1, 2, 5, 9))
    shapes = tuple(tuple(draw(extent) for _ in range(ndim)) for _ in range(draw(st.integers(1, 4))))
    return Drawn(
        rules, inputs, outputs,
        updates=tuple(draw(st.booleans()) for _ in outputs),
        # A function is inlined at each read: few reads, or its kernels take long to compile.
        terms=tuple(term() for _ in range(draw(st.integers(1, 2 if "function" in rules else 5)))),
        shapes=shapes, seed=draw(st.integers(0, 99)), host=draw(st.booleans()),
        small=draw(st.booleans()), checked="function" not in rules and draw(st.booleans()),
    )  # fmt: skip


@st.composite
def drawn_loops(draw: st.DrawFn) -> tuple[Drawn, int, int]:
    """A stencil with one output, like its first input; how many steps, and of each segment."""
    drawn = draw(drawn_stencils())
    first = drawn.inputs[0]
    out = replace(first, layout=draw(st.sampled_from(("plain", "sliced", "turned"))))
    loop = replace(drawn, outputs=(out,), updates=(False,), host=False, bounded=True)
    steps = draw(st.sampled_from((0, 1, 2, 3, 34, 65)))
    return loop, steps, draw(st.sampled_from((1, 3, 40, 90)))


def initial(drawn: Drawn, shape: Shape) -> tuple[list[Array], list[Array], Array]:
    """The memory of inputs and outputs, and the coefficients."""
    numbers = np.random.default_rng(drawn.seed)
    inputs = [whole(place, shape, numbers) for place in drawn.inputs]
    outputs = [whole(place, shape, None) for place in drawn.outputs]
    return inputs, outputs, np.array([2, -1, 3], np.int32)


def expected(drawn: Drawn, shape: Shape) -> list[Array]:
    """The memory of the outputs after a call."""
    inputs, outputs, c = initial(drawn, shape)
    views = [
        grid_of(place, view(place, each, shape))
        for place, each in zip(drawn.inputs, inputs, strict=True)
    ]
    result = ByNumPy(drawn, shape, views, c, drawn.seed)
    for at, (place, each) in enumerate(zip(drawn.outputs, outputs, strict=True)):
        result.write(at, shape, grid_of(place, view(place, each, shape)))
    return outputs


def found(drawn: Drawn, stencil: Any, shape: Shape, device: td.Device | None) -> list[Array]:
    """The memory of the outputs after a call on a device, or (None) in the interpreter."""
    inputs, outputs, c = initial(drawn, shape)
    if device is None or drawn.host:
        on: list[Any] = [*inputs, *outputs]
    else:
        on = [td.asarray(each, device=device) for each in (*inputs, *outputs)]
        c = td.asarray(c, device=device)  # type: ignore[assignment]
    places = (*drawn.inputs, *drawn.outputs)
    views = [view(place, each, shape) for place, each in zip(places, on, strict=True)]
    count = len(drawn.inputs)
    arguments = [*views[:count], c, drawn.seed, *views[count:]]
    with launched_as(drawn, device), td.use_device(device or td.device("cpu")):
        stencil(*arguments)
    return [np.asarray(each if device is None or drawn.host else each.numpy())
            for each in on[count:]]  # fmt: skip


def after_steps(
    drawn: Drawn, stencil: Any, shape: Shape, device: td.Device, steps: int, every: int
) -> list[list[Array]]:
    """The memory of the first input and of the output after some steps: by `td.stencil_loop` in
    segments, and by calls, after which the arrays change places."""
    inputs, (out,), c = initial(drawn, shape)
    results = []
    for looped in (True, False):
        on = [td.asarray(each, device=device) for each in (*inputs, out)]
        places = (*drawn.inputs, *drawn.outputs)
        views = [view(place, each, shape) for place, each in zip(places, on, strict=True)]
        numbers = td.asarray(c, device=device), drawn.seed
        with launched_as(drawn, device), td.use_device(device):
            if looped:
                td.stencil_loop(
                    stencil, *views[:-1], *numbers, views[-1], steps=steps, every=every,
                    callback=lambda at, last: None,
                )  # fmt: skip
            else:
                for _ in range(steps):
                    stencil(*views[:-1], *numbers, views[-1])
                    views[0], views[-1] = views[-1], views[0]
        results.append([on[0].numpy(), on[-1].numpy()])
    return results
