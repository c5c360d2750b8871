"""One file of another project's: parsed, its kernels instantiated and printed for each target."""

from __future__ import annotations

import json
import re
import signal
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import treadle as td
from treadle.codegen.records import Target
from treadle.codegen.target import find_target
from treadle.core.dim3 import Dim3
from treadle.core.errors import CompileError, CompileErrors, TreadleError
from treadle.core.limits import Limits
from treadle.cuda_cpp.source.preprocessor import preprocess

_SECONDS = 15  # of the processor, for one kernel on one target
_BLOCK, _DYNAMIC = 256, 4096  # threads, and bytes of `extern __shared__`
_ALL_64 = frozenset({"float16", "float64", "int64", "float_atomics", "int64_atomics", "subgroups"})
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
_NUMBERS = ("32", "256", "8", "4", "1", "2", "0")  # plain choices for a template's numbers
_TYPES = ("float", "int", "double", "__half")  # and for its types
_MOST_TRIES = 16  # instances of one template
_INCLUDED = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[\"<]([^\">]+)[\">]", re.MULTILINE)
_OPTION = re.compile(r"(?<![\w-])-(D|I)[ ]*([\w./=-]+)")


@dataclass(frozen=True, slots=True)
class Unit:
    """A file, `name` below `root`; `others` are the project's files."""

    root: Path
    name: str
    others: tuple[str, ...]


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
        read = [_relative(unit, one) for one in module._program.sources]
        say(names=named, read=read)
        written = None
        for row, template in zip(named, module._program.kernels.values(), strict=True):
            if template.template and written is None:
                written = Launches(path, defines, folders)
            tries = written.of(template) if written and template.template else [()]
            say(**row, targets=_printed(unit, module, template.name, tries))


def _named(unit: Unit, template: Any) -> dict[str, Any]:
    return {
        "name": template.name,
        "file": _relative(unit, template.span.file),
        "line": template.span.line,
    }


def _printed(unit: Unit, module: Any, name: str, tries: Sequence[tuple[str, ...]]) -> Any:
    """By target "" or why not, of the first instance that is lowered; else what was said of the
    first that has arguments of the right kinds."""
    first: dict[str, str] | None = None
    for arguments in tries:
        try:
            with _within(_SECONDS):
                kernel = module.kernel(name, *arguments)
                kernel.lower(kernel.signature)
                dynamic = _DYNAMIC if kernel.has_dynamic_memory else 0
        except _TooLong:
            problem = f"it takes more than {_SECONDS} s"
        except Exception as error:  # noqa: BLE001
            problem = _words(unit, error)
        else:
            block = Dim3(min(_BLOCK, kernel.instance.most_threads or _BLOCK))
            return {target: _one(unit, kernel, block, dynamic, target) for target in TARGETS}
        if first is None or "<template argument>" in first["all"]:
            instance = f" (as {name}<{', '.join(arguments)}>)" if arguments else ""
            first = {"all": problem + instance}
    return first or {"all": "it has no instance"}


def _one(unit: Unit, kernel: Any, block: Dim3, dynamic: int, target: str) -> str:
    from treadle.runtime.build import printed_for

    try:
        with _within(_SECONDS):
            printed_for(kernel, kernel.signature, TARGETS[target], block, dynamic)
    except _TooLong:
        return f"it takes more than {_SECONDS} s"
    except Exception as error:  # noqa: BLE001
        return _words(unit, kernel.with_source(error) if isinstance(error, CompileError) else error)
    return ""


def _words(unit: Unit, error: Exception) -> str:
    """An error's place, message and source line, in three lines."""
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


def _options(unit: Unit) -> tuple[dict[str, str], list[str]]:
    """Macros and folders: those of a Makefile beside it, and where the headers that it and its
    headers name lie in the project."""
    path = unit.root / unit.name
    defines: dict[str, str] = {}
    folders = [path.parent]
    for makefile in (path.parent / "Makefile", path.parent.parent / "Makefile"):
        if makefile.is_file():
            for kind, word in _OPTION.findall(makefile.read_text(errors="replace")):
                if kind == "D":
                    name, _, value = word.partition("=")
                    if name.isidentifier():
                        defines[name] = value or "1"
                elif (makefile.parent / word).is_dir():
                    folders.append(makefile.parent / word)
            break
    todo, seen = [path], set[Path]()
    while todo:
        file = todo.pop()
        if file in seen or len(seen) > 400:
            continue
        seen.add(file)
        for wanted in _INCLUDED.findall(file.read_text(encoding="utf-8", errors="replace")):
            there = [file.parent, *folders]
            known = next((one / wanted for one in there if (one / wanted).is_file()), None)
            if known is None:
                known = _nearest(unit, wanted)
                if known is not None:
                    folders.append(Path(str(known)[: -len(wanted) - 1]))
            if known is not None:
                todo.append(known)
    return defines, [str(one) for one in dict.fromkeys(folders)]


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


