"""Types are checked when a file is opened: each function by itself, whatever is launched.

A body is lowered with example arguments, and its IR is thrown away. A call gives an example of its
result, so the cost is that of the text, however deep the calls go. Only what C++ itself forbids is
reported (`IllFormed`): what kernels cannot have here is the error of the kernel that has it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from treadle.core.errors import CompileError
from treadle.core.source import Span
from treadle.cuda_cpp.lower.access import refuse_hidden_destructors_in
from treadle.cuda_cpp.lower.assignment import (
    assign_pointer,
)
from treadle.cuda_cpp.lower.class_deduction import placeholder
from treadle.cuda_cpp.lower.constructors import refuse_left_out, run_initializers
from treadle.cuda_cpp.lower.context import (
    Context,
    Facts,
    LowerAgain,
    Lowering,
    Returns,
)
from treadle.cuda_cpp.lower.conversions import convert
from treadle.cuda_cpp.lower.dispatch import lower
from treadle.cuda_cpp.lower.examples import example_object, example_pointer
from treadle.cuda_cpp.lower.hierarchy import refuse_abstract
from treadle.cuda_cpp.lower.inlining import prepare_result
from treadle.cuda_cpp.lower.loops import loop_body
from treadle.cuda_cpp.lower.names import is_auto, is_const, resolve, resolved_parameter
from treadle.cuda_cpp.lower.packs import packs_of
from treadle.cuda_cpp.lower.parameters import returns_a_value
from treadle.cuda_cpp.lower.recovery import Errors
from treadle.cuda_cpp.lower.rules import RULES
from treadle.cuda_cpp.lower.special_members import CONSTRUCTORS
from treadle.cuda_cpp.lower.statements import lower_as_block, lower_statement
from treadle.cuda_cpp.lower.storage import declare_pointer
from treadle.cuda_cpp.lower.tree_analysis import assigned_names
from treadle.cuda_cpp.lower.using_declarations import unknown_of_file
from treadle.cuda_cpp.lower.values import Dependent, as_const
from treadle.cuda_cpp.lower.variables import is_constant_variable
from treadle.cuda_cpp.semantics.ill_formed import IllFormed
from treadle.cuda_cpp.semantics.scopes import (
    REFERENCE,
    DeclaredType,
    Enumerator,
    Functions,
    Namespace,
    Overload,
    Scope,
    out_of_line_methods,
)
from treadle.cuda_cpp.semantics.types import (
    VOID,
    ClassType,
    CppType,
    NoLayout,
    NumberTypes,
    Pointer,
    Reference,
)
from treadle.cuda_cpp.syntax import tree
from treadle.cuda_cpp.syntax.spelling import spell_type

_MOST_RUNS = 16  # of one function: each adds a fact about a variable
_ON_DEVICES = frozenset(("device", "global", "constexpr"))


@dataclass(frozen=True, slots=True)
class Checked:
    """What is wrong with the functions of a file, and warnings with their places."""

    errors: list[IllFormed]
    warnings: list[tuple[str, Span]]


def checked(
    unit: tree.TranslationUnit,
    scope: Scope,
    texts: Mapping[str, str],
    types: NumberTypes,
    symbols: Mapping[str, tuple[CppType, str]],
    refused: Sequence[IllFormed],
) -> Checked:
    """What is ill-formed in the functions of a file, in the file's order, and what is warned of.
    `symbols` are the types of its variables in device memory, and whether they are "constant";
    `refused` are the errors of other variables."""
    lowering = Lowering(RULES, texts, Facts(), types=types, checking=True, file=unit.file)
    cx = Context(lowering, scope)
    for name, (type, space) in symbols.items():
        lowering.symbols[name] = example_pointer(cx, name, Pointer(type), space)
    found = list(refused)
    all_known = not _uses_unknown_namespaces(unit.declarations, scope)
    if all_known:
        found += unknown_of_file(cx, unit.declarations, scope)
    for overload in _functions(cx, scope, unit.file, set(), found):
        # A function for the host, too, may use names of the host's library.
        lowering.all_names = all_known and "host" not in overload.declaration.specifiers
        found += _errors_in(lowering, overload)
    # One in our own headers says what they lack.
    found = [one for one in found if _is_of_user(one, unit.file)]
    order = {file: at for at, file in enumerate(texts)}
    found.sort(key=lambda one: (order.get(one.file, 0), one.line, one.column))
    warned = [one for one in lowering.warnings if _is_of_user_file(one[1], unit.file)]
    return Checked(list({(one.span, one.message): one for one in found}.values()), warned)


def _uses_unknown_namespaces(declarations: Sequence[tree.Declaration], scope: Scope) -> bool:
    """Whether there is a `using namespace` of a namespace that nothing declares."""
    for one in declarations:
        if isinstance(one, tree.UsingDeclaration) and one.namespace and not _is_known(one, scope):
            return True
        inside = one.members if isinstance(one, tree.NamespaceDeclaration) else ()
        if inside and _uses_unknown_namespaces(inside, scope):
            return True
    return False


def _is_known(using: tree.UsingDeclaration, scope: Scope) -> bool:
    """Whether the file declares a namespace, or the one around it."""
    first = using.name.scope[0] if using.name.scope else using.name
    return isinstance(scope.find(first.text), Namespace)


def _functions(
    cx: Context, scope: Scope, file: str, seen: set[int], errors: list[IllFormed]
) -> Iterator[Overload]:
    """The functions of a namespace or class with a body that kernels may call."""
    for name, entity in list(scope.names.items()):
        if isinstance(entity, Namespace):
            if entity.scope.kind == "namespace" and not name.startswith("<") and name != "std":
                yield from _functions(cx, entity.scope, file, seen, errors)
        elif isinstance(entity, Functions):
            for one in entity.overloads:
                if id(one.declaration) not in seen and _is_checked(one.declaration, file):
                    seen.add(id(one.declaration))
                    yield one
        elif isinstance(entity, DeclaredType):
            yield from _methods(cx, entity, file, seen, errors)


def _is_checked(one: tree.FunctionDeclaration, file: str) -> bool:
    return (
        one.body is not None
        and not one.specialization
        and not packs_of(one)
        and not one.note
        and not one.specifiers.isdisjoint(_ON_DEVICES)
        and _is_of_user(one, file)
        and not any(is_auto(parameter.type) for parameter in one.parameters)
    )


def _is_of_user(one: Any, file: str) -> bool:
    """Whether a declaration is not one of our own headers."""
    return _is_of_user_file(one.span, file)


def _is_of_user_file(span: Span, file: str) -> bool:
    return span.file == file or not span.file.startswith("<")


def _methods(
    cx: Context, entity: DeclaredType, file: str, seen: set[int], errors: list[IllFormed]
) -> Iterator[Overload]:
    declaration = entity.declaration
    if isinstance(declaration, tree.EnumDeclaration) and _is_of_user(declaration, file):
        errors += _wrong_enumerators(cx, entity, declaration)
    if not isinstance(declaration, tree.StructDeclaration) or id(declaration) in seen:
        return
    seen.add(id(declaration))
    if not declaration.complete or not _is_of_user(declaration, file):
        return
    errors += _undeclared_methods(cx, entity, declaration)
    if declaration.template is not None:
        yield from _dependent_methods(entity, declaration, file, seen)
        return
    try:
        with cx.in_scope(entity.scope):
            type = cx.rules.class_type(cx, declaration, entity.scope)
    except IllFormed as error:
        errors.append(error)
        return
    except (CompileError, NoLayout):  # the error of those who use it
        return
    if isinstance(type, ClassType) and type.scope is not None:
        yield from _functions(cx, type.scope, file, seen, errors)


def _wrong_enumerators(
    cx: Context, entity: DeclaredType, declaration: tree.EnumDeclaration
) -> Iterator[IllFormed]:
    """The errors of an enum's values."""
    try:
        for at in range(len(declaration.enumerators)):
            cx.rules.enumerator(cx, Enumerator(declaration, at, entity.scope))
    except IllFormed as error:
        yield error
    except (CompileError, NoLayout):  # a value that the host's library has
        return


