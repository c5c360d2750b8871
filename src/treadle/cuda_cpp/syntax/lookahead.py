"""Lookahead: does a type, a declaration or a template argument list begin here?

A parser of C++ must know which names are types. A name that the text does not declare, as its
header is not available, is judged by the tokens around it. Nothing here moves the cursor, and each
lookahead is bounded, so that parsing takes linear time for any text.
"""

from __future__ import annotations

from treadle.cuda_cpp.source.tokens import CHARACTER, IDENTIFIER, NUMBER, STRING
from treadle.cuda_cpp.syntax.cursor import (
    CLASS_TEMPLATE,
    CONCEPT,
    FUNCTION_TEMPLATE,
    KEYWORD,
    NAMESPACE,
    TYPE,
    VALUE,
    Cursor,
)
from treadle.cuda_cpp.syntax.keywords import (
    ATTRIBUTE_WORDS,
    CLASS_WORDS,
    CV_WORDS,
    DECLARATION_WORDS,
    DECLTYPE_WORDS,
    FUNDAMENTAL_WORDS,
    RESTRICT_WORDS,
    SPECIFIER_WORDS,
)

_FARTHEST = 256  # tokens that a lookahead from a `<` may read
_POINTERS = frozenset(("*", "&", "&&"))
_AFTER_DECLARATOR = frozenset(("=", ";", ",", "[", "{", "(", ":"))
_BEFORE_DECLARED_NAME = _POINTERS | CV_WORDS | RESTRICT_WORDS
_BETWEEN_TYPE_AND_NAME = CV_WORDS | RESTRICT_WORDS | ATTRIBUTE_WORDS | frozenset(SPECIFIER_WORDS)
_TYPE_KINDS = frozenset((TYPE, CLASS_TEMPLATE))
_NEVER_IN_ANGLES = frozenset(
    (";", "}", ")", "]", "", "?", "=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", "<<<")
)
_ANGLE_ENDS = frozenset((",", ">", ">>", ">>>", "...", ">=", ">>="))


def angles_end(c: Cursor, index: int, logic: bool = False) -> int:
    """The index after the template arguments that may begin with the `<` at `index`, or -1.

    If they end within a `>>`, it is the index of that token. `logic`: whether they may contain `&&`
    and `||`. After an unknown name these are a sign of comparisons.
    """
    key = (index, logic)
    known = c.skipped.get(key)
    if known is None:
        known = c.skipped[key] = _angles_end(c, index, logic)
    return known


def _angles_end(c: Cursor, index: int, logic: bool) -> int:
    texts, partners = c.texts, c.partners
    if not c.angle_stops[index]:
        return -1
    depth, at = 1, index + 1
    for _ in range(_FARTHEST):
        text = texts[at]
        if text == "<":
            depth += 1
        elif text in (">", ">>", ">>>"):
            depth -= len(text)
            if depth <= 0:
                return at + 1 if depth == 0 else at
        elif text in ("(", "[", "{"):
            at = partners[at]
            if at < 0:
                return -1
        elif text in _NEVER_IN_ANGLES or (
            text in ("&&", "||") and not logic and texts[at + 1] not in (">", ",", "...")
        ):
            return -1
        at += 1
    return -1


def name_end(c: Cursor, index: int) -> tuple[int, str | None]:
    """The end of the name at `index`, which may be qualified, and its kind; (-1, None) if none."""
    texts, kinds = c.texts, c.kinds
    at = index
    qualified = texts[at] == "::"
    if qualified:
        at += 1
    scope = ""
    while True:
        if kinds[at] != IDENTIFIER:
            return (-1, None)
        text = texts[at]
        kind = known_as(c, text, scope)
        at += 1
        if texts[at] == "<" and kind not in (TYPE, VALUE, NAMESPACE):
            end = angles_end(c, at, logic=qualified or kind is not None)
            if end > 0:
                at = end
        if texts[at] != "::":
            return (at, kind)
        at += 1
        if texts[at] == "template":
            at += 1
        scope = text
        qualified = True


