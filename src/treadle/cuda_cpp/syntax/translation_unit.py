"""Translation units: namespaces, device code, and the host code between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from treadle.core.errors import CompileError
from treadle.core.nesting import deep_nesting
from treadle.cuda_cpp.source.tokens import IDENTIFIER, Token
from treadle.cuda_cpp.syntax import attributes, declarations, host_code, names, tree
from treadle.cuda_cpp.syntax.cursor import NAMESPACE, Cursor, SyntaxProblem, Uses
from treadle.cuda_cpp.syntax.grammar import GRAMMAR
from treadle.cuda_cpp.syntax.nested_definitions import moved_inside


@dataclass(frozen=True, slots=True)
class Parsed:
    """A file's tree, its syntax errors, and what its device functions use."""

    unit: tree.TranslationUnit
    errors: tuple[CompileError, ...]
    uses: Uses


def parse(tokens: Sequence[Token], texts: Mapping[str, str], file: str) -> Parsed:
    """The tree of a file. `texts` holds each file's text, for errors to show the line."""
    c = Cursor(tokens, texts, GRAMMAR)
    reader = _Reader(c)
    with deep_nesting(file):
        declared = reader.members(c.end)
    declarations, problems = moved_inside(tuple(declared))
    for problem in problems:
        c.report(problem)
    return Parsed(
        tree.TranslationUnit(declarations, file, tuple(c.statics)), tuple(c.errors), c.uses
    )


def parse_template_argument(tokens: Sequence[Token]) -> tree.TemplateArgument | None:
    """The template argument in `<…>`; None unless it is exactly one."""
    c = Cursor(tokens, {}, GRAMMAR)
    try:
        found = names.template_arguments(c)
    except SyntaxProblem:
        return None
    return found[0] if len(found) == 1 and c.at_end else None


