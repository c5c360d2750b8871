"""Templates: template parameters, and the declarations after them."""

from __future__ import annotations

from dataclasses import replace

from treadle.cuda_cpp.source.tokens import IDENTIFIER
from treadle.cuda_cpp.syntax import (
    constraints,
    declarations,
    declarators,
    expressions,
    host_code,
    names,
    tree,
    types,
)
from treadle.cuda_cpp.syntax.cursor import (
    CLASS_TEMPLATE,
    CONCEPT,
    FUNCTION_TEMPLATE,
    TYPE,
    VALUE,
    Cursor,
)
from treadle.cuda_cpp.syntax.lookahead import name_end


def template(c: Cursor, place: str) -> tuple[tree.Declaration, ...]:
    """`template <…> …`; an explicit instantiation (`template void f<int>(…);`) is ignored."""
    if c.texts[c.index + 1] != "<":
        c.index = host_code.extent(c, c.index).end
        return ()
    mark = c.mark
    found_parameters: list[tree.TemplateParameter] = []
    clause: tree.Expression | None = None
    while c.texts[c.index] == "template":
        c.index += 1
        found_parameters.extend(parameters(c))
        if c.texts[c.index] == "requires":
            clause = constraints.both(clause, constraints.clause(c))
    clause = constraints.both(constraints.of_parameters(found_parameters), clause)
    _declare_ahead(c)
    found = _templated(c, place, tuple(found_parameters))
    if clause is not None:
        found = tuple(constraints.constrained(one, clause) for one in found)
    c.forget(mark)
    for declaration in found:
        _declare(c, declaration)
    return found


def _templated(
    c: Cursor, place: str, parameters: tuple[tree.TemplateParameter, ...]
) -> tuple[tree.Declaration, ...]:
    if c.texts[c.index] == "using":
        return (declarations.using(c, parameters),)
    if c.texts[c.index] == "concept":
        return (constraints.concept(c, parameters),)
    if declarations.guide_follows(c):
        return (declarations.deduction_guide(c, parameters),)
    return declarations.after_specifiers(c, types.specifiers(c), place, parameters)


def _declare_ahead(c: Cursor) -> None:
    """Declare a class template before its members."""
    at = c.index + 1
    if c.texts[c.index] not in ("struct", "class", "union"):
        return
    while c.kinds[at] != IDENTIFIER:
        if c.texts[at] in ("", "{", ";"):
            return
        at = max(at + 1, c.partners[at] + 1)
    c.declare(c.texts[at], CLASS_TEMPLATE)


def _declare(c: Cursor, declaration: tree.Declaration) -> None:
    """Declare a template in the enclosing scope."""
    if isinstance(declaration, tree.FunctionDeclaration):
        name = declaration.name
        if not name.scope and name.text not in c.class_names[-1:]:  # nor a constructor
            c.declare(declaration.name.text, FUNCTION_TEMPLATE, function=True)
    elif isinstance(declaration, tree.StructDeclaration | tree.TypedefDeclaration):
        if not getattr(declaration, "scope", ()):  # a nested one is known in its class
            c.declare(declaration.name, CLASS_TEMPLATE)
    elif isinstance(declaration, tree.VariableDeclaration):
        is_concept = "concept" in declaration.specifiers
        c.declare(declaration.name, CONCEPT if is_concept else FUNCTION_TEMPLATE)


def parameters(c: Cursor) -> list[tree.TemplateParameter]:
    """`<typename T, int N = 4, class... Rest>`"""
    c.expect("<", "after 'template'")
    c.deeper()
    outside, c.in_angles = c.in_angles, True
    found: list[tree.TemplateParameter] = []
    while not c.texts[c.index].startswith(">"):
        parameter = _parameter(c, len(found))
        found.append(parameter)
        if parameter.name:
            c.declare(parameter.name, _KINDS[parameter.kind], parameter=True)
        if not c.accept(","):
            break
    c.in_angles = outside
    names.close_angles(c, "the template parameters")
    c.levels -= 1
    return found


_KINDS = {"type": TYPE, "value": VALUE, "template": CLASS_TEMPLATE}


