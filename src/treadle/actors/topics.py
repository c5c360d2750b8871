"""`Topics`: messages that are published under a name reach all actors that subscribe to such names.

Names and filters are MQTT's: levels between slashes, of which a filter leaves some open.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from treadle.actors.ref import Ref
from treadle.actors.timeouts import deadline_of
from treadle.core import forks
from treadle.core.errors import ActorFailed, DtypeError, QueueFull

_ONE, _REST = "+", "#"
_MOST_REMEMBERED = 4096  # topics whose subscribers are known

Levels = tuple[str, ...]


class Topics:
    """Topics that actors subscribe to by filters, such as "sensor/3/temp" by "sensor/+/temp".

    In a filter, `+` stands for any one level and `#`, as the last one, for all that follow, also
    for none. As in MQTT, filters that begin with either match no topic that begins with `$`. Actors
    whose filters match a topic in common take messages of the same type.

    Subscribed actors are kept until they end, also where nothing else refers to them.
    """

    def __init__(self) -> None:
        self._lock = forks.lock()
        self._subscriptions: list[tuple[Levels, Ref]] = []
        self._known: dict[str, tuple[Ref, ...]] = {}  # by topic; replaced when one subscribes

    def subscribe(self, filter: str, ref: Ref) -> None:
        """Send to an actor, from here on, what is published under topics that a filter matches. It
        gets a message once, also if several of its filters match. ValueError for what is not a
        filter, DtypeError where another actor could get the same message and takes another type,
        ActorFailed after its end."""
        levels = _levels_of_filter(filter)
        if not isinstance(ref, Ref):
            raise TypeError(f"subscribe takes the Ref of an actor, not a {type(ref).__name__}")
        ref._core.check_open()
        mine = ref._core.messages
        with self._lock:
            self._subscriptions = [each for each in self._subscriptions if not _has_left(each[1])]
            for others, other in self._subscriptions:
                theirs = other._core.messages
                if theirs.type != mine.type and overlap(levels, others):
                    raise DtypeError(
                        f"a message of {ref._core.name} is {mine.named()}, and {other._core.name}, "
                        f"which subscribes to {'/'.join(others)!r}, takes {theirs.named()}: a topic"
                        f" that {filter!r} matches, too, would have messages of both types"
                    )
            if (levels, ref) not in self._subscriptions:
                self._subscriptions.append((levels, ref))
            self._known = {}

    def unsubscribe(self, filter: str, ref: Ref) -> None:
        """End a subscription; messages that the actor has accepted are handled all the same.
        ValueError if there is none with this filter."""
        levels = _levels_of_filter(filter)
        with self._lock:
            if (levels, ref) not in self._subscriptions:
                raise ValueError(f"{ref!r} does not subscribe to {filter!r}")
            self._subscriptions.remove((levels, ref))
            self._known = {}

    def publish(
        self, topic: str, message: Any, *, timeout: float | None = None, reply: bool = True
    ) -> int:
        """Send a message to all actors that subscribe to a topic, in the order in which they
        subscribed; the number of those that accepted it.

        Each actor's policy says what happens while its inbox is full. If one does not accept the
        message in time, or has failed, the others get it all the same; then its error is raised,
        whose `accepted` is the number. An actor that was terminated subscribes no more. Replies are
        as in `Ref.send`.
        """
        deadline = deadline_of(timeout)
        refs = self._known.get(topic) or self._subscribers(topic)
        if not refs:
            return 0
        data = refs[0]._pack(message)
        return self._deliver(
            topic, refs, lambda ref: ref._sender.send(data, ref._tag(reply), deadline)
        )

    def publish_many(
        self, topic: str, messages: Any, *, timeout: float | None = None, reply: bool = True
    ) -> int:
        """`publish` of many messages, as `Ref.send_many` takes them; the number of actors that
        accepted all."""
        deadline = deadline_of(timeout)
        refs = self._known.get(topic) or self._subscribers(topic)
        if not refs:
            return 0
        data = refs[0]._core.messages.pack_many(messages)
        count = len(data) // refs[0]._core.messages.size
        return self._deliver(
            topic, refs, lambda ref: ref._sender.send_many(data, ref._tag(reply), deadline) == count
        )

    def subscribers(self, topic: str) -> list[Ref]:
        """The actors that get what is published under a topic."""
        return list(self._subscribers(topic))

    def _deliver(
        self,
        topic: str,
        refs: tuple[Ref, ...],
        send: Callable[[Ref], bool],
    ) -> int:
        """Send to each actor."""
        accepted = 0
        errors: list[ActorFailed | QueueFull] = []
        for ref in refs:
            try:
                accepted += send(ref)
            except QueueFull as error:
                errors.append(error)
            except ActorFailed as error:
                if ref._core.error is not None:
                    errors.append(error)
                else:
                    self._forget()
        if errors:
            text = f"{accepted} of {len(refs)} actors accepted what was published under {topic!r}"
            raised = type(errors[0])(f"{text}: {errors[0]}")
            raised.accepted = accepted  # type: ignore[union-attr]
            raise raised from errors[0]
        return accepted

    def _subscribers(self, topic: str) -> tuple[Ref, ...]:
        known = self._known
        if not isinstance(topic, str) or not topic or any(c in topic for c in "+#\0"):
            raise ValueError(
                f"a topic is a name such as 'sensor/3/temp', without + and #, not {topic!r}"
            )
        levels = tuple(topic.split("/"))
        found = (ref for filter, ref in self._subscriptions if overlap(filter, levels))
        refs = tuple(dict.fromkeys(found))
        if len(known) >= _MOST_REMEMBERED:
            known.clear()
        known[topic] = refs
        return refs

    def _forget(self) -> None:
        """Drop the subscriptions of actors that were terminated."""
        with self._lock:
            self._subscriptions = [each for each in self._subscriptions if not _has_left(each[1])]
            self._known = {}

    def __repr__(self) -> str:
        return f"<treadle topics with {len(self._subscriptions)} subscriptions>"


def _has_left(ref: Ref) -> bool:
    """Whether an actor was terminated; one that failed shows its error to those that publish."""
    return ref._core.closed is not None and ref._core.error is None


def _levels_of_filter(filter: str) -> Levels:
    """The levels of a filter. ValueError if it is not one."""
    levels = tuple(filter.split("/")) if isinstance(filter, str) else ()
    partly = any(c in level and level != c for level in levels for c in (_ONE, _REST))
    if levels in ((), ("",)) or "\0" in filter or partly or _REST in levels[:-1]:
        raise ValueError(
            f"{filter!r} is not a filter of topics: + stands for a whole level, as in "
            "'sensor/+/temp', and # for all that follow, as the last level"
        )
    return levels


def overlap(a: Levels, b: Levels) -> bool:
    """Whether a topic can match both filters; a topic is a filter, too.

    >>> overlap(("sensor", "+"), ("+", "temp")), overlap(("a", "#"), ("a",))
    (True, True)
    """
    for one, other in ((a, b), (b, a)):
        if one[0] in (_ONE, _REST) and other[0].startswith("$"):
            return False
    for left, right in zip(a, b, strict=False):
        if _REST in (left, right):
            return True
        if left != right and _ONE not in (left, right):
            return False
    longer = max(a, b, key=len)
    return len(a) == len(b) or longer[min(len(a), len(b)) :] == (_REST,)
