"""What becomes of a file's kernels: per kernel what is used, emulated and refused, with lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from treadle.core.source import excerpt
from treadle.cuda_cpp.program import Note

KINDS = ("used", "emulated", "warned", "refused")


@dataclass(frozen=True, slots=True)
class KernelReport:
    """One kernel: `notes` in order of lines. `needs_arguments` is a template without an instance,
    of which nothing is known yet."""

    name: str
    line: int
    notes: tuple[Note, ...]
    needs_arguments: bool = False

    @property
    def used(self) -> tuple[Note, ...]:
        """What it uses, as it is."""
        return self._of("used")

    @property
    def emulated(self) -> tuple[Note, ...]:
        """What is done in another way, and in which."""
        return self._of("emulated")

    @property
    def warned(self) -> tuple[Note, ...]:
        """What may compute something else than its author meant, and what to do."""
        return self._of("warned")

    @property
    def refused(self) -> tuple[Note, ...]:
        """What it cannot be compiled for, and why."""
        return self._of("refused")

    def _of(self, kind: str) -> tuple[Note, ...]:
        return tuple(note for note in self.notes if note.kind == kind)


@dataclass(frozen=True, slots=True)
class Report:
    """All kernels of a file, and what is to be said of the file itself. Printed, it is a table, in
    which what is refused has its line of the source, from `sources` by files."""

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
        """The rows of a kernel in a table: a kind, and what is of it."""
        if kernel.needs_arguments:
            return [("template", "give it arguments, and it will be here")]
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
        """A note in a line: where, what and why."""
        where, what = note.span, note.construct
        place = "" if where.file == self.file else f" of {where.file}"
        line = f"line {where.line}{place}: " if where.line else ""
        return f"{line}{what}{': ' if what and note.reason else ''}{note.reason}"


def _short(notes: tuple[Note, ...]) -> list[str]:
    """Constructs with their lines, each construct once."""
    lines: dict[str, list[int]] = {}
    for note in notes:
        known = lines.setdefault(note.construct, [])
        if note.span.line and note.span.line not in known:
            known.append(note.span.line)
    return [
        f"{construct} ({', '.join(map(str, numbers))})" if numbers else construct
        for construct, numbers in lines.items()
    ]
