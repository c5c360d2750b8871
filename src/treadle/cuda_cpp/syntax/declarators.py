"""Declarators: `*p`, `a[16][17]`, `(*f)(int)`, `&r`, and the parameters of functions."""

from __future__ import annotations

from dataclasses import replace

from treadle.core.source import Span
from treadle.cuda_cpp.source.tokens import IDENTIFIER
from treadle.cuda_cpp.syntax import attributes, expressions, initializers, names, tree
from treadle.cuda_cpp.syntax.cursor import CLASS_TEMPLATE, TYPE, VALUE, Cursor
from treadle.cuda_cpp.syntax.declspec import Declarator, Function
from treadle.cuda_cpp.syntax.keywords import CV_WORDS, DEVICE_WORDS, RESTRICT_WORDS, SPECIFIER_WORDS
from treadle.cuda_cpp.syntax.lookahead import member_pointer_end, parameters_follow

_LATE_WORDS = frozenset(("__host__", "__forceinline__", "__noinline__"))
_AFTER_PARAMETERS = frozenset(
    ("const", "volatile", "noexcept", "override", "final", "&", "&&", "->")
)


def declarator(
    c: Cursor,
    base: tree.TypeTree,
    *,
    abstract: bool = False,
    in_block: bool = False,
) -> Declarator:
    """A declarator, which has no name if it is `abstract`."""
    base = pointers(c, base)
    words = _late_specifiers(c)
    pack = c.accept("...")
    attributes.attributes(c)
    span = c.span
    if c.texts[c.index] == "(" and _inner_follows(c, abstract):
        return _around_inner(c, base, abstract=abstract, in_block=in_block, pack=pack)
    name = _declared_name(c, abstract=abstract)
    attributes.attributes(c)
    function = None
    if c.texts[c.index] == "(" and parameters_follow(c, c.index, in_block=in_block):
        function, base = _function(c, base)
    elif c.texts[c.index] == "[":
        base = _arrays(c, base)
    return Declarator(name, base, function, pack, words, span)


def pointers(c: Cursor, base: tree.TypeTree) -> tree.TypeTree:
    """The ptr-operators: `*`, `&` and `&&` with their qualifiers."""
    links = 0
    while True:
        text, span = c.texts[c.index], c.span
        links = expressions.counted(c, links)
        if text == "*":
            c.index += 1
            base = _qualified_pointer(c, tree.PointerType(base, span=span))
        elif text in ("&", "&&"):
            c.index += 1
            while c.texts[c.index] in RESTRICT_WORDS:
                c.index += 1
            base = tree.ReferenceType(base, text == "&&", span)
        elif text in CV_WORDS or text in RESTRICT_WORDS:  # `float __restrict__ *p` and such
            c.index += 1
        elif member_pointer_end(c, c.index) > 0:
            owner = names.name(c, of_type=True, of_pointer=True)
            c.index += 1
            base = _qualified_pointer(c, tree.MemberPointerType(owner, base, span))
        else:
            return base


def _late_specifiers(c: Cursor) -> frozenset[str]:
    """Specifiers after the type, as in `float * __device__ f()`: nvcc takes them as attributes."""
    found: set[str] = set()
    while c.texts[c.index] in DEVICE_WORDS or c.texts[c.index] in _LATE_WORDS:
        found.add(SPECIFIER_WORDS[c.texts[c.index]])
        c.index += 1
    return frozenset(found)


def _qualified_pointer(
    c: Cursor, pointer: tree.PointerType | tree.MemberPointerType
) -> tree.TypeTree:
    """A pointer with the qualifiers after its `*`."""
    const = volatile = restrict = False
    while True:
        text = c.texts[c.index]
        if text in RESTRICT_WORDS:
            restrict = True
        elif text in CV_WORDS:
            const = const or "const" in text
            volatile = volatile or "volatile" in text
        else:
            break
        c.index += 1
    if restrict and isinstance(pointer, tree.PointerType):
        pointer = replace(pointer, restrict=True)
    if not (const or volatile):
        return pointer
    return tree.ConstType(pointer, const, volatile, pointer.span)


def _inner_follows(c: Cursor, abstract: bool) -> bool:
    """Whether the `(` here begins an inner declarator, not the parameters."""
    text = c.texts[c.index + 1]
    if text in ("*", "&", "&&") or member_pointer_end(c, c.index + 1) > 0:
        return True
    if text in ("__cdecl", "__stdcall", "("):
        return not abstract
    if c.kinds[c.index + 1] != IDENTIFIER:
        return False
    if abstract:  # `int (x)` is a parameter x, `int (T)` one without a name: a function of T
        is_type = c.names.get(text) in (TYPE, CLASS_TEMPLATE)
        return c.partners[c.index] == c.index + 2 and not is_type
    return c.texts[c.index + 2] in (")", "[", "(")