def member_pointer_end(c: Cursor, index: int) -> int:
    """The index of the `*` if `A::*` of a pointer to a member begins at `index`, or else -1."""
    texts = c.texts
    at = index + (texts[index] == "::")
    if c.kinds[at] != IDENTIFIER or texts[at + 1] not in ("::", "<"):
        return -1
    while c.kinds[at] == IDENTIFIER:
        at += 1
        if texts[at] == "<":
            at = angles_end(c, at, logic=True)
        if at < 0 or texts[at] != "::":
            return -1
        at += 1
        if texts[at] == "*":
            return at
        at += texts[at] == "template"
    return -1


def known_as(c: Cursor, name: str, scope: str = "") -> str | None:
    """The kind that a name is declared as, in the namespace or class `scope` if one is given."""
    if not scope:
        return c.names.get(name)
    members = c.members.get(scope)
    return members.get(name) if members is not None else None


def type_end(c: Cursor, index: int) -> tuple[int, bool]:
    """The end of the type at `index`, with its `*`, `&` and `[]`, and whether it is certainly one.

    (-1, False) if it is not a type.
    """
    texts, kinds = c.texts, c.kinds
    at = index
    seen = sure = False
    while True:
        text = texts[at]
        if text in CV_WORDS:
            sure = True
            at += 1
        elif text in FUNDAMENTAL_WORDS:
            seen = sure = True
            at += 1
        elif seen:
            break
        elif text == "typename" or text in CLASS_WORDS or text == "enum":
            of_decltype = texts[at + 1] in DECLTYPE_WORDS
            end, _ = _decltype_end(c, at + 1) if of_decltype else name_end(c, at + 1)
            if end < 0:
                return (-1, False)
            seen = sure = True
            at = end
        elif text == "auto":
            seen = sure = True
            at += 1
        elif text in DECLTYPE_WORDS and texts[at + 1] == "(":
            at, is_type = _decltype_end(c, at)
            if at <= 0:
                return (-1, False)
            sure = sure or is_type
            seen = True
        elif kinds[at] == IDENTIFIER or text == "::":
            end, kind = name_end(c, at)
            if end > 0 and texts[end] == "auto":  # `std::integral auto`
                sure, kind, end = True, TYPE, end + 1
            if end < 0 or kind in (VALUE, FUNCTION_TEMPLATE, CONCEPT, NAMESPACE):
                return (-1, False)
            sure = sure or kind in _TYPE_KINDS
            seen = True
            at = end
        else:
            return (-1, False)
    return _declarator_end(c, at, sure)


def _declarator_end(c: Cursor, at: int, sure: bool) -> tuple[int, bool]:
    """`type_end` for the abstract declarator at `at`."""
    texts = c.texts
    while True:
        text = texts[at]
        if text in _POINTERS or text in CV_WORDS or text in RESTRICT_WORDS:
            at += 1
        elif (star := member_pointer_end(c, at)) > 0:
            at = star + 1
        elif text == "[" and (sure or texts[at + 1] == "]"):
            if c.partners[at] < 0:
                return (-1, False)
            at = c.partners[at] + 1
        elif text == "(" and _is_pointer(c, at + 1) and sure and _holds_declarator(c, at):
            at = c.partners[at] + 1
            if texts[at] == "(" and c.partners[at] > 0:
                at = c.partners[at] + 1
                at += texts[at] == "const"  # of a member function
        else:
            return (at, sure)


def _holds_declarator(c: Cursor, opener: int) -> bool:
    """Whether the parentheses have only a declarator in them, as `(*)`, `(&x)[3]` and `(*f(int))`:
    `T(&x, 1)` makes an object."""
    texts, close, at = c.texts, c.partners[opener], opener + 1
    while _is_pointer(c, at) or texts[at] in CV_WORDS or texts[at] in RESTRICT_WORDS:
        at = max(at, member_pointer_end(c, at)) + 1
    at += texts[at] == "..."
    at += c.kinds[at] == IDENTIFIER
    while texts[at] in ("[", "(") and c.partners[at] > 0:
        at = c.partners[at] + 1
    return at == close


def _is_pointer(c: Cursor, at: int) -> bool:
    return c.texts[at] in _POINTERS or member_pointer_end(c, at) > 0


