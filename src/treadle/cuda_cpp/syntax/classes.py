"""Structs, classes, unions and enums with their members."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from treadle.cuda_cpp.source.tokens import IDENTIFIER
from treadle.cuda_cpp.syntax import (
    attributes,
    declarations,
    expressions,
    host_code,
    names,
    tree,
)
from treadle.cuda_cpp.syntax.cursor import CLASS_TEMPLATE, TYPE, VALUE, Cursor, SyntaxProblem
from treadle.cuda_cpp.syntax.declspec import Specifiers
from treadle.cuda_cpp.syntax.keywords import ATTRIBUTE_WORDS, CLASS_WORDS
from treadle.cuda_cpp.syntax.lookahead import angles_end

_ACCESS_WORDS = frozenset(("public", "private", "protected"))


def class_type(c: Cursor) -> tree.TypeTree:
    """`struct A {…}`, `struct A;` or `struct A` before a declarator."""
    kind, span = c.text, c.span
    c.index += 1
    into = Specifiers(None, frozenset())
    attributes.attributes(c, into)
    name: tree.Name | None = None
    if c.kinds[c.index] == IDENTIFIER or c.text == "::":
        span = c.span
        name = names.name(c, of_type=True)
    attributes.attributes(c, into)
    final = c.accept("final")  # not a keyword
    text = c.text
    if text not in ("{", ":", ";"):
        if name is None:
            raise c.problem(f"expected '{{' after '{kind}', found {c.found()}")
        return tree.NamedType(name, span)
    packing = c.packing
    called = name.text if name is not None else ""
    scope = name.scope if name is not None else ()
    specialized = name.arguments if name is not None else None
    if called and not scope and c.names.get(called) != CLASS_TEMPLATE:
        c.declare(called, TYPE)
    members: tuple[tree.Declaration, ...] = ()
    bases: list[_Base] = []
    access = _Access(_default_access(kind))
    if text != ";":
        mark = c.mark
        declarations.declare_members_of(c, scope)
        bases = _bases(c, kind) if text == ":" else []
        members = _members(c, kind, called, access)
        c.forget(mark)
        attributes.attributes(c, into)
        if not called and c.texts[c.index] == ";":
            _declare_members_of_anonymous(c, members)
    defined = tree.StructDeclaration(
        kind,
        called,
        members,
        tuple(base for base, _ in bases),
        text != ";",
        into.alignment,
        None,
        specialized,
        False,
        1 if into.packed else packing,
        access.hidden,
        access.private,
        final,
        span,
        friends=frozenset(access.friends),
        friend_functions=frozenset(access.friend_functions),
        hidden_functions=access.hidden_functions,
        base_access=tuple(word for _, word in bases),
        scope=scope,
    )
    return tree.DefinedType(defined, span)


def _default_access(kind: str) -> str:
    return "private" if kind == "class" else "public"


_Base = tuple[tree.NamedType | tree.PackExpansion, str]


def _bases(c: Cursor, kind: str) -> list[_Base]:
    """`: public A, B<int>`, with their access."""
    found: list[_Base] = []
    c.index += 1
    while True:
        access = _default_access(kind)
        while c.text in _ACCESS_WORDS or c.text == "virtual":
            if c.text == "virtual":
                raise c.problem("virtual base classes are not supported: make the base a member")
            access = c.text
            c.index += 1
        c.accept("typename")
        span = c.span
        base = tree.NamedType(names.name(c, of_type=True), span)
        found.append((tree.PackExpansion(base, span) if c.accept("...") else base, access))
        if not c.accept(","):
            return found


@dataclass(slots=True)
class _Access:
    """Where the members of a class may be used, as it is read."""

    current: str  # of the next member
    names: dict[str, set[str]] = field(default_factory=dict)  # the names with each access
    hidden_functions: dict[tuple[object, ...], str] = field(default_factory=dict)
    friends: set[str] = field(default_factory=set)
    friend_functions: set[str] = field(default_factory=set)
    all_may: bool = False  # a friend was not read

    def add(self, members: Iterable[tree.Declaration]) -> None:
        """Note members with the current access."""
        for one in members:
            self.names.setdefault(self.current, set()).update(_names_of(one))
            if isinstance(one, tree.FunctionDeclaration) and self.current != "public":
                self.hidden_functions[signature_key(one)] = self.current

    @property
    def hidden(self) -> frozenset[str]:
        """The names that have no public member."""
        protected = self.names.get("protected", set())
        if self.all_may:
            return frozenset()
        return frozenset(protected | self.private) - self.names.get("public", set())

    @property
    def private(self) -> frozenset[str]:
        """The names that have only private members."""
        others = self.names.get("public", set()) | self.names.get("protected", set())
        return frozenset(self.names.get("private", set()) - others)


def signature_key(function: tree.FunctionDeclaration) -> tuple[object, ...]:
    """What tells a function of a class from others of its name, as it is written."""
    types = tuple(one.type for one in function.parameters)
    return (function.name, types, function.const, function.reference)


def _members(c: Cursor, kind: str, called: str, access: _Access) -> tuple[tree.Declaration, ...]:
    opener = c.index
    if c.text != "{":
        raise c.problem(f"expected '{{' before the members, found {c.found()}")
    close = c.closing(opener, f"the {kind}")
    c.index = opener + 1
    c.deeper()
    mark = c.mark
    c.class_names.append(called)
    _declare_types_ahead(c, close)
    found: list[tree.Declaration] = []
    try:
        while c.index < close and not c.full:
            if c.text in _ACCESS_WORDS:
                access.current = c.text
            start = c.index
            friend, is_function = _named_friend(c)
            made = _member_or_error(c, close)
            found.extend(made)
            if is_function:
                access.friend_functions.add(friend)
                access.all_may |= friend == "operator"
            elif friend:
                access.friends.add(friend)
            # Also after specifiers, as in `__device__ friend int f();`
            elif "friend" in c.texts[start : c.index]:
                functions = {name for one in made for name in _names_of(one)}
                access.friend_functions |= functions
                access.all_may |= not functions
            else:
                access.add(made)
    finally:
        c.class_names.pop()
    if called:
        c.members[called] = c.declared_since(mark)
    c.forget(mark)
    c.levels -= 1
    c.index = close + 1
    return tuple(found)


def _declare_members_of_anonymous(c: Cursor, members: tuple[tree.Declaration, ...]) -> None:
    """The members of an anonymous union are known outside of it."""
    for member in members:
        if isinstance(member, tree.VariableDeclaration) and member.name:
            c.declare(member.name, VALUE)


def _named_friend(c: Cursor) -> tuple[str, bool]:
    """The name of what a member at the cursor makes a friend without declaring it, without its
    namespaces, and whether it is a function: a class, as in `friend class B;`, `friend B;` and
    `template <class T> friend struct B;`, or the instance of a template, `friend int f<>(A);`. ""
    for other members."""
    at = c.index
    if c.texts[at] == "template" and c.texts[at + 1] == "<":
        at = angles_end(c, at + 1)
    if at < 0 or c.texts[at] != "friend":
        return "", False
    name = ""
    while c.texts[at] not in (";", "{", ""):
        if c.texts[at] == "(":
            is_instance = c.texts[at - 1] in (">", ">>") and c.texts[at - 2] != "operator"
            return (name, True) if is_instance else ("", False)
        if c.kinds[at] == IDENTIFIER or c.texts[at] == "operator":
            name = c.texts[at]
        after = angles_end(c, at) if c.texts[at] == "<" and name != "operator" else -1
        at = after if after > 0 else at + 1
    return ("" if c.texts[at] == "{" else name), False


def _names_of(member: tree.Declaration) -> tuple[str, ...]:
    """The names that a member declares in its class."""
    if isinstance(member, tree.HostCode):
        return member.names
    name = getattr(member, "name", "")
    names: tuple[str, ...] = (name.text if isinstance(name, tree.Name) else name,)
    if isinstance(member, tree.EnumDeclaration) and not member.scoped:
        names += tuple(enumerator for enumerator, _ in member.enumerators)
    return tuple(filter(None, names))


def _declare_types_ahead(c: Cursor, close: int) -> None:
    """Declare the member types of a class before its members: methods may use later ones."""
    texts = c.texts
    at = c.index
    template = False
    while at < close:
        text = texts[at]
        named = -1
        if text == "template":
            template = True
        elif text in CLASS_WORDS or text == "enum":
            named = _name_of_definition(c, at)
        elif text == "using" and texts[at + 2] == "=" and texts[at + 3] != texts[at + 1]:
            named = at + 1
        elif text == "typedef":
            while at < close and texts[at] != ";":
                at = max(at, c.partners[at]) + 1
            named = at - 1
        if named > 0 and c.kinds[named] == IDENTIFIER:
            c.declare(texts[named], CLASS_TEMPLATE if template else TYPE)
        if texts[at] in (";", "{"):
            template = False
        at = max(at, c.partners[at]) + 1


def _name_of_definition(c: Cursor, at: int) -> int:
    """The index of the name of the class or enum defined here, or -1."""
    at += 1
    while c.texts[at] in CLASS_WORDS:  # of `enum class`
        at += 1
    while c.texts[at] in ATTRIBUTE_WORDS and c.partners[at + 1] > 0:
        at = c.partners[at + 1] + 1
    return at if c.texts[at + 1] in ("{", ":", "final") else -1


def _member_or_error(c: Cursor, close: int) -> tuple[tree.Declaration, ...]:
    start, levels = c.index, c.levels
    outer, c.began = c.began, c.uses.mark()
    try:
        return _member(c, close)
    except SyntaxProblem as problem:
        if c.tolerant or problem.abandon:
            raise
        c.report(problem)
    finally:
        c.began = outer
    c.levels, c.in_angles = levels, False
    c.index = min(max(host_code.extent(c, start).end, start + 1), close)
    return ()


def _member(c: Cursor, close: int) -> tuple[tree.Declaration, ...]:
    text = c.text
    if text in _ACCESS_WORDS:
        c.index += 1
        c.expect(":", f"after '{text}'")
        return ()
    if text == ";":
        c.index += 1
        return ()
    if _named_friend(c)[0]:
        c.index = min(host_code.extent(c, c.index).end, close)
        return ()
    skipped = host_code.host_member(c)
    if skipped is not None:
        return skipped
    return declarations.declaration(c, "member")


# --- enums ---------------------------------------------------------------------------------------


def enum_type(c: Cursor) -> tree.TypeTree:
    """`enum A {…}`, `enum class A : int {…}`, or `enum A` before a declarator."""
    span = c.span
    c.index += 1
    scoped = c.accept("class") or c.accept("struct")
    attributes.attributes(c)
    name: tree.Name | None = None
    if c.kinds[c.index] == IDENTIFIER or c.text == "::":
        span = c.span
        name = names.name(c, of_type=True)
    underlying: tree.TypeTree | None = None
    if c.text == ":":
        c.index += 1
        underlying = c.grammar.type_name(c)
    called = name.text if name is not None else ""
    scope = name.scope if name is not None else ()
    if c.text != "{":
        if name is None:
            raise c.problem(f"expected '{{' after 'enum', found {c.found()}")
        if not scope:
            c.declare(called, TYPE)
        if underlying is None and c.text != ";":
            return tree.NamedType(name, span)
        return tree.DefinedType(tree.EnumDeclaration(called, (), underlying, scoped, span), span)
    mark = c.mark
    if scope:
        declarations.declare_members_of(c, scope)
    elif called:
        c.declare(called, TYPE)
    enumerators = _enumerators(c, scoped, called)
    if scope:
        c.forget(mark)
    if scope and not scoped:
        c.members.setdefault(scope[-1].text, {}).update(
            dict.fromkeys((name for name, _ in enumerators), VALUE)
        )
    defined = tree.EnumDeclaration(called, enumerators, underlying, scoped, span, scope)
    return tree.DefinedType(defined, span)


def _enumerators(
    c: Cursor, scoped: bool, called: str
) -> tuple[tuple[str, tree.Expression | None], ...]:
    found: list[tuple[str, tree.Expression | None]] = []
    c.index += 1
    mark = c.mark
    while c.text != "}":
        name, _ = names.identifier(c, "an enumerator")
        attributes.attributes(c)
        value = None
        if c.accept("="):
            value = expressions.conditional(c)
        found.append((name, value))
        c.declare(name, VALUE)
        if not c.accept(","):
            break
    c.expect("}", "at the end of the enumerators")
    if scoped:  # only the values of the next ones name them
        c.forget(mark)
    if called:
        c.members[called] = dict.fromkeys((name for name, _ in found), VALUE)
    return tuple(found)