def _undeclared_methods(
    cx: Context, entity: DeclaredType, declaration: tree.StructDeclaration
) -> Iterator[IllFormed]:
    """The methods that are defined out of line, and that the class does not declare."""
    if entity.specializations:  # whose methods are among these
        return
    declared: set[Any] = set()
    for member in declaration.members:
        if isinstance(member, tree.FunctionDeclaration):
            declared.add((member.name.text, len(member.parameters), member.const))
        declared.update(_names_of(member) if isinstance(member, tree.HostCode) else ())
    for one in out_of_line_methods(declaration, entity.scope):
        method = one.declaration
        name = method.name.text
        if method.specialization or name in declared or packs_of(method):
            continue
        if (name, len(method.parameters), method.const) not in declared:
            types = ", ".join(spell_type(parameter.type) for parameter in method.parameters)
            const = " const" * method.const
            yield cx.wrong(
                f"{declaration.name} declares no function {name}({types}){const}: declare it in "
                "the class, with the same parameters",
                method.span,
            )


def _dependent_methods(
    entity: DeclaredType, declaration: tree.StructDeclaration, file: str, seen: set[int]
) -> Iterator[Overload]:
    """The methods of a class template, in whose scope all members depend on its parameters."""
    if declaration.bases or packs_of(declaration):
        return  # a base may declare anything
    scope = _dependent_scope(entity.scope, declaration.template or ())
    home = Scope(scope, declaration.name, "class")
    for member in declaration.members:
        for name in _names_of(member):
            home.names[name] = Dependent()
    home.names[declaration.name] = Dependent()
    for member in declaration.members:
        if (
            isinstance(member, tree.FunctionDeclaration)
            and id(member) not in seen
            and _is_checked(member, file)
            and not member.initializers
        ):
            seen.add(id(member))
            yield Overload(member, home, Dependent())


