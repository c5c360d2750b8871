"""Declarations of variables, functions, typedefs and so on, in every declaration context."""

from __future__ import annotations

from dataclasses import replace

from treadle.cuda_cpp.source.tokens import IDENTIFIER
from treadle.cuda_cpp.syntax import (
    attributes,
    declarators,
    expressions,
    initializers,
    names,
    primaries,
    tree,
)
from treadle.cuda_cpp.syntax.cursor import (
    CLASS_TEMPLATE,
    FUNCTION_TEMPLATE,
    NAMESPACE,
    TYPE,
    VALUE,
    Cursor,
    SyntaxProblem,
)
from treadle.cuda_cpp.syntax.declspec import Declarator, Specifiers
from treadle.cuda_cpp.syntax.lookahead import known_as

# The context of a declaration (`place`): "namespace", "block", "member", or "range" (the head of a
# range-based for).


def declaration(c: Cursor, place: str) -> tuple[tree.Declaration, ...]:
    """One declaration, with its `;` or body."""
    text = c.texts[c.index]
    if text == "using":
        return (using(c),)
    if text == "template":
        return c.grammar.template(c, place)
    if text == "extern" and c.texts[c.index + 1] == "template":
        c.index += 1
        return c.grammar.template(c, place)
    if text in ("static_assert", "_Static_assert"):
        return (static_assert(c),)
    if text == "namespace" and place == "block":
        return (namespace_alias(c),)
    if place != "block" and guide_follows(c):
        return (deduction_guide(c, None),)
    before = c.grammar.specifiers(c)
    return after_specifiers(c, before, place)


def guide_follows(c: Cursor) -> bool:
    """Whether a deduction guide begins here: `A(T) -> A<T>;` of a class template A."""
    at = c.index
    while c.texts[at] in ("explicit", "__host__", "__device__"):
        at += 1
    if c.kinds[at] != IDENTIFIER or c.names.get(c.texts[at]) != CLASS_TEMPLATE:
        return False
    return c.texts[at + 1] == "(" and c.texts[c.partners[at + 1] + 1] == "->"


def deduction_guide(
    c: Cursor, template: tuple[tree.TemplateParameter, ...] | None
) -> tree.FunctionDeclaration:
    """`A(T, U...) -> A<T>;`"""
    while c.texts[c.index] in ("explicit", "__host__", "__device__"):
        c.index += 1
    name, span = names.identifier(c, "the class template")
    parameters, variadic = declarators.parameters(c)
    c.expect("->", "before the type of a deduction guide")
    kind = c.grammar.type_name(c)
    c.expect_semicolon("the deduction guide")
    return tree.FunctionDeclaration(
        tree.Name(f"{tree.GUIDE}{name}", span=span),
        kind,
        parameters,
        None,
        frozenset(("constexpr",)),
        template=template or None,
        variadic=variadic,
        span=span,
    )


def after_specifiers(
    c: Cursor,
    before: Specifiers,
    place: str,
    template: tuple[tree.TemplateParameter, ...] | None = None,
) -> tuple[tree.Declaration, ...]:
    """The declarators after the specifiers, up to the `;` or the end of a function's body."""
    found: list[tree.Declaration] = []
    if before.type is not None:
        defined = _definition(before.type)
        if defined is not None and (defined.name or c.at_semicolon):
            found.append(_templated(defined, template))
            before.type = _called_by_name(before.type, defined.name)
        if c.at_semicolon:
            if not found:
                raise c.problem("expected a name to declare, found ';'")
            c.expect_semicolon("the declaration")
            return tuple(found)
    while True:
        if place == "member" and c.texts[c.index] == ":":
            found.append(_variable(c, before, Declarator(None, _type(c, before)), place, template))
        else:
            declared = _declarator(c, before, place)
            if before.typedef:
                found.extend(_typedef(c, declared))
                last = found[-1] if found else None
                if isinstance(last, tree.StructDeclaration) and before.type is not None:
                    before.type = _called_by_name(before.type, last.name)
            elif declared.function is not None:
                before.words |= declared.words
                function, complete = c.grammar.function(c, before, declared, template)
                if place == "block" and function.body is not None:
                    message = f"{function.name.text} is defined in another function: {_MOVE}"
                    raise SyntaxProblem(message, declared.span)
                found.append(function)
                if complete:
                    return tuple(found)
            else:
                found.append(_variable(c, before, declared, place, template))
        if not c.accept(","):
            break
    c.expect_semicolon("the declaration")
    return tuple(found)


