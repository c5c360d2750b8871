"""All ranks, as one of them sees them: the order of their operations, and what goes wrong."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from treadle.core import forks
from treadle.core.dtypes import uint8
from treadle.core.errors import DistributedError
from treadle.distributed import lifecycle
from treadle.distributed.backends.base import Backend
from treadle.distributed.checks import MessageCounts, Messages, compare
from treadle.distributed.client import Client
from treadle.distributed.operation import KIND, Operation
from treadle.distributed.recordings import end_recordings
from treadle.distributed.request import Members, Request
from treadle.distributed.store import Progress, Store
from treadle.runtime import profiler

_LOOK = 0.02  # seconds between looks whether other ranks have failed
_COMPUTING = 30.0  # until a rank that computes is ended after a failure elsewhere
_BLOCKED = 1.0  # until a rank that a failure elsewhere blocks on its device is ended
_ASKING = 0.5  # until a value is asked for again
_GRACE = 2.0  # seconds in which data of a rank that has ended may still arrive


class World:
    """All ranks, as one of them sees them: the order of their operations, and what goes wrong."""

    def __init__(self, rank: int, size: int, local_rank: int, timeout: float, check: bool) -> None:
        self.rank, self.size, self.local_rank = rank, size, local_rank
        self.timeout = timeout
        self.check = check
        self.engine: Backend | None = None  # None of a single process
        self.client: Client | None = None
        self.aborts = False  # whether this process has to end the others if it fails
        self.store: Store | None = None
        self._started = 0
        self._started_in: dict[str, int] = {}  # by the keys of groups
        self._between = 0
        self._splits = 0
        self._messages: Messages | None = None  # in debug mode, and these
        self._counts = MessageCounts() if check else None
        self._last: Operation | None = None
        self._unfinished: deque[Operation] = deque()
        self._tracks: list[Operation] = []  # the last operation of each, while there is a profile
        self._ended: dict[int, Progress] = {}
        self._failed: str | None = None
        self._is_closing = self._is_cut_off = self._has_left = False
        self._order = forks.lock()

    # ------------------------------------------------------------------ operations

    def start(self, request: Request, given: Any, result: Any) -> Operation:
        """Start an operation, after those before it."""
        backend = self.engine
        assert backend is not None
        with self._order:
            self._raise_failure(None)
            recorded = Operation(request, 0, given, result)
            if backend.record(recorded, partial(self._replayed, request)):
                return recorded
            operation = self._counted(request, given, result)
            while self._unfinished and self._unfinished[0].is_ended:
                self._unfinished.popleft()
            if profiler.active is not None and backend.on_host:
                operation.began = profiler.clock(), self._track(operation)
            self._unfinished.append(operation)
            try:
                backend.start(operation)
            except DistributedError:
                # The library may notice first that a rank is gone. The store knows which, and why.
                until = time.monotonic() + _GRACE
                while self._failed is None and time.monotonic() < until:
                    time.sleep(_LOOK)
                self._raise_failure(operation)
                raise
        return operation

    def _replayed(self, request: Request) -> None:
        """Count an operation of a recording, at each replay: a rank that runs the same function
        without a recording counts it at each call."""
        with self._order:
            self._raise_failure(None)
            self._counted(request, None, None).end()

    def _counted(self, request: Request, given: Any, result: Any) -> Operation:
        """The next operation."""
        operation = Operation(request, self._next_number(request), given, result)
        self._last = operation
        if self._counts is not None and request.is_between_two:
            self._counts.add(request, self.rank)
        if self.check:
            self._compare(operation)
        return operation

    def _compare(self, operation: Operation) -> None:
        """DistributedError if other ranks start something else."""
        request, backend, client = operation.request, self.engine, self.client
        assert client is not None
        assert backend is not None
        ask = partial(self._ask, operation)
        if not request.is_between_two:
            compare(operation, self.rank, self._ranks_of(request), client, ask)
        elif not backend.compares_messages:
            self._messages = self._messages or Messages(self.rank, client)
            self._messages.compare(request, ask)

    def _track(self, operation: Operation) -> str:
        """A track of a profile on which nothing is under way."""
        tracks = self._tracks
        free = next((n for n, each in enumerate(tracks) if each.is_ended), len(tracks))
        tracks[free : free + 1] = [operation]
        return f"operations, {free + 1}"

    def _next_number(self, request: Request) -> int:
        """Count an operation among those of its ranks."""
        key = request.group_key
        if request.is_between_two:
            self._between += 1
            return self._between
        if not key:
            self._started += 1
            return self._started
        self._started_in[key] = number = self._started_in.get(key, 0) + 1
        return number

    def _ranks_of(self, request: Request) -> Sequence[int]:
        return range(self.size) if request.members is None else request.members.ranks

    def split(self, parts: Sequence[tuple[int, ...]]) -> Members | None:
        """A communicator for each of some groups, which all ranks make together. The group that
        this rank is in."""
        self._splits += 1
        members, color = None, None
        for number, ranks in enumerate(parts):
            if self.rank in ranks:
                members, color = Members(self._splits, ranks), number
        if self.engine is None:
            return members
        own = [list(ranks) for ranks in parts]
        for rank, other in enumerate(self.exchange("new_group", own)):
            if other != own:
                raise DistributedError(
                    "all ranks make the same groups in the same order: "
                    f"rank {self.rank} calls new_group with {own}, rank {rank} with {other}"
                )
        self.engine.split(members, color)
        return members

    def wait(self, operation: Operation) -> None:
        """Wait for an operation. DistributedError if it fails, or if it does not end in time."""
        profile = profiler.active
        if profile is None or operation.is_ended:
            self._wait(operation)
            return
        began = profiler.clock()
        self._wait(operation)
        profile.note_event(
            "waits", f"wait for {operation.request}", began, KIND, number=operation.number
        )

    def _wait(self, operation: Operation) -> None:
        until = time.monotonic() + self.timeout
        while not operation.wait(_LOOK):
            self._raise_failure(operation)
            self._raise_absence(operation)
            if time.monotonic() > until:
                self._raise_timeout(operation)
        if operation.error is not None:
            self._raise_failure(operation)
            raise operation.error

    def _ask(self, operation: Operation, key: str, patient: bool = False) -> Any:
        """A value that another rank gives for an operation, waited for like the operation; as long
        as that rank lives, if this one is patient."""
        assert self.client is not None
        until = math.inf if patient else time.monotonic() + self.timeout
        while True:
            try:
                return self.client.get(key, _ASKING)
            except TimeoutError:
                self._raise_failure(operation)
                self._raise_absence(operation)
                if time.monotonic() > until:
                    self._raise_timeout(operation)

    def exchange(
        self, kind: str, value: Any, members: Members | None = None, patient: bool = False
    ) -> list[Any]:
        """The values of all ranks, or of a group's, through the store: JSON, of which there is
        little. A patient rank waits for others that live without a limit: they write a file,
        say."""
        client = self.client
        assert client is not None
        end_recordings("the ranks tell each other something")
        with self._order:
            self._raise_failure(None)
            request = Request(kind, uint8, None, members=members)
            operation = Operation(request, self._next_number(request), None, None)
            self._last = operation
            key = f"{kind} {request.group_key} {operation.number}"
            client.set(f"{key} {self.rank}", value)
            found = [
                value if each == self.rank else self._ask(operation, f"{key} {each}", patient)
                for each in self._ranks_of(request)
            ]
            operation.end()
        return found

    def progress(self) -> Progress:
        """Where this rank is."""
        last = self._last
        return Progress(
            self.rank, self._started, "" if last is None else str(last),
            last is None or last.is_ended, is_initialized=True, groups={**self._started_in},
        )  # fmt: skip

    # ------------------------------------------------------------------ what goes wrong

    def heard(self, progress: Progress | None) -> None:
        """A rank has ended (None: the store), which a thread of the connection reports."""
        if progress is None:
            self._is_cut_off = True
            if self._is_closing:
                return
            failed = "the store of the ranks is gone: the launcher or rank 0 has ended"
        elif progress.rank == self.rank:
            return
        else:
            self._ended[progress.rank] = progress
            if not progress.ended:
                return
            failed = str(progress)
        if self._failed is None:
            self._failed = failed
            if self._is_closing:
                return
            threading.Thread(target=self._end_soon, name="treadle end", daemon=True).start()

    def _end_soon(self) -> None:
        """End this process, if it does not do so by itself: it computes, and starts no operation
        that would fail."""
        # A wait for a device cannot raise an error.
        on_host = self.engine is None or self.engine.on_host
        time.sleep(min(self.timeout, _COMPUTING if on_host else _BLOCKED))
        lifecycle.fail(self._failed or "")
        sys.stderr.write(f"treadle: rank {self.rank} is ended: {self._failed}\n")
        lifecycle.leave(1)

    def look(self, operations: Sequence[Operation], is_late: bool) -> None:
        """End this process if operations on a device are late, or wait for a rank that has ended:
        a wait for a device cannot raise an error."""
        try:
            for operation in operations:
                if not operation.request.is_between_two:
                    self._raise_absence(operation)
            if is_late:
                # Some of them may have ended: it is the first that a rank has not started.
                self._raise_timeout(self._first_missing(operations))
        except DistributedError as error:
            sys.stderr.write(f"treadle: rank {self.rank} is ended: {error}\n")
            lifecycle.fail(f"DistributedError: {str(error).splitlines()[0]}")
            if self.client is not None:
                self.client.bye(lifecycle.failure)
            lifecycle.leave(1)

    def _first_missing(self, operations: Sequence[Operation]) -> Operation:
        assert self.client is not None
        found = self.client.where()
        for operation in operations:
            if not operation.request.is_between_two and self._missing(operation, found):
                return operation
        return operations[-1]

    def _missing(self, operation: Operation, found: Sequence[Progress]) -> list[int]:
        """The ranks that have not started an operation which they are to take part in."""
        request = operation.request
        return [
            each.rank
            for each in found
            if each.rank != self.rank
            and request.concerns(each.rank)
            and (each.count(request.group_key) < operation.number or not each.is_initialized)
        ]

    def check_failure(self) -> None:
        """DistributedError if another rank has failed."""
        self._raise_failure(None)

    def _raise_failure(self, operation: Operation | None) -> None:
        if self._failed is not None:
            what = "" if operation is None else f"{operation} cannot end: "
            raise DistributedError(what + self._failed)

    def _raise_absence(self, operation: Operation) -> None:
        """DistributedError if a rank has ended as it should, without an operation."""
        request = operation.request
        for rank, ended in list(self._ended.items()):
            if not request.concerns(rank):
                continue
            if request.is_between_two:
                if operation.wait(_GRACE):
                    continue
            elif ended.count(request.group_key) >= operation.number or operation.is_ended:
                continue
            what = f"{operation} cannot end: {ended}"
            self._failed = self._failed or f"rank {self.rank} has failed: {what}"
            raise DistributedError(f"{what}, and has not started it")

    def _raise_timeout(self, operation: Operation) -> None:
        request, client = operation.request, self.client
        assert client is not None
        client.tell()
        found = client.where()
        missing = [] if request.is_between_two else self._missing(operation, found)
        if missing:
            plural = "ranks" if len(missing) > 1 else "rank"
            have = "have" if len(missing) > 1 else "has"
            why = f"{plural} {', '.join(map(str, missing))} {have} not started it"
        elif request.is_between_two:
            why = f"rank {request.other} has not done its part"
        elif not operation.number:
            why = "not all of its ranks have come to it"
        else:
            who = "all ranks" if request.members is None else "its ranks"
            why = f"{who} have started it, and its data does not arrive"
        lines = "".join(f"\n  {each}" for each in found)
        text = f"{operation} has not ended within {self.timeout:g} s: {why}."
        self._failed = text
        raise DistributedError(f"{text} Where each rank is:{lines}")

    def leave(self) -> None:
        """End this rank's part, where the process goes on: after a failure the others hear of it,
        and nothing is waited for."""
        if lifecycle.failure and self.client is not None:
            self._is_closing = self._has_left = True
            self.client.bye(lifecycle.failure)
        self.close()

    def _check_received(self) -> None:
        """DistributedError in debug mode if a message of this rank's was not received: MPI lets
        small ones go."""
        counts, client = self._counts, self.client
        if counts is None or client is None:
            return
        client.set(f"received {self.rank}", counts.received)
        found = {rank: self._received_by(rank, client) for rank in sorted(counts.receivers)}
        missing = counts.unreceived({rank: of for rank, of in found.items() if of is not None})
        if missing:
            raise DistributedError(missing)

    def _received_by(self, rank: int, client: Client) -> Mapping[str, int] | None:
        """How many messages a rank has received when it ends; None if it does not say."""
        while self._failed is None and not self._is_cut_off:
            has_ended = rank in self._ended
            try:
                found: Mapping[str, int] = client.get(f"received {rank}", _ASKING)
            except TimeoutError:
                if has_ended:
                    break
            else:
                return found
        return None

    def close(self) -> None:
        """End this rank's part, when the process ends."""
        if self._has_left:
            return
        self._has_left = lifecycle.is_ending = True
        failure = lifecycle.failure
        if not failure and self._failed is None:
            try:
                for operation in [*self._unfinished]:
                    self.wait(operation)
                self._check_received()
            except DistributedError as error:
                sys.stderr.write(f"treadle: rank {self.rank}: {error}\n")
                failure = str(error).split("\n")[0]
        failure = failure or self._failed or ""
        self._is_closing = True
        if self.client is not None:
            self.client.bye(failure)
        if self.engine is None:
            return
        while not (failure or self._is_cut_off or len(self._ended) == self.size - 1):
            time.sleep(_LOOK)
            failure = self._failed or ""
        failure = failure or self._failed or ""
        try:
            abort = self.engine.close(bool(failure) or self._is_cut_off)
        except DistributedError as error:
            sys.stderr.write(f"treadle: rank {self.rank}: {error}\n")
            lifecycle.leave(1)
        if failure:
            if abort is not None and self.aborts:
                time.sleep(0.5)  # for what the others have to say
                abort()
            lifecycle.leave(1)
        if self.store is not None:
            _outlive(self.store)


def _outlive(store: Store) -> None:
    """Answer until all other ranks have ended."""
    while any(each.ended is None for each in store.progress()):
        time.sleep(_LOOK)
    store.close()
