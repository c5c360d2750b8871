"""A parallel loop in strips: one iteration for each lane at once, and a masked remainder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from treadle.codegen.leaves import holds_array
from treadle.codegen.llvm.divergence import Divergence, analyze
from treadle.codegen.llvm.lane_memory import Mask
from treadle.codegen.llvm.lane_values import lane_memories
from treadle.codegen.llvm.lanes import Lanes
from treadle.codegen.llvm.spelling import constant, value_type
from treadle.codegen.llvm.statements import Statements, loop_interval, trip_count
from treadle.codegen.llvm.values import Value
from treadle.ir import nodes as n
from treadle.ir.intervals import Interval, fits
from treadle.ir.traverse import root_of, walk
from treadle.ir.types import Scalar, size_of

_FEWEST_ITERATIONS = 4  # iterations for which vectors pay
_LARGEST_BODY_TWICE = 500  # nodes of a body that may be printed twice, once without masks; not
# counting parts of values, for which nothing is printed
_LARGEST_COPIES = 256 << 10  # bytes that lanes' copies of one memory may take


def print_strips(
    outer: Statements, node: n.For, lanes: int, private: Mapping[str, n.Memory]
) -> bool:
    """Print a parallel loop many lanes at a time; False, and nothing printed, if it cannot be."""
    used = {
        part.memory: private[part.memory]
        for part in walk(node.body)
        if isinstance(part, n.Element) and part.memory in private
    }
    if not _is_fit(node.body, used, lanes, outer.scope.functions):
        return False
    start, stop = outer.value(node.start), outer.value(node.stop)
    interval = loop_interval(node, start.interval, stop.interval)
    most = _largest_trip_count(node, interval)
    if most is not None and most < _FEWEST_ITERATIONS:
        return False
    while most is not None and lanes > _FEWEST_ITERATIONS and most <= lanes // 2:
        lanes //= 2
    strips = _Strips(outer, node, lanes, start, interval, used)
    exact = _constant_trip_count(node, start, stop)
    if exact is not None:
        strips.known(exact)
    else:
        strips.counted(trip_count(outer.e, node, start, stop).leaves[0])
    return True


def _is_fit(
    body: n.Block,
    private: Mapping[str, n.Memory],
    lanes: int,
    functions: Mapping[str, n.Function],
    given: Iterable[str] = (),
    fit: set[str] | None = None,
) -> bool:
    """Whether a body can be printed in lanes: what cannot are variables that hold arrays, nested
    parallel loops, and lanes' own memories that are seen as several types. `fit` are the functions
    that were looked at already: each is, once, however often it is called."""
    fit = set() if fit is None else fit
    parts = list(walk(body))
    declared = {part.variable.name for part in parts if isinstance(part, (n.Declare, n.For))}
    declared |= set(given)
    for part in parts:
        match part:
            case n.For(parallel=True):
                return False
            case n.Declare(variable) if holds_array(variable.type):
                return False
            case n.Assign(place):
                root = root_of(place)
                if isinstance(root, n.Variable) and root.name not in declared:
                    return False
            case n.Atomic(result=n.Variable(name)) if name not in declared:
                return False
            case n.Load(place) if isinstance(root_of(place), n.Variable):
                return False
            case n.Element(memory=name, type=type) if name in private:
                if type != private[name].element:
                    return False
            case n.Call(function=name) if name not in fit:
                fit.add(name)
                function = functions[name]
                own = {memory.name: memory for memory in function.memories}
                names = [parameter.name for parameter in function.parameters]
                if any(
                    holds_array(p.type) for p in function.parameters if isinstance(p, n.Variable)
                ):
                    return False
                if not _is_fit(function.body, own, lanes, functions, names, fit):
                    return False
    sizes = (size_of(m.element) * (m.length or 0) * lanes for m in private.values())
    return all(size <= _LARGEST_COPIES for size in sizes)


def _largest_trip_count(node: n.For, interval: Interval | None) -> int | None:
    return None if interval is None else (interval[1] - interval[0]) // abs(node.step) + 1


def _constant_trip_count(node: n.For, start: Value, stop: Value) -> int | None:
    a, b = start.interval, stop.interval
    if a is None or b is None or a[0] != a[1] or b[0] != b[1]:
        return None
    return len(range(a[0], b[0], node.step))


class _Strips:
    """The strips of one loop."""

    def __init__(
        self,
        outer: Statements,
        node: n.For,
        width: int,
        start: Value,
        interval: Interval | None,
        private: Mapping[str, n.Memory],
    ) -> None:
        assert isinstance(node.variable.type, Scalar)
        self.outer = outer
        self.e = outer.e
        self.node = node
        self.width = width
        self.start = start
        self.interval = interval
        self.type = node.variable.type
        self.llvm = value_type(self.type)
        self.vector = value_type(self.type, width)
        self.private = private
        self.divergence: Divergence = analyze(node.body, [node.variable.name], frozenset(private))
        self.memories = lane_memories(outer, private.values(), width)

    def known(self, count: int) -> None:
        """A trip count that is a constant."""
        whole = count - count % self.width
        if whole:
            self.loop(str(whole), None)
        if count > whole:
            bits = ", ".join(
                f"i1 {'true' if lane < count - whole else 'false'}" for lane in range(self.width)
            )
            self.body(str(whole), f"<{bits}>")

    def counted(self, count: str) -> None:
        """A trip count that is known at run time. A small body is printed twice, so that
        whole strips need no mask; a large one is masked always."""
        printed = (node for node in walk(self.node.body) if type(node) is not n.Extract)
        if sum(1 for _ in printed) > _LARGEST_BODY_TWICE:
            self.loop(count, count)
            return
        e = self.e
        whole = e.op(f"and {self.llvm} {count}, {constant(self.type, -self.width)}")
        self.loop(whole, None)
        remainder, done = e.new_label(), e.new_label()
        e.branch(e.op(f"icmp ne {self.llvm} {whole}, {count}"), remainder, done)
        e.place(remainder)
        self.body(whole, self.mask_below(whole, count))
        e.jump(done)
        e.place(done)

    def mask_below(self, first: str, count: str) -> str:
        """The lanes whose iteration, counted from `first` on, lies below the trip count."""
        e = self.e
        left = e.op(f"sub {self.llvm} {count}, {first}")
        wide = self.outer.broadcast(left, self.llvm, self.width)
        return e.op(f"icmp ult {self.vector} {self.lane_numbers(1)}, {wide}")

    def lane_numbers(self, step: int) -> str:
        values = (constant(self.type, step * lane) for lane in range(self.width))
        numbers = ", ".join(f"{self.llvm} {value}" for value in values)
        return f"<{numbers}>"

    def loop(self, stop: str, count: str | None) -> None:
        """Strips from iteration 0 up to `stop`; masked if `count`, the trip count, is given."""
        e = self.e
        test, run, latch, done = (e.new_label() for _ in range(4))
        before = e.current
        counter, following = f"%i{test}", f"%n{test}"
        e.jump(test)
        e.place(test)
        e.do(f"{counter} = phi {self.llvm} [ 0, %{before} ], [ {following}, %{latch} ]")
        e.branch(e.op(f"icmp ult {self.llvm} {counter}, {stop}"), run, done)
        e.place(run)
        self.body(counter, None if count is None else self.mask_below(counter, count))
        e.jump(latch)
        e.place(latch)
        e.do(f"{following} = add nuw {self.llvm} {counter}, {self.width}")
        e.jump(test)
        e.place(done)

    def body(self, first: str, mask: Mask) -> None:
        """The loop's body for the lanes from iteration `first` on."""
        e, outer, node = self.e, self.outer, self.node
        end = e.new_label()
        lanes = Lanes(e, outer.scope, self.width, self.divergence, mask, end)
        lanes.setup(node.body, outer.returns)
        outer.scope.values[node.variable.name] = self.index(first)
        hidden = {name: outer.scope.memories[name] for name in self.memories}
        outer.scope.memories.update(self.memories)
        lanes.begin()
        lanes.block(node.body)
        outer.scope.memories.update(hidden)
        if e.open:
            e.jump(end)
        e.place(end)

    def index(self, first: str) -> Value:
        """The loop's variable in each lane."""
        e, step = self.e, self.node.step
        counted = Value((first,))
        if step != 1:
            factor = Value((constant(self.type, step),))
            counted = self.outer.integer("mul", self.type, counted, factor)
        first = self.outer.integer("add", self.type, counted, self.start).leaves[0]
        wide = self.outer.broadcast(first, self.llvm, self.width)
        flags = "nsw " if fits(self.interval, self.type) and self.type.is_signed else ""
        lanes = e.op(f"add {flags}{self.vector} {wide}, {self.lane_numbers(step)}")
        whole = step == 1 and self.start.leaves == ("0",)
        return Value((lanes,), self.width, self.interval, (first, step), whole)
