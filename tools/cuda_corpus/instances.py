"""Template arguments for a file's kernels: those of its launches, as far as its host code tells
them, and plain ones else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice, pairwise, product
from pathlib import Path
from typing import Any

from tools.cuda_corpus.host_code import Block, HostCode, Words, stripped
from treadle.cuda_cpp.source.preprocessor import preprocess

_NUMBERS = ("32", "256", "8", "4", "1", "2", "0")  # plain choices for a template's numbers
_PLAIN_TYPE = "float"
_TYPES = ("float", "int", "double", "__half")  # and for its types
_MOST_TRIES, _MOST_CALLERS, _MOST_DEEP, _MOST_GUESSES = 20, 6, 6, 6
_MOST_FUNCTIONS = 12
_NUMBER_TYPES = ("int", "bool", "unsigned int", "unsigned", "size_t", "unsigned long", "char")
Instance = tuple[str, ...]


class Launches:
    """The instances that a file launches."""

    def __init__(self, path: Path, defines: dict[str, str], folders: list[str]) -> None:
        text = path.read_text(encoding="utf-8", errors="replace")
        made = preprocess(text, str(path), defines, [Path(one) for one in folders], True)
        self._words = [one.text for one in made.tokens if not one.file.startswith("<")] + [""] * 3
        self._code = HostCode(self._words)
        self._numbers: dict[str, str] = {}
        self._enumerators: dict[str, list[str]] = {}
        for at, text in enumerate(self._words):
            if text == "enum":
                self._read_enumerators(at + 1)
        for at in range(2, len(self._words) - 1):
            name, sign, value, end = self._words[at - 2 : at + 2]
            if sign == "=" and end == ";" and value[:1].isdigit() and name.isidentifier():
                self._numbers.setdefault(name, value)

    def _read_enumerators(self, at: int) -> None:
        scoped = self._words[at] in ("class", "struct")
        name = self._words[at + scoped]
        words = self._words[at + scoped : at + scoped + 300]
        if words[1:2] not in (["{"], [":"]) or not name.isidentifier():
            return
        if "{" not in words or "}" not in words[words.index("{") :]:
            return
        inside = words[words.index("{") : words.index("}", words.index("{"))]
        found = [b for a, b in pairwise(inside) if a in ("{", ",")]
        self._enumerators[name] = [f"{name}::{one}" if scoped else one for one in found if one]

    def of(self, template: Any) -> list[Instance]:
        """The instances to try: those that the file launches, then with plain arguments for what it
        does not tell, then plain ones."""
        tries: dict[Instance, None] = {}
        own = {one.name for one in template.template}
        written = [
            one for one in islice(self._launched(template), 24)
            if not any("..." in (words or ()) for words in one)
        ]  # fmt: skip
        for found in written:  # completely known ones first
            if all(found[: sum(map(_needs, template.template))]) and len(found) >= sum(
                map(_needs, template.template)
            ):
                exact = tuple(" ".join(one) for one in found if one)
                if not any(word in own for one in found for word in one or ()):
                    tries[exact] = None
        for number in _NUMBERS[:2]:
            for found in written:
                tries[self._mended(template, found, number)] = None
        for type in _TYPES:
            for number in _NUMBERS:
                wanted = (one for one in template.template if _needs(one))
                tries[tuple(self._plain(one, number, type) for one in wanted)] = None
        return list(tries)[:_MOST_TRIES]

    def _plain(self, parameter: Any, number: str, type: str = "float") -> str:
        """A plain argument for a parameter: the same kind of number, type or enumerator for all."""
        if parameter.kind == "type":
            return "int" if re.search(r"(?i)ind(ex|ice)|int|off", parameter.name) else type
        if parameter.type == "bool":
            return "false" if number in ("0", "2", "8") else "true"
        known = self._enumerators.get(parameter.type.rpartition("::")[2])
        return known[_NUMBERS.index(number) % len(known)] if known else number

    def _mended(self, template: Any, found: list[Words | None], number: str) -> Instance:
        """The arguments, with plain ones for what is unknown, or a name of the code around."""
        made = []
        pack = [one for one in template.template if one.pack] * len(found)
        for written, parameter in zip(found, (*template.template, *pack), strict=False):
            text = " ".join(self._numbers.get(word, word) for word in written or ())
            names = [word for word in written or () if word.isidentifier() and word not in _WORDS]
            unknown = [word for word in names if not self._is_known(word)]
            if unknown and "<" in (written or ()) and self._is_known(names[0]):  # X<KNOWN, OPEN>
                text = " ".join("1" if one in unknown else one for one in text.split())
                unknown = []
            made.append(self._plain(parameter, number) if unknown or not text else text)
        rest = filter(_needs, template.template[len(found) :])
        return (*made, *(self._plain(parameter, number) for parameter in rest))

    def _is_known(self, name: str) -> bool:
        if name in self._numbers or name in self._enumerators or name == "std":
            return True
        return any(one.name == name and one.kind == "class" for one in self._code.blocks)

    # --- launches ---

    def _launched(self, template: Any) -> Iterator[list[Words | None]]:
        """The arguments of each launch; None for those that are not known."""
        name = template.plain
        for at, word in enumerate(self._words):
            if word != name:
                continue
            given: list[Words] = []
            behind = at + 1
            if self._words[behind] == "<":
                given = self._code.arguments(behind) or []
                behind = self._code.end_of_arguments(behind) or behind
            arguments = self._passed(behind)
            if (not given and arguments is None) or len(given) > len(template.template):
                continue
            found: list[Words | None] = list(given)
            for parameter in template.template[len(given) :]:
                if parameter.pack:
                    found += self._passed_to_pack(template, parameter.name, arguments or [], at)
                    break
                deduced = self._deduced(template, parameter.name, arguments or [], at)
                if deduced is None and parameter.default is not None:
                    break
                found.append(deduced)
            yield from self._resolved(found, at)

    def _passed(self, at: int) -> list[Words] | None:
        """The arguments of `<<<…>>>(…)` at an index."""
        words, text = self._words, ""
        end = at
        while len(text) < 3 and words[end] and set(words[end]) == {"<"}:
            text += words[end]
            end += 1
        if text != "<<<":
            return None
        depth = 0
        for position in range(end, min(end + 300, len(words))):
            depth += (
                (words[position] in "([{") - (words[position] in ")]}") if words[position] else 0
            )
            if (not depth and words[position] == "(") or words[position] in (";", ""):
                break
            if not depth and words[position].endswith(">") and words[position + 1] == "(":
                return self._code.call(position + 1)
        return None

    def _deduced(self, template: Any, name: str, arguments: list[Words], at: int) -> Words | None:
        for parameter, argument in zip(template.parameters, arguments, strict=False):
            pattern = re.findall(r"[A-Za-z_]\w*|[<>,*]", parameter.type)
            if name not in pattern:
                continue
            type = self._code.type_of(argument, at)
            if type is None:
                continue
            pattern = [one for one in pattern if one not in ("const", "__restrict__", "volatile")]
            found = _matched(pattern, list(type), name)
            if found:
                return found
        return None

    def _passed_to_pack(
        self, template: Any, name: str, arguments: list[Words], at: int
    ) -> Iterator[Words]:
        """The types of a launch's arguments for a parameter pack: `P ...` of a pack of the function
        around."""
        fixed = [name in re.findall(r"\w+", one.type) for one in template.parameters]
        first = fixed.index(True) if True in fixed else len(arguments)
        for argument in arguments[first:]:
            if argument[-1] == "...":
                yield self._pack_of(argument[0], at) or ("...",)
            else:
                yield self._code.type_of(argument, at) or (_PLAIN_TYPE,)

    def _pack_of(self, name: str, at: int) -> Words | None:
        """`P ...` for a parameter `P... name` of a function around an index."""
        for block in self._code.around(at):
            for one in self._code.call(block.parameters) if block.parameters else ():
                if one[-1] == name and "..." in one:
                    return (one[one.index("...") - 1], "...")
        return None

    def _resolved(
        self, found: list[Words | None], at: int, deep: int = 0
    ) -> Iterator[list[Words | None]]:
        """Arguments with the names of the code around a launch replaced by what these stand for."""
        for block in self._code.around(at):
            found = [self._without_aliases(one, block, at) for one in found]
            used = {word for one in found if one for word in one} & set(block.template)
            if not used:
                continue
            callers = list(islice(self._callers(block), _MOST_CALLERS)) if deep < _MOST_DEEP else []
            for given, place in callers:
                values = block.bound(given)
                made: list[Words | None] = []
                for one in found:
                    if one is not None and len(one) == 2 and one[1] == "..." and one[0] in used:
                        made += _listed(values.get(one[0]) or ())
                    elif one is None or any(w in used and not values.get(w) for w in one):
                        made.append(None)
                    else:
                        words = (new for word in one for new in (values.get(word) or (word,)))
                        made.append(tuple(words))
                yield from self._resolved(made, place, deep + 1)
            if callers:
                return
            found = [
                None if one is not None and used & set(one) else one for one in found
            ]  # fmt: skip
        yield found

    def _without_aliases(self, words: Words | None, block: Block, at: int) -> Words | None:
        for _ in range(4):
            if words is None:
                return None
            changed: list[str] = []
            for word, following in zip(words, (*words[1:], ""), strict=True):
                known = None
                if word.isidentifier() and word not in _WORDS and word not in block.template:
                    known = self._code.alias(word, block)
                own = known is not None and word in known  # `using A = A<4>;`
                changed += known if known and not (own and following == "<") else (word,)
            if tuple(changed) == words:
                return words
            words = tuple(changed[:60])
        return words

    def _callers(self, block: Block) -> Iterator[tuple[list[Words | None], int]]:
        """The template arguments that the code has for a function or class template, and where."""
        for at, word in enumerate(self._words):
            if word != block.name or block.start < at < block.end:
                continue
            behind = at + 1
            given: list[Words | None] = []
            if self._words[behind] == "<":
                given = list(self._code.arguments(behind) or [])
                behind = self._code.end_of_arguments(behind) or behind
            if block.kind == "class":
                if given and not self._is_declared(at, behind):
                    yield given, at
                continue
            if self._words[behind] != "(" or self._is_definition(behind):
                continue
            passed = self._code.call(behind)
            declared = self._code.call(block.parameters)
            for name in block.template[len(given) :]:
                pack = [one for one in declared if name in one and "..." in one]
                if pack:
                    given.append(self._types_of(passed[declared.index(pack[0]) :], at))
                else:
                    given.append(self._from_call(name, declared, passed, at))
            yield given, at

    def _types_of(self, passed: list[Words], at: int) -> Words:
        """The types of a call's arguments, with commas between; plain ones for unknown ones."""
        types = [self._code.type_of(one, at) or (_PLAIN_TYPE,) for one in passed]
        return tuple(word for one in types for word in (",", *one))[1:]

    def _from_call(
        self, name: str, declared: list[Words], passed: list[Words], at: int
    ) -> Words | None:
        for parameter, argument in zip(declared, passed, strict=False):
            if name in parameter[:-1]:
                type = self._code.type_of(argument, at)
                pattern = [
                    one for one in parameter[:-1]
                    if one not in ("const", "&", "__restrict__", "typename", "volatile")
                ]  # fmt: skip
                found = _matched(pattern, list(type), name) if type else None
                if found:
                    return found
        return None

    def _is_declared(self, at: int, behind: int) -> bool:
        """Whether a class is defined there, not named or instantiated explicitly."""
        return self._words[at - 1] in ("struct", "class") and self._words[behind] in ("{", ":")

    def _is_definition(self, parenthesis: int) -> bool:
        return any(one.parameters == parenthesis for one in self._code.blocks)

    # --- guesses by what an instance was refused for ---

    def better(self, template: Any, arguments: Instance, message: str) -> Iterator[Instance]:
        """Instances with the classes of the file that have the member which an argument lacks."""
        if "is not a function" in message:
            yield from self._with_functions(template, arguments)
            return
        needed, which = _missing_member(message)
        called = _NO_FUNCTION.search(message)
        if needed is None and called is None:
            return
        types = [
            position for position, one in enumerate(template.template[: len(arguments)])
            if one.kind == "type" and (which is None or one.name == which)
        ]  # fmt: skip
        found = self._with_member(needed) if needed else self._taken_by(called[1])  # type: ignore[index]
        guesses = list(islice(found, _MOST_GUESSES))
        guesses += [] if guesses or needed != "operator" else ["thrust::plus<float>"]
        for guess, position in product(guesses, types):
            if arguments[position] != guess:
                yield (*arguments[:position], guess, *arguments[position + 1 :])

    def _with_functions(self, template: Any, arguments: Instance) -> Iterator[Instance]:
        """Instances with the functions that the file itself gives to templates."""
        words = self._words
        known = {one.name for one in self._code.blocks if one.kind == "function"}
        given = dict.fromkeys(
            word
            for before, word, after in zip(words, words[1:], words[2:], strict=False)
            if word in known and before in ("<", ",") and after in (",", ">")
        )
        for name in islice(given, _MOST_FUNCTIONS):
            for position, one in enumerate(template.template[: len(arguments)]):
                if one.kind != "type" and one.type not in _NUMBER_TYPES:
                    yield (*arguments[:position], name, *arguments[position + 1 :])

    def _taken_by(self, function: str) -> Iterator[str]:
        """The types of the parameters of a function's overloads."""
        for block in self._code.blocks:
            if block.kind == "function" and block.name == function:
                for parameter in self._code.call(block.parameters):
                    type = stripped([one for one in parameter[:-1] if one not in "*&"])
                    if type and not set(type) & set(block.template) and "[" not in type:
                        yield " ".join(type)

    def _with_member(self, member: str) -> Iterator[str]:
        for block in self._code.blocks:
            inside = self._words[block.start : block.end]
            if block.kind != "class" or member not in inside:
                continue
            name = "::".join((*block.path, block.name))
            if not block.template:
                yield name
                continue
            seen = set()
            for given, _ in self._callers(block):
                text = ", ".join(" ".join(one or ()) for one in given)
                mentioned = {word for one in given for word in one or ()}
                open_names = {
                    word for word in mentioned
                    if word.isidentifier() and word not in _WORDS and not self._is_known(word)
                }  # fmt: skip
                if text and not open_names and text not in seen:
                    seen.add(text)
                    yield f"{name}<{text}>"
            if not seen:
                yield f"{name}<{', '.join(['float'] * len(block.template))}>"


