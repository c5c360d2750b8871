"""The errors users meet. Each says what was asked, what is possible, and what to do next."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from treadle.core.environment import is_on
from treadle.core.source import NOWHERE, Span, excerpt


class TreadleError(Exception):
    """Everything that treadle raises on purpose."""


class DeviceNotFound(TreadleError):
    """No such device; the message lists what was found and what would make it appear."""


class DeviceLost(TreadleError):
    """The device went away (driver reset, unplugged, closed); its tensors are gone."""


class WouldBlock(TreadleError, RuntimeError):
    """A call would wait where Python cannot: in a web page without stack switching. The message
    names the form to await."""


class OutOfMemory(TreadleError, MemoryError, RuntimeError):
    """An allocation failed; the message says how much was asked, used and free. It is a
    RuntimeError, too, which programs for GPUs expect."""


class CompileError(TreadleError):
    """A kernel that cannot be compiled, with the place in the user's source.

    `span` is the place, `source_text` the text of the file that `span` counts lines in; with both,
    the message shows the line and a caret. `generated` is the text that a driver's compiler
    refused, if it was that.
    """

    generated: str | None = None

    def __init__(self, message: str, span: Span = NOWHERE, source_text: str | None = None) -> None:
        self.message = message
        self.span = span
        self.source_text = source_text
        super().__init__(message)

    @property
    def file(self) -> str:
        """The file, or "" if unknown."""
        return self.span.file

    @property
    def line(self) -> int:
        """The line, from 1, or 0 if unknown."""
        return self.span.line

    @property
    def column(self) -> int:
        """The column, from 1, or 0 if unknown."""
        return self.span.column

    def with_source(self, text: str | None) -> CompileError:
        """The same error, knowing the text of its file."""
        if self.source_text is None:
            self.source_text = text
        return self

    def __str__(self) -> str:
        if not self.span.line:
            return self.message
        shown = excerpt(self.span, self.source_text)
        return f"{self.span}: {self.message}" + (f"\n{shown}" if shown else "")


_MOST_SHOWN = 20  # of several errors, as text


class CompileErrors(CompileError):
    """Several things that are wrong with one source: `errors` has them in order.

    As a `CompileError` its place is that of the first; as text it shows each with its line, 20 at
    most.
    """

    def __init__(self, errors: Sequence[CompileError]) -> None:
        first = errors[0]
        super().__init__(first.message, first.span, first.source_text)
        self.errors = tuple(errors)

    def with_source(self, text: str | None) -> CompileErrors:
        """The same errors, knowing the text of their file."""
        super().with_source(text)
        for error in self.errors:
            error.with_source(text)
        return self

    def __str__(self) -> str:
        if len(self.errors) == 1:
            return str(self.errors[0])
        more = len(self.errors) - _MOST_SHOWN
        shown = [f"{len(self.errors)} errors", *map(str, self.errors[:_MOST_SHOWN])]
        return "\n\n".join([*shown, f"and {more} more"] if more > 0 else shown)

    def __reduce__(self) -> tuple[Any, ...]:
        return CompileErrors, (self.errors,)


class UnsupportedOnTarget(CompileError):
    """A correct kernel that this target cannot express; the message says what to do instead."""

    missing = ""  # the scalar type that the target lacks, by its name in the IR


class TooManyArrays(CompileError):
    """A kernel with more bindings than its device has. `written` are the positions of the arrays
    that it writes."""

    def __init__(self, message: str, span: Span, bindings: int, most: int) -> None:
        super().__init__(message, span)
        self.bindings = bindings
        self.most = most
        self.written: frozenset[int] = frozenset()

    def __reduce__(self) -> tuple[Any, ...]:
        return TooManyArrays, (self.message, self.span, self.bindings, self.most)


def refused_by_compiler(compiler: str, name: str, reason: str, generated: str) -> CompileError:
    """The error for generated text that a driver's compiler does not take."""
    error = CompileError(
        f"{compiler} refuses what kernel {name} became: {reason}\nThat is a fault of treadle's or "
        "of the driver's, not of the kernel: please report it with `error.generated`, the text it "
        "refused. The same in a simpler form may pass, or another device take it"
    )
    error.generated = generated
    return error


E = TypeVar("E", bound=TreadleError)


def shortened(error: E) -> E:
    """An error to raise where people call the library: without the calls inside of it, which say
    nothing to them. TREADLE_FULL_TRACEBACK=1 keeps those."""
    return error if is_on("TREADLE_FULL_TRACEBACK") else error.with_traceback(None)


class LaunchError(TreadleError):
    """A launch refused before it started, or a check that failed while it ran."""


class ShapeError(TreadleError, ValueError):
    """Shapes that do not match."""


class DtypeError(TreadleError, TypeError):
    """A dtype that is wrong here, or that the device does not have."""


class AutogradError(TreadleError, RuntimeError):
    """Gradients that cannot be had: what they need is gone, was changed, or never was recorded."""


class StateDictError(TreadleError, RuntimeError):
    """A state dict that does not fit what it is loaded into; the message lists all that is
    wrong."""


class ValuesUnknown(TreadleError, RuntimeError):
    """Values were asked for where only shapes are known: in a function within `td.vmap`."""


class FormatError(TreadleError, ValueError):
    """A file that is not what its format says."""


class GrammarError(TreadleError, ValueError):
    """A grammar or a JSON schema that is wrong, or that a model's tokens cannot fulfil."""


class QueueFull(TreadleError, RuntimeError):
    """More work than may be queued: ask again later."""


class DistributedError(TreadleError, RuntimeError):
    """Processes that compute together cannot go on: one is missing, has failed, or does something
    else than the others. The message says which, and where each is."""


class ActorFailed(TreadleError, RuntimeError):
    """A message that an actor did not handle: its handler failed, or the actor has ended. The text
    says which, and shows the message that did it."""


class ChatTemplateError(TreadleError, ValueError):
    """A chat template that refuses its messages, fails on them, or does what templates may not."""


class HostWarning(UserWarning):
    """Said once for each function that the host computes, to which a device's data crosses."""


class CompileWarning(UserWarning):
    """Source that is compiled, and that its author most likely meant otherwise."""


class WarpSynchronousWarning(UserWarning):
    """CUDA code whose threads read what others of their warp wrote, without a barrier between: it
    counts on warps being in step, which nothing promises."""
