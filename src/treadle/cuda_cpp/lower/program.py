"""A parsed file of CUDA C++: its kernels and variables, and their lowering on demand."""

from __future__ import annotations

import re
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from treadle.core.errors import CompileError, CompileErrors, CompileWarning
from treadle.core.source import Span, excerpt
from treadle.cuda_cpp import program as records
from treadle.cuda_cpp.lower import builtin_names
from treadle.cuda_cpp.lower.access import VARIABLE
from treadle.cuda_cpp.lower.checking import Checked, checked
from treadle.cuda_cpp.lower.constant_initializers import first_bytes
from treadle.cuda_cpp.lower.context import Context, Facts, LowerAgain, Lowering
from treadle.cuda_cpp.lower.declared import (
    by_name,
    declared_assertions,
    declared_kernels,
    declared_variables,
    static_variables,
    texture_references,
)
from treadle.cuda_cpp.lower.dispatch import static_assert
from treadle.cuda_cpp.lower.guards import HEAP, MARKS, SPENT, TAKEN
from treadle.cuda_cpp.lower.hierarchy import holds_table
from treadle.cuda_cpp.lower.kernels import lower_once
from treadle.cuda_cpp.lower.names import (
    constant_integer,
    parameter_type,
    refuse_void,
    resolve,
)
from treadle.cuda_cpp.lower.overloads import specialized
from treadle.cuda_cpp.lower.packs import counts_by_arguments, expanded, packs_of
from treadle.cuda_cpp.lower.pair_types import holds_double, paired
from treadle.cuda_cpp.lower.parameters import (
    lasting_of,
    linked_variable,
    parameters_of,
    returns_a_value,
    zero_value,
)
from treadle.cuda_cpp.lower.recovery import UNDECLARED
from treadle.cuda_cpp.lower.rules import RULES
from treadle.cuda_cpp.lower.template_arguments import bind_arguments, spelled
from treadle.cuda_cpp.lower.tree_analysis import Reachable
from treadle.cuda_cpp.lower.values import Candidate
from treadle.cuda_cpp.lower.variable_templates import (
    NeedsVariable,
    named_instance,
    variable_templates,
)
from treadle.cuda_cpp.lower.variables import (
    is_table_of_texts,
    length_of,
    points_to_functions,
)
from treadle.cuda_cpp.semantics.conflicts import conflicts
from treadle.cuda_cpp.semantics.doubtful import doubtful
from treadle.cuda_cpp.semantics.early_errors import early_errors
from treadle.cuda_cpp.semantics.host_launches import launch_errors
from treadle.cuda_cpp.semantics.ignored_attributes import ignored_attributes
from treadle.cuda_cpp.semantics.ill_formed import IllFormed
from treadle.cuda_cpp.semantics.jumps import gotos_past_values
from treadle.cuda_cpp.semantics.malformed import malformed
from treadle.cuda_cpp.semantics.misplaced import misplaced
from treadle.cuda_cpp.semantics.misspelled import misspelled
from treadle.cuda_cpp.semantics.redefinitions import redefinitions
from treadle.cuda_cpp.semantics.scopes import (
    Functions,
    GlobalVariable,
    Overload,
    Scope,
    file_scope,
)
from treadle.cuda_cpp.semantics.specializations import of_no_template
from treadle.cuda_cpp.semantics.types import (
    NUMBER_TYPES,
    VOID,
    ArrayOf,
    CppType,
    Double,
    EnumType,
    FunctionOf,
    NoLayout,
    NumberTypes,
    Reference,
    Void,
    count_of,
    holds_pointer,
    innermost,
    ir_type,
)
from treadle.cuda_cpp.source.declaring_headers import namespaces_without_header
from treadle.cuda_cpp.source.headers import declares_only_host_names, why_missing
from treadle.cuda_cpp.source.predefined import DOUBLE_IS_FLOAT
from treadle.cuda_cpp.source.preprocessor import OPEN_LITERAL, preprocess
from treadle.cuda_cpp.syntax import tree
from treadle.cuda_cpp.syntax.source_file import SourceFile
from treadle.cuda_cpp.syntax.translation_unit import parse, parse_template_argument
from treadle.ir import nodes as n
from treadle.ir import types as ir
from treadle.ir.definition import KernelOptions
from treadle.ir.signature import DeclaredParameter, DeclaredPointer, Signature

