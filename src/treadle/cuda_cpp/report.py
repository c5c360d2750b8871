"""What each kernel of a file uses, what of it is emulated and what is refused, with lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from treadle.core.source import excerpt
from treadle.cuda_cpp.program import Note

KINDS = ("used", "emulated", "warned", "refused")


@dataclass(frozen=True, slots=True)
class KernelReport:
    """One kernel: its `notes` in the order of lines. With `needs_arguments` it is a template that
    has no instance yet, so there are no notes."""

    name: str
    line: int
    notes: tuple[Note, ...]
    needs_arguments: bool = False

    @property
    def used(self) -> tuple[Note, ...]:
        """What the target has itself."""
        return self._of("used")

    @property
    def emulated(self) -> tuple[Note, ...]:
        """What is emulated, and by what."""
        return self._of("emulated")

    @property
    def warned(self) -> tuple[Note, ...]:
        """What may not compute what its author meant, and what to do about it."""
        return self._of("warned")

    @property
    def refused(self) -> tuple[Note, ...]:
        """What keeps it from being compiled, and why."""
        return self._of("refused")

    def _of(self, kind: str) -> tuple[Note, ...]:
        return tuple(note for note in self.notes if note.kind == kind)


@dataclass(frozen=True, slots=True)
class Report:
    """The reports of a file's kernels, and notes on the file itself. Printed, it is a table that
    quotes the source line of each refusal from `sources`, the texts by file."""

    file: str
    kernels: tuple[KernelReport, ...]
    notes: tuple[Note, ...] = ()
    sources: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)

    def __getitem__(self, name: str) -> KernelReport:
        for kernel in self.kernels:
            if kernel.name == name:
                return kernel
        raise KeyError(name)

    def __iter__(self) -> Iterator[KernelReport]:
        return iter(self.kernels)

    def __len__(self) -> int:
        return len(self.kernels)

    def __str__(self) -> str:
        lines = [f"{self.file}: {self.text_of(note)}" for note in self.notes]
        for kernel in self.kernels:
            lines.append(f"{self.file}:{kernel.line} {kernel.name}")
            for kind, text in self.rows(kernel):
                lines.append(f"  {kind:<9} {text}".replace("\n", f"\n{'':12}"))
        return "\n".join(lines)

    def rows(self, kernel: KernelReport) -> list[tuple[str, str]]:
        """The rows of a kernel in the table: a kind and its notes."""
        if kernel.needs_arguments:
            return [("template", "no instance yet: make one with module.kernel(name, …)")]
        found = []
        if kernel.used:
            found.append(("used", ", ".join(_short(kernel.used))))
        found += [("emulated", self.text_of(note)) for note in kernel.emulated]
        found += [("warned", self.text_of(note)) for note in kernel.warned]
        for note in kernel.refused:
            shown = excerpt(note.span, self.sources.get(note.span.file))
            found.append(("refused", "\n".join(filter(None, (self.text_of(note), shown)))))
        return found or [("used", "nothing beyond C")]

    def text_of(self, note: Note) -> str:
        """A note in one line: where, what and why."""
        where, what = note.span, note.construct
        place = "" if where.file == self.file else f" of {where.file}"
        line = f"line {where.line}{place}: " if where.line else ""
        return f"{line}{what}{': ' if what and note.reason else ''}{note.reason}"


def _short(notes: tuple[Note, ...]) -> list[str]:
    """The constructs, each once with its lines."""
    lines: dict[str, list[int]] = {}
    for note in notes:
        known = lines.setdefault(note.construct, [])
        if note.span.line and note.span.line not in known:
            known.append(note.span.line)
    return [
        f"{construct} ({', '.join(map(str, numbers))})" if numbers else construct
        for construct, numbers in lines.items()
    ]