def _parameter(c: Cursor, place: int) -> tree.TemplateParameter:
    text, span = c.text, c.span
    if text == "template":
        return _template_parameter(c)
    if c.kinds[c.index] == IDENTIFIER or text == "::":
        end, kind = name_end(c, c.index)
        if kind == CONCEPT and c.texts[end] != "auto":
            return _constrained_parameter(c, place)
    if text in ("typename", "class") and _introduces_type(c):
        c.index += 1
        pack = c.accept("...")
        name = ""
        if c.kinds[c.index] == IDENTIFIER:
            name, span = names.identifier(c, "the parameter")
        default: tree.TemplateArgument | None = None
        if c.accept("="):
            default = types.type_name(c)
        return tree.TemplateParameter("type", name, None, default, pack, span)
    known = len(c.uses.names)
    before = types.specifiers(c)
    c.uses.of_parameters += c.uses.names[known:]
    if before.type is None:
        raise c.problem(f"expected a template parameter, found {c.found()}")
    found = declarators.declarator(c, before.type, abstract=True)
    value: tree.TemplateArgument | None = None
    if c.accept("="):
        value = expressions.conditional(c)
    name = found.name.text if found.name is not None else ""
    made = tree.TemplateParameter("value", name, found.type, value, found.pack, found.span)
    concept = constraints.concept_of(found.type)
    if concept is None:
        return made
    made = replace(made, name=name or f"constrained:{place}")
    of = tree.DecltypeType(tree.Name(made.name, span=span), span)
    return replace(made, constraint=constraints.applied(concept, of, made.pack))


def _constrained_parameter(c: Cursor, place: int) -> tree.TemplateParameter:
    """`std::integral T`, `Same<int>... T`"""
    concept = names.name(c, of_type=True)
    pack = c.accept("...")
    name, span = f"constrained:{place}", concept.span
    if c.kinds[c.index] == IDENTIFIER:
        name, span = names.identifier(c, "the parameter")
    default = types.type_name(c) if c.accept("=") else None
    of = tree.NamedType(tree.Name(name, span=span), span)
    constraint = constraints.applied(concept, of, pack)
    return tree.TemplateParameter("type", name, None, default, pack, span, constraint=constraint)


def _introduces_type(c: Cursor) -> bool:
    """Whether this `typename` begins a type parameter, not `typename T::x = value`."""
    if c.texts[c.index + 1] == "::":
        return False
    if c.kinds[c.index + 1] != IDENTIFIER:
        return True
    end, _ = name_end(c, c.index + 1)
    return end == c.index + 2


def _template_parameter(c: Cursor) -> tree.TemplateParameter:
    """`template <typename> class C`"""
    span = c.span
    c.index += 1
    mark = c.mark
    parameters(c)
    c.forget(mark)
    if not c.accept("class"):
        c.expect("typename", "after the parameters of a template template parameter")
    pack = c.accept("...")
    name = ""
    if c.kinds[c.index] == IDENTIFIER:
        name, span = names.identifier(c, "the parameter")
    default: tree.TemplateArgument | None = None
    if c.accept("="):
        default = tree.NamedType(names.name(c, of_type=True), c.span)
    return tree.TemplateParameter("template", name, None, default, pack, span)


# --- auto as the type of a parameter -------------------------------------------------------------


def abbreviated(
    given: tuple[tree.Parameter, ...],
) -> tuple[tuple[tree.Parameter, ...], tuple[tree.TemplateParameter, ...]]:
    """Parameters whose type has `auto` in it, with a template parameter of its own in its place."""
    found: list[tree.Parameter] = []
    invented: list[tree.TemplateParameter] = []
    for place, parameter in enumerate(given):
        name = f"auto:{place}"
        type = _with_name(parameter.type, name)
        if type is not parameter.type:
            made = tree.TemplateParameter("type", name, pack=parameter.pack, span=parameter.span)
            concept = constraints.concept_of(parameter.type)
            if concept is not None:
                of = tree.NamedType(tree.Name(name, span=concept.span), concept.span)
                made = replace(made, constraint=constraints.applied(concept, of, made.pack))
            parameter = replace(parameter, type=type)
            invented.append(made)
        found.append(parameter)
    return tuple(found), tuple(invented)


def _with_name(type: tree.TypeTree, name: str) -> tree.TypeTree:
    match type:
        case tree.AutoType(span=span):
            return tree.NamedType(tree.Name(name, span=span), span)
        case tree.ConstType(of) | tree.ArrayType(of):
            inner = _with_name(of, name)
            return type if inner is of else replace(type, of=inner)
        case tree.PointerType(to) | tree.ReferenceType(to):
            inner = _with_name(to, name)
            return type if inner is to else replace(type, to=inner)
    return type