def cast_follows(c: Cursor) -> bool:
    """Whether the `(` here begins a C cast, `(type)operand`."""
    opener = c.index
    close = c.partners[opener]
    if close < 0:
        return False
    end, sure = type_end(c, opener + 1)
    if end != close:
        return False
    kind, text = c.kinds[close + 1], c.texts[close + 1]
    operand = kind in (IDENTIFIER, NUMBER, STRING, CHARACTER) or (
        kind == KEYWORD and text not in SPECIFIER_WORDS
    )
    if sure:
        return operand or text in ("(", "-", "+", "*", "&", "!", "~", "++", "--", "{", "::", "[")
    if c.texts[close - 1] in _POINTERS:
        return operand or text in ("(", "&", "-", "+", "*", "~", "!")
    return kind in (IDENTIFIER, NUMBER, STRING, CHARACTER) or text in (
        "this", "true", "false", "nullptr", "sizeof", "!", "~"
    )  # fmt: skip


def type_argument_follows(c: Cursor) -> bool:
    """Whether the template argument here is a type, as far as the tokens tell."""
    end, sure = type_end(c, c.index)
    if end < 0:
        return False
    text = c.texts[end]
    if sure and text == "(":  # a function type, or a functional cast
        close = c.partners[end]
        inner = type_end(c, end + 1)
        return close > 0 and (close == end + 1 or inner[1])
    if text not in _ANGLE_ENDS:
        return False
    return sure or c.texts[end - 1] in _POINTERS or c.texts[end - 1] in CV_WORDS


def arguments_follow(c: Cursor, kind: str | None, after_dot: bool, qualified: bool) -> bool:
    """Whether the `<` here, after a name in an expression, begins template arguments."""
    if kind in (VALUE, TYPE, NAMESPACE):
        return False
    known = kind in (CLASS_TEMPLATE, FUNCTION_TEMPLATE, CONCEPT)
    end = angles_end(c, c.index, logic=known)
    if known:
        return True
    if end < 0 and qualified and not after_dot:
        end = angles_end(c, c.index, logic=True)
    if end < 0:
        return False
    text, token_kind = c.texts[end], c.kinds[end]
    if text in ("(", "::"):
        return True
    if after_dot:
        return False
    # With an operand after the `>` it would be a comparison.
    return token_kind not in (IDENTIFIER, NUMBER, STRING, CHARACTER) and text not in (
        "+", "-", "*", "&", "!", "~", "++", "--", "sizeof", "this", "true", "false"
    )  # fmt: skip


def declaration_follows(c: Cursor) -> bool:
    """Whether a declaration begins here, not an expression."""
    at = c.index
    text, kind = c.texts[at], c.kinds[at]
    if kind == KEYWORD:
        if text in FUNDAMENTAL_WORDS or text in ("decltype", "typename", "__typeof__"):
            return _declares(c, at)
        return text in DECLARATION_WORDS
    if kind != IDENTIFIER:
        return text == "::" and _declares(c, at)
    following = c.texts[at + 1]
    if c.names.get(text) == VALUE and following != "::":
        return False
    return _declares(c, at)


def _declares(c: Cursor, index: int) -> bool:
    """Whether a type followed by a declarator begins at `index`."""
    texts, kinds = c.texts, c.kinds
    by_name = kinds[index] != KEYWORD
    if by_name:
        at, kind = name_end(c, index)
        sure = kind in _TYPE_KINDS
        if at > 0 and texts[at] == "auto":  # `std::integral auto`
            return True
        if kind in (VALUE, FUNCTION_TEMPLATE, CONCEPT):
            return False
    else:
        at, sure = _specifiers_end(c, index)
    if at < 0:
        return False
    if kinds[at] == IDENTIFIER:
        return True
    text = texts[at]
    if text == "(":
        return sure and parenthesized_declarator_follows(c, at)
    if text in _BETWEEN_TYPE_AND_NAME:
        return True
    if not by_name:
        return text != "{"
    return text in _POINTERS and (sure or _pointer_to_unknown(c, at))


