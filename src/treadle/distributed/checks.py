"""Debug mode: before each collective the ranks compare what they start, before a receive what is
sent to it, and at the end which messages no rank has received."""

from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Mapping, Sequence

from treadle.core.errors import DistributedError
from treadle.distributed.client import Client
from treadle.distributed.lines import users_line
from treadle.distributed.operation import Operation
from treadle.distributed.request import Request

_MOST_NAMED = 4  # messages to a rank with one tag


def compare(
    operation: Operation, rank: int, ranks: Sequence[int], client: Client, ask: Callable[[str], str]
) -> None:
    """DistributedError, on each rank, if not all of a group start the same operation. `ask` waits
    for what another rank gives."""
    number, own, group = operation.number, str(operation.request), operation.request.group_key
    client.set(f"check {group} {number} {rank}", own)
    found = [own if each == rank else ask(f"check {group} {number} {each}") for each in ranks]
    # All ranks have had what was given for the operation before.
    client.drop(f"check {group} {number - 1} {rank}")
    if len({*found}) > 1:
        lines = "".join(f"\n  rank {each}: {text}" for each, text in zip(ranks, found, strict=True))
        raise DistributedError(
            f"the ranks do not start the same operation number {number}:{lines}\nAll ranks call "
            "the same collectives in the same order, with equal shapes and dtypes"
        )


class Messages:
    """Which message from one rank to another each send and receive is, over a library whose
    messages say nothing of their tensor and arrive in the order of the sends."""

    def __init__(self, rank: int, client: Client) -> None:
        self._rank = rank
        self._client = client
        self._counts: Counter[tuple[int, int]] = Counter()

    def compare(self, request: Request, ask: Callable[[str], str]) -> None:
        """Say what is sent. DistributedError if a receive is of another shape or dtype: `ask` waits
        until the other rank has called its send."""
        assert request.other is not None
        is_sent = request.kind == "send"
        ends = (self._rank, request.other) if is_sent else (request.other, self._rank)
        self._counts[ends] += 1
        own = f"{request.dtype}{list(request.shape or ())}"
        key = f"message {ends[0]} {ends[1]} {self._counts[ends]}"
        if is_sent:
            self._client.set(key, own)
            return
        found = ask(key)
        self._client.drop(key)
        if found != own:
            raise DistributedError(
                f"{request}: the message that arrives is {found}. Both ranks give the same shape "
                "and dtype, and send and receive in the same order"
            )


class MessageCounts:
    """How many messages a rank has sent and received, and which were the last ones it has sent."""

    def __init__(self) -> None:
        self.received: Counter[str] = Counter()  # by where they come from
        self._sent: Counter[tuple[int, str]] = Counter()  # by the receiver, and what it counts by
        self._last: defaultdict[tuple[int, str], deque[str]] = defaultdict(
            lambda: deque(maxlen=_MOST_NAMED)
        )

    @property
    def receivers(self) -> set[int]:
        """The ranks that messages were sent to."""
        return {receiver for receiver, _ in self._sent}

    def add(self, request: Request, rank: int) -> None:
        """Count a message that this rank sends or receives."""
        assert request.other is not None
        sender = rank if request.kind == "send" else request.other
        key = f"{sender} {request.tag} {request.group_key}"
        if request.kind == "recv":
            self.received[key] += 1
            return
        self._sent[request.other, key] += 1
        self._last[request.other, key].append(f"{request}, called at {users_line()}")

    def unreceived(self, received: Mapping[int, Mapping[str, int]]) -> str:
        """Which messages their receivers have not received, by the counts of these; "" if there are
        none. Those with one tag arrive in order, so it is the last ones."""
        count, lines = 0, []
        for (receiver, key), sent in self._sent.items():
            if receiver not in received:
                continue
            missing = sent - received[receiver].get(key, 0)
            count += missing
            lines += [*self._last[receiver, key]][-missing:] if missing > 0 else []
        if not lines:
            return ""
        what = "a message was" if count == 1 else f"{count} messages were"
        return f"{what} sent, and not received: {'; '.join(lines)}"