_MOVE = "move it out of that, or make it a lambda, auto f = [=](…) { … };"


def _type(c: Cursor, before: Specifiers) -> tree.TypeTree:
    if before.type is None:
        raise c.problem(f"expected a type, found {c.found()}")
    return before.type


def _declarator(c: Cursor, before: Specifiers, place: str) -> Declarator:
    """The next declarator; constructors, destructors and conversion functions have no type."""
    kind = before.type
    if kind is not None:
        if c.texts[c.index] == "(" and _is_unknown(c, kind) and place != "block":
            raise c.problem(f"expected a type before '{c.texts[c.index - 1]}'", c.index - 1)
        return declarators.declarator(c, kind, in_block=place == "block")
    if c.texts[c.index] not in ("~", "operator", "::") and c.kinds[c.index] != IDENTIFIER:
        raise c.problem(f"expected a declaration, found {c.found()}")
    found = declarators.declarator(c, _NO_TYPE)
    if found.function is None:
        raise c.problem(f"expected '(' after the name, found {c.found()}")
    return found


def _is_unknown(c: Cursor, kind: tree.TypeTree) -> bool:
    """Whether it is an undeclared identifier: in `f(…)` a return type is missing."""
    if not isinstance(kind, tree.NamedType) or kind.name.scope or kind.name.arguments:
        return False
    return c.names.get(kind.name.text) is None


_NO_TYPE = tree.BuiltinType("void")


def _definition(kind: tree.TypeTree) -> tree.StructDeclaration | tree.EnumDeclaration | None:
    while isinstance(kind, tree.ConstType):
        kind = kind.of
    return kind.definition if isinstance(kind, tree.DefinedType) else None


def _called_by_name(kind: tree.TypeTree, name: str) -> tree.TypeTree:
    """A type that its declaration defines, by name, for the declarators that follow."""
    if isinstance(kind, tree.ConstType):
        return replace(kind, of=_called_by_name(kind.of, name))
    return tree.NamedType(tree.Name(name, span=kind.span), kind.span)


def _templated(
    defined: tree.StructDeclaration | tree.EnumDeclaration,
    template: tuple[tree.TemplateParameter, ...] | None,
) -> tree.Declaration:
    return replace(defined, template=template) if template else defined


def _typedef(c: Cursor, declared: Declarator) -> list[tree.Declaration]:
    name = declared.name
    if name is None:
        raise c.problem(f"expected a name for the type, found {c.found()}")
    kind = declared.type
    if declared.function is not None:
        kind = tree.FunctionType(kind, declared.function.parameters, declared.span)
    attributes.attributes(c)
    c.declare(name.text, TYPE)
    if isinstance(kind, tree.NamedType) and kind.name == name:
        return []  # typedef struct A {…} A;
    if isinstance(kind, tree.DefinedType) and isinstance(kind.definition, tree.StructDeclaration):
        return [replace(kind.definition, name=name.text)]  # typedef struct {…} A;
    return [tree.TypedefDeclaration(name.text, kind, None, declared.span)]


def declare_members_of(c: Cursor, path: tuple[tree.Name, ...]) -> None:
    """Declare the names that what is defined outside of its classes sees of them."""
    for part in path:
        for member, kind in c.members.get(part.text, {}).items():
            c.declare(member, kind, function=True)


# --- variables -----------------------------------------------------------------------------------


def variable(c: Cursor, before: Specifiers, place: str) -> tree.VariableDeclaration:
    """One variable after its specifiers, with its initializer."""
    declared = declarators.declarator(c, _type(c, before), in_block=True)
    return _variable(c, before, declared, place, None)


