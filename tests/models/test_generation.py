"""Generation and continuous batching, on small models with random weights."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import treadle as td
from tests.models.peer_models import write_peer
from tests.support import small_llama
from treadle.formats.gguf import write_gguf
from treadle.models.cache import PAGE
from treadle.models.engine import Engine
from treadle.models.model import Model
from treadle.models.sampling import Sampling
from treadle.runtime.devices import Device, _backend

PROMPTS = ([5, 9, 11], [7], list(range(3, 40)), [90, 80, 70, 60, 50])


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Model:
    path = write_peer("qwen3moe", tmp_path_factory.mktemp("models") / "model.gguf")
    return td.models.load(path, "cpu", cache="f32")


def expected(model: Model, prompt: list[int], count: int) -> list[int]:
    """Greedy tokens, each computed from the whole text."""
    tokens = list(prompt)
    for _ in range(count):
        tokens.append(int(model.logits(tokens)[-1].argmax()))
    return tokens[len(prompt) :]


def test_a_token_at_a_time_is_the_whole_text_at_once(model: Model) -> None:
    generation = model.generate(PROMPTS[2], max_tokens=6)
    assert generation.text() == ""  # it has no tokenizer
    assert generation.tokens == expected(model, PROMPTS[2], 6)
    assert generation.finish_reason == "length"
    assert generation.prompt_tokens == len(PROMPTS[2])


def test_sequences_that_come_and_go_do_not_change_each_other(model: Model) -> None:
    alone = [read(model.generate(prompt, max_tokens=9)) for prompt in PROMPTS]
    engine = model.engine(3)  # fewer than there are prompts: one waits
    running = [engine.submit(prompt, max_tokens=9) for prompt in PROMPTS[:2]]
    for _ in range(3):
        engine.step()
    running += [engine.submit(prompt, max_tokens=9) for prompt in PROMPTS[2:]]
    while engine.step():
        pass
    assert [each.tokens for each in running] == alone
    assert engine.is_idle
    assert engine.pages.available == engine.pages.count - 1


def test_a_closed_generation_frees_its_place(model: Model) -> None:
    engine = model.engine(1)
    first, second = (engine.submit(PROMPTS[0], max_tokens=50) for _ in range(2))
    for _ in range(3):
        engine.step()
    first.close()
    assert read(second) == read(model.generate(PROMPTS[0], max_tokens=50))
    assert first.finish_reason == "cancelled"
    assert 0 < len(first.tokens) < 10
    assert engine.pages.available == engine.pages.count - 1


def test_a_generation_that_is_closed_has_ended(tmp_path: Path) -> None:
    write_gguf(tmp_path / "model.gguf", small_llama.METADATA, small_llama.tensors())
    model = td.models.load(tmp_path / "model.gguf", "cpu")
    heard: list[Any] = []
    engine = model.engine(2)
    running = [
        engine.submit(model.encode("abc"), max_tokens=20, listener=listener)
        for listener in (None, heard.append)
    ]
    while len(heard) < 5:
        engine.step()
    for each in running:
        each.close()
        assert each.finish_reason == "cancelled"
    assert running[0].text() == ""
    assert asyncio.run(running[0].text_async()) == ""
    counts = [len(each.tokens) for each in running]
    engine.step()
    assert [len(each.tokens) for each in running] == counts
    assert None not in heard[:5]
    assert heard[5:] == [None]
    ended = model.generate("abc", max_tokens=3)
    first = next(ended)
    while ended.finish_reason is None:
        assert model._engine is not None
        model._engine.step()
    ended.close()  # changes nothing
    assert ended.finish_reason == "length"
    assert len(first + ended.text()) >= 2


def test_a_shared_prefix_is_computed_once(model: Model) -> None:
    engine = model.engine(2)
    prompt = [(7 * i) % 90 + 3 for i in range(2 * PAGE + 5)]
    first = read(engine.submit(prompt, max_tokens=4))
    second = engine.submit([*prompt[:-1], 4], max_tokens=4)
    engine._admit()
    assert engine._prompts[0].done == 2 * PAGE
    assert engine._prompts[0].pages != []
    third = engine.submit(prompt, max_tokens=4)
    assert read(third) == first
    assert read(second) == expected(model, [*prompt[:-1], 4], 4)


def test_the_cache_grows_and_sequences_wait_for_pages(model: Model) -> None:
    engine = model.engine(3, context=2 * PAGE, pages=4)  # of the 7 that three texts may need
    running = [engine.submit(prompt, max_tokens=2 * PAGE - 8) for prompt in PROMPTS[:2]]
    running.append(engine.submit([4, 4], max_tokens=PAGE + 3))
    while engine.step():
        pass
    alone = model.engine(1, context=2 * PAGE)
    for each, prompt in zip(running, [*PROMPTS[:2], [4, 4]], strict=True):
        wanted = alone.submit(prompt, max_tokens=len(each.tokens))
        assert each.finish_reason == "length"
        assert each.tokens == read(wanted)
    grown = model.engine(8)
    before = grown.cache.pages
    running = [grown.submit([3 + i] * 200, max_tokens=20) for i in range(6)]
    while grown.step():
        pass
    assert grown.cache.pages > before
    assert [len(each.tokens) for each in running] == [20] * 6
    assert running[1].tokens == read(model.generate([4] * 200, max_tokens=20))


def test_a_full_context_ends_or_shifts(model: Model) -> None:
    engine = model.engine(1, context=32)
    prompt = list(range(3, 23))
    ended = engine.submit(prompt, max_tokens=None)
    read(ended)
    assert ended.finish_reason == "length"
    assert len(ended.tokens) == 12
    shifted = engine.submit(prompt, max_tokens=20, overflow="shift")
    read(shifted)
    assert shifted.tokens[:12] == ended.tokens
    text = prompt + ended.tokens
    window = text[:1] + text[-16:]
    assert shifted.tokens[12:15] == expected(model, window, 3)
    with pytest.raises(ValueError, match="32 tokens, and the context of 32 has no room"):
        engine.submit(list(range(3, 35)))
    assert len(read(engine.submit(list(range(3, 60)), max_tokens=2, overflow="shift"))) == 2


def test_what_is_wrong_with_a_prompt_is_said(model: Model) -> None:
    for tokens, words in (([], "at least one token"), ([96], "token 96 is outside"), ([-1], "-1")):
        with pytest.raises(ValueError, match=words):
            model.generate(tokens)
    with pytest.raises(ValueError, match="no tokenizer"):
        model.generate("text")
    with pytest.raises(ValueError, match="max_tokens"):
        model.generate([3], max_tokens=-1)
    with pytest.raises(ValueError, match="2 pages of 32 tokens are too few"):
        model.engine(pages=2)
    with pytest.raises(ValueError, match="1 to 256, the context"):
        model.logits([3] * 257)
    assert read(model.generate([3], max_tokens=0)) == []


@pytest.mark.parametrize("tokens", [[96], [-1], [10**9], np.array([5, 96])])
@pytest.mark.parametrize("use", ["generate", "logits", "loss", "training_logits", "engine"])
def test_tokens_outside_of_the_vocabulary_are_refused(model: Model, use: str, tokens: Any) -> None:
    with pytest.raises(ValueError, match=r"token (96|-1|1000000000) is outside of the vocabulary"):
        model.engine().submit(tokens) if use == "engine" else getattr(model, use)(tokens)


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        (None, "a prompt is a text or token ids, not None"),
        (5, "a prompt is a text or token ids, not 5"),
        (b"abc", "a prompt is a text or token ids, not b'abc'"),
        ([1.7], "a token id is an integer, not 1.7"),
        ([True], "a token id is an integer, not True"),
        ([[5]], r"a token id is an integer, not \[5\]"),
        (np.ones(2), "a token id is an integer, not 1.0"),
        (np.array(5), "token ids are a sequence of integers, not 5"),
    ],
)
def test_prompts_are_texts_or_token_ids(model: Model, prompt: Any, message: str) -> None:
    for use in (model.generate, model.logits):
        with pytest.raises(TypeError, match=message):
            use(prompt)


def test_prompts_may_be_arrays(model: Model) -> None:
    for prompt in (np.array(PROMPTS[0]), td.asarray(PROMPTS[0], device="cpu"), tuple(PROMPTS[0])):
        assert read(model.generate(prompt, max_tokens=3)) == expected(model, PROMPTS[0], 3)


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"max_tokens": 1.5}, TypeError, "max_tokens is an integer from 0 on, or None, not 1.5"),
        ({"max_tokens": True}, TypeError, "max_tokens is an integer"),
        ({"stop": 5}, TypeError, "stop is a string or several strings, not 5"),
        ({"stop": [""]}, ValueError, "stop has an empty string"),
        ({"foo": 1}, TypeError, "no argument 'foo': beside max_tokens, .*, min_p, "),
        ({"sampling": {"seed": 1}}, TypeError, "sampling is a td.models.Sampling, not {'seed'"),
        ({"overflow": "drop"}, ValueError, "overflow is"),
    ],
)
def test_arguments_of_generate(
    model: Model, options: dict[str, Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        model.generate(PROMPTS[0], **options)


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"sequences": 0}, ValueError, "sequences is an integer from 1 on, not 0"),
        ({"sequences": -3}, ValueError, "sequences is an integer from 1 on, not -3"),
        ({"sequences": 1.5}, TypeError, "sequences is an integer from 1 on, not 1.5"),
        ({"context": 0}, ValueError, "context is an integer from 2 to 256, the context that"),
        ({"context": 257}, ValueError, "context is an integer from 2 to 256, the context that"),
        ({"context": 64.0}, TypeError, "context is an integer"),
        ({"entries": "q4_0"}, ValueError, "entries is one of f32, f16, q8_0, not 'q4_0'"),
        ({"pages": 0}, ValueError, "pages is an integer from 1 on, not 0"),
        ({"pages": "all"}, TypeError, "pages is an integer"),
    ],
)
def test_arguments_of_an_engine(
    model: Model, options: dict[str, Any], kind: type[Exception], message: str
) -> None:
    with pytest.raises(kind, match=message):
        model.engine(**options)


def test_an_engine_takes_tokens(model: Model) -> None:
    with pytest.raises(TypeError, match=r"integers, not 'text': a model's encode\(text\) gives"):
        model.engine().submit("text")  # type: ignore[arg-type]


def test_texts_of_a_loss_have_one_length(model: Model) -> None:
    with pytest.raises(td.errors.ShapeError, match="not lengths of 2, 1: fill shorter ones up"):
        model.loss([[1, 2], [3]])
    with pytest.raises(td.errors.ShapeError, match="mask has rows unlike the texts"):
        model.loss([[1, 2], [3, 4]], [[True, True], [True]])
    with pytest.raises(td.errors.ShapeError, match=r"whole numbers of shape .* not float64"):
        model.loss([1.5, 2])
    for tokens in ("text", [None, 1]):
        with pytest.raises(td.errors.ShapeError, match="whole numbers of shape"):
            model.loss(tokens)


def test_seeds_and_log_probabilities(model: Model) -> None:
    drawn = [read(model.generate([5, 6], max_tokens=8, temperature=1.0, seed=s)) for s in (1, 2, 1)]
    assert drawn[0] == drawn[2] != drawn[1]
    engine = model.engine(2)
    running = engine.submit([5, 6], Sampling(logprobs=3), max_tokens=3)
    other = engine.submit([5, 6], max_tokens=3)
    while engine.step():
        pass
    assert running.tokens == other.tokens
    assert other.logprobs == []
    scores = model.logits([5, 6]).numpy()[-1].astype(np.float64)
    wanted = scores.max() - np.log(np.exp(scores).sum())
    assert abs(running.logprobs[0].value - wanted) < 1e-4
    assert running.logprobs[0].top[0][0] == running.tokens[0]


@pytest.mark.parametrize(("entries", "bound"), [("f16", 5e-3), ("q8_0", 0.1)])
def test_entries_of_fewer_bits(tmp_path: Path, entries: str, bound: float) -> None:
    path = write_peer("qwen3", tmp_path / "model.gguf")
    tokens = [(11 * i) % 90 + 3 for i in range(40)]
    wanted = td.models.load(path, "cpu", cache="f32").logits(tokens).numpy()
    small = td.models.load(path, "cpu", cache=entries)  # type: ignore[arg-type]
    found = small.logits(tokens).numpy()
    assert 0 < np.abs(found - wanted).max() < bound
    assert read(small.generate(tokens[:5], max_tokens=2)) == expected(small, tokens[:5], 2)


def test_looking_ahead_gives_the_same_tokens(model: Model) -> None:
    """Texts that end at different tokens, come late, are closed, draw and have penalties; and
    adapters that come while a step is under way."""
    kinds = [Sampling(), Sampling(temperature=0.8, seed=3, repeat_penalty=1.3, logprobs=2)]

    def run(ahead: bool) -> list[list[int]]:
        engine = model.engine(3, context=64)
        assert not engine.looks_ahead  # on a CPU
        engine.looks_ahead = ahead
        found = [
            engine.submit(prompt, kinds[index % 2], max_tokens=7 + 9 * index)
            for index, prompt in enumerate(PROMPTS[:2])
        ]
        for _ in range(4):
            engine.step()
        closed = engine.submit(PROMPTS[3], kinds[1], max_tokens=30)
        found.append(engine.submit(PROMPTS[2], kinds[1], max_tokens=40, overflow="shift"))
        for _ in range(6):
            engine.step()
        closed.close()
        model.add_lora(rank=2, seed=1, targets=["attn_q"])
        assert model.lora is not None
        for parameter in model.lora.parameters():
            parameter.requires_grad_(False)
            parameter[...] = 0.1
        model.decoder.revision += 1
        seen = 0
        while engine.step():
            seen += engine._ahead is not None
        model.remove_lora()
        assert seen > 20 if ahead else seen == 0
        assert engine.pages.available == engine.pages.count - 1
        return [each.tokens for each in found]

    assert run(True) == run(False)


@pytest.mark.parametrize(("ahead", "threads"), [(False, True), (True, True), (True, False)])
def test_generations_are_awaited(
    model: Model, ahead: bool, threads: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By several tasks, which share steps; with tokens that the host has not seen; also where there
    are no threads, as in a web page."""
    monkeypatch.setattr("treadle.models.engine.has_threads", lambda: threads)
    engine = model.engine(2, context=64)
    engine.looks_ahead = ahead
    limits = [9, 14, 5]

    async def read_async(prompt: list[int], limit: int) -> list[int]:
        generation = engine.submit(prompt, max_tokens=limit)
        assert await generation.text_async() == ""  # it has no tokenizer
        return generation.tokens

    async def read_all() -> list[list[int]]:
        ticks: list[int] = []
        other = asyncio.create_task(tick(ticks))
        found = await asyncio.gather(*map(read_async, PROMPTS[:3], limits))
        assert len(ticks) > 10  # it ran meanwhile
        other.cancel()
        return found

    async def tick(ticks: list[int]) -> None:
        while True:
            ticks.append(1)
            await asyncio.sleep(0)

    wanted = [read(model.generate(p, max_tokens=n)) for p, n in zip(PROMPTS, limits, strict=False)]
    assert asyncio.run(read_all()) == wanted


