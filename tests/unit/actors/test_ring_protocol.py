"""Every interleaving of the rings' protocol, for small capacities and few messages.

The protocol is that of docs/design/actors.md, step by step, as generators that yield before each
access of memory. Each side has a buffer of stores that are not visible yet: plain and relaxed
stores become visible in any order and at any later time, a release store only after all stores
before it, and a sequentially consistent fence empties the buffer. Loads see memory, or the side's
own buffer. So an order that the code does not ask for is not relied upon. (A load that moves before
an earlier one is not modelled: all loads that another one relies on are acquire loads.)

Without a release, a fence, the exchange or the last look, messages are lost: see
`test_mistakes_are_found`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import pytest

Word = str | tuple[str, int]
Step = Generator[tuple[Any, ...], Any, None]


@dataclass(frozen=True)
class Rules:
    """What a test leaves out of the protocol."""

    release: bool = True  # of counters
    fence: bool = True  # between a publication and the look at PARKED or WAITERS
    exchange: bool = True  # of HEAD; else a plain store
    last_look: bool = True  # after PARKED is set
    marks: bool = True  # the message's number in each word of the cell; else in the first alone
    wakes: bool = True  # of a pipe's other end, where a kernel is launched
    follows: bool = True  # the thread of an end does not sleep while the other end's kernel runs
    ordered: bool = True  # it looks whether that runs before it looks what it has done


@dataclass(frozen=True)
class Setup:
    capacity: int
    messages: int
    drops: bool = False  # the policy drop_oldest
    replies: bool = True
    cell: tuple[str, ...] = ()  # of a resident kernel: the order of its loads in a poll
    stamps: bool = False  # a message brings the stamp that its reply's is later than
    piped: bool = False  # two resident kernels: the second takes the replies of the first
    rules: Rules = field(default_factory=Rules)


def wait(s: Setup, word: str, value: int) -> Step:
    """`Core.wait`: sleep unless the word has changed. Sleeping lets go of the condition's lock."""
    yield ("lock",)
    yield ("store", "WAITERS", 1)
    if s.rules.fence:
        yield ("fence",)
    yield ("sleep",) if (yield ("load", word)) == value else ("unlock",)


def notify(s: Setup) -> Step:
    """`Core.notify_waiting`."""
    if (yield ("load", "WAITERS")):
        yield ("lock",)
        yield ("store", "WAITERS", 0)
        yield ("notify",)
        yield ("unlock",)


def sender(s: Setup) -> Step:
    """`push` for each message; with room, or by dropping the oldest; else it waits."""
    for n in range(s.messages):
        while True:
            tail = yield ("load", "TAIL")
            head = yield ("load", "HEAD")
            if tail - head < s.capacity:
                yield ("store", ("slot", tail % s.capacity), n)
                if s.stamps:
                    yield ("store", "SENT_STAMP", n + 1)
                yield ("release" if s.rules.release else "store", "TAIL", tail + 1)
                if s.cell:
                    yield ("store", "tag", tail + 1)
                    yield ("store", "word", n + 1 if s.rules.marks else n + 100)
                if s.rules.fence:
                    yield ("fence",)
                if (yield ("load", "PARKED")):
                    yield ("wake",)
                break
            if s.drops:
                dropped = yield ("load", ("slot", head % s.capacity))
                if (yield ("exchange", "HEAD", head, head + 1)):
                    yield ("dropped", dropped)
                continue
            if not s.cell:  # a kernel notifies nothing: the sender looks again
                yield from wait(s, "HEAD", head)


def take(s: Setup) -> Generator[tuple[Any, ...], Any, int | None]:
    while True:
        head = yield ("load", "HEAD")
        tail = yield ("load", "TAIL")
        if head == tail:
            return None
        out_tail = yield ("load", "OUT_TAIL")
        out_head = yield ("load", "OUT_HEAD")
        if s.replies and out_tail - out_head == s.capacity:
            return None
        message = yield ("load", ("slot", head % s.capacity))
        if s.rules.exchange:
            if not (yield ("exchange", "HEAD", head, head + 1)):
                continue
        else:
            yield ("store", "HEAD", head + 1)
        assert isinstance(message, int)
        return message