_MOST_BYTES = 1 << 31  # of a variable
_MOST_RUNS = 256  # of the lowering: each adds a fact about a variable


def read(
    text: str,
    file: str,
    defines: Mapping[str, Any],
    include: Sequence[Path],
    skip_missing_headers: bool = False,
    double: Double = "double",
) -> SourceFile:
    """Read a file. CompileErrors lists all errors that are found without lowering a kernel."""
    if NUMBER_TYPES[double].double_is_float:
        defines = {**DOUBLE_IS_FLOAT, **defines}
    read = preprocess(text, file, defines, include, skip_missing_headers)
    parsed = parse(read.tokens, read.texts, file)
    headers = [name for name, _ in read.unknown_headers]
    errors = [*read.errors]
    if all(map(declares_only_host_names, headers)):
        errors += misspelled(read.tokens, file)
        errors += namespaces_without_header(read.tokens, file, read.texts)
    if len(errors) == len(read.errors):  # others follow from these
        errors += _before_open_literals(parsed.errors, read.errors)
    errors.sort(key=lambda error: (error.file, error.line))
    if errors:
        raise CompileErrors([one.with_source(read.texts.get(one.file)) for one in errors])
    message_of = partial(builtin_names.unknown, read=read.texts)
    is_surely_none = partial(builtin_names.is_surely_none, read=read.texts)
    words = {one.text for one in read.tokens}
    wrong = [
        *redefinitions(parsed.unit.declarations),
        *conflicts(parsed.unit.declarations, file),
        *malformed(parsed.unit.declarations, file),
        *misplaced(parsed.unit.declarations, words),
        *gotos_past_values(parsed.unit.declarations, file, words),
        *of_no_template(parsed.unit.declarations, file, headers),
        *launch_errors(parsed.unit.declarations),
        *early_errors(parsed.uses, headers, builtin_names.is_known, message_of, is_surely_none),
    ]
    source = SourceFile(
        parsed.unit,
        read.texts,
        read.unknown_headers,
        read.looked_for,
        len(read.tokens),
        warnings=(*read.warnings, *ignored_attributes(read.tokens, file)),
    )
    if wrong:
        raise CompileErrors(_with_type_errors(wrong, source, file, double))
    return source


def _before_open_literals(
    found: Sequence[CompileError], earlier: Sequence[CompileError]
) -> list[CompileError]:
    """The syntax errors that do not follow from a literal without an end, which takes what is
    behind it along."""
    open_ones = [one for one in earlier if OPEN_LITERAL in one.message]
    return [
        one
        for one in found
        if not any(one.file == each.file and one.line >= each.line for each in open_ones)
    ]


def _without_followers(errors: Sequence[CompileError]) -> list[CompileError]:
    """Errors without those that stand behind an undeclared name in its line, and may follow from
    it."""
    found: list[CompileError] = []
    unknown: set[tuple[str, int]] = set()
    for one in errors:
        if UNDECLARED in one.message:
            unknown.add((one.file, one.line))
        elif (one.file, one.line) in unknown:
            continue
        found.append(one)
    return found


def _with_type_errors(
    wrong: Sequence[CompileError], source: SourceFile, file: str, double: Double
) -> list[CompileError]:
    """Errors with those of types, each place once, in the order of the file."""
    found = {one.span: one.with_source(source.texts.get(one.file)) for one in wrong}
    try:
        more: list[IllFormed] = Program(source, file, NUMBER_TYPES[double], 0).checked().errors
    except CompileError:
        more = []
    for one in more:
        found.setdefault(one.span, one)
    order = {name: at for at, name in enumerate(source.texts)}
    ordered = sorted(found.values(), key=lambda one: (order.get(one.file, 0), one.line, one.column))
    return _without_followers(ordered)


