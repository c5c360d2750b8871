"""The same kernels through `td.cuda_module`: parsed, printed for each target, run on a device."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import treadle as td
from tools.cuda_corpus.cubins import include_folders
from tools.cuda_corpus.spec import (
    Argument,
    Array,
    Fields,
    NumPy,
    Record,
    Template,
    Trial,
    Vector,
    dims,
)
from treadle import codegen

TARGETS = tuple(codegen.TARGETS)
_VECTORS = {2: td.vec2, 3: td.vec3, 4: td.vec4}


@cache
def module_of(
    sources: Path, source: str, include: tuple[str, ...] = (), defines: tuple[str, ...] = ()
) -> Any:
    """A file, parsed."""
    folders = [str(path) for path in include_folders(sources, source, include)]
    return td.cuda_module(
        sources / source,
        include=folders,
        defines=dict.fromkeys(defines, 1),
        skip_missing_headers=True,
    )


def _module(sources: Path, trial: Trial) -> Any:
    return module_of(sources, trial.source, trial.include, trial.defines)


def _fresh_module(sources: Path, trial: Trial) -> Any:
    """A module with which nothing was launched: CUDA's reference loads its own for a trial too.

    What has no variables has no state, and need not be parsed again.
    """
    if len(_module(sources, trial).constants):
        module_of.cache_clear()
    return _module(sources, trial)


def kernel_of(module: Any, trial: Trial) -> Any:
    """A trial's kernel, or the instance of the template."""
    return module.kernel(trial.kernel, *map(_template_argument, trial.template))


def printed(sources: Path, trial: Trial, target: str) -> str:
    """The kernel's text for a target."""
    block = dims(trial.block)
    kernel = kernel_of(_module(sources, trial), trial)
    text: str = kernel.source(target, block=block, shared_bytes=trial.shared)
    return text


def run(sources: Path, trial: Trial, device: str) -> list[NumPy]:
    """The outputs of a trial on a device."""
    rng = trial.rng()
    with td.use_device(device) as found:
        module = _fresh_module(sources, trial)
        kernel = kernel_of(module, trial)
        outputs: list[tuple[Any, tuple[int, ...]]] = []
        arguments = [_given(argument, rng, outputs) for argument in trial.arguments]
        for name, constant in trial.constants.items():
            data = constant.make(rng) if isinstance(constant, Array) else constant.numpy()
            module.constants[name] = data
        kernel[dims(trial.grid), dims(trial.block), trial.shared](*arguments)
        found.synchronize()
        results = [tensor.numpy().reshape(shape) for tensor, shape in outputs]
        for name, (dtype, shape) in trial.read_back.items():
            results.append(np.asarray(module.constants[name]).astype(dtype).reshape(shape))
        return results


def _template_argument(argument: Template) -> Any:
    if isinstance(argument, str):
        return argument
    if isinstance(argument, type):
        return getattr(td, np.dtype(argument).name)
    return argument if isinstance(argument, bool) else int(argument)


def _given(
    argument: Argument, rng: np.random.Generator, outputs: list[tuple[Any, tuple[int, ...]]]
) -> Any:
    """An argument as a user would pass it; tensors that are outputs are added to those."""
    if isinstance(argument, Fields):
        return {name: _given(one, rng, outputs) for name, one in argument.values.items()}
    if not isinstance(argument, Array):
        return _value(argument)
    data = argument.make(rng)
    tensor = td.asarray(data.ravel())
    if argument.output:
        outputs.append((tensor, data.shape))
    return tensor


def _value(argument: Any) -> Any:
    """An argument that has no array, as a user would pass it."""
    match argument:
        case Vector(dtype, values):
            return _VECTORS[len(values)][getattr(td, np.dtype(dtype).name)](*values)
        case Record():
            return argument.numpy()[()]
        case _:
            return argument