def actor(s: Setup) -> Step:
    """`serve`: handle a message, publish its reply, notify; park when there is none."""
    while True:
        message = yield from take(s)
        if message is None:
            yield ("release", "PARKED", 1)
            if s.rules.fence:
                yield ("fence",)
            if s.rules.last_look:
                message = yield from take(s)
            if message is None:
                yield from notify(s)
                yield ("park",)
                yield ("release", "PARKED", 0)
                continue
            yield ("release", "PARKED", 0)
        yield ("handled", message)
        if s.replies:
            out_tail = yield ("load", "OUT_TAIL")
            yield ("store", ("out", out_tail % s.capacity), message)
            yield ("release" if s.rules.release else "store", "OUT_TAIL", out_tail + 1)
        if s.rules.fence:
            yield ("fence",)
        yield from notify(s)


def resident(s: Setup) -> Step:
    """A resident kernel for messages whose reply is dropped, and the thread that launches it."""
    while True:
        head = yield ("load", "HEAD")  # at the launch
        while True:
            first = yield ("load", s.cell[0])
            second = yield ("load", s.cell[1])
            third = yield ("load", s.cell[2])
            tail, tag, word = (
                value for _, value in sorted(zip(s.cell, (first, second, third), strict=True))
            )
            first = second = third = message = None
            if tag == head + 1 and (not s.rules.marks or word == head + 1):
                message = word - (1 if s.rules.marks else 100)
            elif tail > head:
                message = yield ("load", ("slot", head % s.capacity))
                if s.stamps and (yield ("load", "SENT_STAMP")) <= message:
                    raise Wrong(f"the stamp that was seen is before message {message}")
            if message is None:
                break
            yield ("handled", message)
            head += 1
            yield ("store", "HEAD", head)
        yield ("release", "PARKED", 1)
        if s.rules.fence:
            yield ("fence",)
        head = yield ("load", "HEAD")
        tail = yield ("load", "TAIL")
        if not s.rules.last_look or tail <= head:
            yield ("park",)
        head = tail = None
        yield ("release", "PARKED", 0)
        yield ("fence",)  # a launch


def beginning(s: Setup) -> Step:
    """A sender to the first of two resident kernels, whose inbox has room for all messages; the
    n-th one is n. What it needs of order is explored above."""
    for n in range(s.messages):
        yield ("announce", "TAIL", n + 1)
        if (yield ("load", "PARKED")):
            yield ("wake", "first")


def first(s: Setup) -> Step:
    """A resident kernel whose replies are another one's messages, and the thread that launches it
    and waits for its end; a life ends where there is nothing to do."""
    while True:
        yield ("announce" if s.rules.fence else "store", "PARKED", 0)
        if s.rules.wakes and (yield ("load", "PARKED OF SECOND")):
            yield ("wake", "second")
        if not s.rules.fence:
            yield ("fence",)  # a launch
        head = yield ("load", "HEAD")
        while True:
            tail = yield ("load", "TAIL")
            seen = yield ("load", "OUT_HEAD")
            if tail <= head or head - seen == s.capacity:
                break
            yield ("store", ("out", head % s.capacity), head)
            head += 1
            yield ("release" if s.rules.release else "store", "OUT_TAIL", head)
            yield ("store", "HEAD", head)
        if not s.rules.fence:
            yield ("fence",)  # the end of a kernel
        yield ("announce" if s.rules.fence else "store", "PARKED", 1)
        runs = False
        if s.rules.ordered:  # looked at before what the other one has done
            runs = not (yield ("load", "PARKED OF SECOND"))
        tail = yield ("load", "TAIL")
        seen = yield ("load", "OUT_HEAD")
        if not s.rules.ordered:
            runs = not (yield ("load", "PARKED OF SECOND"))
        rests = tail <= head or (head - seen == s.capacity and not (s.rules.follows and runs))
        head = tail = seen = runs = None
        if rests:
            yield ("park",)
        rests = None