def load(
    source: SourceFile,
    file: str,
    double: Double = "double",
    recursion: int = records.LEVELS,
    guarded: bool = False,
) -> Program:
    """The program of a file, whose functions call themselves at most `recursion` levels deep, with
    the checks of `guards.py` if it is `guarded`. Warns of what its author most likely meant
    otherwise."""
    program = Program(source, file, NUMBER_TYPES[double], recursion, guarded)
    program.warnings = source.warnings if source.checked else _warnings(program, source, file)
    for message, span in program.warnings:
        shown = excerpt(span, source.texts.get(span.file))
        shown = f"{message}\n{shown}" if shown and span.column else message
        warnings.warn_explicit(shown, CompileWarning, span.file, span.line)
    return program


def _warnings(program: Program, source: SourceFile, file: str) -> tuple[tuple[str, Span], ...]:
    """What is warned of, with the places. CompileErrors for what is ill-formed."""
    found = program.checked()
    if found.errors:
        raise CompileErrors(found.errors)
    warned = [*source.warnings, *doubtful(source.unit, builtin_names.is_known), *found.warnings]
    warned.sort(key=lambda one: (one[1].file, one[1].line, one[1].column))
    if not program.kernels and not program.has_variables:
        warned.append((_no_kernels(source.texts.get(file, "")), Span(file, 1, 0)))
    return tuple(dict.fromkeys(warned))


_PYTHON = re.compile(r"^(?:@|import \w|from [\w.]+ import |def \w+\(.*:$)", re.MULTILINE)


def _no_kernels(text: str) -> str:
    """The warning of a file without kernels."""
    if not text.strip():
        return "there are no kernels in it: the text is empty"
    python = " This is Python, whose kernels are functions with @td.kernel."
    return (
        "there are no kernels in it: kernels are the functions with __global__."
        f"{python if _PYTHON.search(text) else ''}"
    )


