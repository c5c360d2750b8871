"""Types in the source: decl-specifiers in any order, and type-ids."""

from __future__ import annotations

from treadle.core.source import Span
from treadle.cuda_cpp.source.tokens import IDENTIFIER
from treadle.cuda_cpp.syntax import attributes, classes, declarators, expressions, names, tree
from treadle.cuda_cpp.syntax.cursor import Cursor
from treadle.cuda_cpp.syntax.declspec import Specifiers
from treadle.cuda_cpp.syntax.keywords import (
    ATTRIBUTE_WORDS,
    CLASS_WORDS,
    CV_WORDS,
    DECLTYPE_WORDS,
    FUNDAMENTAL_WORDS,
    SPECIFIER_WORDS,
)
from treadle.cuda_cpp.syntax.lookahead import member_pointer_end, name_end

_BEGINNINGS = FUNDAMENTAL_WORDS | SPECIFIER_WORDS.keys() | CLASS_WORDS | {"template", "typedef"}
_DECLARATOR_STARTS = frozenset(("*", "&", "&&", "(", "["))


# --- specifiers ----------------------------------------------------------------------------------


def specifiers(c: Cursor) -> Specifiers:
    """The specifiers before a declaration's declarators; `type` is None for constructors."""
    found = Specifiers(None, frozenset(), span=c.span)
    words: set[str] = set()
    fundamental: list[str] = []
    const = volatile = False
    while True:
        text = c.texts[c.index]
        word = SPECIFIER_WORDS.get(text)
        if word is not None:
            c.index += 1
            if word:
                words.add(word)
            if text == "consteval":
                words.add(text)
            if word == "explicit" and c.texts[c.index] == "(":
                close = c.closing(c.index, "explicit")
                if c.texts[c.index + 1 : close] != ["true"]:  # it may be used without a cast
                    words.discard("explicit")
                c.index = close + 1
        elif text in CV_WORDS:
            c.index += 1
            const = const or "const" in text
            volatile = volatile or "volatile" in text
        elif text in FUNDAMENTAL_WORDS:
            if found.type is not None:
                break
            fundamental.append(text)
            c.index += 1
        elif text in ATTRIBUTE_WORDS or (text == "[" and c.texts[c.index + 1] == "["):
            attributes.attribute(c, found)
        elif text == "typedef":
            c.index += 1
            found.typedef = True
        elif found.type is not None or fundamental:
            break
        else:
            found.type = _named(c)
            if found.type is None or _forgets_semicolon(c, found.type):
                break
    if fundamental:
        found.type = _fundamental(c, fundamental, found.span)
    if found.type is not None and (const or volatile):
        found.type = tree.ConstType(found.type, const, volatile, found.span)
    found.words |= frozenset(words)
    return found


def _named(c: Cursor) -> tree.TypeTree | None:
    """A type that is not fundamental; None if none begins here."""
    text, span = c.text, c.span
    if text in CLASS_WORDS:
        return classes.class_type(c)
    if text == "enum":
        return classes.enum_type(c)
    if text == "auto":
        c.index += 1
        return tree.AutoType(span)
    if text in DECLTYPE_WORDS:
        return _decltype(c)
    if text == "typename":
        c.index += 1
        if c.text in DECLTYPE_WORDS:
            return _decltype(c)
        return tree.NamedType(names.name(c, of_type=True), span)
    if c.kinds[c.index] != IDENTIFIER and text != "::":
        return None
    if _constructor_follows(c):
        return None
    name = names.name(c, of_type=True)
    if not name.scope and name.text not in c.names:
        c.uses.names.append(name)
    if c.accept("auto"):  # a concept
        return tree.AutoType(span, concept=name)
    return tree.NamedType(name, span)


def _forgets_semicolon(c: Cursor, kind: tree.TypeTree) -> bool:
    """Whether the `;` after a definition is missing at the end of its line, which is reported."""
    if not isinstance(kind, tree.DefinedType) or c.texts[c.index] not in _BEGINNINGS:
        return False
    if c.tokens[c.index].line == c.tokens[c.index - 1].line:
        return False
    c.expect_semicolon("the definition")
    return True


