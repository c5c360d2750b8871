"""`td.models.load`: from a file to a model on a device."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from os import PathLike
from typing import Any

from treadle.core.errors import FormatError, OutOfMemory
from treadle.core.paths import as_path
from treadle.formats.contents import release
from treadle.formats.gguf import GgufFile, read_gguf
from treadle.models.architectures import ARCHITECTURES, builder
from treadle.models.arguments import integer
from treadle.models.cache import PAGE, Entries, bytes_of_page, check_entries
from treadle.models.config import DecoderConfig, config_of
from treadle.models.model import Model
from treadle.models.text.tokenizer import tokenizer_of_gguf
from treadle.models.weights import SUPPORTED, CheckedWeights, GgufWeights
from treadle.quant.products import Activations
from treadle.runtime.devices import Device
from treadle.runtime.devices import device as find_device

_USUAL_CONTEXT = 4096
_SPARE = 200_000_000  # bytes beside weights and cache: results between layers, kernels
_EMBEDDING = "token_embd.weight"
_TOKENIZER, _TOKENIZER_KIND = "tokenizer.ggml.", "tokenizer.ggml.model"


def load(
    path: str | PathLike[str],
    device: str | Device | None = None,
    context: int | None = None,
    cache: Entries = "f16",
    *,
    activations: Activations | None = None,
    progress: bool | None = None,
) -> Model:
    """A language model from a GGUF file, on a device. For the folder of an encoder it gives an
    `Encoder`, as `load_encoder` does.

    `context` is the number of tokens that a prompt and its answer may have together: by default
    4,096, or what the model was trained for if that is less. `cache` is how keys and values are
    kept: "f16", "q8_0" (half the memory) or "f32". `activations` is what quantized matrices are
    multiplied with: "int8" (rounded to 8 bits, with a scale for each 32 elements, as llama.cpp does
    on a CPU) or "float"; by default what is faster. `progress` shows how much has been read, by
    default where standard error is a terminal.

    What the file needs is checked before its tensors are uploaded: FormatError names an
    architecture or a type of tensors that is not supported, a tensor that is missing, or a number
    that is wrong; OutOfMemory says what would fit on the device.
    """
    path = as_path("td.models.load", path)
    where = find_device(device)
    if path.is_dir():
        found: Model = _of_folder(path, where, context, activations)
        return found
    file = read_gguf(path)
    config = _checked(file)
    check_entries("cache", cache)
    if activations not in (None, "int8", "float"):
        raise ValueError(f"activations is 'int8' or 'float', or None, not {activations!r}")
    context = _context(config, context)
    _check_memory(file, config, where, context, cache)
    tokenizer = tokenizer_of_gguf(file.metadata) if _has_tokenizer(file) else None
    size = sum(tensor.nbytes for tensor in file.tensors.values())
    build = builder(config.architecture)
    build(config, CheckedWeights(file, where), context, where)
    with _progress(config.name, size, progress) as uploaded:
        weights = GgufWeights(file, where, uploaded, activations)
        decoder = build(config, weights, context, where)
    for part in file.parts:  # its tokens, too, have been read
        release(part)
    return Model(decoder, tokenizer, where, context, cache, file.metadata)


def _of_folder(
    path: str | PathLike[str], device: Device, context: int | None, activations: Activations | None
) -> Any:
    """The encoder in a folder; language models have files."""
    from treadle.models.encoder import load_encoder

    if context is not None or activations is not None:
        raise ValueError(
            f"{path} is a folder, so that an encoder is loaded: context and activations are of "
            "language models in GGUF files, which `treadle quantize` makes of their folders"
        )
    return load_encoder(path, device)


def _has_tokenizer(file: GgufFile) -> bool:
    """Whether a file has a tokenizer. FormatError if it has parts of one, but not its kind."""
    if _TOKENIZER_KIND in file.metadata:
        return True
    part = next((key for key in file.metadata if key.startswith(_TOKENIZER)), None)
    if part is not None:
        raise FormatError(
            f"{file.path.name} has {part}, but no {_TOKENIZER_KIND}, the kind of its tokenizer: "
            "the file is damaged, or was not written completely"
        )
    return False


def _checked(file: GgufFile) -> DecoderConfig:
    """The model's sizes. FormatError if something of it is not supported."""
    name = file.path.name
    architecture = file.metadata.get("general.architecture")
    if architecture not in ARCHITECTURES:
        raise FormatError(
            f"{name} has the architecture {architecture!r}: supported are "
            f"{', '.join(ARCHITECTURES)}"
        )
    for tensor in file.tensors.values():
        if tensor.type not in SUPPORTED:
            raise FormatError(
                f"{name}: {tensor.name} has the type {tensor.type}: supported are "
                f"{', '.join(SUPPORTED)}"
            )
    if _EMBEDDING not in file.tensors:
        raise FormatError(f"{name} has no tensor {_EMBEDDING}: is it a language model?")
    shape = file.tensors[_EMBEDDING].shape
    return config_of(file.metadata, shape[0])


def _context(config: DecoderConfig, context: int | None) -> int:
    if context is None:
        return min(_USUAL_CONTEXT, config.context)
    trained = f", for which {config.name} was trained"
    return integer("context", context, 2, config.context, trained)


def _check_memory(
    file: GgufFile, config: DecoderConfig, device: Device, context: int, entries: Entries
) -> None:
    """OutOfMemory where the device says how much memory is free, and that is too little."""
    free = device.memory_stats().get("driver", {}).get("free")
    weights = sum(tensor.nbytes for tensor in file.tensors.values())
    page = bytes_of_page(config, entries)
    if not free or weights + -(-context // PAGE) * page + _SPARE <= free:
        return
    room = free - weights - _SPARE
    if room >= page:
        advice = f"a context of {room // page * PAGE} would fit"
        if entries != "q8_0":
            longer = room // bytes_of_page(config, "q8_0") * PAGE
            advice += f", or one of {min(longer, config.context)} with a cache of q8_0"
    else:
        advice = (
            f"weights of at most {_shown(max(free - _SPARE - page, 0))} would fit: take a file "
            "with fewer bits, a smaller model, or another device"
        )
    raise OutOfMemory(
        f"{config.name} has {_shown(weights)} of weights, and a context of {context} needs "
        f"{_shown(-(-context // PAGE) * page)}; {device.id} has {_shown(free)} free: {advice}"
    )


def _shown(size: int) -> str:
    return f"{size / 1e9:.2f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"


@contextmanager
def _progress(name: str, size: int, shown: bool | None) -> Iterator[Callable[[int], None]]:
    """A progress bar, and the function that counts uploaded bytes."""
    if not (sys.stderr.isatty() if shown is None else shown):
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn

    columns = (TextColumn("{task.description}"), BarColumn(), DownloadColumn())
    console = Console(stderr=True, force_terminal=True if shown else None)
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task(f"loading {name}", total=size)
        yield lambda count: bar.advance(task, count)