class Program:
    """A file of CUDA C++ with all that it includes (records.Program)."""

    def __init__(
        self,
        source: SourceFile,
        file: str,
        types: NumberTypes,
        recursion: int,
        guarded: bool = False,
    ) -> None:
        unit = self._unit = source.unit
        self._guarded = guarded
        self.warnings: tuple[tuple[str, Span], ...] = ()
        self._recursion = recursion
        self.sources = source.texts
        self.file = file
        self._headers = source.unknown_headers
        self._number_types = types
        self._scope = file_scope(unit, types)
        self.declared_kernels = by_name(declared_kernels(unit.declarations, self._scope))
        self.kernels = {name: kernel.template for name, kernel in self.declared_kernels.items()}
        self.static_variables = static_variables(unit, self._scope)
        self.declared_variables = dict(declared_variables(self._scope)) | self.static_variables
        references = texture_references(self._scope)
        self.references = {name: one.declaration.span for name, one in references}
        self._types: dict[str, CppType] = {}
        self.refused_symbols: dict[str, CompileError] = {}
        self.linked: dict[str, records.Linked] = {}
        self.symbols = self._symbols()
        self._with_instances: set[str] = set()  # kernels that may use instances of these
        self._variable_templates = dict(variable_templates(self._scope))
        self._reachable = Reachable(unit)
        self._queued: dict[str, records.Queued] = {}
        self._instances: dict[str, tuple[Overload, Scope]] = {}
        self._unchecked = self._check_assertions(unit)

    @property
    def has_variables(self) -> bool:
        """Whether the user's file declares variables in device memory."""
        return any(
            _is_of_user(one.declaration, self.file) for one in self.declared_variables.values()
        )

    @property
    def notes(self) -> tuple[records.Note, ...]:
        """Notes on the file as a whole."""
        headers = (
            records.Note("noted", f"#include <{name}>", f"{name} {why_missing(name)}", span)
            for name, span in self._headers
        )
        return (*headers, *self._unchecked)

    def _check_assertions(self, unit: tree.TranslationUnit) -> tuple[records.Note, ...]:
        """Check each static_assert of the file; those that cannot be checked are noted."""
        cx = self._context()
        errors: list[CompileError] = []
        for node, scope in declared_assertions(unit.declarations, self._scope):
            try:
                with cx.in_scope(scope):
                    static_assert(cx, node)
            except CompileError as error:
                errors.append(error)
        if errors:
            raise CompileErrors(errors)
        return _records_of(cx.lowering)

    def _context(self) -> Context:
        lowering = Lowering(
            RULES, self.sources, Facts(), types=self._number_types, file=self._unit.file
        )
        return Context(lowering, self._scope)

    def checked(self) -> Checked:
        """What is ill-formed in the functions of the file, whatever is launched, and warnings."""
        if not all(declares_only_host_names(name) for name, _ in self._headers):
            return Checked([], [])  # what is missing may make sense of them
        symbols = {
            name: (type, "constant" if self.symbols[name].space == "constant" else "global")
            for name, type in self._types.items()
            if name in self.symbols
        }
        refused = [one for one in self.refused_symbols.values() if isinstance(one, IllFormed)]
        types = self._number_types
        return checked(self._unit, self._scope, self.sources, types, symbols, refused)

    # --- variables ---

    def _symbols(self) -> dict[str, records.Symbol]:
        found: dict[str, records.Symbol] = {}
        for name, entity in self.declared_variables.items():
            try:
                if self._is_known(entity):
                    continue  # its values are known when a kernel is compiled
                made = self._symbol(name, entity)
                if isinstance(made, records.Linked):
                    self.linked[name] = made
                else:
                    found[name] = made
            except CompileError as error:  # the error of kernels that use it
                self.refused_symbols[name] = error
        return found

    def _is_known(self, entity: GlobalVariable) -> bool:
        """Whether a variable has pointers that its initializer says: to functions or texts."""
        cx = self._context()
        with cx.in_scope(entity.scope):
            type = resolve(cx, entity.declaration.type)
        return points_to_functions(type) or (
            is_table_of_texts(entity.declaration) and holds_pointer(type)
        )

    def _symbol(self, name: str, entity: GlobalVariable) -> records.Symbol | records.Linked:
        cx = self._context()
        declaration = entity.declaration
        with cx.in_scope(Scope(entity.scope, name, VARIABLE)):
            type = resolve(cx, declaration.type)
            if isinstance(type, ArrayOf) and type.length is None:
                type = ArrayOf(type.element, length_of(cx, declaration, type.element))
            if isinstance(inner := innermost(type), Void):
                refuse_void(cx, name, inner, declaration.span)
            if isinstance(type, Reference):
                raise cx.error(
                    f"{name} is a reference in memory: make it a pointer", declaration.span
                )
            try:
                element = ir_type(innermost(type))
            except NoLayout as reason:
                raise cx.error(
                    f"{name} is {reason}: pass the array to the kernel instead", declaration.span
                ) from None
            size = ir.size_of(element) * count_of(type)
            if size > _MOST_BYTES:
                raise cx.error(
                    f"{name} has {size:,} bytes, and a variable of a file {_MOST_BYTES:,} at most: "
                    "pass the array to the kernel instead",
                    declaration.span,
                )
            if holds_table(innermost(type)):
                raise cx.error(
                    f"{name} is an object with virtual functions, which no constructor makes: make "
                    "it in a kernel by new, and keep a pointer to it",
                    declaration.span,
                )
            space: Any = "constant" if "constant" in declaration.specifiers else "device"
            shape = _shape(type)
            if holds_pointer(type):
                if declaration.initializer is not None and not _is_null(declaration.initializer):
                    raise cx.error(
                        f"{name} has pointers in it, and an initializer: set it on the host with "
                        f"module.constants[{name!r}] = …",
                        declaration.span,
                    )
                self._types[name] = type
                return records.Linked(
                    name, space, element, shape, str(type), zero_value(innermost(type))
                )
            initial = first_bytes(cx, declaration, type)
        self._types[name] = type
        doubles = None
        if self._number_types.double_is_pair and holds_double(element):
            doubles, element = element, paired(element)
        return records.Symbol(name, space, element, shape, initial, doubles, declaration.span)

    # --- instances ---

    def instance(self, name: str, arguments: tuple[str, ...]) -> records.KernelInstance:
        """A kernel with its template arguments, each as C++ writes it."""
        kernel = self.declared_kernels[name]
        overload = kernel.overload
        declaration = overload.declaration
        cx = self._context()
        scope = overload.scope
        spelled_name = name
        written = [self._argument(one) for one in arguments]
        if packs_of(declaration):
            counts = counts_by_arguments(declaration, len(written))
            declaration = expanded(cx, declaration, counts)
            overload = replace(overload, declaration=declaration)
        if declaration.template:
            cx.span = declaration.span
            with cx.in_scope(scope):
                given = [
                    _as_enum(cx, one, to)
                    for one, to in zip(written, declaration.template, strict=False)
                ]
                given += written[len(given) :]
                scope = bind_arguments(cx, declaration.template, given, scope, declaration.span)
                spelled_name = f"{name}<{', '.join(map(spelled, scope.names['<arguments>']))}>"
                overload, scope = _specialized(cx, overload, scope)
                declaration = overload.declaration
        with cx.in_scope(scope):
            if declaration.result is not None and resolve(cx, declaration.result) != VOID:
                raise cx.wrong(returns_a_value(name), declaration.span)
            found = parameters_of(cx, declaration, self._lasting)
            most = None
            if declaration.launch_bounds:
                most = constant_integer(cx, declaration.launch_bounds[0], "__launch_bounds__")
        used = self._reachable.names_from(declaration, written)
        named = [one for one in self.declared_variables if _own_name(one) in used]
        for one in named:
            if one in self.refused_symbols and one not in self.static_variables:
                raise self.refused_symbols[one]
        linked = tuple(one for one in named if one in self.linked)
        for one in linked:
            constant = self.linked[one].space == "constant"
            entity = self.declared_variables[one]
            found.layouts.append(
                linked_variable(cx, found, one, self._types[one], constant, entity.declaration.span)
            )
        lasting = lasting_of(found.layouts)
        if "free" in used:
            lasting |= {HEAP, TAKEN, SPENT}
        if self._guarded and (HEAP in lasting or HEAP in named):
            lasting |= {MARKS}
        symbols = tuple(one for one in self.symbols if one in named or one in lasting)
        references = tuple(one for one in self.references if one.rpartition("::")[2] in used)
        labels = records.own_labels([one.name for one in found.parameters], references)
        for label in labels:
            texture = DeclaredPointer(ir.VOID, "texture", shaped=True)
            found.parameters.append(DeclaredParameter(label, texture, f"texture {label}"))
            found.types.append("texture")
        self._instances[spelled_name] = (overload, scope)
        made = records.KernelInstance(
            spelled_name,
            tuple(found.parameters),
            tuple(found.types),
            symbols,
            most,
            KernelOptions(),
            declaration.span,
            tuple(found.written),
            tuple(found.layouts) if found.is_split or references or linked else (),
            found.uploaded,
            tuple(found.narrowed),
            found.paired,
            found.functions,
            references,
            linked,
            waits_for_grid="__treadle_grid_barrier" in used,
        )
        if any(_own_name(one) in used for one in self._variable_templates):
            self._with_instances.add(spelled_name)
        return made

    def needed_variables(
        self, kernel: records.KernelInstance, signature: Signature
    ) -> tuple[str, ...]:
        """An instance of a variable template that a kernel uses and does not have among its
        symbols, which only its lowering shows."""
        if kernel.name not in self._with_instances:
            return ()
        try:
            self._lower(kernel, signature)
        except NeedsVariable as needed:
            self._add_instance(needed.name, needed.instance)
            return (needed.name,)
        except CompileError:  # the error of its launch
            return ()
        return ()

    def _add_instance(self, name: str, instance: GlobalVariable) -> records.Symbol:
        """An instance of a variable template as a variable of the module."""
        known = self.symbols.get(name)
        if known is None:
            made = self._symbol(name, instance)
            if isinstance(made, records.Linked):
                raise CompileError(
                    f"{name} is an instance of a template of variables, and has pointers in it: "
                    "declare a variable for each type",
                    instance.declaration.span,
                )
            known = self.symbols[name] = replace(made, of_template=True)
        return known

    def variable(self, name: str, arguments: tuple[str, ...]) -> records.Symbol | None:
        """The instance of a variable template with these arguments; None if there is no such
        template. CompileError for arguments that it does not take."""
        entity = self._variable_templates.get(name)
        if entity is None:
            return None
        if not arguments and any(one.default is None for one in entity.declaration.template or ()):
            raise CompileError(
                f"{name} is a template of variables: say which instance, as in "
                f'constants["{name}<float>"]',
                entity.declaration.span,
            )
        cx = self._context()
        span = cx.span = entity.declaration.span
        with cx.in_scope(entity.scope):
            written = [self._argument(one) for one in arguments]
            return self._add_instance(*named_instance(cx, entity, written, span))

    @cached_property
    def _uses_heap(self) -> bool:
        """Whether any kernel allocates memory."""
        return any(
            HEAP in self._reachable.names_from(one.overload.declaration)
            for one in self.declared_kernels.values()
        )

    def _lasting(self, to: CppType, of_file: bool) -> tuple[str, ...]:
        """The variables that pointers to a type may point into, in an array of the caller's or in a
        variable `of_file`: what one kernel stored there, another one may read."""
        found = [HEAP] if HEAP in self.symbols and self._uses_heap else []
        if of_file and not isinstance(to, FunctionOf):
            found += [
                name
                for name in self.symbols
                if not (name.startswith("__treadle") or self.symbols[name].of_template)
                and innermost(self._types[name]) == innermost(to)
            ]
        return tuple(found)

    def _argument(self, text: str) -> tree.TemplateArgument:
        """A template argument from its text."""
        file = "<template argument>"
        tokens = [one for one in preprocess(f"<{text}>", file).tokens if one.file == file]
        found = parse_template_argument(tokens)
        if found is None:
            raise CompileError(f"{text!r} is not a template argument in C++")
        return found

    def queued(self, instance: records.KernelInstance) -> records.Queued:
        """What a kernel that was lowered launches."""
        return self._queued.get(instance.name, records.Queued())

    # --- lowering ---

    def lower(
        self, instance: records.KernelInstance, signature: Signature
    ) -> tuple[n.Kernel, tuple[records.Note, ...]]:
        """A kernel in IR, and the notes on it."""
        try:
            return self._lower(instance, signature)
        except NeedsVariable as needed:
            raise CompileError(
                f"{needed.name} is an instance of a template of variables that the kernel uses "
                "only for these arguments: declare a variable for each type",
                instance.span,
            ) from None

    def _lower(
        self, instance: records.KernelInstance, signature: Signature
    ) -> tuple[n.Kernel, tuple[records.Note, ...]]:
        overload, scope = self._instances[instance.name]
        facts = Facts()
        for _ in range(_MOST_RUNS):
            facts.changed = False
            facts.given.clear()
            lowering = Lowering(
                RULES,
                self.sources,
                facts,
                fastmath=instance.options.fastmath,
                types=self._number_types,
                recursion=self._recursion,
                guarded=self._guarded,
                file=self._unit.file,
                sampling={
                    parameter.name: one
                    for parameter, one in zip(instance.parameters, instance.sampling, strict=False)
                    if one is not None
                },
            )
            try:
                kernel = lower_once(
                    lowering,
                    overload,
                    scope,
                    instance,
                    signature,
                    self._types,
                    self.symbols,
                    self.linked,
                )
            except LowerAgain:
                continue
            except RecursionError:
                _refuse_endless(lowering)
                raise
            except CompileError:
                if not facts.changed:
                    raise
                continue  # with what this run found, it may be no error
            except NoLayout as reason:
                raise lowering.error(
                    f"{reason}, and memory on most devices cannot hold addresses. Pass "
                    "arrays as parameters of the kernel, and keep indices instead of pointers",
                    lowering.span,
                ) from None
            if not facts.changed:
                facts.drop_old_targets()
            if not facts.changed:
                self._queued[instance.name] = records.Queued(
                    tuple(lowering.queued), tuple(lowering.arrays.values())
                )
                return kernel, _records_of(lowering)
        raise CompileError(
            f"the targets of the pointers of {instance.name} were not found in {_MOST_RUNS} runs: "
            "split it into smaller functions",
            instance.span,
        )


