"""One file of another project's: parsed, its kernels instantiated and printed for each target."""

from __future__ import annotations

import json
import re
import signal
import time
import traceback
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import treadle as td
from tools.cuda_corpus import makefiles
from tools.cuda_corpus.instances import Launches
from tools.cuda_corpus.sources import read
from treadle.codegen.records import Target
from treadle.codegen.target import find_target
from treadle.core.dim3 import Dim3
from treadle.core.errors import CompileError, CompileErrors, TreadleError
from treadle.core.limits import Limits
from treadle.cuda_cpp.source.headers import NOT_FOUND, why_missing
from treadle.cuda_cpp.source.preprocessor import preprocess

_SECONDS = 15  # of the processor, for one kernel on one target
_BLOCK, _DYNAMIC = 256, 4096  # threads, and bytes of `extern __shared__`
_ALL_64 = frozenset({
    "float16", "float64", "int64", "float_atomics", "int64_atomics", "device_fences", "subgroups",
})  # fmt: skip
TARGETS: dict[str, Target] = {
    "browser": find_target("wgsl").generic,
    # What a desktop's card offers through wgpu-native.
    "native": Target(
        "wgsl",
        "naga",
        Limits(
            1024,
            Dim3(1024, 1024, 64),
            max_shared_memory=48 << 10,
            max_buffers_per_kernel=32,
            subgroup_size=32,
        ),
        _ALL_64,
    ),
    "ptx": find_target("ptx").generic,
    "cpu": find_target("llvm").generic,
}
NARROW = "narrow"  # "browser" with double="float"
_MOST_SECONDS = 60  # of the processor, for all instances of one template
INCLUDED = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[\"<]([^\">]+)[\">]", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Unit:
    """A file, `name` below `root`; `others` are the project's files, `libraries` folders of headers
    that it does not have."""

    root: Path
    name: str
    others: tuple[str, ...]
    libraries: tuple[Path, ...] = ()


class _TooLong(BaseException):
    """A kernel took longer than it may."""


@contextmanager
def _within(seconds: int) -> Iterator[None]:
    def late(number: int, frame: object) -> None:
        raise _TooLong

    signal.signal(signal.SIGPROF, late)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def tell(unit: Unit, told: Path) -> None:
    """Write a line of JSON of the file, then one of each kernel."""
    with told.open("a", encoding="utf-8") as out:

        def say(**row: Any) -> None:
            out.write(json.dumps(row) + "\n")
            out.flush()

        path = unit.root / unit.name
        defines, folders = _options(unit)
        say(missing=_missing(path, defines, folders))
        options: dict[str, Any] = {"defines": defines, "include": folders}
        try:
            with _within(2 * _SECONDS):
                module = td.cuda_module(path, skip_missing_headers=True, **options)
        except _TooLong:
            say(problem=f"it takes more than {2 * _SECONDS} s to parse")
            return
        except Exception as error:  # noqa: BLE001 - whatever it is, it is what came of the file
            say(problem=_words(unit, error))
            return
        named = [_named(unit, one) for one in module._program.kernels.values()]
        texts = [_relative(unit, one) for one in module._program.sources]
        say(names=named, read=texts)
        file = _File(unit, path, module, options)
        for row, template in zip(named, module._program.kernels.values(), strict=True):
            say(**row, targets=_printed(file, template))


class _File:
    """A file that is parsed, and what of it is made only if some kernel needs it."""

    def __init__(self, unit: Unit, path: Path, module: Any, options: dict[str, Any]) -> None:
        self.unit, self.path, self.module, self.options = unit, path, module, options

    @cached_property
    def launches(self) -> Launches:
        """What it launches."""
        return Launches(self.path, self.options["defines"], self.options["include"])

    @cached_property
    def narrow(self) -> Any:
        """The file with doubles that are floats."""
        with _within(2 * _SECONDS):
            return self.opened(self.path, double="float")

    def opened(self, source: Any, **more: Any) -> Any:
        """A module of the file, or of a text in its place."""
        return td.cuda_module(source, skip_missing_headers=True, **self.options, **more)

    def linked(self, functions: Sequence[str], **more: Any) -> Any:
        """The file together with those of its program that define functions; None if there are
        none. A linker would join what nvcc makes of them."""
        others = list(dict.fromkeys(filter(None, map(self._definer, functions))))
        text = "".join(f'#include "{path}"\n' for path in (*others, self.path))
        return self.opened(text, **more) if others else None

    def _definer(self, function: str) -> Path | None:
        """The file beside this one that defines a function."""
        own = self.unit.name.split("/")
        defined = re.compile(rf"\b{re.escape(function)}\s*\([^;{{}}]*\)\s*\{{")
        for other in self.unit.others:
            path = self.unit.root / other
            near = other.split("/")[:-1] == own[:-1] and other != self.unit.name
            if near and path.suffix == ".cu" and defined.search(read(path)):
                return path
        return None


def _named(unit: Unit, template: Any) -> dict[str, Any]:
    return {
        "name": template.name,
        "file": _relative(unit, template.span.file),
        "line": template.span.line,
    }


_MOST_LINKED = 6  # files
_OF_ARGUMENTS = re.compile(r"<template argument>|is not a template argument in C\+\+")
_ELSEWHERE = re.compile(r"(\w+) is declared here, but not defined in any included file")


def _printed(file: _File, template: Any) -> Any:
    """By target "" or why not, of the first instance that is lowered; else what was said of the
    first that has arguments of the right kinds."""
    unit, name = file.unit, template.name
    began = time.process_time()
    tries = file.launches.of(template) if template.template else [()]
    waiting, seen = deque(tries), set(tries)
    first: dict[str, str] | None = None
    while waiting and time.process_time() - began < _MOST_SECONDS:
        arguments = waiting.popleft()
        try:
            kernel, dynamic = _lowered(file.module, name, arguments)
        except (_TooLong, Exception) as error:  # noqa: BLE001
            problem = _words(unit, error)
        else:
            return _by_target(file, name, kernel, dynamic, arguments)
        if _ELSEWHERE.search(problem) and (found := _linked(file, name, arguments, problem)):
            return found
        better = [one for one in _guesses(file, template, arguments, problem) if one not in seen]
        waiting.extendleft(reversed(better))
        seen.update(better)
        if first is None or _OF_ARGUMENTS.search(first["all"]):
            instance = f" (as {name}<{', '.join(arguments)}>)" if arguments else ""
            first = {"all": problem + instance}
    return first or {"all": "it has no instance"}


def _linked(file: _File, name: str, arguments: tuple[str, ...], problem: str) -> Any:
    """What becomes of a kernel together with the files that define what it calls."""
    functions: list[str] = []
    for _ in range(_MOST_LINKED):
        missing = _ELSEWHERE.search(problem)
        if missing is None or missing[1] in functions:
            return None
        functions.append(missing[1])
        try:
            with _within(2 * _SECONDS):
                module = file.linked(functions)
            if module is None:
                return None
            kernel, dynamic = _lowered(module, name, arguments)
        except (_TooLong, Exception) as error:  # noqa: BLE001
            problem = _words(file.unit, error)
        else:
            return _by_target(file, name, kernel, dynamic, arguments, functions)
    return None


def _guesses(
    file: _File, template: Any, arguments: tuple[str, ...], problem: str
) -> list[tuple[str, ...]]:
    return list(file.launches.better(template, arguments, problem)) if template.template else []


def _lowered(module: Any, name: str, arguments: tuple[str, ...]) -> tuple[Any, int]:
    """An instance, lowered, and its bytes of dynamic shared memory."""
    with _within(_SECONDS):
        kernel = module.kernel(name, *arguments)
        kernel.lower(kernel.signature)
        return kernel, _DYNAMIC if kernel.has_dynamic_memory else 0


def _by_target(
    file: _File,
    name: str,
    kernel: Any,
    dynamic: int,
    arguments: tuple[str, ...],
    linked: Sequence[str] = (),
) -> dict[str, str]:
    block = Dim3(min(_BLOCK, kernel.instance.most_threads or _BLOCK))
    said = {target: _one(file.unit, kernel, block, dynamic, target) for target in TARGETS}
    said[NARROW] = said["browser"]
    if said["browser"]:
        try:
            module = file.linked(linked, double="float") if linked else file.narrow
            narrow, dynamic = _lowered(module, name, arguments)
        except (_TooLong, Exception) as error:  # noqa: BLE001
            said[NARROW] = _words(file.unit, error)
        else:
            said[NARROW] = _one(file.unit, narrow, block, dynamic, "browser")
    return said


def _one(unit: Unit, kernel: Any, block: Dim3, dynamic: int, target: str) -> str:
    from treadle.runtime.build import printed_for

    try:
        with _within(_SECONDS):
            parts = kernel.in_parts(block).launchers if kernel.waits_for_grid else ()
            for one in [part.definition for part in parts] or [kernel]:
                printed_for(one, one.signature, TARGETS[target], block, dynamic)
    except (_TooLong, Exception) as error:  # noqa: BLE001
        return _words(unit, kernel.with_source(error) if isinstance(error, CompileError) else error)
    return ""


def _words(unit: Unit, error: BaseException) -> str:
    """An error's place, message and source line, in three lines."""
    if isinstance(error, _TooLong):
        return f"it takes more than {_SECONDS} s"
    if isinstance(error, CompileErrors) and error.errors:
        error = error.errors[0].with_source(error.source_text)
    if isinstance(error, CompileError):
        shown = ""
        if error.span.line and error.source_text is not None:
            lines = error.source_text.splitlines()
            shown = lines[error.span.line - 1] if error.span.line <= len(lines) else ""
        place = f"{_relative(unit, error.file)}:{error.line}"
        return f"{place}\n{error.message}\n{shown.strip()[:200]}"
    if isinstance(error, TreadleError):
        return f"{unit.name}:0\n{error}\n"
    last = traceback.extract_tb(error.__traceback__)[-1]
    where = f"{Path(last.filename).name}:{last.lineno}"
    return f"{unit.name}:0\nCRASH {type(error).__name__}: {error} ({where})\n"


def _relative(unit: Unit, file: str) -> str:
    return file.removeprefix(f"{unit.root}/")


# --- how a file is compiled ----------------------------------------------------------------------


def _missing(path: Path, defines: dict[str, str], folders: list[str]) -> list[str]:
    """The headers that neither the project nor CUDA has, as far as is known."""
    try:
        made = preprocess(read(path), str(path), defines, [Path(one) for one in folders], True)
    except CompileError:
        return []
    return [
        name
        for name, _ in made.unknown_headers
        if why_missing(name) == NOT_FOUND or name.startswith("boost/")
    ]


def _options(unit: Unit) -> tuple[dict[str, str], list[str]]:
    """Macros and folders: those of a Makefile beside it, and where the headers that it and its
    headers name lie in the project."""
    path = unit.root / unit.name
    defines: dict[str, str] = {}
    folders = [path.parent]
    for makefile in (path.parent / "Makefile", path.parent.parent / "Makefile"):
        if makefile.is_file():
            defines, found = makefiles.options(makefile)
            folders += found
            break
    todo, seen = [path], set[Path]()
    while todo:
        file = todo.pop()
        if file in seen or len(seen) > 400:
            continue
        seen.add(file)
        for wanted in INCLUDED.findall(file.read_text(encoding="utf-8", errors="replace")):
            there = [file.parent, *folders]
            known = next((one / wanted for one in there if (one / wanted).is_file()), None)
            if known is None:
                known = _nearest(unit, wanted)
                if known is not None:
                    folders.append(Path(str(known)[: -len(wanted) - 1]))
            if known is not None:
                todo.append(known)
    return defines, [str(one) for one in dict.fromkeys((*folders, *unit.libraries))]


def _nearest(unit: Unit, wanted: str) -> Path | None:
    """The project's header of that name that is nearest to the file."""
    if wanted.startswith("."):
        return None
    found = [one for one in unit.others if one == wanted or one.endswith(f"/{wanted}")]
    own = unit.name.split("/")

    def shared(other: str) -> int:
        parts = other.split("/")
        return next((i for i, (a, b) in enumerate(zip(own, parts, strict=False)) if a != b), 0)

    near = sorted(found, key=lambda one: (-shared(one), len(one)))
    if not near or (own[0].endswith("-cuda") and not shared(near[0])):
        return None
    return unit.root / near[0]
