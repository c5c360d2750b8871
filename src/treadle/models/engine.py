"""Continuous batching: sequences come and go, and all that run share each step of the device.

A step processes a chunk of one prompt, then one more token of all sequences whose prompts are done.
On a GPU, the next token is computed while the host reads this one.
Pages of the cache are taken as sequences grow. Where none is left, the sequence that came last
waits: it gives its pages back, and later reads its text as a prompt.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections import deque
from collections.abc import Callable, Collection, Generator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from treadle.core.background import has_threads
from treadle.core.errors import OutOfMemory, WouldBlock
from treadle.core.forks import lock
from treadle.models.arguments import integer, token_ids
from treadle.models.cache import PAGE, Cache, Entries, Pages, check_entries
from treadle.models.decoder import Decoder
from treadle.models.generation import Generation, Listener, Overflow, Running
from treadle.models.grammars import constraint_of
from treadle.models.pieces import LogProbability
from treadle.models.sampler import Sampler, stages_of
from treadle.models.sampling import Sampling, greedy
from treadle.models.steps import (
    CHUNKS,
    DecodeStep,
    Found,
    PendingFound,
    PromptStep,
    chunk_for,
)
from treadle.models.text.tokenizer import Tokenizer
from treadle.runtime import sync_available
from treadle.runtime.devices import Device

_FIRST_PAGES = 32  # of a cache that grows
_BETWEEN_LOOKS = 0.001  # seconds after which a task looks again whether another's step has ended

# What a step does: it yields what it needs from the device, and is sent it when that is there.
_Work = Generator[PendingFound, Found, bool]
_Part = Generator[PendingFound, Found, None]


@dataclass(frozen=True, eq=False)
class _Step:
    """A step of decoding that was launched: its sequences, their slots and how many tokens they
    have before it, and what waits for the tokens."""

    group: list[Running]
    step: DecodeStep
    slots: list[int]
    lengths: list[int]
    found: PendingFound

    def remaining(self, decoding: Sequence[Running]) -> list[Running]:
        """Those of its sequences whose next token is this step's."""
        return [
            running
            for running, slot, length in zip(self.group, self.slots, self.lengths, strict=True)
            if running in decoding and running.slot == slot and len(running.tokens) == length
        ]