_MANY = 150  # instances of a template: compilers stop at 200 that make each other


def _refuse_endless(lowering: Lowering) -> None:
    """CompileError for a class template whose instances make others without an end, if that is why
    there was no room to go on."""
    counts = Counter(made.template.name for made in lowering.instances.values() if made.template)
    for name, count in counts.most_common(1):
        if count > _MANY:
            raise lowering.error(
                f"instances of {name} need other instances of it, {count} so far: a template that "
                "uses itself with other arguments needs an end, such as a specialization",
                lowering.span,
            ) from None


def _as_enum(cx: Context, argument: Any, parameter: tree.TemplateParameter) -> Any:
    """A template argument; a number for a parameter of an enum as its enumerator."""
    if not isinstance(argument, tree.IntegerLiteral) or not isinstance(
        parameter.type, tree.NamedType
    ):
        return argument
    try:
        type = resolve(cx, parameter.type)
    except CompileError:  # it depends on another parameter
        return argument
    return tree.Cast(parameter.type, argument) if isinstance(type, EnumType) else argument


def _specialized(cx: Context, kernel: Overload, scope: Scope) -> tuple[Overload, Scope]:
    """The explicit specialization of a kernel for the arguments that a scope binds, and its scope;
    the kernel itself if there is none."""
    group = kernel.scope.own(kernel.declaration.name.text)
    if not isinstance(group, Functions):
        return kernel, scope
    with cx.in_scope(scope):
        types = tuple(
            parameter_type(resolve(cx, one.type)) for one in kernel.declaration.parameters
        )
    found = specialized(cx, Candidate(kernel, scope, types), group.overloads)
    return found.overload, found.scope


def _records_of(lowering: Lowering) -> tuple[records.Note, ...]:
    return tuple(
        records.Note(one.kind, one.construct, one.reason, one.span)  # type: ignore[arg-type]
        for one in lowering.notes
    )


def _is_null(initializer: Any) -> bool:
    """Whether an initializer is that of null pointers."""
    if isinstance(initializer, tree.InitializerList):
        return all(map(_is_null, initializer.items))
    if isinstance(initializer, tree.Name):
        return initializer.text == "NULL"
    return isinstance(initializer, (tree.NullLiteral,)) or (
        isinstance(initializer, tree.IntegerLiteral) and initializer.value == 0
    )


def _is_of_user(one: tree.VariableDeclaration, file: str) -> bool:
    return one.span.file == file or not one.span.file.startswith("<")


def _own_name(symbol: str) -> str:
    """The name of a variable in its scope."""
    return symbol.rpartition("::")[2].partition(".")[0]


def _shape(type: CppType) -> tuple[int, ...]:
    shape: list[int] = []
    while isinstance(type, ArrayOf):
        shape.append(type.length or 0)
        type = type.element
    return tuple(shape)
