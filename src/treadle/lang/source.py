"""Finds the source of a function, with positions in the user's file.

Source comes from the file, the notebook cell (both through `linecache`), the interactive prompt,
`python -c`, or a given text. It is compared with the function's bytecode (`source_text`), since it
may be stale or a guess.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import linecache
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import CodeType, FrameType, FunctionType
from typing import Any
from weakref import WeakKeyDictionary

from treadle.core.errors import CompileError
from treadle.core.nesting import deep_nesting, too_deep
from treadle.core.source import Span
from treadle.lang import source_text


@dataclass(frozen=True)
class Source:
    """A function's syntax tree, with the offsets of its positions in the user's file."""

    file: str
    text: str  # of the whole file or cell, which line numbers refer to
    tree: ast.FunctionDef
    line_offset: int  # added to the tree's line numbers

    def span(self, node: ast.AST) -> Span:
        """Where a node of the tree is."""
        line = getattr(node, "lineno", 0)
        if not line:
            return Span(self.file)
        line += self.line_offset
        start: int = node.col_offset  # type: ignore[attr-defined]
        end = getattr(node, "end_col_offset", None)
        if getattr(node, "end_lineno", None) != node.lineno or end is None:  # type: ignore[attr-defined]
            end = start + 1
        start, end = self._characters(line, start), self._characters(line, end)
        return Span(self.file, line, start + 1, end + 1)

    def span_of_line(self, number: int) -> Span:
        """A line of the file, without its indentation."""
        line = self._lines[number - 1] if number <= len(self._lines) else ""
        return Span(self.file, number, len(line) - len(line.lstrip()) + 1, len(line.rstrip()) + 1)

    @cached_property
    def _lines(self) -> list[str]:
        return self.text.splitlines()

    def _characters(self, line: int, byte: int) -> int:
        """The character column of a byte column (the parser counts in UTF-8)."""
        lines = self._lines
        if line > len(lines) or lines[line - 1].isascii():
            return byte
        return len(lines[line - 1].encode()[:byte].decode(errors="replace"))


# Each with its code object, since reloaders replace the code of existing functions.
_sources: WeakKeyDictionary[FunctionType, tuple[CodeType, Source]] = WeakKeyDictionary()


def source_of(function: FunctionType) -> Source:
    """The source of a Python function. CompileError if there is none (it names
    `td.kernel(source=…)`), or if the file was edited and no longer matches the running code."""
    code = function.__code__
    known = _sources.get(function)
    if known is None or known[0] is not code:
        known = _sources[function] = code, _find(function)
    return known[1]


def _find(function: FunctionType) -> Source:
    code = function.__code__
    for lines, first in source_text.places_of(function):
        found = _from_lines(lines, first, code)
        if found is not None:
            return found
    for text in _guesses(code):
        place = source_text.first_line_of(code, text)
        found = None
        if place is not None:
            found = _from_lines(text.splitlines(keepends=True), place, code)
        if found is not None:
            return found
    here = Span(code.co_filename, code.co_firstlineno, 1, 1)
    if source_text.current_lines(function):
        raise CompileError(
            f"the text of {code.co_filename} is not what {function.__qualname__} was made from: it "
            "was edited after that. Reload the module (importlib.reload), or restart Python; if "
            "that does not help, save the file again, since Python kept its bytecode of an earlier "
            "text",
            here,
        )
    raise CompileError(
        f"the source of {function.__qualname__} can't be found (it was made in {code.co_filename}, "
        "not in a file, a notebook cell or at the prompt): put it into a file; a kernel's text may "
        "be given, as in td.kernel(source=text)",
        here,
    )


def _from_lines(lines: list[str], first: int, code: CodeType) -> Source | None:
    """The function that starts at line `first` of these lines, from 0."""
    name = code.co_name
    if first >= len(lines):
        return None
    try:
        block = inspect.getblock(lines[first:])
        text = "".join(block)
        # Under an `if`, an indented block keeps its columns.
        indented = text[:1] in " \t"
        tree = ast.parse(("if 1:\n" if indented else "") + text)
    except (SyntaxError, IndentationError, EOFError):
        return None
    body = tree.body[0].body if indented else tree.body  # type: ignore[attr-defined]
    node = body[0] if body else None
    if isinstance(node, ast.AsyncFunctionDef):
        raise CompileError(
            f"{name} is async: a kernel is an ordinary function, written with def",
            Span(code.co_filename, code.co_firstlineno, 1, 1),
            "".join(lines),
        )
    if not isinstance(node, ast.FunctionDef) or node.name != name:
        return None
    return Source(code.co_filename, "".join(lines), node, first - (1 if indented else 0))


def _guesses(code: CodeType) -> Iterator[str]:
    """Texts that may hold the source where `linecache` has none."""
    if code.co_filename == "<string>" and "-c" in sys.orig_argv:
        yield sys.orig_argv[sys.orig_argv.index("-c") + 1]
    if code.co_filename.startswith("<stdin") or code.co_filename.startswith("<python-input"):
        yield from _typed_at_the_prompt()
    if code.co_filename == "<exec>":
        yield from _run_by_pyodide()


def _run_by_pyodide() -> Iterator[str]:
    """The texts that Pyodide's `runPython` is running, innermost first: it keeps them to itself
    where the page gave them no file name."""
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        if frame.f_code.co_filename.endswith("_pyodide/_base.py"):
            text = getattr(frame.f_locals.get("self"), "_source", None)
            if isinstance(text, str):
                yield text
        frame = frame.f_back


def _typed_at_the_prompt() -> Iterator[str]:
    """The last lines typed at Python's prompt, in increasing numbers."""
    try:
        import readline
    except ImportError:
        return
    last = readline.get_current_history_length()
    typed: list[str] = []
    for at in range(last, max(last - 500, 0), -1):
        typed.insert(0, readline.get_history_item(at) + "\n")
        if not typed[0][:1].isspace():
            yield "".join(typed)