def _names_of(member: tree.Declaration) -> Iterator[str]:
    name = getattr(member, "name", "")
    yield name.text if isinstance(name, tree.Name) else name
    if isinstance(member, tree.HostCode):
        yield from member.names
    if isinstance(member, tree.EnumDeclaration):
        yield from (one for one, _ in member.enumerators)
    if isinstance(member, tree.StructDeclaration) and not member.name:
        for inner in member.members:
            yield from _names_of(inner)


def _dependent_scope(scope: Scope, parameters: Sequence[tree.TemplateParameter]) -> Scope:
    """A scope in which template parameters have no values yet."""
    inner = Scope(scope, kind="dependent")
    for one in parameters:
        if one.name:
            inner.names[one.name] = Dependent()
    return inner


def _errors_in(lowering: Lowering, overload: Overload) -> list[IllFormed]:
    found: list[IllFormed] = []
    again = True  # with what the first run found about pointers, it may be no error
    for _ in range(_MOST_RUNS):
        lowering.facts.changed = False
        errors = Errors(_Recovered())
        try:
            _lower(lowering, overload, errors)
        except LowerAgain:
            continue
        except IllFormed as error:
            errors.found.append(error)
        except Exception:  # noqa: BLE001 - what cannot be lowered is the error of its kernel
            pass
        found = [one for one in errors.found if isinstance(one, IllFormed)]
        if not (found and lowering.facts.changed and again):
            break
        again = False
    return found


def _lower(lowering: Lowering, overload: Overload, errors: Errors) -> None:
    declaration = overload.declaration
    name = declaration.name.text
    around = overload.scope
    if declaration.template:
        around = _dependent_scope(around, declaration.template)
    cx = Context(lowering, Scope(around, name, "function"), name=name)
    cx.span = lowering.span = declaration.span
    lowering.immediate = "consteval" in declaration.specifiers
    owner = overload.owner
    if isinstance(owner, Dependent):
        dependent: Any = owner
        cx.this = dependent
    elif isinstance(owner, ClassType) and "static" not in declaration.specifiers:
        this = example_object(cx, "this", owner, declaration.span)
        cx.this = as_const(this) if declaration.const else this
        cx.changes_nothing = declaration.const
    assigned = assigned_names(cx, declaration)
    _check_defaults(cx, declaration)
    for parameter in declaration.parameters:
        _bind(cx, parameter, assigned)
    is_constructor = name in CONSTRUCTORS or (owner is not None and declaration.result is None)
    cx.errors = errors
    if is_constructor and isinstance(owner, ClassType):
        assert cx.this is not None
        if not declaration.name.text.startswith("~"):
            refuse_left_out(cx, declaration, owner, declaration.span)
        refuse_hidden_destructors_in(cx, owner, declaration.span)
        run_initializers(cx, declaration, owner, cx.this)
    assert declaration.body is not None
    if cx.is_in_template():
        cx.returns = _dependent_result(cx, declaration)
    else:
        cx.returns = Returns(_result(cx, declaration))
    if not cx.returns.dependent:
        prepare_result(cx, declaration.body, declaration.span)
    lower_statement(cx, declaration.body)