def _around_inner(
    c: Cursor, base: tree.TypeTree, *, abstract: bool, in_block: bool, pack: bool
) -> Declarator:
    """`(*name[3])(int)`: the suffix after the parentheses applies to the base type first."""
    opener = c.index
    close = c.closing(opener, "the declarator")
    c.deeper()
    c.index = close + 1
    if c.texts[c.index] == "(" and (abstract or parameters_follow(c, c.index, in_block=in_block)):
        span = c.span
        function, base = _function(c, base)
        base = tree.FunctionType(base, function.parameters, span, function.const)
    elif c.texts[c.index] == "[":
        base = _arrays(c, base)
    end = c.index
    c.index = opener + 1
    while c.texts[c.index] in ("__cdecl", "__stdcall"):
        c.index += 1
    inner = declarator(c, base, abstract=abstract)
    if c.index != close:
        raise c.problem(f"expected ')' after the declarator, found {c.found()}")
    c.index = end
    c.levels -= 1
    if isinstance(inner.type, tree.FunctionType) and inner.function is None:  # `float (f)(int)`
        function = Function(inner.type.parameters)
        return replace(inner, type=inner.type.result, function=function, pack=pack)
    return replace(inner, pack=pack or inner.pack)


def _declared_name(c: Cursor, *, abstract: bool) -> tree.Name | None:
    text = c.texts[c.index]
    if c.kinds[c.index] == IDENTIFIER or text in ("operator", "::", "~"):
        if text == "::" or c.texts[c.index + 1] in ("::", "<") or text in ("operator", "~"):
            return names.name(c, of_type=True)
        c.index += 1
        return tree.Name(text, span=c.span_at(c.index - 1))
    if abstract:
        return None
    raise c.problem(f"expected a name to declare, found {c.found()}")


def _arrays(c: Cursor, base: tree.TypeTree) -> tree.TypeTree:
    """`[16][17]`: an array of 16 arrays of 17."""
    sizes: list[tuple[tree.Expression | None, Span]] = []
    while c.texts[c.index] == "[" and c.texts[c.index + 1] != "[":
        span = c.span
        expressions.counted(c, len(sizes))
        c.index += 1
        while c.texts[c.index] in CV_WORDS or c.texts[c.index] in RESTRICT_WORDS:
            c.index += 1
        size = None if c.texts[c.index] == "]" else expressions.bracketed(c)
        c.expect("]", "after the size of the array")
        sizes.append((size, span))
        attributes.attributes(c)
    for size, span in reversed(sizes):
        base = tree.ArrayType(base, size, span)
    return base


def _function(c: Cursor, result: tree.TypeTree) -> tuple[Function, tree.TypeTree]:
    """The parameters with what follows them, and the return type, which may be a trailing one."""
    found, variadic = parameters(c)
    const = False
    reference = ""
    words: set[str] = set()
    while True:
        text = c.texts[c.index]
        if text == "->":
            c.index += 1
            result = c.grammar.type_name(c)
        elif text in _AFTER_PARAMETERS:
            const = const or text == "const"
            reference = text if text in ("&", "&&") else reference
            if text in ("override", "final"):
                words.add(text)
            c.index += 1
            if text == "noexcept" and c.texts[c.index] == "(":
                c.index = c.closing(c.index, "noexcept") + 1
        elif text == "throw" and c.texts[c.index + 1] == "(":
            c.index = c.closing(c.index + 1, "throw") + 1
        elif attributes.attribute_follows(c):
            attributes.attributes(c)
        else:
            return Function(found, variadic, const, reference, frozenset(words)), result


def parameters(c: Cursor) -> tuple[tuple[tree.Parameter, ...], bool]:
    """`(int a, float *b = 0, ...)`, and whether it ends in `...`."""
    close = c.closing(c.index, "the parameters")
    c.index += 1
    c.deeper()
    found: list[tree.Parameter] = []
    variadic = False
    if c.texts[c.index] == "void" and c.index + 1 == close:
        c.index += 1
    while c.index != close:
        if c.accept("..."):
            variadic = True
            break
        found.append(_parameter(c))
        if c.accept("..."):  # `int...` without a comma
            variadic = True
        if not c.accept(","):
            break
        if c.index == close:
            raise c.problem("expected a parameter after ','")
    c.expect(")", "after the parameters")
    c.levels -= 1
    return tuple(found), variadic


def _parameter(c: Cursor) -> tree.Parameter:
    before = c.grammar.specifiers(c)
    if before.type is None:
        raise c.problem(f"expected the type of a parameter, found {c.found()}")
    at = c.index
    found = declarator(c, before.type, abstract=True)
    kind: tree.TypeTree = found.type
    if found.function is not None:
        kind = tree.FunctionType(kind, found.function.parameters, before.span)
    attributes.attributes(c)
    default = None
    if c.accept("="):
        default = initializers.value(c)
    if found.name is not None and found.name.scope:
        raise c.problem("a parameter's name can't be qualified", at)
    text = found.name.text if found.name is not None else ""
    span = found.span if text else before.span
    return tree.Parameter(text, kind, default, before.words, found.pack, span)


def declare_parameters(c: Cursor, function: Function) -> None:
    """Declare the names of parameters."""
    for parameter in function.parameters:
        if parameter.name:
            c.declare(parameter.name, VALUE)
