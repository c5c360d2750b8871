"""`treadle quantize`: a model's file with fewer bits a weight."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from treadle.cli.usage import WrongUsage
from treadle.core.errors import TreadleError
from treadle.formats.ggml_types import TYPES
from treadle.formats.gguf import GgufSource, read_gguf, write_gguf
from treadle.quant.recipes import (
    OF_VECTORS,
    RECIPES,
    Recipe,
    stays,
    types_of_recipe,
    wanted_types,
)
from treadle.quant.requantizing import StoredWeights, can_convert, converted

_QUANTIZATION_VERSION = 2  # of ggml's block formats


class Choice(NamedTuple):
    """What the user asks for."""

    recipe: str
    tensors: Sequence[tuple[str, str]] = ()  # patterns of names, and the types of these
    requantize: bool = False


class Source(NamedTuple):
    """A model that is read."""

    path: Path
    metadata: Mapping[str, Any]  # as `write_gguf` takes it
    tensors: Mapping[str, StoredWeights]
    nbytes: int  # of its files


def parse_tensor(text: str) -> tuple[str, str]:
    """A pattern and a type from "PATTERN=TYPE". ValueError says what is wrong."""
    pattern, equals, kind = text.rpartition("=")
    if not equals or not pattern:
        raise ValueError(f"{text!r} is not PATTERN=TYPE, as *.attn_v.weight=q8_0")
    if not can_convert("f32", kind.lower()):
        known = [name for name in TYPES if can_convert("f32", name)]
        raise ValueError(f"{kind!r} is not one of {', '.join(known)}")
    return pattern, kind.lower()


def quantize_file(source: Path, target: Path, choice: Choice, overwrite: bool) -> None:
    """Write a model with other types. Errors come before anything is written."""
    model = read_model(source)
    if target.exists():
        if target.is_dir() or target.samefile(source):
            what = "a folder" if target.is_dir() else "the file that is read"
            raise WrongUsage(f"{target} is {what}: name another file to write to")
        if not overwrite:
            raise WrongUsage(f"{target} exists: --overwrite replaces it")
    types = planned(model, choice)
    needed = sum(tensor.nbytes_as(types[name]) for name, tensor in model.tensors.items())
    _check_room(target, needed)
    metadata = dict(model.metadata) | {
        "general.file_type": np.uint32(RECIPES[choice.recipe].file_type),
        "general.quantization_version": np.uint32(_QUANTIZATION_VERSION),
    }
    columns = (
        TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(), TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        total = sum(tensor.elements for tensor in model.tensors.values())
        task = progress.add_task("quantizing", total=total)

        def read(name: str) -> np.ndarray[Any, Any]:
            progress.update(task, description=name)
            return converted(model.tensors[name], types[name], partial(progress.advance, task))

        write_gguf(target, metadata, {
            name: GgufSource(tensor.shape, types[name], partial(read, name))
            for name, tensor in model.tensors.items()
        })  # fmt: skip
    sys.stdout.write(_summary(model, types, target) + "\n")
    if hint := _of_short_rows(model, types, RECIPES[choice.recipe]):
        sys.stdout.write(hint + "\n")


def read_model(path: Path) -> Source:
    """The model in a GGUF file, in all files of a split one, or in a folder of Hugging Face's."""
    if path.is_dir():
        from treadle.models.conversion import converted_folder

        converted = converted_folder(path)
        weights = sum(each.nbytes_as(each.type) for each in converted.tensors.values())
        return Source(path, converted.metadata, converted.tensors, weights)
    file = read_gguf(path)
    metadata = {
        key: file.metadata.encoded(key) for key in file.metadata if not key.startswith("split.")
    }
    tensors = {
        name: StoredWeights(name, tensor.shape, tensor.type, partial(file.raw, name))
        for name, tensor in file.tensors.items()
    }
    return Source(path, metadata, tensors, sum(part.nbytes for part in file.parts))