def second(s: Setup) -> Step:
    """The other end: it stays as long as the first one, which may reply."""
    while True:
        yield ("announce" if s.rules.fence else "store", "PARKED OF SECOND", 0)
        if s.rules.wakes and (yield ("load", "PARKED")):
            head = yield ("load", "HEAD")
            if (yield ("load", "TAIL")) > head:
                yield ("wake", "first")
        if not s.rules.fence:
            yield ("fence",)  # a launch
        head = yield ("load", "OUT_HEAD")
        while True:
            tail = yield ("load", "OUT_TAIL")
            if tail <= head:
                break
            yield ("handled", (yield ("load", ("out", head % s.capacity))))
            head += 1
            yield ("store", "OUT_HEAD", head)
        if not s.rules.fence:
            yield ("fence",)  # the end of a kernel
        yield ("announce" if s.rules.fence else "store", "PARKED OF SECOND", 1)
        runs = False
        if s.rules.ordered:
            runs = not (yield ("load", "PARKED"))
        tail = yield ("load", "OUT_TAIL")
        if not s.rules.ordered:
            runs = not (yield ("load", "PARKED"))
        rests = tail <= head and not (s.rules.follows and runs)
        head = tail = runs = None
        if rests:
            yield ("park",)
        rests = None


def receiver(s: Setup) -> Step:
    """`pop` until all replies that come have come; waits for each."""
    while True:
        head = yield ("load", "OUT_HEAD")
        tail = yield ("load", "OUT_TAIL")
        if head != tail:
            yield ("received", (yield ("load", ("out", head % s.capacity))))
            yield ("release" if s.rules.release else "store", "OUT_HEAD", head + 1)
            if s.rules.fence:
                yield ("fence",)
            if (yield ("load", "PARKED")):
                yield ("wake",)
            continue
        yield from wait(s, "OUT_TAIL", head)


SIDES: dict[str, Callable[[Setup], Step]] = {
    "sender": sender, "actor": actor, "receiver": receiver,
}  # fmt: skip
RESIDENT = {**SIDES, "actor": resident}
PIPED = {"sender": beginning, "first": first, "second": second}
Buffer = tuple[tuple[Word, int, bool], ...]  # stores that are not visible yet; whether release


class State(NamedTuple):
    """A point of the exploration."""

    places: tuple[int, ...]  # where the sides stand, as numbers of the explorer's
    memory: frozenset[tuple[Word, int]] = frozenset()
    buffers: tuple[Buffer, ...] = ((), (), ())
    asleep: frozenset[str] = frozenset()
    woken: frozenset[str] = frozenset()  # whose event is set
    owner: str = ""  # of the condition's lock
    handled: tuple[int, ...] = ()
    dropped: tuple[int, ...] = ()
    received: tuple[int, ...] = ()


class Wrong(AssertionError):
    """The protocol lost or doubled a message, or all sides sleep or poll for ever."""


@dataclass
class Place:
    """Where a side stands: it keeps nothing in unfinished expressions while it yields, so what it
    does depends on its program's place and variables. Sides forget what they read earlier."""

    answers: tuple[Any, ...]  # what its loads gave on one of the ways there
    step: tuple[Any, ...] | None  # what it does next; None at its end
    after: dict[Any, int] = field(default_factory=dict)  # its next places, by what the step gives


