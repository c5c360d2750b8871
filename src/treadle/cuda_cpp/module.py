"""A CUDA C++ file as users see it: its kernels, its variables, and the report on them."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from treadle.core.errors import (
    CompileError,
    CompileErrors,
    LaunchError,
    TreadleError,
    shortened,
)
from treadle.core.nesting import deep_nesting
from treadle.cuda_cpp.kernel import Kernel
from treadle.cuda_cpp.overloaded import OverloadedKernel
from treadle.cuda_cpp.program import KernelInstance, KernelTemplate, Note, Program
from treadle.cuda_cpp.report import KernelReport, Report
from treadle.cuda_cpp.template_arguments import as_written, split_name
from treadle.cuda_cpp.texture import Textures
from treadle.cuda_cpp.variables import Constants, LinkedVariable, Variable, variables_of


class CudaModule:
    """A file's kernels as attributes, and its variables as `constants`.

    `module.saxpy[grid, block](…)` launches. A template is instantiated first, by
    `module.kernel("reduce", td.f32, 256)`. That also returns kernels in namespaces, and those whose
    names are attributes of the module already.
    """

    def __init__(
        self,
        program: Program,
        file: str,
        fastmath: bool = False,
        warp_synchronous: bool = False,
    ) -> None:
        self._program = program
        self._file = file
        self._fastmath = fastmath
        self._warp_synchronous = warp_synchronous
        self._variables = variables_of(program)
        self._textures = Textures(tuple(program.references))
        self._made: dict[tuple[str, tuple[str, ...]], Kernel] = {}

    @property
    def kernels(self) -> tuple[str, ...]:
        """The names of the kernels, in the order of the file."""
        return tuple(self._program.kernels)

    @property
    def templates(self) -> tuple[str, ...]:
        """The names of the kernels that are templates."""
        return tuple(name for name, one in self._program.kernels.items() if one.template)

    @property
    def constants(self) -> Constants:
        """The `__constant__` and `__device__` variables: `module.constants["coeff"] = values`."""
        # Those of our own headers belong to no user.
        own = {
            name: one for name, one in self._variables.items() if not name.startswith("__treadle")
        }
        return Constants(own, self._program.refused_symbols, self._instance_of_variable)

    @property
    def textures(self) -> Textures:
        """The texture references (`texture<float, 2> image;`), which have an array before a launch:
        `module.textures["image"] = td.texture(array)`."""
        return self._textures

    def kernel(self, name: str, *template_arguments: Any) -> Kernel:
        """A kernel by its name; for a template, the instance with these arguments.

        They are dtypes (`td.f32`), vector types, `@td.struct` classes, ints, bools, or C++ as
        strings ("unsigned char"); the name may have them, as C++ writes it ("reduce<float, 256>").
        AttributeError for an unknown name lists the kernels.
        """
        if not template_arguments and name not in self._program.kernels:
            name, template_arguments = split_name(name)
        written = tuple(as_written(argument) for argument in template_arguments)
        template = self.template(name, len(written))
        made = self._made.get((template.name, written))
        if made is None:
            self._check_arguments(template, written)
            instance = self._instance(template, written)
            made = self._complete(instance)
            self._made[template.name, written] = made
        return made

    def template(self, name: str, arguments: int = 0) -> KernelTemplate:
        """A kernel's declaration; of several with the same name the one that takes so many template
        arguments. AttributeError for an unknown name lists the kernels."""
        known = self._program.kernels
        found = known.get(name)
        if found is not None:
            return found
        inside = [one for one in known.values() if one.is_called(name)]
        if len(inside) > 1:
            inside = [one for one in inside if one.takes(arguments)] or inside
        if len(inside) == 1:
            return inside[0]
        if inside:
            names = " and ".join(one.name for one in inside)
            raise AttributeError(
                f"{self._file} has {names}: say which, as in kernel({inside[0].name!r})"
            )
        if not known:
            raise AttributeError(f"{self._file} has no kernels (__global__ functions), nor {name}")
        close = difflib.get_close_matches(name, known, 1)
        hint = f" (did you mean {close[0]}?)" if close else ""
        listed = ", ".join(known)
        raise AttributeError(f"{self._file} has no kernel {name!r}{hint}; it has {listed}")

    def _check_arguments(self, template: KernelTemplate, written: tuple[str, ...]) -> None:
        if not template.template and written:
            raise LaunchError(
                f"kernel {template.name} is not a template, so it takes no template arguments: "
                f"{', '.join(written)} given"
            )
        if not written and template.needs_arguments:
            raise LaunchError(_instantiate_first(template))
        if not template.takes(len(written)):
            names = ", ".join(one.name for one in template.template)
            raise LaunchError(
                f"kernel {template.name} has the template parameters {names}, and these arguments "
                f"were given: {', '.join(map(repr, written))}"
            )

    def _instance(self, template: KernelTemplate, written: tuple[str, ...]) -> KernelInstance:
        try:
            with deep_nesting(template.name, template.span):
                made = self._program.instance(template.name, written)
            options = replace(made.options, fastmath=self._fastmath)
            return replace(made, options=options, warp_synchronous=self._warp_synchronous)
        except CompileError as error:
            error.with_source(self._program.sources.get(error.file))
            raise shortened(error) from None

    def _complete(self, instance: KernelInstance) -> Kernel:
        """A kernel, with the instances of variable templates that it uses."""
        while True:
            made = Kernel(self._program, instance, self._variables, self._textures, self.kernel)
            try:
                with deep_nesting(instance.name, instance.span):
                    needed = self._program.needed_variables(instance, made.signature)
            except CompileError as error:
                raise made.with_source(error) from None
            if not needed:
                return made
            for name in needed:
                self._variables.setdefault(name, Variable(self._program.symbols[name]))
            instance = replace(instance, symbols=(*instance.symbols, *needed))

    def _instance_of_variable(self, name: str) -> Variable | LinkedVariable | None:
        """An instance of a variable template by its name with arguments; None if there is no such
        template."""
        plain, arguments = split_name(name)
        try:
            symbol = self._program.variable(plain, tuple(map(as_written, arguments)))
        except CompileError as error:
            raise error.with_source(self._program.sources.get(error.file)) from None
        if symbol is None:
            return None
        return self._variables.setdefault(symbol.name, Variable(symbol))

    def report(self, target: str | None = None) -> Report:
        """What each kernel uses of CUDA, what is emulated and what is refused, with lines.

        With a target ("wgsl", "ptx", …) also what that target refuses. Of a template the report
        has the instances that `kernel` made.
        """
        found: list[KernelReport] = []
        for template in self._program.kernels.values():
            try:
                if not template.needs_arguments:
                    self.kernel(template.name)
            except CompileError as error:  # in its parameters, for example
                found.append(KernelReport(template.name, template.span.line, _refusals(error)))
                continue
            made = [kernel for (name, _), kernel in self._made.items() if name == template.name]
            found += [_report_of(kernel, template, target) for kernel in made]
            if not made:
                found.append(KernelReport(template.name, template.span.line, (), True))
        return Report(self._file, tuple(found), self._program.notes, self._program.sources)

    def __getattr__(self, name: str) -> Kernel | OverloadedKernel | Unlaunchable:
        if name.startswith("__") or "_program" not in self.__dict__:  # copy asks for those
            raise AttributeError(name)
        found: Kernel | OverloadedKernel | Unlaunchable
        several = [one for one in self._program.kernels.values() if one.plain == name]
        of_one_name = len({one.name.partition("(")[0] for one in several}) == 1
        if len(several) > 1 and of_one_name and not any(one.needs_arguments for one in several):
            found = OverloadedKernel(name, [self.kernel(one.name) for one in several])
            self.__dict__[name] = found
            return found
        template = self.template(name)
        try:
            found = self.kernel(template.name)
        except (CompileError, LaunchError) as error:
            found = Unlaunchable(template, error)
        self.__dict__[name] = found  # the next access does not come here
        return found

    def __dir__(self) -> Iterable[str]:
        return [*super().__dir__(), *(name for name in self.kernels if name.isidentifier())]

    def __repr__(self) -> str:
        listed = "; ".join(map(str, self._program.kernels.values())) or "no kernels"
        return f"<treadle CUDA C++ module {self._file}: {listed}>"


class Unlaunchable:
    """An attribute of a module that cannot be launched: a template without its arguments, or a
    kernel whose parameters are refused. Every use raises the error that says why."""

    def __init__(self, template: KernelTemplate, error: TreadleError) -> None:
        self._template = template
        self._error = error

    def __getitem__(self, launch: Any) -> Any:
        raise self._error

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """Raise the error."""
        raise self._error

    def source(self, *arguments: Any, **keywords: Any) -> str:
        """Raise the error."""
        raise self._error

    def __repr__(self) -> str:
        return f"<treadle CUDA C++ {self._template}>"


def _instantiate_first(template: KernelTemplate) -> str:
    return (
        f"kernel {template.name} is a {template.head}: instantiate it first, as in "
        f'module.kernel("{template.name}", {template.example("td.f32", "256")})'
    )


def _report_of(kernel: Kernel, template: KernelTemplate, target: str | None) -> KernelReport:
    notes: tuple[Note, ...] = ()
    try:
        notes = kernel.notes()
        if target is not None and not any(note.kind == "refused" for note in notes):
            kernel.source(target, shared_bytes=1 << 12 if kernel.has_dynamic_memory else 0)
    except CompileError as error:
        notes += _refusals(error)
    except LaunchError as error:  # a limit of the target's
        notes += (Note("refused", "", str(error), template.span),)
    ordered = sorted(notes, key=lambda note: (note.span.file, note.span.line, note.span.column))
    return KernelReport(kernel.name, template.span.line, tuple(ordered))


def _refusals(error: CompileError) -> tuple[Note, ...]:
    errors = error.errors if isinstance(error, CompileErrors) else (error,)
    return tuple(Note("refused", "", one.message, one.span) for one in errors)