class _Reader:
    """Parses the declarations of namespaces."""

    def __init__(self, c: Cursor) -> None:
        self.c = c
        self.after_device = False  # whether the last declaration was device code

    def members(self, end: int) -> list[tree.Declaration]:
        """Everything up to `end`."""
        c = self.c
        found: list[tree.Declaration] = []
        while c.index < end and not c.full:
            text = c.text
            if text == ";":
                c.index += 1
            elif text == "}":
                self._stray_brace()
            elif host_code.is_linkage(c):
                found.extend(self._linkage())
            elif text == "namespace" or (text == "inline" and c.texts[c.index + 1] == "namespace"):
                found.extend(self._namespace())
            else:
                found.extend(self._declaration())
        return found

    def _stray_brace(self) -> None:
        """An error after device code; in host code the `{` may come from a macro."""
        c = self.c
        if self.after_device:
            c.report(c.problem("'}' without a '{' before it"))
        c.index += 1

    def _linkage(self) -> list[tree.Declaration]:
        """`extern "C"` before a declaration or a block of them."""
        c = self.c
        c.index += 2
        if c.text != "{":
            return []
        close = c.partners[c.index]
        c.index += 1
        return self._nested(close)

    def _nested(self, close: int) -> list[tree.Declaration]:
        """The declarations up to a closing brace, or to the end if it is missing."""
        c = self.c
        found: list[tree.Declaration] = []
        try:
            c.deeper()
            found = self.members(close if close > 0 else c.end)
        except SyntaxProblem as problem:  # too deep
            c.report(problem)
        c.levels -= 1
        if close > 0 and not c.full:
            c.index = close + 1
        return found

    def _namespace(self) -> list[tree.Declaration]:
        c = self.c
        start = c.index
        opened = _namespace_path(c)
        if opened is None:
            found = host_code.extent(c, start)
            c.index = start
            return list(host_code.attempt(c, found, lambda: (declarations.namespace_alias(c),)))
        path, inlined = opened
        close = c.partners[c.index]
        c.index += 1
        for part in path:
            c.declare(part, NAMESPACE)
        mark = c.mark
        for part in path:  # what earlier parts of the namespace declare
            for name, kind in c.members.get(part, {}).items():
                c.declare(name, kind, function=True)
        members = self._nested(close)
        if path:
            c.members.setdefault(path[-1], {}).update(c.declared_since(mark))
            if not inlined:
                c.forget(mark)
        span = c.span_at(start)
        for at, part in reversed([*enumerate(path or [""])]):
            members = [tree.NamespaceDeclaration(part, tuple(members), None, span)]
            if part and at in inlined:  # its names are visible in the enclosing namespace
                members.append(tree.UsingDeclaration(tree.Name(part, span=span), True, span))
        return members

    def _declaration(self) -> tuple[tree.Declaration, ...]:
        c = self.c
        start = c.index
        c.began = before = c.uses.mark()
        if c.text == "template" and c.texts[start + 1] == "<" and self._lacks_angle(start + 1):
            c.index = max(host_code.extent(c, start).end, start + 1)
            return ()
        macro = host_code.unknown_macro_end(c)
        if macro > 0:
            return (host_code.skip(c, host_code.Extent(macro, -1, "macro", c.text, False)),)
        found = host_code.extent(c, start)
        if found.what == "block":
            return (host_code.skip(c, found),)
        self.after_device = host_code.has_device_specifier(c, start, found.head_end())
        if self.after_device:
            return self._device_code(found)
        if host_code.is_host_function(c, start, found):
            return (host_code.skip(c, found),)
        read = host_code.attempt(c, found, lambda: declarations.declaration(c, "namespace"))
        c.uses.forget(before)
        return tuple(_for_host(declaration) for declaration in read)

    def _lacks_angle(self, opener: int) -> bool:
        """Whether template parameters lack their `>`, which is reported."""
        c = self.c
        stop = host_code.after_angles(c, opener)
        lacks = c.texts[stop - 1][:1] != ">"
        if lacks:
            message = f"the parameters of this template lack their '>', before '{c.texts[stop]}'"
            c.report(c.problem(message, opener))
        return lacks

    def _device_code(self, found: host_code.Extent) -> tuple[tree.Declaration, ...]:
        c = self.c
        start, levels = c.index, c.levels
        try:
            return declarations.declaration(c, "namespace")
        except SyntaxProblem as problem:
            c.report(problem)
        failed = c.index
        c.levels, c.in_angles = levels, False
        del c.class_names[:]
        c.index = _after_error(c, start, failed, found.end)
        return ()


def _namespace_path(c: Cursor) -> tuple[list[str], list[int]] | None:
    """The names before the brace that opens a namespace, and which of them are inline; None if no
    brace follows."""
    inlined = [0] if c.accept("inline") else []
    c.index += 1
    path: list[str] = []
    try:
        attributes.attributes(c)
        while c.kinds[c.index] == IDENTIFIER:
            path.append(c.text)
            c.index += 1
            if c.accept("::") and c.accept("inline"):
                inlined.append(len(path))
        attributes.attributes(c)
    except SyntaxProblem:
        return None
    return (path, inlined) if c.text == "{" else None


def _after_error(c: Cursor, start: int, failed: int, end: int) -> int:
    """The index after an ill-formed declaration: its end, or the error, if that begins a line."""
    at = start
    while at < failed:
        partner = c.partners[at]
        at = partner + 1 if partner > at else at + 1
    begins_line = failed > start and c.tokens[failed].line > c.tokens[failed - 1].line
    if at == failed and begins_line:
        return failed
    return max(end, start + 1)


def _for_host(declaration: tree.Declaration) -> tree.Declaration:
    """The declaration; as host code, if it is a function without CUDA's specifiers or constexpr."""
    if not isinstance(declaration, tree.FunctionDeclaration):
        return declaration
    if "constexpr" in declaration.specifiers:
        return declaration
    name = declaration.name.text
    return tree.HostCode((name,), "function", "", (), declaration.span)