class Engine:
    """Generates text for several sequences at once.

    `submit` and `Generation.close` may be called from any thread, `step` from one thread at a time.
    `sequences` is how many run at once, `context` how many tokens each may have, `pages` how many
    pages of the cache there may be: where these are used, sequences wait."""

    def __init__(
        self, decoder: Decoder, tokenizer: Tokenizer | None, device: Device, *, context: int,
        sequences: int = 1, entries: Entries = "f16", chunk: int = CHUNKS[-1],
        pages: int | None = None,
    ) -> None:  # fmt: skip
        config = decoder.config
        sequences = integer("sequences", sequences, 1)
        context = integer("context", context, 2)
        check_entries("entries", entries)
        self.decoder, self.tokenizer, self.device = decoder, tokenizer, device
        self.context, self.sequences, self.chunk = context, sequences, max(chunk, CHUNKS[0])
        self._row = -(-context // PAGE)
        if pages is not None and integer("pages", pages, 1) <= self._row:
            raise ValueError(
                f"{pages} pages of {PAGE} tokens are too few: a context of {context} needs "
                f"{self._row + 1}"
            )
        self._most_pages = min(self._row * sequences + 1, pages or 1 << 30)
        first = min(self._most_pages, max(_FIRST_PAGES, self._row // 16))
        self.cache = Cache(config, device, first, entries)
        self.pages = Pages(first)
        # One more row than sequences: that of padding.
        self.sampler = Sampler(sequences + 1, config.vocabulary, device)
        self._table = np.zeros((sequences + 1, self._row), np.int32)
        self._free = list(range(sequences - 1, -1, -1))
        self._lock = lock()  # of what comes in
        self._stepping = lock()
        self._awaited_by: int | None = None  # the thread of the task that awaits a step
        self._incoming: deque[Running] = deque()
        self._waiting: deque[Running] = deque()
        self._prompts: deque[Running] = deque()
        self._decoding: list[Running] = []
        self._shown: list[Running] = []  # those that the device's arrays describe
        self._changed = True
        # Whether a step is launched before the host reads the tokens of the one before, so that the
        # device does not wait for the host. A CPU is both.
        self.looks_ahead = not device.traits.host_memory
        self._ahead: _Step | None = None
        self._decode_steps: dict[int, DecodeStep] = {}
        self._prompt_steps: dict[int, PromptStep] = {}
        self._revision = decoder.revision

    # --- from any thread -------------------------------------------------------------------------

    def submit(
        self,
        tokens: Sequence[int],
        sampling: Sampling = greedy,
        max_tokens: int | None = None,
        stop: Sequence[str] = (),
        listener: Listener | None = None,
        overflow: Overflow = "error",
    ) -> Generation:
        """Start a generation after a prompt. `listener` is called for each piece, and with None at
        the end; without one the generation is an iterator, which calls `step` itself.

        A prompt that does not fit into the context is refused. A text that reaches its end is over
        by default ("length"); with overflow="shift" it goes on with the first token and the later
        half of what it has."""
        prompt = token_ids(tokens, self.decoder.config.vocabulary)
        if overflow not in ("error", "shift"):
            raise ValueError(f'overflow is "error" or "shift", not {overflow!r}')
        self._check(prompt, overflow)
        if max_tokens is not None:
            max_tokens = integer("max_tokens", max_tokens, 0, meaning=", or None")
        constraint = None
        if sampling.is_constrained:
            if self.tokenizer is None:
                raise ValueError("a grammar needs the model's tokenizer, which it does not have")
            constraint = constraint_of(sampling, self.tokenizer)
        if overflow == "shift":
            prompt = self._shifted(prompt)
        generation = Generation(
            self._pump, self._pump_async, len(prompt), self.tokenizer, stop, listener
        )
        most = self.context if max_tokens is None else max_tokens
        if max_tokens is None and overflow == "shift":
            most = 1 << 62
        running = Running(prompt, sampling, most, generation, constraint, overflow)
        with self._lock:
            self._incoming.append(running)
        return generation

    def _check(self, prompt: list[int], overflow: Overflow) -> None:
        if not prompt:
            raise ValueError("a prompt needs at least one token")
        if len(prompt) + 1 > self.context and overflow == "error":
            raise ValueError(
                f"the prompt has {len(prompt)} tokens, and the context of {self.context} has no "
                "room for it and an answer: shorten it, load the model with a larger context=, or "
                'ask for overflow="shift", which drops tokens after the first one'
            )

    # --- from the thread that steps --------------------------------------------------------------

    @property
    def is_idle(self) -> bool:
        """Whether a step would find nothing to do."""
        return not (self._incoming or self._waiting or self._prompts or self._decoding)

    def step(self) -> bool:
        """One step of all sequences. False if there was nothing to do."""
        if self._awaited_by == threading.get_ident():
            raise RuntimeError(
                "a step of this engine is being awaited by another task of this thread: read its "
                "generations with `async for` only, or with `for` only"
            )
        if not (self.device.traits.host_memory or sync_available()):
            raise WouldBlock(
                "text is read from the GPU, and Python cannot wait here. Write `async for piece in "
                "generation`, or `await generation.text_async()`"
            )
        with self._stepping:
            return self._blocking_step()

    async def step_async(self) -> bool:
        """`step`, awaiting instead of blocking. Tasks that come meanwhile wait for their turn. What
        the CPU computes, another thread does, so that other tasks run meanwhile."""
        here = threading.get_ident()
        # The lock keeps other threads out, and `_awaited_by` other tasks of this one.
        while self._awaited_by == here or not self._stepping.acquire(blocking=False):
            await asyncio.sleep(_BETWEEN_LOOKS)
        self._awaited_by = here
        try:
            if self.device.traits.host_memory and has_threads():
                return await _in_another_thread(self._blocking_step)
            return await self._awaiting_step()
        finally:
            self._awaited_by = None
            self._stepping.release()

    async def _awaiting_step(self) -> bool:
        work = self._work()
        try:
            pending = next(work)
            while True:
                await asyncio.sleep(0)  # other tasks run, also where nothing is waited for
                pending = work.send(await pending.wait_async())
        except StopIteration as done:
            return bool(done.value)

    def _blocking_step(self) -> bool:
        work = self._work()
        try:
            pending = next(work)
            while True:
                pending = work.send(pending.wait())
        except StopIteration as done:
            return bool(done.value)

    def _work(self) -> _Work:
        """What a step does. Whoever steps gives it what the device has found."""
        self._follow_adapters()
        self._admit()
        if self._prompts:
            yield from self._process(self._prompts[0])
        elif not self._decoding:
            return False
        if self._decoding:
            yield from self._decode()
        return True

    def _pump(self, generation: Generation) -> None:
        """One step, for a generation that is iterated over."""
        self._check_runs(self.step(), generation)

    async def _pump_async(self, generation: Generation) -> None:
        """`_pump`, awaiting instead of blocking."""
        self._check_runs(await self.step_async(), generation)

    def _check_runs(self, found_work: bool, generation: Generation) -> None:
        if not found_work and generation.finish_reason is None:
            raise RuntimeError("the generation is not one of this engine's any more")

    def _admit(self) -> None:
        """Give slots to sequences, and take them from those that were closed."""
        with self._lock:
            self._waiting.extend(self._incoming)
            self._incoming.clear()
        for group in (self._decoding, self._prompts, self._waiting):
            for running in [each for each in group if each.generation.closed]:
                group.remove(running)
                self._end(running, "cancelled")
        while self._free and self._waiting:
            running = self._waiting[0]
            if running.most <= 0:
                self._waiting.popleft()
                self._end(running, "length")
                continue
            needed = len(running.tokens) // PAGE + 1
            active = bool(self._decoding or self._prompts)
            if active and not self._has_pages(needed):
                break
            self._waiting.popleft()
            self._begin(running)

    def _begin(self, running: Running) -> None:
        running.slot = self._free.pop()
        if self.decoder.is_learning:  # what pages have may be of weights before the last step
            self.pages.forget()
        running.pages = self.pages.shared(running.tokens)
        running.done = len(running.pages) * PAGE
        self._table[running.slot] = 0
        self._table[running.slot, : len(running.pages)] = running.pages
        try:
            self.sampler.begin(running.slot, running.sampling, running.tokens, running.generated)
        except ValueError as error:
            self._end(running, "error", error)
            return
        self._prompts.append(running)

    def _process(self, running: Running) -> _Part:
        """A chunk of a prompt."""
        remaining = len(running.tokens) - running.done
        size = chunk_for(remaining, self.chunk)
        count = min(size, remaining)
        if not self._reserve(running, running.done + count):
            return
        step = self._prompt_steps.get(size)
        if step is None:
            step = self._prompt_steps[size] = PromptStep(
                self.decoder, self.cache, self.sampler, size, self._row
            )
        tokens = running.tokens[running.done : running.done + count]
        row = self._table[running.slot]
        start, running.done = running.done, running.done + count
        if count < remaining:
            step.fill(tokens, start, row)
            return
        self._allow([running])
        sampling = running.sampling
        if running in self._prompts:
            chosen = step.finish(
                tokens, start, row, running.slot, stages_of([sampling]), sampling.logprobs
            )
            self._prompts.remove(running)
            self.pages.publish(running.tokens, running.pages)
            self._decoding.append(running)
            self._changed = True
            ends = frozenset() if self.tokenizer is None else self.tokenizer.ends
            found = yield PendingFound(chosen)
            self._accept_found(running, found, 0, ends)

    def _decode(self) -> _Part:
        """One more token of all sequences whose prompts are done."""
        step, self._ahead = self._ahead, None
        if step is None or not step.remaining(self._decoding):  # all of its texts have ended
            step = self._launched()
        if step is not None:
            if self._goes_on(step):
                self._ahead = self._launched_again(step)
            self._take(step, (yield step.found))

    def _launched(self) -> _Step | None:
        """A step of decoding, after the host has said which sequences there are. None without."""
        for running in list(self._decoding):
            if running in self._decoding:
                self._reserve(running, len(running.tokens))
        if self._changed:
            self._reserve_ahead()
        if any(running.constraint is not None for running in self._decoding):
            self._allow(list(self._decoding))
        group = list(self._decoding)
        if not group:
            return None
        size = 1 << (len(group) - 1).bit_length()
        step = self._decode_steps.get(size)
        if step is None:
            shape = (len(self._table), self._row)
            step = DecodeStep(self.decoder, self.cache, self.sampler, size, shape)
            self._decode_steps[size] = step
        if self._changed or self._shown != group:
            step.set(
                [each.tokens[-1] for each in group], [len(each.tokens) - 1 for each in group],
                [each.slot for each in group], self._table,
            )  # fmt: skip
            self._shown, self._changed = group, False
        return self._of(group, step, [len(each.tokens) for each in group])

    def _launched_again(self, before: _Step) -> _Step:
        """The step after one that the host has not read yet: the device has its tokens."""
        return self._of(before.group, before.step, [length + 1 for length in before.lengths])

    def _of(self, group: list[Running], step: DecodeStep, lengths: list[int]) -> _Step:
        samplings = [each.sampling for each in group]
        wanted = [each.logprobs for each in samplings if each.logprobs is not None]
        chosen = step(stages_of(samplings), max(wanted, default=None))
        slots = [each.slot for each in group]
        return _Step(group, step, slots, lengths, PendingFound(chosen))

    def _goes_on(self, step: _Step) -> bool:
        """Whether the next step may be launched before this one's tokens are read. It is, where the
        same sequences go on, unless one of these tokens ends a text: then what the next step gave
        for it is dropped. Grammars, and pages that are to be added, need the tokens first."""
        return (
            self.looks_ahead
            and not (self._prompts or self._incoming or self._changed or self.decoder.is_learning)
            and self._decoding == step.group
            and all(
                running.constraint is None
                and length < len(running.pages) * PAGE
                and length + 1 < self.context
                and running.generated + 1 < running.most
                and len(running.tokens) == length
                for running, length in zip(step.group, step.lengths, strict=True)
            )
        )

    def _forget_ahead(self) -> None:
        """Drop a step that the host has not read. The sampler goes back to what it had before."""
        step, self._ahead = self._ahead, None
        if step is not None:
            for running in step.remaining(self._decoding):
                self.sampler.begin(
                    running.slot, running.sampling, running.tokens, running.generated
                )
            self._changed = True

    def _allow(self, group: list[Running]) -> None:
        """Tell the sampler what grammars allow."""
        for running in group:
            if running.constraint is None:
                continue
            try:
                self.sampler.allow(running.slot, running.constraint.words())
            except ValueError as error:
                self._drop(running)
                self._end(running, "error", error)

    def _take(self, step: _Step, found: Found) -> None:
        """Go on with the tokens that a step has chosen."""
        ends = frozenset() if self.tokenizer is None else self.tokenizer.ends
        remaining = step.remaining(self._decoding)
        for index, running in enumerate(step.group):
            if running not in remaining:
                continue
            running.done += 1
            self._accept_found(running, found, index, ends)

    def _accept_found(
        self, running: Running, found: Found, index: int, ends: Collection[int]
    ) -> None:
        token = found.tokens[index]
        logprob = None
        wanted = running.sampling.logprobs
        if wanted is not None and found.chosen and found.others and found.values:
            pairs = zip(found.others[index][:wanted], found.values[index][:wanted], strict=True)
            logprob = LogProbability(token, found.chosen[index], tuple(pairs))
        self._accept(running, token, logprob, token in ends)

    def _accept(
        self, running: Running, token: int, logprob: LogProbability | None, ends: bool
    ) -> None:
        reason: Any = None
        error: BaseException | None = None
        if ends:
            reason = "stop"
        else:
            running.tokens.append(token)
            stopped = running.generation.add(token, logprob)
            try:
                if running.constraint is not None:
                    running.constraint.accept(token)
                    if running.constraint.is_complete:
                        reason = "stop"
            except ValueError as found:
                reason, error = "error", found
            if stopped:
                reason = "stop"
            elif reason is None and running.generated >= running.most:
                reason = "length"
            elif reason is None and len(running.tokens) >= self.context:
                if running.overflow == "shift":
                    self._shift(running)
                    return
                reason = "length"
        if reason is not None:
            self._drop(running)
            self._end(running, reason, error)

    # --- adapters --------------------------------------------------------------------------------

    def _follow_adapters(self) -> None:
        """Record steps anew if adapters came or went, and share no keys of other weights. Those
        that run go on from the keys that they have."""
        if self._revision != self.decoder.revision:
            self._revision = self.decoder.revision
            self._forget_ahead()
            self._forget_steps()
            self.pages.forget()

    def _forget_steps(self) -> None:
        self._decode_steps.clear()
        self._prompt_steps.clear()
        self._changed = True

    # --- pages -----------------------------------------------------------------------------------

    def _has_pages(self, count: int) -> bool:
        """Whether so many pages are free, after the cache has grown if that is possible."""
        while self.pages.available < count and self._grow():
            pass
        return self.pages.available >= count

    def _grow(self) -> bool:
        if self.pages.count >= self._most_pages:
            return False
        count = min(2 * self.pages.count, self._most_pages)
        try:
            self.cache.grow(count)
        except OutOfMemory:
            self._most_pages = self.pages.count
            return False
        self.pages.grow(count)
        self._forget_steps()  # they were recorded for the arrays that were replaced
        return True

    def _reserve(self, running: Running, tokens: int) -> bool:
        """Pages for so many tokens of a sequence. False if it has to wait for them."""
        while len(running.pages) * PAGE < tokens:
            if not self._has_pages(1):
                last = self._last_to_come()
                self._wait(last)
                if last is running:
                    return False
                continue
            self._add_page(running)
        return True

    def _add_page(self, running: Running) -> None:
        page = self.pages.take()
        self._table[running.slot, len(running.pages)] = page
        running.pages.append(page)
        self._changed = True

    def _reserve_ahead(self) -> None:
        """Pages for the next PAGE - 1 tokens of all sequences, as far as many are free, so that it
        takes many steps until the device has to be given another table."""
        spare = len(self._decoding)
        for running in self._decoding:
            tokens = min(
                len(running.tokens) + PAGE - 1, self.context, running.prompt + running.most
            )
            while len(running.pages) * PAGE < tokens and self.pages.available > spare:
                self._add_page(running)

    def _last_to_come(self) -> Running:
        return (self._prompts or self._decoding)[-1]

    def _wait(self, running: Running) -> None:
        """Let a sequence wait until there are pages again."""
        self._drop(running)
        self._release(running)
        self._waiting.appendleft(running)

    def _shift(self, running: Running) -> None:
        """Go on with the later half of a full context."""
        self._drop(running)
        self._release(running)
        generated = running.generated
        running.tokens = self._shifted(running.tokens)
        running.prompt = len(running.tokens) - generated
        self._waiting.appendleft(running)

    def _shifted(self, tokens: list[int]) -> list[int]:
        if len(tokens) + 1 <= self.context:
            return tokens
        return tokens[:1] + tokens[-(self.context // 2) :]

    def _drop(self, running: Running) -> None:
        for group in (self._decoding, self._prompts):
            if running in group:
                group.remove(running)
                self._changed = True

    def _release(self, running: Running) -> None:
        if running.slot < 0:
            return
        self.pages.publish(running.tokens[: running.done], running.pages)
        self.pages.release(running.pages)
        self._free.append(running.slot)
        running.pages, running.slot, running.done = [], -1, 0

    def _end(self, running: Running, reason: Any, error: BaseException | None = None) -> None:
        self._release(running)
        running.generation.finish(reason, error)


async def _in_another_thread(function: Callable[[], bool]) -> bool:
    """What a function returns that another thread calls. A task that is cancelled waits for its
    end: the state of a step is never left half changed."""
    loop = asyncio.get_running_loop()
    found = loop.run_in_executor(None, contextvars.copy_context().run, function)
    cancelled = False
    while not found.done():
        try:
            await asyncio.wait({found})
        except asyncio.CancelledError:
            cancelled = True
    if cancelled:
        found.exception()  # or asyncio would complain that no one has asked for it
        raise asyncio.CancelledError
    return found.result()