def _dependent_result(cx: Context, declaration: tree.FunctionDeclaration) -> Returns:
    """The result of a template, whose type may depend on its parameters."""
    try:
        type = _result(cx, declaration)
    except IllFormed:
        raise
    except (CompileError, NoLayout):
        type = None
    return Returns(type, dependent=type is None)


def _result(cx: Context, declaration: tree.FunctionDeclaration) -> CppType | None:
    written = declaration.result
    if written is None:
        return VOID
    type = None if is_auto(written) else resolve(cx, written)
    if type is not None:
        refuse_abstract(cx, type, declaration.span)
    if "global" in declaration.specifiers and type != VOID:
        raise cx.wrong(returns_a_value(declaration.name.text), declaration.span)
    return type


def _check_defaults(cx: Context, declaration: tree.FunctionDeclaration) -> None:
    """Check the default arguments."""
    for parameter in () if cx.is_in_template() else declaration.parameters:
        if parameter.default is None or isinstance(parameter.default, tree.InitializerList):
            continue
        type = resolve(cx, parameter.type)
        convert(cx, lower(cx, parameter.default), _of(type), parameter.default.span)


def _of(type: CppType) -> CppType:
    return type.to if isinstance(type, Reference) else type


def _is_dependent_constant(cx: Context, node: tree.VariableDeclaration) -> bool:
    """Whether a variable may be a constant of each instance, whose value is not known yet."""
    return is_constant_variable(node) and cx.is_in_template()


class _Recovered:
    """What is done after an ill-formed statement (`recovery.Recovered`)."""

    def declare(self, cx: Context, node: tree.VariableDeclaration) -> bool:
        """Declare a variable by its type, if that is known."""
        deduced = is_auto(node.type) or placeholder(cx, node.type) is not None
        if not deduced and not _is_dependent_constant(cx, node):
            try:
                type = resolve(cx, node.type)
                made = example_object(cx, node.name, type, node.span, (cx.path, id(node)))
            except (CompileError, NoLayout):
                pass
            else:
                cx.scope.names[node.name] = as_const(made) if is_constant_variable(node) else made
                return True
        if cx.is_in_template():
            cx.scope.names[node.name] = Dependent()
        return cx.is_in_template()

    def bodies(self, cx: Context, node: tree.Statement) -> None:
        """Lower the statements in one whose head is ill-formed."""
        match node:
            case tree.If(then=then, otherwise=otherwise):
                for one in (then, otherwise):
                    if one is not None:
                        lower_as_block(cx, one)
            case tree.For(initializer=tree.DeclarationStatement(declarations=declared), body=body):
                with cx.inner_scope(), loop_body(cx):
                    for each in declared:
                        if isinstance(each, tree.VariableDeclaration) and not self.declare(
                            cx, each
                        ):
                            return
                    lower_as_block(cx, body)
            case tree.For(body=body) | tree.While(body=body) | tree.DoWhile(body=body):
                with loop_body(cx):
                    lower_as_block(cx, body)


def _is_known_type(cx: Context, written: tree.TypeTree) -> bool:
    try:
        resolve(cx, written)
    except (CompileError, NoLayout):
        return False
    return True


def _bind(cx: Context, parameter: tree.Parameter, assigned: frozenset[str]) -> None:
    """An example of an argument as the value of a parameter."""
    span = parameter.span
    if parameter.name and cx.is_in_template() and not _is_known_type(cx, parameter.type):
        cx.scope.names[parameter.name] = Dependent()
        return
    type = resolved_parameter(cx, parameter.type)
    refuse_abstract(cx, type, span)
    name = parameter.name or "unused"
    if isinstance(type, Pointer):
        value: Any = example_pointer(cx, name, type)
        if parameter.name in assigned:
            variable = declare_pointer(cx, name, type, (cx.path, id(parameter)), span)
            assign_pointer(cx, variable, value, span)
            value = variable
    else:
        value = example_object(cx, name, type, span, (cx.path, id(parameter)))
    const = is_const(parameter.type) and not isinstance(type, Reference)
    if parameter.name:
        cx.scope.names[parameter.name] = as_const(value) if const else value
        if isinstance(type, Reference):
            cx.scope.names[REFERENCE + parameter.name] = type
