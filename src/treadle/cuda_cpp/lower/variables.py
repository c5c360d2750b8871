"""Variables: of threads, of blocks (`__shared__`), of the file (`__constant__`, `__device__`)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

from treadle.core.source import Span
from treadle.cuda_cpp.lower.access import (
    refuse_hidden_base,
    refuse_hidden_constructors,
    refuse_hidden_destructor,
)
from treadle.cuda_cpp.lower.arithmetic import folded
from treadle.cuda_cpp.lower.base_objects import as_base
from treadle.cuda_cpp.lower.class_deduction import deduced_class, placeholder
from treadle.cuda_cpp.lower.conditionals import lower_place
from treadle.cuda_cpp.lower.constant_evaluation import TooLong, evaluate
from treadle.cuda_cpp.lower.constant_rules import refuse_other_calls, refuse_run_time
from treadle.cuda_cpp.lower.context import Context, NotPure, key_of, tree_made
from treadle.cuda_cpp.lower.conversions import (
    binds_directly,
    convert,
    is_const_object,
    refuse_lost_const,
    rvalue,
)
from treadle.cuda_cpp.lower.copy_initialization import check_copy, check_list
from treadle.cuda_cpp.lower.dispatch import lower, type_of
from treadle.cuda_cpp.lower.evaluation_order import arguments as constructor_arguments
from treadle.cuda_cpp.lower.evaluation_order import with_fixed_place
from treadle.cuda_cpp.lower.guards import is_unset
from treadle.cuda_cpp.lower.hierarchy import refuse_abstract
from treadle.cuda_cpp.lower.initializers import fill, from_list, text_items
from treadle.cuda_cpp.lower.late_specializations import refuse_late_class
from treadle.cuda_cpp.lower.lifetimes import begin, take
from treadle.cuda_cpp.lower.names import (
    is_auto,
    is_const,
    lookup,
    named_type,
    resolve,
    with_auto,
)
from treadle.cuda_cpp.lower.placeholders import refuse_unsatisfied
from treadle.cuda_cpp.lower.pointers import ZERO, example_of, follow, unit_of
from treadle.cuda_cpp.lower.shared_addresses import shared_array
from treadle.cuda_cpp.lower.special_members import (
    acts,
    has_constructors,
    lack_of_default,
)
from treadle.cuda_cpp.lower.storage import (
    array_memory,
    construct_items,
    declare_object,
    element_type,
    new_memory,
    pointer_items,
    uninitialized,
)
from treadle.cuda_cpp.lower.templates import variable_instance
from treadle.cuda_cpp.lower.tree_analysis import note_volatile
from treadle.cuda_cpp.lower.values import (
    ArrayValue,
    MemoryTarget,
    NullTarget,
    PointerValue,
    Rvalue,
    SplitArray,
    SplitStruct,
    Value,
    as_const,
    describe,
    is_prvalue,
    with_category,
)
from treadle.cuda_cpp.lower.variable_templates import instance_of_template, variable_at
from treadle.cuda_cpp.semantics.scopes import (
    OWN,
    REFERENCE,
    GlobalVariable,
    KnownValue,
    Scope,
    TypeEntity,
)
from treadle.cuda_cpp.semantics.types import (
    VOID,
    Arithmetic,
    ArrayOf,
    ClassType,
    CppType,
    EnumType,
    FunctionOf,
    MemberPointer,
    Pointer,
    Reference,
    count_of,
    decay,
    holds_array,
    holds_pointer,
    innermost,
)
from treadle.cuda_cpp.syntax import tree
from treadle.cuda_cpp.syntax.refusals import refusal_message
from treadle.cuda_cpp.syntax.walk import walk_tree
from treadle.ir import nodes as n
from treadle.ir import types as ir


def declare(cx: Context, node: tree.VariableDeclaration) -> None:
    """A declaration of a variable in a function."""
    if "shared" in node.specifiers:
        cx.scope.names[node.name] = shared = _shared(cx, node)
        note_volatile(cx, node.type, shared)
        return
    if is_auto(node.type):
        type = _deduced(cx, node)
        refuse_unsatisfied(cx, node.type, type, node.span)
    elif (template := placeholder(cx, node.type)) is not None:
        type = deduced_class(cx, template, node.initializer, node.span)
    else:
        type = resolve(cx, node.type)
    lasting = node.specifiers & {"static", "thread_local"}
    if "thread_local" in lasting:
        raise cx.error(
            f"{node.name} is thread_local, which is of the host's threads: leave it out",
            node.span,
        )
    if lasting and not is_constant_variable(node):
        cx.scope.names[node.name] = _static(cx, node)
        return
    if isinstance(type, Reference):
        with cx.lifetime():
            bound, is_new = _reference(cx, node, type)
        if is_new:  # a temporary object ends with the reference
            begin(cx, bound, type.to)
        note_volatile(cx, node.type, bound)
        cx.scope.names[node.name] = as_const(bound) if type.const else bound
        cx.scope.names[REFERENCE + node.name] = type
        return
    of_constant = cx.checks_all() and "constexpr" in node.specifiers and not cx.is_in_template()
    if of_constant:
        refuse_other_calls(cx, node.initializer, f"the value of the constexpr {node.name}")
    known = None
    if key_of(cx, node) not in cx.lowering.facts.addressed:
        known = _known_constant(cx, node, type)
    if known is not None:
        cx.scope.names[node.name] = KnownValue(known, key_of(cx, node))
        return
    if of_constant and not isinstance(type, ClassType):
        refuse_run_time(cx, node.initializer, f"the value of the constexpr {node.name}")
    outer, cx.lowering.declared = cx.lowering.declared, (node.name, id(cx.scope), type)
    with cx.lifetime():
        made = _local(cx, node, type)
    cx.lowering.declared = outer
    if not lasting:
        begin(cx, made, type)
        cx.scope.names[OWN + node.name] = type
    note_volatile(cx, node.type, made)
    cx.scope.names[node.name] = as_const(made) if is_constant_variable(node) else made


def static_name(node: tree.VariableDeclaration) -> str:
    """The name of a static variable of a function among the variables of the file."""
    return f"{node.name}.{node.span.line}.{node.span.column}"


def _static(cx: Context, node: tree.VariableDeclaration) -> Any:
    """A variable of a function that lasts from call to call: all threads share it, as in CUDA."""
    if cx.isolated:
        raise NotPure
    scope: Scope | None = cx.scope
    while scope is not None and scope.kind != "template":
        scope = scope.parent
    value = cx.lowering.symbols.get(static_name(node))
    if scope is not None or value is None:
        raise cx.error(
            f"{node.name} is static in a template, of which each instance would have its own, or "
            "has a type of the function: declare it __device__ outside of the function",
            node.span,
        )
    return (
        ArrayValue(value, value.to)
        if isinstance(value.to, ArrayOf)
        else follow(cx, value, node.span)
    )


def is_constant_variable(node: tree.VariableDeclaration) -> bool:
    """Whether a variable is never assigned to, so that every thread may have its own."""
    written = node.type
    while isinstance(written, tree.ArrayType):
        written = written.of
    return is_const(written) or "constexpr" in node.specifiers


def _deduced(cx: Context, node: tree.VariableDeclaration) -> CppType:
    if node.initializer is None:
        raise cx.wrong(f"auto {node.name} needs an initializer to deduce its type", node.span)
    initializer = node.initializer
    if isinstance(initializer, tree.InitializerList):
        if not node.direct:
            return _list_type(cx, node, initializer)
        if len(initializer.items) != 1:
            raise cx.wrong(f"the type of auto {node.name} cannot be deduced from {{…}}", node.span)
        initializer = initializer.items[0]
    if isinstance(node.type, tree.AutoType) and node.type.exact:
        assert isinstance(initializer, tree.EXPRESSIONS)
        written = tree.DecltypeType(initializer, node.span, node.type.parentheses)
        return resolve(cx, written)
    type = type_of(cx, initializer)
    reference = isinstance(node.type, tree.ReferenceType)
    return with_auto(cx, node.type, type if reference else decay(type))


def _list_type(
    cx: Context, node: tree.VariableDeclaration, initializer: tree.InitializerList
) -> CppType:
    """`std::initializer_list<T>`, the type of `auto x = {a, b}`."""
    types: list[CppType] = []
    for item in initializer.items:
        if isinstance(item, tree.InitializerList):
            raise cx.wrong(f"the type of auto {node.name} cannot be deduced from {{…}}", item.span)
        types.append(decay(type_of(cx, item)))
    if not types:
        raise cx.wrong(f"the type of auto {node.name} cannot be deduced from {{}}", node.span)
    other = next((one for one in types if one != types[0]), None)
    if other is not None:
        raise cx.wrong(
            f"the type of auto {node.name} cannot be deduced: the list has a value of type "
            f"{types[0]} and one of type {other}",
            node.span,
        )
    scope = Scope(cx.scope)
    scope.names["<item>"] = TypeEntity(types[0])
    std = tree.Name("std", span=node.span)
    item_name = tree.NamedType(tree.Name("<item>", span=node.span), node.span)
    name = tree.Name("initializer_list", (std,), (item_name,), node.span)
    with cx.in_scope(scope):
        if lookup(cx, name) is None:
            raise cx.error(
                f"the type of auto {node.name} is a std::initializer_list: "
                "#include <initializer_list>",
                node.span,
            )
        return with_auto(cx, node.type, named_type(cx, name, node.span))


def _reference(cx: Context, node: tree.VariableDeclaration, type: Reference) -> tuple[Any, bool]:
    """What a reference refers to, and whether that is a temporary object."""
    if node.initializer is None:
        raise cx.wrong(f"the reference {node.name} has no initializer", node.span)
    value = lower_place(cx, _only(cx, node))
    refuse_hidden_base(cx, value, type, node.span)
    if not binds_directly(value, type) and isinstance(getattr(value, "type", None), ClassType):
        value = cx.rules.call_conversion(cx, value, type.to, False, node.span) or value
    spelled_out = not (type.const or is_auto(node.type) or cx.is_in_instance())
    same = getattr(value, "type", None) == type.to
    if cx.lowering.checking and spelled_out and same and is_const_object(value):
        raise cx.wrong(
            f"{type} {node.name} cannot refer to a const {type.to}: make it a reference to const",
            node.span,
        )
    if not type.const and not type.rvalue and _is_no_place(value):
        raise cx.wrong(
            f"{type} {node.name} cannot refer to {describe(value)}, which is not a variable: make "
            "it a reference to const, or a value",
            node.span,
        )
    if not binds_directly(value, type) and (type.const or isinstance(value, Rvalue)):
        converted = convert(cx, value, type.to, node.span)
        made = declare_object(cx, node.name, type.to, key_of(cx, node), converted, node.span)
        return made, True
    if not binds_directly(value, type):
        raise cx.wrong(f"{type} {node.name} cannot refer to {describe(value)}", node.span)
    is_new = is_prvalue(value) and getattr(value, "type", None) == type.to
    if is_new:
        take(cx, value)
    if isinstance(type.to, ClassType):
        value = as_base(cx, value, type.to, node.span)
    return with_category(with_fixed_place(cx, value, node.span), "lvalue"), is_new


def _is_no_place(value: Value) -> bool:
    """Whether a value is a number or object without a place, and not a constant with a name, for
    which its value stands here."""
    return isinstance(value, Rvalue) and not isinstance(value.expression, n.Variable)


def _only(cx: Context, node: tree.VariableDeclaration) -> Any:
    initializer = node.initializer
    if isinstance(initializer, tree.InitializerList):
        if len(initializer.items) != 1:
            raise cx.wrong(f"{node.name} takes one value", node.span)
        return initializer.items[0]
    return initializer


def _may_be_known(written: tree.TypeTree, specifiers: frozenset[str]) -> bool:
    """Whether a variable of this type can be used in constant expressions: it is const, and not
    volatile."""
    volatile = isinstance(written, tree.ConstType) and written.volatile
    return (is_const(written) or "constexpr" in specifiers) and not volatile


def _known_constant(cx: Context, node: tree.VariableDeclaration, type: CppType) -> Rvalue | None:
    """The value of `const int n = 4;`, which constant expressions can use; None for others."""
    if not _may_be_known(node.type, node.specifiers) or node.initializer is None:
        return None
    if isinstance(type, ClassType):
        return _known_object(cx, node, type)
    if not isinstance(type, (Arithmetic, EnumType, MemberPointer)):
        return None
    emitted, result = _initial_value(cx, node, type)
    if isinstance(result, n.Constant) and not emitted:
        return Rvalue(result, type)
    must_be_known = "constexpr" in node.specifiers or cx.lowering.asked_constant
    if not must_be_known and not cx.lowering.folding:
        return None  # the call of a function, of a local variable: it is made where it stands
    known = _evaluated(cx, node, emitted, result)
    return Rvalue(known, type) if isinstance(known, n.Constant) else None


@contextmanager
def _calls_have_values(cx: Context, node: tree.VariableDeclaration) -> Iterator[None]:
    """Calls in the initializer of a constant give its value, also where an expression names it of
    which only the type is wanted: that may depend on the value."""
    lowering = cx.lowering
    outer = lowering.unevaluated
    if lowering.folding or "constexpr" in node.specifiers:
        lowering.unevaluated = 0
    try:
        yield
    finally:
        lowering.unevaluated = outer


def _initial_value(
    cx: Context, node: tree.VariableDeclaration, type: CppType
) -> tuple[list[n.Statement], n.Expression]:
    """The initializer of a constant, as in a constant expression, with the statements before it."""
    lowering = cx.lowering
    lowering.asked_constant = False
    lowering.maybe_constants += 1
    try:
        with _calls_have_values(cx, node), cx.separate_block() as emitted:
            value = convert(cx, lower(cx, _only(cx, node)), type, node.span)
            return emitted, folded(rvalue(cx, value, node.span).expression)
    finally:
        lowering.maybe_constants -= 1


def _evaluated(
    cx: Context, node: tree.VariableDeclaration, emitted: Any, value: n.Expression
) -> n.Constant | n.Construct | None:
    """The value of a variable's initializer; None if it is not constant. CompileError for that of a
    constexpr variable, if it takes too long."""
    try:
        lowering = cx.lowering
        return evaluate(emitted, value, lowering.functions, cx.memories, lowering.constant_results)
    except TooLong as reason:
        if "constexpr" in node.specifiers:
            raise cx.error(f"the constexpr variable {node.name} {reason}", node.span) from None
        return None


def _known_object(cx: Context, node: tree.VariableDeclaration, type: ClassType) -> Rvalue | None:
    """The value of a constexpr object without arrays and pointers; None for others."""
    if "constexpr" not in node.specifiers or type.scope is None or acts(type):
        return None
    if holds_array(type) or holds_pointer(type):
        return None
    with _calls_have_values(cx, node), cx.separate_block() as emitted:
        if isinstance(node.initializer, tree.InitializerList):
            value = from_list(cx, type, node.initializer, node.span)
        else:
            value = convert(cx, lower(cx, node.initializer), type, node.span)
        read = rvalue(cx, value, node.span)
    known = _evaluated(cx, node, emitted, read.expression)
    return None if known is None else Rvalue(known, type)


def _local(cx: Context, node: tree.VariableDeclaration, type: CppType) -> Any:
    key = key_of(cx, node)
    initializer = node.initializer
    inner = innermost(type)
    refuse_abstract(cx, inner, node.span)
    if isinstance(inner, ClassType):
        refuse_hidden_destructor(cx, inner, node.span)
        refuse_late_class(cx, inner, node.span)
        if initializer is None or node.direct:
            refuse_hidden_constructors(cx, inner, node.span)
    if isinstance(type, ArrayOf):
        if cx.lowering.checking and initializer is None:
            _refuse_uninitialized(cx, node, type)
        return _array(cx, node, type)
    if initializer is None:
        if cx.lowering.checking:
            _refuse_uninitialized(cx, node, type)
        start = None
        if isinstance(type, Pointer) and is_unset(cx, node):
            start = PointerValue((NullTarget(given=False),), ZERO, unit_of(type.to), type.to)
        return declare_object(cx, node.name, type, key, start, node.span)
    if isinstance(initializer, tree.InitializerList):
        if node.direct and isinstance(type, ClassType):
            return _constructed(cx, node, type, initializer)
        if cx.lowering.checking and initializer.braces:
            check_list(cx, type, initializer, node.span)
        value = from_list(cx, type, initializer, node.span)
    else:
        value = lower(cx, initializer)
    refuse_lost_const(cx, node.type, value, node.span)
    check_copy(cx, value, type, node.span)
    return declare_object(cx, node.name, type, key, value, node.span)


def _refuse_uninitialized(cx: Context, node: tree.VariableDeclaration, type: CppType) -> None:
    """CompileError for a variable that needs an initializer and has none."""
    inner = innermost(type)
    if isinstance(inner, ClassType) and (reason := lack_of_default(inner)):
        raise cx.wrong(f"{node.name} needs an initializer: {reason}", node.span)
    if is_constant_variable(node) and isinstance(inner, (Arithmetic, EnumType)):
        raise cx.wrong(f"{node.name} is const, so it needs an initializer", node.span)


def _constructed(
    cx: Context, node: tree.VariableDeclaration, type: ClassType, arguments: tree.InitializerList
) -> Any:
    """`Vec v(a, b);` and `Vec v{a, b};`"""
    if not has_constructors(type) and type.scope is not None:
        value = from_list(cx, type, arguments, node.span)
        return declare_object(cx, node.name, type, key_of(cx, node), value, node.span)
    place = uninitialized(cx, node.name, type, key_of(cx, node), node.span)
    values = cx.rules.list_arguments(cx, type, arguments)
    values = values or constructor_arguments(cx, arguments.items, type)
    cx.rules.run_constructor(cx, place, type, values, node.span)
    return place


def _array(cx: Context, node: tree.VariableDeclaration, type: ArrayOf) -> ArrayValue | SplitArray:
    initializer = node.initializer
    if type.length is None:
        type = ArrayOf(type.element, length_of(cx, node, type.element))
    value: ArrayValue | SplitArray
    if holds_pointer(type):
        value = pointer_items(cx, node.name, type, key_of(cx, node), None, node.span)
    else:
        value = array_memory(cx, node.name, type, "local", node.span)
    if isinstance(initializer, tree.InitializerList):
        fill(cx, value, type, initializer, node.span)
    elif isinstance(initializer, tree.StringLiteral):
        fill(cx, value, type, text_items(initializer), node.span)
    elif isinstance(innermost(type), ClassType):
        construct_items(cx, value, type, node.span)
    return value


def length_of(cx: Context, node: tree.VariableDeclaration, element: CppType) -> int:
    """The length of an array that is declared without one, by its initializer."""
    initializer = node.initializer
    if isinstance(initializer, tree.InitializerList) and len(initializer.items) == 1:
        one = initializer.items[0]
        initializer = one if isinstance(one, tree.StringLiteral) else initializer
    if isinstance(initializer, tree.StringLiteral):
        return len(initializer.data) + 1
    if not isinstance(initializer, tree.InitializerList) or not initializer.items:
        raise cx.wrong(f"the array {node.name} needs a length or an initializer", node.span)
    count = len(initializer.items)
    plain = not any(isinstance(one, tree.InitializerList) for one in initializer.items)
    if plain and isinstance(element, ArrayOf):  # brace elision
        return -(-count // count_of(element))
    return count


# --- objects -------------------------------------------------------------------------------------


# --- shared memory -------------------------------------------------------------------------------


def _shared(cx: Context, node: tree.VariableDeclaration) -> Any:
    if cx.isolated:
        raise NotPure
    key = (id(node), cx.scope_arguments())
    known = cx.lowering.statics.get(key)
    if known is not None:
        return known
    if node.initializer is not None and not _is_empty(node.initializer):
        raise cx.wrong(
            f"{node.name} is __shared__, so it cannot have an initializer: let a thread assign it, "
            "followed by __syncthreads()",
            node.span,
        )
    type = resolve(cx, node.type)
    inner = innermost(type)
    if isinstance(inner, ClassType) and (reason := lack_of_default(inner)):
        raise cx.wrong(f"{node.name} is __shared__, so it has no initializer: {reason}", node.span)
    if isinstance(type, ArrayOf) and (type.length is None or "extern" in node.specifiers):
        value: Any = _dynamic(cx, node, type)
    elif isinstance(type, ArrayOf):
        value = shared_array(cx, node.name, type, node.span)
    elif "extern" in node.specifiers:
        value = _dynamic(cx, node, ArrayOf(type, None))
    else:
        element = element_type(cx, type, node.span)
        target = new_memory(cx, node.name, "shared", element, 1, node.span)
        value = follow(cx, PointerValue((target,), ZERO, unit_of(type), type), node.span)
    cx.lowering.statics[key] = value
    return value


def _is_empty(initializer: Any) -> bool:
    """Whether an initializer is `{}` or `()`, which give no value."""
    return isinstance(initializer, tree.InitializerList) and not initializer.items


def _dynamic(cx: Context, node: tree.VariableDeclaration, type: ArrayOf) -> Value:
    """`extern __shared__ T s[]`: all such declarations share one memory, as in CUDA."""
    lowering = cx.lowering
    target = lowering.statics.get("dynamic")
    element = element_type(cx, innermost(type), node.span)
    if target is None:
        name = lowering.unique(node.name)
        lowering.memories.append(n.Memory(name, "shared", element, None, node.span))
        size = n.Variable(f"{name}.size", ir.I32, node.span)
        lowering.parameters[size.name] = n.Parameter(size.name, ir.I32, ("length", name), node.span)
        target = MemoryTarget(name, "shared", element, size)
        lowering.memory_targets[name] = target
        lowering.statics["dynamic"] = target
    unit = unit_of(innermost(type))
    return ArrayValue(PointerValue((target,), ZERO, unit, type), type)


# --- variables of the file -----------------------------------------------------------------------


def global_variable(cx: Context, entity: GlobalVariable, node: tree.Name) -> Value:
    """A variable of the file, or a static member of a class."""
    declaration = entity.declaration
    specifiers = declaration.specifiers
    if specifiers & {"constant", "device", "managed"}:
        if not declaration.template:
            return _symbol(cx, entity, node.span)
        if not is_constant_variable(declaration):
            return _symbol_of_template(cx, entity, node)
    if "shared" in specifiers:
        return _file_shared(cx, entity)
    known = _host_constant(cx, entity, node)
    if known is not None:
        return known
    written = entity.declaration.type
    if isinstance(written, tree.NamedType) and written.name.text == "surface":
        raise cx.error(refusal_message(written.name.text), node.span)
    reference = cx.lowering.references.get(entity.scope.qualified(declaration.name))
    if reference is not None:
        if isinstance(reference.targets[0], NullTarget):
            name = entity.scope.qualified(declaration.name)
            raise cx.error(
                f"the texture reference {name} has no array: give it one before the launch, as in "
                f'module.textures["{name}"] = td.texture(x)',
                node.span,
            )
        type = cx.rules.resolve(cx, written)
        assert isinstance(type, ClassType)
        return SplitStruct(type, {"object": reference}, True)
    if cx.lowering.unevaluated:
        with cx.in_scope(entity.scope):
            type = cx.rules.resolve(cx, written)
        if not isinstance(type, ArrayOf) or type.length is not None:
            return example_of(type, node.span)
    raise (cx.of_host if _is_surely_of_host(entity) else cx.error)(
        f"{node.text} is a host variable: declare it __device__ or __constant__, make it "
        "constexpr, or pass it to the kernel",
        node.span,
    )


def _is_surely_of_host(entity: GlobalVariable) -> bool:
    """Whether a variable of the file is none that CUDA lets kernels use: no constant, and no
    texture, nor of another class."""
    element = entity.declaration.type
    while isinstance(element, (tree.ArrayType, tree.PointerType)):
        element = element.of if isinstance(element, tree.ArrayType) else element.to
    return isinstance(element, tree.BuiltinType) and not (
        entity.declaration.specifiers & {"constexpr"}
    )


def _file_shared(cx: Context, entity: GlobalVariable) -> Value:
    with cx.in_scope(entity.scope):
        made: Value = _shared(cx, entity.declaration)
        note_volatile(cx, entity.declaration.type, made)
        return made


def is_table_of_texts(declaration: tree.VariableDeclaration) -> bool:
    """Whether a variable that kernels cannot change is initialized with string literals, which are
    known when a kernel is compiled."""
    element = declaration.type
    while isinstance(element, tree.ArrayType):
        element = element.of
    lasts = "constant" in declaration.specifiers
    return (lasts or _may_be_known(element, declaration.specifiers)) and any(
        isinstance(node, tree.StringLiteral) for node in walk_tree(declaration.initializer)
    )


def points_to_functions(type: CppType) -> bool:
    """Whether a type is a pointer to functions, or an array of them."""
    inner = innermost(type)
    return isinstance(inner, Pointer) and isinstance(inner.to, FunctionOf)


def function_table(cx: Context, entity: GlobalVariable) -> Value | None:
    """A variable of the file with pointers to functions, whose values are those of its initializer;
    None for other variables."""
    declaration = entity.declaration
    with cx.in_scope(entity.scope):
        type = resolve(cx, declaration.type)
        if not points_to_functions(type):
            return None
        if declaration.initializer is None:
            raise cx.error(
                f"{declaration.name} is a pointer to functions without an initializer: kernels "
                "call only functions that are known when they are compiled",
                declaration.span,
            )
        if isinstance(type, ArrayOf) and type.length is None:
            type = ArrayOf(type.element, length_of(cx, declaration, type.element))
        return _functions_in(cx, declaration.initializer, type)


def _functions_in(cx: Context, initializer: Any, type: CppType) -> Value:
    if not isinstance(type, ArrayOf):
        if isinstance(initializer, tree.InitializerList) and len(initializer.items) == 1:
            initializer = initializer.items[0]
        return convert(cx, lower(cx, initializer), type, initializer.span)
    items = initializer.items if isinstance(initializer, tree.InitializerList) else (initializer,)
    if len(items) > (type.length or 0):
        raise cx.wrong(f"{len(items)} values for an array of {type.length}", initializer.span)
    made = [_functions_in(cx, one, type.element) for one in items]
    null = Rvalue(n.Constant(0, ir.I32), VOID, literal_zero=True)
    while len(made) < (type.length or 0):
        if isinstance(type.element, ArrayOf):
            made.append(_functions_in(cx, tree.InitializerList(()), type.element))
        else:
            made.append(convert(cx, null, type.element, initializer.span))
    return SplitArray(type, tuple(made))


def _symbol(cx: Context, entity: GlobalVariable, span: Span) -> Value:
    if cx.isolated:
        raise NotPure
    name = entity.scope.qualified(entity.declaration.name)
    if name in cx.lowering.linked:
        parts: Value = cx.lowering.linked[name]
        return parts
    value = cx.lowering.symbols.get(name)
    if value is None and (table := function_table(cx, entity)) is not None:
        return table
    if value is None or cx.lowering.folding:  # in the initializer of another variable
        known = _host_constant(cx, entity, tree.Name(entity.declaration.name))
        if known is not None:
            return known
    if value is None:
        raise cx.error(f"{name} was not found among the variables of the module", span)
    if is_constant_variable(entity.declaration):
        value = replace(value, const=True)
    return variable_at(cx, value, span)


def _symbol_of_template(cx: Context, entity: GlobalVariable, node: tree.Name) -> Value:
    """An instance of a template of variables in device memory: a variable of the module."""
    if cx.isolated:
        raise NotPure
    if cx.lowering.folding:  # in the initializer of another variable
        known = _host_constant(cx, entity, node)
        if known is not None:
            return known
    return instance_of_template(cx, entity, node)


def _host_constant(cx: Context, entity: GlobalVariable, node: tree.Name) -> Value | None:
    """The value of a host variable that constant expressions can use; None for others."""
    entity = _defined_outside(entity)
    declaration = entity.declaration
    written = declaration.type
    while isinstance(written, tree.ArrayType):
        written = written.of
    name = entity.scope.qualified(declaration.name)
    lasts = "constant" in declaration.specifiers and name not in cx.lowering.symbols
    if declaration.initializer is None and "constexpr" not in declaration.specifiers:
        return None
    if not lasts and not _may_be_known(written, declaration.specifiers):
        return None
    key = ("host constant", id(declaration), id(entity.scope), id(cx.memories))
    known = cx.lowering.statics.get(key)
    if known is None:
        if declaration.template:
            declaration, scope = variable_instance(cx, entity, node.arguments or (), node.span)
        else:
            scope = entity.scope
        if lasts:
            declaration = tree_made(cx, "lasting", declaration, partial(_as_constant, declaration))
        cx.lowering.folding += 1
        try:
            with cx.in_scope(scope):
                known = _constant_of(cx, declaration)
        finally:
            cx.lowering.folding -= 1
        is_template = entity.declaration.template is not None
        # An object in memory is filled where it is used: that may be in a branch, or in an
        # expression of which only the type is wanted.
        if isinstance(known, Rvalue) and not is_template:
            cx.lowering.statics[key] = known
    found: Value | None = known
    return found


def _as_constant(declaration: tree.VariableDeclaration) -> tree.VariableDeclaration:
    """A variable in constant memory, which kernels cannot change, as a constant."""
    return replace(declaration, specifiers=declaration.specifiers | {"constexpr"})


def _defined_outside(entity: GlobalVariable) -> GlobalVariable:
    """A static member as it is defined outside of its class: `const A A::zero = {0};`"""
    scope, declaration = entity.scope, entity.declaration
    if scope.kind != "class" or scope.parent is None or declaration.initializer is not None:
        return entity
    found = scope.parent.names.get(f"{scope.name}::{declaration.name}")
    if not isinstance(found, GlobalVariable) or found.declaration.template:
        return entity
    return GlobalVariable(found.declaration, scope)


def _constant_of(cx: Context, declaration: tree.VariableDeclaration) -> Value | None:
    if is_auto(declaration.type):
        type = _deduced(cx, declaration)
    elif (template := placeholder(cx, declaration.type)) is not None:
        type = deduced_class(cx, template, declaration.initializer, declaration.span)
    else:
        type = resolve(cx, declaration.type)
    number = _known_constant(cx, declaration, type)
    if number is not None:
        return number
    if isinstance(type, ArrayOf):
        return _array(cx, declaration, type)
    if isinstance(type, (Arithmetic, Pointer)):
        return None
    made: Value = _local(cx, declaration, type)
    return made