def function_from_text(text: str, name: str | None, namespace: Mapping[str, Any]) -> FunctionType:
    """A function that `text` defines, ready for `source_of`: the one called `name`, or the only one
    that is not a helper (helpers are decorated with @td.func)."""
    # The name depends on the text alone: positions are a part of the key of compiled code, which
    # must be the same in every process.
    digest = hashlib.sha256(text.encode(errors="replace")).hexdigest()
    file = f"<kernel source {digest[:12]}>"
    try:
        tree = ast.parse(text, file)
        compile(text, file, "exec")  # finds errors that the parser accepts, as a stray nonlocal
    except SyntaxError as error:
        raise CompileError(
            f"the source text is not Python: {error.msg}",
            Span(file, error.lineno or 0, error.offset or 1, (error.end_offset or 1)),
            text,
        ) from None
    except (RecursionError, MemoryError):  # nested too deeply for Python's parser
        raise too_deep("the source text", Span(file, 1, 1, 1)) from None
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    names = [node.name for node in functions]
    wanted = name or _only_kernel(functions, file, text)
    if wanted is None or wanted not in names:
        raise CompileError(
            f"the source text defines {'no function' if not names else ', '.join(names)}"
            + (f", not {name}" if name else "")
            + ": write def name(…): …",
            Span(file, 1, 1, 1),
            text,
        )
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    # The caller applies the decorators itself.
    chosen = [node for node in functions if node.name == wanted]
    for node in chosen:
        node.decorator_list.clear()
    scope: dict[str, Any] = {"__name__": "treadle_kernel_source", **namespace}
    with deep_nesting(wanted):
        exec(compile(tree, file, "exec"), scope)
    function = scope[wanted]
    assert isinstance(function, FunctionType)
    _sources[function] = function.__code__, Source(file, text, chosen[-1], 0)
    return function


def _only_kernel(functions: list[ast.FunctionDef], file: str, text: str) -> str | None:
    """The only function that is not a helper; CompileError if there are several."""
    plain = [node.name for node in functions if not any(map(_is_func, node.decorator_list))]
    if len(set(plain)) > 1:
        raise CompileError(
            f"the source text defines {', '.join(plain)}: say which is the kernel with name=…, or "
            "decorate the others with @td.func",
            Span(file, functions[-1].lineno, 1, 1),
            text,
        )
    return plain[-1] if plain else functions[-1].name if functions else None


def _is_func(decorator: ast.expr) -> bool:
    return ast.unparse(decorator).split(".")[-1] == "func"


def parameters_of(tree: ast.FunctionDef) -> list[ast.arg]:
    """The parameters of a function, those that are given by name only last."""
    return [*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs]


def resolve_annotations(
    owner: Callable[..., Any] | type, local_names: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Annotations with strings evaluated, as `from __future__ import annotations` makes them.

    `local_names` are the names where the function was defined, for types that are local there.
    """
    annotations = dict(getattr(owner, "__annotations__", {}))
    if isinstance(owner, type):
        module = sys.modules.get(owner.__module__)
        known: dict[str, Any] = dict(vars(module)) if module else {}
        if local_names is None:
            local_names = _frames_above()
    else:
        known = dict(getattr(owner, "__globals__", {}))
        closure = getattr(owner, "__closure__", None) or ()
        for name, cell in zip(owner.__code__.co_freevars, closure, strict=False):
            try:
                known[name] = cell.cell_contents
            except ValueError:
                continue
    for name, annotation in annotations.items():
        try:
            # A quoted annotation under `from __future__ import annotations` is a string in a
            # string.
            for _ in range(2):
                if isinstance(annotation, str):
                    annotation = eval(annotation, known, dict(local_names or {}))
        except Exception as error:  # noqa: BLE001 - whatever the user's annotation raises
            raise CompileError(
                f"the annotation {annotation!r} of {name} in {owner.__qualname__} can't be "
                f"evaluated: {error}",
                *_place_of_annotation(owner, name),
            ) from None
        annotations[name] = annotation
    # Any does not constrain: the parameter takes its type from the call.
    return {name: found for name, found in annotations.items() if found is not Any}


def _place_of_annotation(owner: Any, name: str) -> tuple[Span, str | None]:
    """The position of a parameter's (or the result's) annotation, if the source is known."""
    if not isinstance(owner, FunctionType):
        return Span(), None
    source = source_of(owner)
    arguments = source.tree.args
    every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
    nodes = {each.arg: each.annotation for each in every}
    node = source.tree.returns if name == "return" else nodes.get(name)
    return source.span(node or source.tree), source.text


def _frames_above() -> dict[str, Any]:
    """The local names of the first frame outside this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and is_own_file(frame.f_code.co_filename):
        frame = frame.f_back
    return dict(frame.f_locals)


_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_LIBRARY = os.path.join(_HERE, "math") + os.sep


def is_own_file(name: str) -> bool:
    """Whether a file belongs to this package, except its library of kernels."""
    return name.startswith(_HERE) and not name.startswith(_LIBRARY)