def _variable(
    c: Cursor,
    before: Specifiers,
    declared: Declarator,
    place: str,
    template: tuple[tree.TemplateParameter, ...] | None,
) -> tree.VariableDeclaration:
    name = qualified_text(declared.name) if declared.name is not None else ""
    into = Specifiers(None, before.words, before.alignment)
    attributes.attributes(c, into)
    if place == "block" and before.words.isdisjoint(("static", "extern")):
        for word in ("device", "constant", "managed"):
            if word in before.words:
                message = f"{name} is a variable of the function, which cannot be __{word}__"
                c.report(SyntaxProblem(f"{message}: declare it outside", declared.span))
    if place != "member" and "mutable" in before.words:
        message = f"{name} is mutable, which only members of classes are: leave it out"
        c.report(SyntaxProblem(message, declared.span))
    if name:
        c.declare(name, VALUE if template is None else FUNCTION_TEMPLATE)
    bits = None
    if place == "member" and c.accept(":"):
        bits = expressions.conditional(c)
    initializer: tree.Expression | tree.InitializerList | None = None
    direct = False
    text = c.texts[c.index]
    kind = declared.type
    if text == "=":
        c.index += 1
        begin = c.index
        initializer = initializers.value(c)
        if isinstance(kind, tree.AutoType) and c.texts[begin] == "(":
            kind = replace(kind, parentheses=c.partners[begin] == c.index - 1)
    elif text == "{":
        initializer, direct = initializers.braces(c), True
    elif text == "(":
        span = c.span
        c.index += 1
        items = initializers.arguments(c, ")")
        initializer, direct = tree.InitializerList(items, span=span, braces=False), True
    made = tree.VariableDeclaration(
        name,
        kind,
        initializer,
        direct,
        before.words | declared.words,
        into.alignment,
        template or None,
        bits,
        declared.name.arguments if template is not None and declared.name is not None else None,
        declared.span,
    )
    if place == "block" and "static" in made.specifiers:
        c.statics.append(made)
    return made


def qualified_text(name: tree.Name) -> str:
    """The text of a qualified name: `A::b`."""
    return "::".join((*(part.text for part in name.scope), name.text))


# --- using, static_assert ------------------------------------------------------------------------


def using(
    c: Cursor, template: tuple[tree.TemplateParameter, ...] | None = None
) -> tree.Declaration:
    """`using a = b;`, `using ns::a;`, `using namespace ns;`, `using enum E;`"""
    span = c.span
    c.index += 1
    if c.accept("namespace"):
        name = names.name(c, of_type=True)
        c.expect_semicolon("the name of the namespace")
        for member, known in c.members.get(name.text, {}).items():
            c.declare(member, known, function=True)
        if c.names.get(name.text) != NAMESPACE:
            c.uses.namespaces.add(qualified_text(name))
        return tree.UsingDeclaration(name, True, span)
    if c.accept("enum"):
        name = names.name(c, of_type=True)
        c.expect_semicolon("the name of the enum")
        for member, known in c.members.get(name.text, {}).items():
            c.declare(member, known)
        return tree.UsingDeclaration(name, enum=True, span=span)
    alias = c.kinds[c.index] == IDENTIFIER and (
        c.texts[c.index + 1] == "=" or c.texts[c.index + 1] == "["
    )
    if alias:
        text, span = names.identifier(c, "the type")
        attributes.attributes(c)
        c.expect("=", "after the new name")
        what = TYPE if template is None else CLASS_TEMPLATE
        own = c.texts[c.index] == text  # `using A = A<4>;` of a template that the name hides
        if not own:
            c.declare(text, what)
        kind = c.grammar.type_name(c)
        if own:
            c.declare(text, what)
        c.expect_semicolon("the type")
        return tree.TypedefDeclaration(text, kind, template, span)
    is_type = c.accept("typename")
    name = names.name(c, of_type=True)
    pack = c.accept("...")
    c.expect_semicolon("the name")
    found = TYPE if is_type else known_as(c, name.text, name.scope[-1].text if name.scope else "")
    if found is not None:
        c.declare(name.text, found)
    c.uses.others.add(name.text)
    return tree.UsingDeclaration(name, False, span, pack=pack)


def static_assert(c: Cursor) -> tree.StaticAssert:
    """`static_assert(condition, "message");`"""
    span = c.span
    c.index += 1
    c.expect("(", "after 'static_assert'")
    condition = expressions.assignment(c)
    message = ""
    if c.accept(","):
        value = primaries.primary(c)
        if not isinstance(value, tree.StringLiteral):
            raise c.problem("the message of a static_assert must be a string literal", c.index - 1)
        message = value.text
    c.expect(")", "after the condition of static_assert")
    c.expect_semicolon("static_assert")
    return tree.StaticAssert(condition, message, span)


def namespace_alias(c: Cursor) -> tree.NamespaceDeclaration:
    """`namespace a = b::c;`"""
    c.index += 1
    text, span = names.identifier(c, "the namespace")
    c.expect("=", "after the new name")
    alias = names.name(c, of_type=True)
    c.expect_semicolon("the name of the namespace")
    c.declare(text, NAMESPACE)
    if alias.text in c.members:
        c.members[text] = c.members[alias.text]
    return tree.NamespaceDeclaration(text, (), alias, span)