# --- instances of templates ----------------------------------------------------------------------


class Launches:
    """The template arguments that a file writes after each name, wherever it does."""

    def __init__(self, path: Path, defines: dict[str, str], folders: list[str]) -> None:
        text = path.read_text(encoding="utf-8", errors="replace")
        made = preprocess(text, str(path), defines, [Path(one) for one in folders], True)
        self._tokens = [one for one in made.tokens if not one.file.startswith("<")]
        self._texts = [one.text for one in self._tokens]
        self._numbers: dict[str, str] = {}
        self._enumerators: dict[str, list[str]] = {}
        for at, text in enumerate(self._texts):
            if text == "enum":
                self._read_enumerators(at + 1)
        for at in range(2, len(self._texts) - 1):
            name, sign, value, end = self._texts[at - 2 : at + 2]
            if sign == "=" and end == ";" and value[:1].isdigit() and name.isidentifier():
                self._numbers.setdefault(name, value)

    def _read_enumerators(self, at: int) -> None:
        scoped = self._texts[at] in ("class", "struct")
        name = self._texts[at + scoped]
        words = self._texts[at + scoped : at + scoped + 300]
        if words[1:2] not in (["{"], [":"]) or not name.isidentifier():
            return
        if "{" not in words or "}" not in words[words.index("{") :]:
            return
        inside = words[words.index("{") : words.index("}", words.index("{"))]
        found = [b for a, b in pairwise(inside) if a in ("{", ",")]
        self._enumerators[name] = [f"{name}::{one}" if scoped else one for one in found if one]

    def _plain(self, parameter: Any, number: str, type: str = "float") -> str:
        """A plain argument for a parameter: the same kind of number, type or enumerator for all."""
        if parameter.kind == "type":
            return "int" if re.search(r"(?i)ind(ex|ice)|int|off", parameter.name) else type
        if parameter.type == "bool":
            return "false" if number in ("0", "2", "8") else "true"
        known = self._enumerators.get(parameter.type.rpartition("::")[2])
        return known[_NUMBERS.index(number) % len(known)] if known else number

    def of(self, template: Any) -> list[tuple[str, ...]]:
        """The instances to try: those that the file writes, then plain choices."""
        own = {one.name for one in template.template}
        name = template.name.rpartition("::")[2]
        tries: dict[tuple[str, ...], None] = {}
        for at, text in enumerate(self._texts):
            if text == name and self._texts[at + 1 : at + 2] == ["<"]:
                found = self._arguments(at + 1)
                if found is not None and len(found) <= len(template.template):
                    exact = tuple(" ".join(one) for one in found)
                    if not any(word in own for one in found for word in one):
                        tries[exact] = None
                    for number in _NUMBERS[:2]:
                        tries[self._mended(template, found, number)] = None
        for number in _NUMBERS:
            for type in _TYPES:
                wanted = (one for one in template.template if _needs(one))
                tries[tuple(self._plain(one, number, type) for one in wanted)] = None
        return list(tries)[:_MOST_TRIES]

    def _mended(self, template: Any, found: list[list[str]], number: str) -> tuple[str, ...]:
        """The arguments, with plain ones where names are those of the code around the launch."""
        made = []
        for written, parameter in zip(found, template.template, strict=False):
            text = " ".join(self._numbers.get(word, word) for word in written)
            names = [word for word in written if word.isidentifier() and word not in _WORDS]
            unknown = [word for word in names if word not in self._numbers]
            made.append(self._plain(parameter, number) if unknown else text)
        rest = filter(_needs, template.template[len(found) :])
        return (*made, *(self._plain(parameter, number) for parameter in rest))

    def _arguments(self, at: int) -> list[list[str]] | None:
        """The words of each argument between `<` at an index and its `>`."""
        depth, inside, found = 0, 0, [[]]  # type: ignore[var-annotated]
        for text in self._texts[at : at + 200]:
            if text == "<" and not inside:
                depth += 1
                if depth == 1:
                    continue
            elif text in (">", ">>") and not inside:
                depth -= len(text)
                if depth <= 0:
                    return [one for one in found if one]
            elif text in (";", "{"):
                return None
            inside += (text in ("(", "[")) - (text in (")", "]"))
            if text == "," and depth == 1 and not inside:
                found.append([])
            else:
                found[-1].append(text)
        return None


_WORDS = frozenset((
    "float", "double", "int", "unsigned", "char", "short", "long", "bool", "true", "false", "half",
    "__half", "signed", "const", "float2", "float3", "float4", "double2", "int2", "int4", "uint4",
    "uchar4", "uint8_t", "uint16_t", "uint32_t", "uint64_t", "int8_t", "int16_t", "int32_t",
    "int64_t", "size_t", "__nv_bfloat16", "sizeof",
))  # fmt: skip


def _needs(parameter: Any) -> bool:
    return parameter.default is None