class Explorer:
    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.sides = RESIDENT if setup.cell else SIDES
        self.names = list(SIDES) if setup.replies else ["sender", "actor"]
        if setup.piped:
            self.sides, self.names = PIPED, list(PIPED)
        self.places: list[Place] = []
        self.numbers: dict[Any, int] = {}

    def place(self, name: str, answers: tuple[Any, ...]) -> int:
        """The place to which answers lead a side. Generators can't be copied, so it is run from its
        beginning."""
        side = self.sides[name](self.setup)
        step = None
        found: list[Any] = [name]
        with contextlib.suppress(StopIteration):
            step = side.send(None)
            for answer in answers:
                step = side.send(answer)
        inner: Any = side
        while inner is not None and inner.gi_frame is not None:
            local = {k: v for k, v in inner.gi_frame.f_locals.items() if k != "s"}
            found.append((inner.gi_frame.f_lasti, tuple(sorted(local.items(), key=repr))))
            inner = inner.gi_yieldfrom
        step = None if len(found) == 1 else step
        number = self.numbers.setdefault((step, *found), len(self.places))
        if number == len(self.places):
            self.places.append(Place(answers, step))
        return number

    def place_after(self, name: str, number: int, answer: Any) -> int:
        """Where a side stands after a step."""
        place = self.places[number]
        if answer not in place.after:
            place.after[answer] = self.place(name, (*place.answers, answer))
        return place.after[answer]

    def run(self) -> int:
        """Visit all states; their number."""
        start = State(tuple(self.place(name, ()) for name in self.names))
        seen = {start: 0}
        stack = [start]
        before: dict[int, list[int]] = {}
        ends = []
        while stack:
            state = stack.pop()
            number, moved = seen[state], False
            for after in self.successors(state):
                moved = True
                if after not in seen:
                    seen[after] = len(seen)
                    stack.append(after)
                before.setdefault(seen[after], []).append(number)
            if not moved:
                self.check_end(state)
                ends.append(number)
        self.check_ends(ends, before, len(seen))
        return len(seen)

    def check_ends(self, ends: list[int], before: dict[int, list[int]], count: int) -> None:
        """An end can be reached from everywhere: nothing goes on for ever."""
        left = set(range(count)) - set(ends)
        while ends:
            for state in before.get(ends.pop(), ()):
                if state in left:
                    left.discard(state)
                    ends.append(state)
        if left:
            raise Wrong(f"from {len(left)} of {count} states no end is reached")

    def successors(self, state: State) -> Iterator[State]:
        for at, name in enumerate(self.names):
            buffer = state.buffers[at]
            for index, (word, value, release) in enumerate(buffer):
                earlier = buffer[:index]
                # Stores to one word stay in order; a release waits for all before it.
                if any(each[0] == word for each in earlier) or (release and earlier):
                    continue
                memory = {**dict(state.memory), word: value}
                left = (*earlier, *buffer[index + 1 :])
                yield state._replace(
                    memory=frozenset(memory.items()), buffers=_at(state.buffers, at, left)
                )
            if name not in state.asleep:
                after = self.advance(state, at, name)
                if after is not None:
                    yield after
        for name in state.asleep & state.woken:
            yield state._replace(asleep=state.asleep - {name}, woken=state.woken - {name})

    def advance(self, state: State, at: int, name: str) -> State | None:
        """One step of a side; None if it has to wait or is at its end."""
        step = self.places[state.places[at]].step
        if step is None:
            return None
        answer: Any = None
        kind = step[0]
        memory, buffer = dict(state.memory), state.buffers[at]
        if kind == "load":
            own = [value for word, value, _ in buffer if word == step[1]]
            parked = isinstance(step[1], str) and step[1].startswith("PARKED")
            answer = own[-1] if own else memory.get(step[1], int(parked))
        elif kind in ("store", "release"):
            entry = (step[1], step[2], kind == "release")
            state = state._replace(buffers=_at(state.buffers, at, (*buffer, entry)))
        elif kind in ("fence", "announce", "exchange", "lock", "unlock", "sleep"):
            if buffer:
                return None  # until it is empty
            if kind == "announce":  # a store, and a fence after it
                state = state._replace(memory=frozenset({**memory, step[1]: step[2]}.items()))
            if kind == "exchange":
                answer = memory.get(step[1], 0) == step[2]
                if answer:
                    state = state._replace(memory=frozenset({**memory, step[1]: step[3]}.items()))
            elif kind == "lock":
                if state.owner:
                    return None
                state = state._replace(owner=name)
            elif kind not in ("fence", "announce"):
                assert state.owner == name
                asleep = state.asleep | ({name} if kind == "sleep" else set())
                state = state._replace(owner="", asleep=asleep)
        elif kind == "wake":
            woken = step[1] if len(step) > 1 else self.names[1]
            state = state._replace(woken=state.woken | {woken})
        elif kind == "park":
            state = state._replace(asleep=state.asleep | {name})
        elif kind == "notify":
            state = state._replace(asleep=state.asleep - {"sender", "receiver"})
        else:  # handled, dropped, received
            state = state._replace(**{kind: (*getattr(state, kind), step[1])})
            self.check(state)
        place = self.place_after(name, state.places[at], answer)
        return state._replace(places=_at(state.places, at, place))

    def check(self, state: State) -> None:
        """Handled in order and once; replies in order."""
        both = sorted(state.handled + state.dropped)
        if list(state.handled) != sorted(state.handled) or len(set(both)) < len(both):
            raise Wrong(f"handled {state.handled}, dropped {state.dropped}")
        if state.received != state.handled[: len(state.received)]:
            raise Wrong(f"received {state.received} of {state.handled}")

    def check_end(self, state: State) -> None:
        """Nothing can happen any more: then all messages are handled, and all replies received."""
        done = sorted(state.handled + state.dropped)
        if done != list(range(self.setup.messages)):
            raise Wrong(f"all sleep; handled {state.handled}, dropped {state.dropped}")
        if self.setup.replies and state.received != state.handled:
            raise Wrong(f"all sleep; received {state.received} of {state.handled}")


