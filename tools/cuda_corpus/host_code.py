"""Host code as words: its functions and classes, what calls them, and what its variables are.

Nothing is parsed as C++ here: braces and parentheses are paired, and a declaration is what looks
like one. That is enough to find the template arguments of most launches.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

Words = tuple[str, ...]
_NO_FUNCTIONS = frozenset((
    "if", "for", "while", "switch", "catch", "return", "sizeof", "defined", "__launch_bounds__",
    "__attribute__", "__align__", "alignas", "decltype", "noexcept", "__maxnreg__",
))  # fmt: skip
_BETWEEN = frozenset(("const", "noexcept", "override", "final", "&", "&&"))  # `) const {`
_DECORATION = frozenset((
    "const", "static", "volatile", "constexpr", "inline", "struct", "class", "typename", "extern",
    "__restrict__", "__restrict", "*", "&", "&&", "register", "mutable",
))  # fmt: skip
_NO_TYPE = frozenset(("return", "=", "(", "delete", "new", "else", ".", "->", "+", "-", "?"))
_PAIRS = {"(": ")", "[": "]", "{": "}"}
_MOST_BACK = 60  # words from a variable's name back to the begin of its declaration


@dataclass(frozen=True, slots=True)
class Block:
    """A function's or class's body, words `start` to `end`; `template` are the names of its
    template parameters, `parameters` where those of a function begin."""

    name: str
    kind: str  # "function" or "class"
    template: Words
    start: int
    end: int
    parameters: int = 0
    path: Words = ()  # the namespaces and classes around
    special: tuple[Words, ...] = ()  # the arguments of a partial specialization

    def bound(self, given: Sequence[Words | None]) -> dict[str, Words | None]:
        """What the template parameters are for template arguments."""
        if not self.special:
            return dict(zip(self.template, given, strict=False))
        pairs = zip(self.special, given, strict=False)
        return {one[0]: other for one, other in pairs if len(one) == 1 and one[0] in self.template}


class HostCode:
    """The words of a file with all that it includes."""

    def __init__(self, words: Sequence[str]) -> None:
        self.words = words
        self._closing = _paired(words)
        self._opening = {end: start for start, end in self._closing.items()}

    @cached_property
    def blocks(self) -> list[Block]:
        """All functions and classes with bodies."""
        found: list[Block] = []
        spaces: list[tuple[int, str]] = []  # namespaces and classes that are open: end, name
        for at, word in enumerate(self.words):
            if word != "{" or at not in self._closing:
                continue
            while spaces and spaces[-1][0] < at:
                spaces.pop()
            end = self._closing[at]
            block = self._block(at, end, tuple(name for _, name in spaces if name))
            if block is not None:
                found.append(block)
            if block is not None and block.kind == "class":
                spaces.append((end, block.name))
            elif block is None and self.words[max(at - 2, 0)] == "namespace":
                spaces.append((end, self.words[at - 1]))
        return found

    def _block(self, at: int, end: int, path: Words) -> Block | None:
        before = at - 1
        while before >= 0 and self.words[before] in _BETWEEN:
            before -= 1
        if before >= 0 and self.words[before] == ")":
            opening = self._opening.get(before, 0)
            name = self.words[opening - 1] if opening else ""
            if name.isidentifier() and name not in _NO_FUNCTIONS:
                template = self._template_before(opening - 1)
                return Block(name, "function", template, at, end, opening, path)
            return None
        begin = self._begin_of_declaration(before)
        head = list(self.words[begin:at])
        for position, word in enumerate(head):
            if word in ("struct", "class") and (position == 0 or head[position - 1] not in "<,"):
                rest = [one for one in head[position + 1 :] if one not in ("__align__",)]
                while rest[:1] == ["("]:
                    rest = rest[rest.index(")") + 1 :] if ")" in rest else []
                if rest and rest[0].isidentifier():
                    template = self._template_before(begin + position)
                    behind = at - len(rest) + 1
                    special = self.arguments(behind) if self.words[behind] == "<" else None
                    return Block(
                        rest[0], "class", template, at, end, 0, path, tuple(special or ())
                    )  # fmt: skip
        return None

    def _begin_of_declaration(self, at: int) -> int:
        """The first word behind the `;`, brace or label before an index."""
        for back in range(at, max(at - 200, -1), -1):
            if self.words[back] in (";", "{", "}"):
                return back + 1
        return max(at - 200, 0)

    def _template_before(self, at: int) -> Words:
        """The names of the template parameters of what is declared at an index."""
        begin = self._begin_of_declaration(at)
        names: list[str] = []
        for position in range(begin, at):
            if self.words[position] == "template" and self.words[position + 1] == "<":
                found = self.arguments(position + 1)
                names += [_declared_name(one) for one in found or ()]
        return tuple(names)

    def around(self, at: int) -> Iterator[Block]:
        """The functions and classes around an index, the innermost first."""
        inside = [one for one in self.blocks if one.start < at < one.end]
        yield from sorted(inside, key=lambda one: -one.start)

    def arguments(self, at: int) -> list[Words] | None:
        """The words of each argument between `<` at an index and its `>`; None without an end."""
        found = self._list(at, "<", (">", ">>", ">>>"))
        return None if found is None else found[0]

    def end_of_arguments(self, at: int) -> int | None:
        """The index behind the `>` of template arguments that begin at an index."""
        found = self._list(at, "<", (">", ">>", ">>>"))
        return None if found is None else found[1]

    def call(self, at: int) -> list[Words]:
        """The arguments between `(` at an index and its `)`."""
        found = self._list(at, "(", (")",))
        return [] if found is None else found[0]

    def _list(self, at: int, opening: str, closing: Words) -> tuple[list[Words], int] | None:
        depth, inside, found = 0, 0, [list[str]()]
        for position in range(at, min(at + 400, len(self.words))):
            text = self.words[position]
            if text == opening and not inside:
                depth += 1
                if depth == 1:
                    continue
            elif text in closing and not inside:
                if depth > 1 and len(text) >= depth:  # `>>` ends an inner list, too
                    found[-1] += [">"] * (depth - 1)
                depth -= len(text)
                if depth <= 0:
                    return [tuple(one) for one in found if one], position + 1
            elif text in (";", "{") and opening == "<":
                return None
            if text != opening and text not in closing:
                inside += (text in ("(", "[", "{")) - (text in (")", "]", "}"))
            if text == "," and depth == 1 and not inside:
                found.append([])
            else:
                found[-1].append(text)
        return None

    # --- names ---

    def alias(self, name: str, around: Block) -> Words | None:
        """What `using name = …;`, `typedef … name;` or `const int name = …;` in a block says."""
        words = self.words
        for at in range(around.start, around.end):
            if words[at] != name:
                continue
            if words[at + 1] == "=" and words[at - 1] not in (".", ">"):
                first = words[self._begin_of_declaration(at)]
                end = self._end(at + 2, around.end, (";",) if first == "using" else (";", ","))
                if first in ("using", "const", "constexpr", "static"):
                    return tuple(words[at + 2 : end])
            elif words[at + 1] == ";":
                begin = self._begin_of_declaration(at)
                if words[begin] == "typedef":
                    return tuple(words[begin + 1 : at])
        return None

    def _end(self, at: int, limit: int, ends: Words = (";", ",")) -> int:
        while at < limit and self.words[at] not in ends:
            at = self._closing.get(at, at) + 1
        return at

    def type_of(self, argument: Words, at: int) -> Words | None:
        """The type of an argument of a call at an index, with `*` for each level of a pointer."""
        plain = tuple(one for one in argument if one not in ("&", "std", "move", "::"))
        if not plain:
            return None
        first = plain[0]
        if len(plain) == 1 and (first[0].isdigit() or first[0] == "."):
            return (_literal(first),)
        if first == "(" and ")" in plain and plain[-1] != ")":  # a cast
            return stripped(plain[1 : plain.index(")")])
        if not first.isidentifier():
            return None
        if plain[1:2] in (("(",), ("{",)) and self._is_class(first):
            return (first,)
        if plain[1:2] == ("<",):
            for end in range(len(plain) - 1, 1, -1):
                if plain[end] == ">" and plain[end + 1 : end + 2] in (("(",), ("{",)):
                    inner = plain[: end + 1]
                    return stripped(plain[2:end]) if first.endswith("_cast") else inner
            return None
        declared = self._declared_type(first, at)
        if declared is None:
            return None
        if "<" in plain and "data" in plain[2]:  # x.data_ptr<float>()
            return (*plain[plain.index("<") + 1 : plain.index(">")], "*")
        if plain[1:2] == (".",) and plain[2:3] in (("data",), ("get",), ("begin",)):
            inner = declared[declared.index("<") + 1 : -1] if "<" in declared else ()
            return (*inner, "*") if inner else None
        if plain[1:2] == ("[",) and declared[-1] == "*" and argument[0] != "&":
            return declared[:-1]
        return (*declared, "*") if argument[0] == "&" and "[" not in plain else declared

    def _is_class(self, name: str) -> bool:
        return any(one.name == name and one.kind == "class" for one in self.blocks)

    def _declared_type(self, name: str, at: int) -> Words | None:
        """The type that the last declaration of a name before an index gives it."""
        for block in self.around(at):
            begin = block.parameters or block.start
            for position in range(min(at, block.end) - 1, begin, -1):
                if self.words[position] == name and self.words[position + 1] in (
                    "=", ";", ",", ")", "(", "[", "{",
                ):  # fmt: skip
                    found = self._type_before(position)
                    if found == ("auto",) and self.words[position + 1] == "=":
                        end = self._end(position + 2, block.end)
                        return self.type_of(tuple(self.words[position + 2 : end]), position)
                    if found is not None:
                        return found
        return None

    def _type_before(self, at: int) -> Words | None:
        back, stars = at - 1, 0
        while self.words[back] in ("*", "&", "const", "__restrict__", "__restrict"):
            stars += self.words[back] == "*"
            back -= 1
        limit, angle, begin = max(at - _MOST_BACK, 0), 0, None
        position = back
        while position > limit:
            word = self.words[position]
            if word in (">", ">>"):
                angle += len(word)
            elif word == "<":
                angle -= 1
            elif word in (";", "{", "}") or (word == "(" and not angle):
                begin = position + 1
                break
            elif word == ")":
                position = self._opening.get(position, position)
            elif word == "," and not angle:
                begin = position + 1
                first = self._begin_of_declaration(position)
                if self.words[first:position].count("(") == self.words[first:position].count(")"):
                    begin = first  # `float *a, *b;`
                    back = position
                break
            position -= 1
        if begin is None or begin > back:
            return None
        written = self.words[begin : back + 1]
        if begin < back and "," in written and "<" not in written:
            written = written[: 1 + (written[0] in _DECORATION)]
        if any(
            one in ("return", "=", "(", "delete", "new", "else", ".", "->", "+", "-")
            for one in written
        ):
            return None
        found = stripped(written)
        return (*found, *("*" * stars)) if found and found[0].isidentifier() else None


def stripped(words: Sequence[str]) -> Words:
    """A type without const and references; `*` stay at its end."""
    stars = [one for one in words if one == "*"]
    plain = [one for one in words if one not in _DECORATION]
    return (*plain, *stars) if "<" not in plain else tuple(
        one for one in words if one not in _DECORATION or one == "*"
    )  # fmt: skip


def _literal(word: str) -> str:
    low = word.lower()
    if low.startswith("0x"):
        return "int"
    if any(sign in low for sign in ".ef"):
        return "float" if low.endswith("f") else "double"
    return "int"


def _declared_name(words: Words) -> str:
    """The name that a template parameter declares."""
    end = words.index("=") if "=" in words else len(words)
    names = [one for one in words[:end] if one.isidentifier()]
    return names[-1] if names else ""


def _paired(words: Sequence[str]) -> dict[int, int]:
    """The index of the closing mark of each opening one."""
    found: dict[int, int] = {}
    open_marks: list[int] = []
    for at, word in enumerate(words):
        if word in _PAIRS:
            open_marks.append(at)
        elif word in (")", "]", "}"):
            while open_marks and _PAIRS[words[open_marks[-1]]] != word:
                open_marks.pop()
            if open_marks:
                found[open_marks.pop()] = at
    return found
