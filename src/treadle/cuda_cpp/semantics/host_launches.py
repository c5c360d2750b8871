"""Launches in host code (`kernel<<<grid, block>>>(…)`), which is not parsed: what a compiler
refuses of them is found among its tokens. Only what is certain counts: names that anything but a
kernel may have are left alone, and so are arguments with `<`, whose commas may be a template's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from treadle.core.errors import CompileError
from treadle.cuda_cpp.source.tokens import IDENTIFIER, Token
from treadle.cuda_cpp.syntax import tree

_OPENERS, _CLOSERS = frozenset("([{"), frozenset(")]}")
_STARTS = frozenset((";", "{", "}"))
_BEFORE_CALLS = frozenset(("return", "else", "do"))
_BEFORE_NAMES = frozenset(("*", "&", "&&", ">", "::", ".", "->"))
_FORM = "kernel<<<grid, block>>>(…)"


@dataclass(frozen=True, slots=True)
class _Taken:
    """How many arguments the kernels of a name take, at least and at most."""

    least: int
    most: int


def launch_errors(declarations: Sequence[tree.Declaration]) -> Iterator[CompileError]:
    """The errors in launches of the file's kernels from host code."""
    hosts: list[tree.HostCode] = []
    kernels: dict[str, list[tree.FunctionDeclaration]] = {}
    others: set[str] = set()
    _collect(declarations, hosts, kernels, others)
    known = {
        name: _Taken(
            min(sum(each.default is None for each in one.parameters) for one in group),
            max(len(one.parameters) for one in group),
        )
        for name, group in kernels.items()
        if name not in others
    }
    for host in hosts:
        yield from _in_function(host.tokens, known)


def _collect(
    declarations: Sequence[tree.Declaration],
    hosts: list[tree.HostCode],
    kernels: dict[str, list[tree.FunctionDeclaration]],
    others: set[str],
) -> None:
    """Host functions, kernels by name, and the names of other things, and of templates, whose packs
    take any number of arguments."""
    for one in declarations:
        match one:
            case tree.NamespaceDeclaration():
                _collect(one.members, hosts, kernels, others)
            case tree.HostCode():
                others.update(one.names)
                if one.what == "function" and not one.span.file.startswith("<built"):
                    hosts.append(one)
            case tree.FunctionDeclaration() if "global" in one.specifiers and not one.template:
                kernels.setdefault(one.name.text, []).append(one)
            case tree.FunctionDeclaration():
                others.add(one.name.text)
            case _:
                others.add(getattr(one, "name", ""))


def _in_function(tokens: Sequence[Token], kernels: dict[str, _Taken]) -> Iterator[CompileError]:
    named = {one.text for one in tokens} & kernels.keys()
    if not named and not any(one.text == "<<<" for one in tokens):
        return
    plain = {name: kernels[name] for name in named - _declared(tokens, named)}
    for at in range(1, len(tokens) - 1):
        token, following = tokens[at], tokens[at + 1].text
        if token.kind != IDENTIFIER:
            continue
        if following == "<<<":
            yield from _launch(tokens, at, plain.get(token.text))
        elif token.text in plain and tokens[at - 1].text in _STARTS:
            if following == "<<" and tokens[at + 2].text != "<":  # nvcc takes `<< <`
                yield _error(token, f"a launch has three angle brackets: {_FORM}")
            elif following == "(":
                yield _error(
                    token, f"the kernel {token.text} is called, not launched: write {_FORM}"
                )


def _declared(tokens: Sequence[Token], names: set[str]) -> set[str]:
    """The names that a function declares itself: a word, `*` or `&` stands before them."""
    return {
        token.text
        for before, token in pairwise(tokens)
        if token.text in names
        and (
            before.text in _BEFORE_NAMES
            or (before.kind == IDENTIFIER and before.text not in _BEFORE_CALLS)
        )
    }


def _launch(tokens: Sequence[Token], at: int, kernel: _Taken | None) -> Iterator[CompileError]:
    name = tokens[at]
    end, commas, certain = _closed(tokens, at + 2, ">>>")
    if end < 0 and any((a.text, b.text) == (">>", ">") for a, b in pairwise(tokens[at:])):
        return  # nvcc takes `>> >`
    if end < 0:
        yield _error(name, f"this launch of {name.text} has no >>>: write {_FORM}")
        return
    if commas == 0:
        yield _error(name, f"a launch has a grid and a block: {_FORM}")
        return
    if certain and commas > 3:
        parts = "a grid, a block, bytes of shared memory and a stream at most"
        yield _error(name, f"a launch has {parts}, and this one {commas + 1} values in <<<>>>")
        return
    if tokens[end].text != "(":
        yield _error(name, f"behind >>> are the arguments of {name.text} in parentheses: {_FORM}")
        return
    close, commas, certain = _closed(tokens, end + 1, ")")
    if close < 0 or not certain or kernel is None:
        return
    given = commas + (close > end + 2)
    if not kernel.least <= given <= kernel.most:
        least = "" if kernel.least == kernel.most else f"{kernel.least} to "
        takes = f"kernel {name.text} takes {least}{kernel.most} arguments"
        yield _error(name, f"{takes}, and this launch has {given}")


def _closed(tokens: Sequence[Token], at: int, closing: str) -> tuple[int, int, bool]:
    """The index behind what closes a list that begins at `at` (-1 if nothing does), the commas in
    it, and whether these surely separate its parts."""
    depth = commas = 0
    certain = True
    for place in range(at, len(tokens) - 1):
        text = tokens[place].text
        if depth == 0 and text == closing:
            return place + 1, commas, certain
        if text in _OPENERS:
            depth += 1
        elif text in _CLOSERS:
            depth -= 1
        elif text == "," and depth == 0:
            commas += 1
        elif text in ("<", "..."):
            certain = False
        if text == ";" or depth < 0:
            break
    return -1, commas, False


def _error(token: Token, message: str) -> CompileError:
    return CompileError(message, token.span)
