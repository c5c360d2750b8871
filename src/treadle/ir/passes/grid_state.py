"""What threads and blocks keep while a kernel with barriers of the grid goes from one launch to the
next (`grid_parts`): variables, local and shared memory that a later part may read.

They lie as words in a buffer, behind two that answer the host. A word of a thread is at
`word * threads + thread`, so that adjacent threads access adjacent words; those of blocks lie
behind all of these, one block's after the other's. Variables that are computed of parameters and of
the thread's place alone are computed again instead. What is the same for all threads of a block is
kept once for it, so that it is uniform in the next part, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from treadle.core.source import Span
from treadle.ir import builder as b
from treadle.ir import nodes as n
from treadle.ir.passes.kept_words import Place, plus, restore, save, words_of
from treadle.ir.passes.live_ranges import read_early
from treadle.ir.passes.names import Names
from treadle.ir.passes.predicate import remove_returns
from treadle.ir.passes.regions import assigned_in, memories_in, names_in
from treadle.ir.passes.uniformity import has_sync, written_memories
from treadle.ir.traverse import rewrite_block, statements_in, walk
from treadle.ir.types import I32, U32, Array, Struct, Type

BARRIER = "grid"
KEPT = "grid.kept"  # the buffer
UNIFORM = "grid.uniform"  # shared memory
ANSWERS = 2  # words at its beginning

_Copy: TypeAlias = Callable[[n.Place, n.Expression, Place, Callable[[str], str]], n.Block]


@dataclass(eq=False, slots=True)
class Part:
    """The statements of a launch; `condition` is what its threads are asked for."""

    statements: list[n.Statement]
    condition: n.Expression | None
    span: Span
    followed: set[int] = field(default_factory=set)  # by which parts


class StateSaver:
    """Makes kernels of parts, which load what they need and store what later ones need."""

    def __init__(
        self,
        whole: n.Kernel,
        names: Names,
        parts: list[Part],
        plain: dict[str, tuple[n.Variable, n.Expression]],
        counters: tuple[n.Variable, ...],
        ended: n.Variable | None,
        uniform: frozenset[str],
    ) -> None:
        self.whole = whole
        self.parts = parts
        self.plain = plain
        self.counters = counters
        self.ended = ended
        self.fresh = names.fresh
        self.types = self._types()
        if ended is not None:
            for part in self.parts:
                part.statements = _with_end(part.statements, ended)
        self.mentioned = [self._mentioned(part) for part in self.parts]
        self.assigned = [assigned_in(part.statements) for part in self.parts]
        self.live = self._live()
        self.memories = self._kept_memories()
        self.slots: dict[str, int] = {}
        self.thread_words = self.block_words = 0
        kept = set().union(*self.live)
        if ended is not None:  # threads that have returned know nothing of what others assign
            uniform = frozenset()
        self.of_block: set[str] = set()
        for name, variable in self.types.items():
            if name in kept and name in uniform and not _has_array(variable.type):
                self.of_block.add(name)
                self.slots[name] = self.block_words
                self.block_words += words_of(variable.type)
            elif name in kept:
                self.slots[name] = self.thread_words
                self.thread_words += words_of(variable.type)
        self.uniform_words = self.block_words
        for memory in self.memories:
            if memory.space == "local":
                self.slots[memory.name] = self.thread_words
                self.thread_words += words_of(memory.element) * (memory.length or 0)
            elif memory.length is not None:
                self.slots[memory.name] = self.block_words
                self.block_words += words_of(memory.element) * memory.length
        for memory in self.memories:
            if memory.length is None:
                self.slots[memory.name] = self.block_words  # behind the others

    def _types(self) -> dict[str, n.Variable]:
        """The variables of the kernel that a launch may have to keep, by name."""
        found: dict[str, n.Variable] = {}
        for part in self.parts:
            for node in statements_in(tuple(part.statements)):
                if isinstance(node, n.Declare):
                    found[node.variable.name] = node.variable
        return found

    def _mentioned(self, part: Part) -> set[str]:
        names = names_in(part.statements)
        if part.condition is not None:
            names |= names_in(part.condition)
        return names & set(self.types)

    def _live(self) -> list[set[str]]:
        """The variables whose value a part gets from earlier ones."""
        early, before = [], []
        for part in self.parts:
            asked = () if part.condition is None else (n.If(part.condition, ()),)
            early.append(read_early((*part.statements, *asked), zeroed=True) & set(self.types))
            sure: set[str] = set()
            for node in part.statements:
                match node:
                    case n.Declare(variable) | n.Assign(n.Variable() as variable):
                        sure.add(variable.name)
            before.append(sure)
        live = [set(one) for one in early]
        changed = True
        while changed:
            changed = False
            for number, part in enumerate(self.parts):
                behind = set().union(*(live[one] for one in part.followed))
                new = early[number] | (behind - before[number])
                if new != live[number]:
                    live[number], changed = new, True
        return live

    def _kept_memories(self) -> tuple[n.Memory, ...]:
        self.accessed = [_accessed(part) for part in self.parts]
        reach = _closure([part.followed for part in self.parts])
        found = set()
        for number, one in enumerate(self.accessed):
            for other in reach[number]:
                found |= one & self.accessed[other]
        self.reach = reach
        return tuple(memory for memory in self.whole.memories if memory.name in found)

    # --- one part ---

    def kernel(self, number: int) -> n.Kernel:
        """The kernel of a part."""
        part, whole = self.parts[number], self.whole
        live = self.live[number]
        behind: set[str] = set().union(*(self.live[one] for one in part.followed))
        names = self.mentioned[number]
        before, after = self._memories_around(number)
        shared_before = [one for one in before if one.space == "shared"]
        needed = [one for one in self.types if one in self.of_block & live & names]
        waits = has_sync(tuple(part.statements))
        body: list[n.Statement] = list(self._fetched()) if needed and waits else []
        for memory in shared_before:
            body += self._shared(memory, restore)
        if body:
            body.append(n.Barrier("block"))
        for name in needed:
            body += self._restored_of_block(self.types[name], through_shared=waits)
        plain_needed = self._plain_of(part)
        body += [n.Declare(*self.plain[name]) for name in plain_needed]
        declared: set[str] = set(needed)
        own = {
            node.variable.name
            for node in statements_in(tuple(part.statements))
            if isinstance(node, n.Declare)
        }
        stored = behind & self.assigned[number]
        for name, variable in self.types.items():
            if name in declared:
                continue
            if name in live and name in names:
                body.append(n.Declare(variable))
                body += restore(
                    variable, b.constant(self.slots[name], I32), self._thread, self.fresh
                )
                declared.add(name)
            elif (name in names and name not in own) or name in stored:
                body.append(n.Declare(variable))
                declared.add(name)
        for memory in before:
            if memory.space == "local":
                body += self._local(memory, restore)
        body += self._once_declared(part.statements, declared)
        if part.condition is not None:
            body.append(self._answer(part.condition))
        if self.ended is not None and (behind or after):
            trial = replace(whole, body=tuple(body))
            body = list(remove_returns(trial).body)
        if needed and not waits and stored & self.of_block:  # all threads have read them
            body.append(n.Barrier("block"))
        for name, variable in self.types.items():
            if name in stored:
                words = self._of_block if name in self.of_block else self._thread
                body += save(variable, b.constant(self.slots[name], I32), words, self.fresh)
        for memory in after:
            if memory.space == "local":
                body += self._local(memory, save)
        shared_after = [one for one in after if one.space == "shared"]
        if shared_after:
            body.append(n.Barrier("block"))
        for memory in shared_after:
            body += self._shared(memory, save)
        kept = n.Buffer(KEPT, U32)
        counters = tuple(
            n.Parameter(one.name, one.type, ("value", f"{BARRIER}.{one.name}"))  # type: ignore[arg-type]
            for one in self.counters
        )
        used = memories_in(body) | {
            node.memory for node in walk(tuple(body)) if isinstance(node, n.MemoryReference)
        }
        mentioned = names_in(body)
        used |= {
            str(one.origin[1])
            for one in whole.parameters
            if one.origin[:1] == ("length",) and one.name in mentioned
        }
        memories = tuple(one for one in whole.memories if one.name in used)
        if UNIFORM in used:
            memories = (*memories, n.Memory(UNIFORM, "shared", U32, self.uniform_words))
        dropped = {("length", one.name) for one in whole.memories} - {
            ("length", one.name) for one in memories
        }
        own_parameters = (one for one in whole.parameters if one.origin not in dropped)
        return replace(
            whole,
            body=tuple(body),
            buffers=(*whole.buffers, kept),
            parameters=(*own_parameters, *counters, *self._lengths(body)),
            memories=memories,
        )

    def _fetched(self) -> Iterator[n.Statement]:
        """The block's uniform words in shared memory, from where all threads read them: what is
        read there behind a barrier counts as uniform."""
        word = n.Variable(self.fresh("word"), I32)
        place = n.Element(UNIFORM, word, U32)
        yield from _by_all(
            word, b.constant(self.uniform_words, I32), self.fresh,
            (n.Assign(place, n.Load(self._of_block(word), U32)),),
        )  # fmt: skip

    def _restored_of_block(
        self, variable: n.Variable, *, through_shared: bool
    ) -> Iterator[n.Statement]:
        """A variable that is the same for the block, declared with its value."""
        first = self.slots[variable.name]
        words = {
            at: n.Variable(self.fresh(f"{variable.name}.word"), U32)
            for at in range(first, first + words_of(variable.type))
        }
        for at, word in words.items():
            index = b.constant(at, I32)
            place = n.Element(UNIFORM, index, U32) if through_shared else self._of_block(index)
            yield n.Declare(word, n.Load(place, U32))

        def change(node: object) -> object:
            if isinstance(node, n.Load) and node.place.memory == UNIFORM:  # type: ignore[union-attr]
                return words[int(node.place.index.value)]  # type: ignore[union-attr]
            return node

        made = restore(
            variable, b.constant(first, I32), lambda at: n.Element(UNIFORM, at, U32), self.fresh
        )
        yield n.Declare(variable)
        yield from rewrite_block(made, change)

    def _memories_around(self, number: int) -> tuple[list[n.Memory], list[n.Memory]]:
        """The memories that a part has to load, and those that it has to store."""
        part, accessed = self.parts[number], self.accessed[number]
        earlier = {
            name
            for other, reached in enumerate(self.reach)
            if number in reached
            for name in self.accessed[other]
        }
        later = {name for other in self.reach[number] for name in self.accessed[other]}
        written = written_memories(replace(self.whole, body=tuple(part.statements)))
        before = [one for one in self.memories if one.name in accessed & earlier]
        after = [one for one in self.memories if one.name in written & later]
        return before, after

    def _plain_of(self, part: Part) -> list[str]:
        """The plain variables that a part needs, in the order of their declarations."""
        plain = self.plain
        roots: list[object] = [*part.statements]
        if part.condition is not None:
            roots.append(part.condition)
        needed: set[str] = set()
        left = names_in(roots) & set(plain)
        while left:
            needed |= left
            left = {
                name for one in left for name in names_in(plain[one][1]) if name in plain
            } - needed
        return [name for name in plain if name in needed]

    def _once_declared(
        self, statements: list[n.Statement], declared: set[str]
    ) -> Iterator[n.Statement]:
        """Statements, of which those that declare a variable again set it."""
        for node in statements:
            if isinstance(node, n.Declare) and node.variable.name in declared:
                value = node.value
                if value is None:
                    zero = n.Variable(self.fresh(node.variable.name), node.variable.type)
                    yield n.Declare(zero)
                    value = zero
                yield n.Assign(node.variable, value, node.span)
                continue
            if isinstance(node, n.Declare):
                declared.add(node.variable.name)
            yield node

    def _answer(self, condition: n.Expression) -> n.Statement:
        """Say whether a condition holds: all threads that say so write the same number."""
        index = n.Select(condition, b.constant(0, I32), b.constant(1, I32), I32)
        return n.Assign(n.Element(KEPT, index, U32), b.constant(1, U32))

    # --- places in the buffer ---

    def _thread(self, word: n.Expression) -> n.Element:
        """The place of a word of this thread."""
        index = b.add(b.mul(word, _threads()), b.add(b.mul(_block(), _block_size()), _in_block()))
        return n.Element(KEPT, plus(index, ANSWERS), U32)

    def _of_block(self, word: n.Expression) -> n.Element:
        """The place of a word that this block shares."""
        first = b.mul(_threads(), self.thread_words)
        size: n.Expression = b.constant(self.block_words, I32)
        dynamic = next((one for one in self.memories if one.length is None), None)
        if dynamic is not None:
            size = b.add(size, b.mul(self._length(dynamic), words_of(dynamic.element)))
        index = b.add(first, b.add(b.mul(_block(), size), word))
        return n.Element(KEPT, plus(index, ANSWERS), U32)

    def _local(self, memory: n.Memory, copy: _Copy) -> Iterator[n.Statement]:
        """Copy a local memory, element by element."""
        element = n.Variable(self.fresh("element"), I32)
        count = words_of(memory.element)
        first = plus(b.mul(element, count), self.slots[memory.name])
        place = n.Element(memory.name, element, memory.element)
        body = copy(place, first, self._thread, self.fresh)
        assert memory.length is not None
        yield n.For(element, b.constant(0, I32), b.constant(memory.length, I32), 1, body)

    def _shared(self, memory: n.Memory, copy: _Copy) -> Iterator[n.Statement]:
        """Copy a shared memory by all threads of the block."""
        element = n.Variable(self.fresh("element"), I32)
        count = words_of(memory.element)
        first = plus(b.mul(element, count), self.slots[memory.name])
        place = n.Element(memory.name, element, memory.element)
        body = copy(place, first, self._of_block, self.fresh)
        yield from _by_all(element, self._length(memory), self.fresh, body)

    def _length(self, memory: n.Memory) -> n.Expression:
        if memory.length is not None:
            return b.constant(memory.length, I32)
        return n.Variable(self._length_name(memory), I32)

    def _length_name(self, memory: n.Memory) -> str:
        known = [one for one in self.whole.parameters if one.origin == ("length", memory.name)]
        return known[0].name if known else f"{memory.name}.length"

    def _lengths(self, body: list[n.Statement]) -> Iterator[n.Parameter]:
        """A parameter for the length of the dynamic memory, if the part needs a new one."""
        taken = {parameter.name for parameter in self.whole.parameters}
        for memory in self.memories:
            name = self._length_name(memory)
            if memory.length is None and name not in taken and name in names_in(body):
                yield n.Parameter(name, I32, ("length", memory.name))


def _by_all(
    element: n.Variable, length: n.Expression, fresh: Callable[[str], str], body: n.Block
) -> Iterator[n.Statement]:
    """A body for each element, by all threads of the block together."""
    turn = n.Variable(fresh("turn"), I32)
    size = _block_size()
    iterations = b.binary("div", b.add(length, b.sub(size, 1)), size)
    index = b.add(b.mul(turn, size), _in_block())
    inside = n.If(b.less(element, length), body)
    yield n.For(turn, b.constant(0, I32), iterations, 1, (n.Declare(element, index), inside))


def _has_array(type: Type) -> bool:
    """Whether a type has arrays in it."""
    match type:
        case Struct():
            return any(_has_array(field.type) for field in type.fields)
    return isinstance(type, Array)


def _accessed(part: Part) -> set[str]:
    roots: list[object] = [*part.statements]
    if part.condition is not None:
        roots.append(part.condition)
    found = memories_in(roots)
    for root in roots:
        for node in walk(root):
            if isinstance(node, n.MemoryReference):
                found.add(node.memory)
    return found


def _closure(followed: list[set[int]]) -> list[set[int]]:
    """Which parts may come at any time after each."""
    reach = [set(one) for one in followed]
    changed = True
    while changed:
        changed = False
        for one in reach:
            more = set().union(*(reach[other] for other in one)) if one else set()
            if not more <= one:
                one |= more
                changed = True
    return reach


def _with_end(statements: list[n.Statement], ended: n.Variable) -> list[n.Statement]:
    """The statements of a part, which does nothing for threads that have returned in others."""

    def change(node: object) -> object:
        if isinstance(node, n.Return):
            return (n.Assign(ended, n.TRUE, node.span), node)
        return node

    found = list(rewrite_block(tuple(statements), change))
    if any(isinstance(one, n.Declare) and one.variable == ended for one in found):
        return found
    return [n.If(ended, (n.Return(),)), *found]


def _block() -> n.Expression:
    """The number of this block in the grid."""
    x, y, z = (b.builtin("block_idx", axis) for axis in range(3))
    rows = b.add(b.mul(z, b.builtin("grid_dim", 1)), y)
    return b.add(b.mul(rows, b.builtin("grid_dim", 0)), x)


def _in_block() -> n.Expression:
    """The number of this thread in its block."""
    x, y, z = (b.builtin("thread_idx", axis) for axis in range(3))
    rows = b.add(b.mul(z, b.builtin("block_dim", 1)), y)
    return b.add(b.mul(rows, b.builtin("block_dim", 0)), x)


def _block_size() -> n.Expression:
    x, y, z = (b.builtin("block_dim", axis) for axis in range(3))
    return b.mul(b.mul(x, y), z)


def _threads() -> n.Expression:
    """The threads of the grid."""
    x, y, z = (b.builtin("grid_dim", axis) for axis in range(3))
    return b.mul(b.mul(b.mul(x, y), z), _block_size())