def _pointer_to_unknown(c: Cursor, at: int) -> bool:
    """Whether the `*` or `&` after an unknown name belongs to a declarator: the name is a type."""
    texts = c.texts
    while texts[at] in _POINTERS:
        at += 1
        if texts[at] in CV_WORDS or texts[at] in RESTRICT_WORDS:
            return True
    if texts[at - 1] == "&&" and texts[at + 1] == "(":  # `ready && run();`
        return False
    return c.kinds[at] == IDENTIFIER and texts[at + 1] in _AFTER_DECLARATOR


def _specifiers_end(c: Cursor, index: int) -> tuple[int, bool]:
    """The end of a type that begins with a keyword, without its `*` and `&`."""
    texts = c.texts
    at = index
    while texts[at] in FUNDAMENTAL_WORDS or texts[at] in CV_WORDS:
        at += 1
    if at > index:
        return (at, True)
    if texts[at] == "typename":
        of_decltype = texts[at + 1] in DECLTYPE_WORDS
        end, _ = _decltype_end(c, at + 1) if of_decltype else name_end(c, at + 1)
        return (end, end > 0)
    if texts[at + 1] == "(" and c.partners[at + 1] > 0:  # decltype
        end, is_type = _decltype_end(c, at)
        return (end, is_type) if is_type or c.kinds[end] == IDENTIFIER else (-1, False)
    return (-1, False)


def _decltype_end(c: Cursor, at: int) -> tuple[int, bool]:
    """The end of `decltype(x)` or `decltype(x)::a` at `at`, -1 without one, and whether it is a
    type: of `a` that is not known."""
    end = c.partners[at + 1] + 1
    if end <= 0 or c.texts[end] != "::":
        return (end if end > 0 else -1, True)
    return (name_end(c, end + 1)[0], False)


def parenthesized_declarator_follows(c: Cursor, index: int) -> bool:
    """Whether the `(` at `index`, after a type, begins a declarator: `(*p)`, `(&r)[4]`, `(x)`.

    `T (x) = 1;` reads like a cast of x as well. C++ takes a statement that can be a declaration
    for one ([stmt.ambig]).
    """
    close = c.partners[index]
    if close < 0 or c.texts[close + 1] not in _AFTER_DECLARATOR:
        return False
    return _is_declarator(c, index + 1, close)


def _is_declarator(c: Cursor, at: int, close: int) -> bool:
    """Whether the tokens from `at` up to the parenthesis at `close` declare a name."""
    texts, partners = c.texts, c.partners
    closing = [close]  # the parentheses around the name, the innermost last
    while True:
        while texts[at] in _BEFORE_DECLARED_NAME or member_pointer_end(c, at) > 0:
            at = max(at, member_pointer_end(c, at)) + 1
        if texts[at] != "(" or partners[at] < 0:
            break
        closing.append(partners[at])
        at += 1
    if c.kinds[at] != IDENTIFIER:
        return False
    at += 1
    while closing:
        while texts[at] == "[" or (texts[at] == "(" and parameters_follow(c, at, in_block=True)):
            if partners[at] < 0:
                return False
            at = partners[at] + 1
        if at != closing.pop():
            return False
        at += 1
    return True


def parameters_follow(c: Cursor, index: int, *, in_block: bool) -> bool:
    """Whether the `(` at `index`, after a declared name, begins parameters, not an initializer."""
    texts, kinds = c.texts, c.kinds
    at = index + 1
    if texts[at] in (")", "...") or (texts[at] == "[" and texts[at + 1] == "["):
        return True
    if texts[at] in ATTRIBUTE_WORDS or texts[at + (texts[at] in CV_WORDS)] in SPECIFIER_WORDS:
        return True
    if kinds[at] in (NUMBER, STRING, CHARACTER):
        return False
    end, sure = type_end(c, at)
    if end < 0:
        return False
    text = texts[end]
    if kinds[end] == IDENTIFIER:
        # `a * b` of unknown names is a product where an initializer may follow.
        return sure or not in_block or texts[end - 1] not in _POINTERS
    if text in (",", ")", "=", "...", "[") or (text == "(" and texts[end + 1] == "*"):
        return sure or not in_block
    # `int f(int (x))` declares a function in C++. In a block, its author means a cast.
    return text == "(" and not in_block and _is_declarator(c, end + 1, c.partners[end])