def _decltype(c: Cursor) -> tree.TypeTree:
    span = c.span
    c.index += 1
    c.expect("(", "after 'decltype'")
    if c.text == "auto":
        c.index += 1
        c.expect(")", "after 'decltype(auto'")
        return tree.AutoType(span, exact=True)
    inner = c.index if c.text == "(" else -1
    operand = expressions.bracketed(c)
    parentheses = inner >= 0 and c.partners[inner] == c.index - 1
    c.expect(")", "after the operand of decltype")
    found = tree.DecltypeType(operand, span, parentheses)
    if not c.accept("::"):
        return found
    scope = [tree.Name(tree.OF_TYPE, arguments=(found,), span=span)]
    return tree.NamedType(names.name(c, of_type=True, scope=scope), span)


def _constructor_follows(c: Cursor) -> bool:
    """Whether the name here declares a constructor or conversion function, which has no type."""
    at = c.index
    texts = c.texts
    if c.class_names and texts[at] == c.class_names[-1] and texts[at + 1] == "(":
        # `A (*p)` declares a pointer; `A(A*)` a constructor.
        return texts[at + 2] not in ("*", "&")
    end, _ = name_end(c, at)
    if end < 0:  # A::operator float, A::~A
        while c.kinds[at] == IDENTIFIER or texts[at] == "::":
            at += 1
            if texts[at] == "<":
                return _constructor_of_template(c, at)
        return texts[at] in ("~", "operator") and texts[at - 1] == "::"
    if texts[end] != "(":
        return False
    last = texts[end - 1]
    return texts[end - 2] == "::" and (
        texts[end - 3] == last or (texts[end - 3] == ">" and texts[at] == last)
    )


def _constructor_of_template(c: Cursor, at: int) -> bool:
    while c.texts[at] not in ("::", ";", "{", ""):
        at += 1
    return c.texts[at] == "::" and c.texts[at + 1] in ("~", "operator")


def _fundamental(c: Cursor, words: list[str], span: Span) -> tree.TypeTree:
    """The canonical spelling of words such as `long unsigned int long`."""
    rest = sorted(word for word in words if word not in ("int", "__signed__"))
    spelled = _SPELLINGS.get(" ".join(rest))
    if spelled is None or (words.count("int") > (spelled in _WITH_INT)):
        raise c.problem(f"'{' '.join(words)}' is not a type", c.index - 1)
    return tree.BuiltinType(spelled, span)


_SINGLE_WORDS = ("void", "bool", "char", "wchar_t", "char16_t", "char32_t", "float", "double")
_SPELLINGS = {
    "": "int",
    "signed": "int",
    "unsigned": "unsigned int",
    "short": "short",
    "short signed": "short",
    "short unsigned": "unsigned short",
    "long": "long",
    "long signed": "long",
    "long unsigned": "unsigned long",
    "long long": "long long",
    "long long signed": "long long",
    "long long unsigned": "unsigned long long",
    "__int64": "long long",
    "__int64 unsigned": "unsigned long long",
    "char signed": "signed char",
    "char unsigned": "unsigned char",
    "double long": "long double",
    "__int128": "__int128",
    "__int128 signed": "__int128",
    "__int128 unsigned": "unsigned __int128",
    "_Bool": "bool",
} | dict(zip(_SINGLE_WORDS, _SINGLE_WORDS, strict=True))
_WITH_INT = frozenset(
    ("int", "unsigned int", "short", "unsigned short", "long", "unsigned long", "long long",
     "unsigned long long")
)  # fmt: skip


# --- type-ids ------------------------------------------------------------------------------------


def type_name(c: Cursor) -> tree.TypeTree:
    """A type-id, as in a cast: `const float *`."""
    found = specifiers(c)
    if found.type is None:
        raise c.problem(f"expected a type, found {c.found()}")
    if c.texts[c.index] not in _DECLARATOR_STARTS and member_pointer_end(c, c.index) < 0:
        return found.type
    result = declarators.declarator(c, found.type, abstract=True)
    if result.pack and c.texts[c.index - 1] == "...":
        c.index -= 1  # `T &...` in a list, whose expansion is the list's
    if result.function is not None:
        return tree.FunctionType(result.type, result.function.parameters, found.span)
    return result.type


def conversion_type(c: Cursor) -> tree.TypeTree:
    """The type after `operator`, which has no parentheses."""
    found = specifiers(c)
    if found.type is None:
        raise c.problem(f"expected an operator or a type after 'operator', found {c.found()}")
    return declarators.pointers(c, found.type)