def _matched(pattern: list[str], type: list[str], name: str) -> Words | None:
    """What a template parameter is, if a pattern of words is a type."""
    while pattern[-1:] == ["*"] and type[-1:] == ["*"]:
        pattern, type = pattern[:-1], type[:-1]
    if pattern == [name]:
        return tuple(type)
    if pattern[-1:] == ["*"] or "<" not in pattern or "<" not in type:
        return None
    inner, given = _split(pattern), _split(type)
    for one, other in zip(inner, given, strict=False):
        found = _matched(one, other, name) if name in one else None
        if found:
            return found
    return None


def _listed(words: Words) -> list[Words | None]:
    """The types of `a, b<c, d>`."""
    return [tuple(one) for one in _split(["<", *words, ">"]) if one]


def _split(words: list[str]) -> list[list[str]]:
    """The arguments of `X<a, b>`."""
    depth, found = 0, [list[str]()]
    for word in words[words.index("<") + 1 : -1]:
        depth += (word == "<") - (word == ">")
        if word == "," and not depth:
            found.append([])
        else:
            found[-1].append(word)
    return found


_MEMBER = re.compile(r"a value of type (?:[\w: ]+) has no member (\w+)")
_NO_FUNCTION = re.compile(r"no function (\w+) takes")
_OF_PARAMETER = re.compile(r"\b(\w+)::(\w+) is not (?:a known type|declared)")


def _missing_member(message: str) -> tuple[str | None, str | None]:
    """The member that an argument should have, and the parameter if that is known."""
    if found := _MEMBER.search(message):
        return found[1], None
    if found := _OF_PARAMETER.search(message):
        return found[2], found[1]
    return ("operator", None) if "cannot be called" in message else (None, None)


_WORDS = frozenset((
    "float", "double", "int", "unsigned", "char", "short", "long", "bool", "true", "false", "half",
    "__half", "half2", "__half2", "signed", "const", "float2", "float3", "float4", "double2",
    "int2", "int3", "int4", "uint2", "uint3", "uint4", "double3", "double4", "char4", "uchar3",
    "uchar4", "uint8_t", "uint16_t", "uint32_t", "uint64_t", "int8_t", "int16_t", "int32_t",
    "int64_t",
    "size_t", "__nv_bfloat16", "__nv_bfloat162", "nv_bfloat16", "sizeof", "void", "uint", "uchar",
    "ushort", "ulong",
))  # fmt: skip


def _needs(parameter: Any) -> bool:
    return parameter.default is None and not parameter.pack