def _at(parts: tuple[Any, ...], at: int, value: Any) -> tuple[Any, ...]:
    return (*parts[:at], value, *parts[at + 1 :])


@pytest.mark.parametrize(
    "setup",
    [
        Setup(1, 2, replies=False),
        Setup(2, 3, replies=False),
        Setup(1, 3, drops=True, replies=False),
        Setup(2, 4, drops=True, replies=False),
        Setup(1, 2),
    ],
    ids=str,
)
def test_every_interleaving(setup: Setup) -> None:
    assert Explorer(setup).run() > 100


IN_ORDER, BACKWARDS = ("tag", "word", "TAIL"), ("TAIL", "word", "tag")


@pytest.mark.parametrize("cell", [IN_ORDER, BACKWARDS])
@pytest.mark.parametrize(("capacity", "messages"), [(1, 2), (1, 3), (2, 2)])
def test_a_resident_kernel_with_a_cell(capacity: int, messages: int, cell: tuple[str, ...]) -> None:
    """The loads of a poll need no order. With room for all messages it ends, and none is lost."""
    setup = Setup(capacity, messages, replies=False, cell=cell, stamps=messages == 2)
    assert Explorer(setup).run() > 100


def test_a_pipe_between_resident_kernels() -> None:
    """Each message is handled by the second one, once and in order, and both kernels end then."""
    assert Explorer(Setup(1, 2, replies=False, piped=True)).run() > 100


@pytest.mark.parametrize(
    ("setup", "rules"),
    [
        (Setup(4, 3, replies=False, cell=IN_ORDER), Rules(marks=False)),
        (Setup(4, 2, replies=False, cell=IN_ORDER), Rules(fence=False)),
        (Setup(4, 2, replies=False, cell=IN_ORDER), Rules(last_look=False)),
        (Setup(4, 1, replies=False, cell=IN_ORDER, stamps=True), Rules(release=False)),
        *(
            (Setup(1, 2, replies=False, piped=True), rules)
            for rules in (
                Rules(release=False),
                Rules(fence=False),
                Rules(wakes=False),
                Rules(follows=False),
                Rules(ordered=False),
            )
        ),
        (Setup(1, 2, replies=False), Rules(release=False)),
        (Setup(1, 2, replies=False), Rules(fence=False)),
        (Setup(1, 2, replies=False), Rules(last_look=False)),
        (Setup(1, 3, drops=True, replies=False), Rules(exchange=False)),
    ],
    ids=lambda each: str(each) if isinstance(each, Rules) else "",
)
def test_mistakes_are_found(setup: Setup, rules: Rules) -> None:
    with pytest.raises(Wrong):
        Explorer(replace(setup, rules=rules)).run()