def test_an_awaited_generation_is_closed_by_another_task(model: Model) -> None:
    generation = model.engine(1).submit(PROMPTS[0], max_tokens=None)

    async def close() -> None:
        while not generation.tokens:
            await asyncio.sleep(0)
        generation.close()

    async def read() -> None:
        closing = asyncio.create_task(close())
        async for _ in generation:
            raise AssertionError("it has no tokenizer")
        await closing

    asyncio.run(read())
    assert generation.finish_reason == "cancelled"
    assert 0 < len(generation.tokens) < 30


def held(engine: Engine) -> tuple[threading.Event, threading.Event]:
    """Have an engine's steps wait: they set the first of these, and wait for the second."""
    begun, go_on, work = threading.Event(), threading.Event(), engine._work

    def waiting() -> Any:
        begun.set()
        assert go_on.wait(60)
        return (yield from work())

    engine._work = waiting  # type: ignore[method-assign]
    return begun, go_on


def test_other_tasks_run_while_the_cpu_computes(model: Model) -> None:
    engine = model.engine(2)
    begun, go_on = held(engine)
    generation = engine.submit(PROMPTS[0], max_tokens=2)

    async def other() -> None:
        while not begun.is_set():
            await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="being awaited by another task"):
            engine.step()
        go_on.set()

    async def both() -> None:
        await asyncio.gather(generation.text_async(), other())

    asyncio.run(both())
    assert generation.tokens == expected(model, PROMPTS[0], 2)