def planned(model: Source, choice: Choice) -> dict[str, str]:
    """The type of each tensor in the new file. TreadleError if there is no way to one."""
    shapes = {name: tensor.shape for name, tensor in model.tensors.items()}
    types = types_of_recipe(shapes, RECIPES[choice.recipe])
    for pattern, kind in choice.tensors:
        found = [name for name in shapes if fnmatchcase(name, pattern)]
        if not found:
            raise WrongUsage(
                f"{model.path} has no tensor {pattern}: a pattern is a tensor's name, with * and ?"
            )
        if kind not in OF_VECTORS:
            found = [name for name in found if not stays(name, shapes[name])]
        if not found:
            raise WrongUsage(
                f"{pattern} names norms or vectors only, which are never quantized: "
                f"{' and '.join(OF_VECTORS)} are possible"
            )
        for name in found:
            if not shapes[name] or shapes[name][-1] % TYPES[kind].elements:
                raise WrongUsage(
                    f"the tensor {name} of shape {shapes[name]} cannot be {kind}, whose blocks "
                    f"have {TYPES[kind].elements} elements"
                )
            types[name] = kind
    types = {name: types.get(name, tensor.type) for name, tensor in model.tensors.items()}
    again = []
    for name, kind in types.items():
        stored = model.tensors[name]
        if not can_convert(stored.type, kind):
            raise TreadleError(
                f"the tensor {name} is {stored.type}, from which there is no way to {kind}: "
                "start from the model's original"
            )
        if stored.is_quantized and stored.type != kind:
            again.append(name)
    if again and not choice.requantize:
        kinds = ", ".join(sorted({model.tensors[name].type for name in again}))
        raise WrongUsage(
            f"{len(again)} tensors of {model.path} are quantized already ({kinds}), and rounding "
            "them again adds to their errors: start from a file of f32, f16 or bf16, or pass "
            "--requantize"
        )
    return types


def _check_room(target: Path, needed: int) -> None:
    folder = target.absolute().parent
    if folder.is_dir() and shutil.disk_usage(folder).free < needed:
        free = shutil.disk_usage(folder).free
        raise TreadleError(
            f"{target} takes {_megabytes(needed)}, and {_megabytes(free)} are free in its folder"
        )


def _summary(model: Source, types: Mapping[str, str], target: Path) -> str:
    weights = sum(tensor.nbytes_as(types[name]) for name, tensor in model.tensors.items())
    size = target.stat().st_size
    same = all(types[name] == tensor.type for name, tensor in model.tensors.items())
    copy = " (all tensors had these types: a copy)" if same else ""
    elements = sum(tensor.elements for tensor in model.tensors.values())
    counts = ", ".join(
        f"{count} of {kind}" for kind, count in Counter(types.values()).most_common()
    )
    return (
        f"wrote {target}: {_megabytes(size)} instead of {_megabytes(model.nbytes)}{copy}, "
        f"{8 * weights / max(elements, 1):.2f} bits a weight; tensors: {counts}"
    )


def _of_short_rows(model: Source, types: Mapping[str, str], recipe: Recipe) -> str:
    """Which tensors did not get the type that the recipe has for them; empty if there are none."""
    shapes = {name: tensor.shape for name, tensor in model.tensors.items()}
    found = Counter(
        (wanted, types[name])
        for name, wanted in wanted_types(shapes, recipe).items()
        if types[name] != wanted and shapes[name][-1] % TYPES[wanted].elements
    )
    if not found:
        return ""
    changes = ", ".join(f"{given} instead of {wanted}" for wanted, given in found)
    length = max(TYPES[wanted].elements for wanted, _ in found)
    return (
        f"{sum(found.values())} tensors have rows that are not whole blocks of {length} numbers, "
        f"so they have types of more bits: {changes}"
    )


def _megabytes(nbytes: int) -> str:
    return f"{nbytes / 1e6:,.1f} MB"