def test_a_task_that_is_cancelled_ends_its_step(model: Model) -> None:
    engine = model.engine(2)
    begun, go_on = held(engine)
    generation = engine.submit(PROMPTS[0], max_tokens=5)

    async def cancel() -> None:
        reading = asyncio.create_task(generation.text_async())
        while not begun.is_set():
            await asyncio.sleep(0)
        for _ in range(3):
            reading.cancel()
            await asyncio.sleep(0)
        assert not reading.done()
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await reading

    asyncio.run(cancel())
    assert len(generation.tokens) >= 1
    assert read(generation) == expected(model, PROMPTS[0], 5)


def test_on_webgpu(tmp_path: Path) -> None:
    path = write_peer("llama", tmp_path / "model.gguf")
    model = td.models.load(path, "webgpu", cache="f16")
    wanted = td.models.load(path, "cpu", cache="f16")
    engine = model.engine(2)
    running = [engine.submit(prompt, max_tokens=5) for prompt in PROMPTS[:2]]
    while engine.step():
        pass
    for each, prompt in zip(running, PROMPTS, strict=False):
        assert each.tokens == read(wanted.generate(prompt, max_tokens=5))


def read(generation: td.models.Generation) -> list[int]:
    """All tokens."""
    generation.text()
    return generation.tokens


def test_a_device_that_binds_eight_arrays(tmp_path: Path) -> None:
    """Norms of heads and a cache with scales: with query, key and value apart they are nine."""
    path = write_peer("qwen3", tmp_path / "model.gguf", "q8_0")
    usual = td.device("webgpu")
    limits = replace(usual.limits, max_buffers_per_kernel=8)
    small = Device(_backend("webgpu"), usual.info, limits=limits)
    tokens = []
    for device in (usual, small):
        loaded = td.models.load(path, device, context=64, cache="q8_0")
        tokens.append(read(loaded.generate(PROMPTS[3], max_tokens=6)))
    assert tokens[0] == tokens[1]
    small.close()
