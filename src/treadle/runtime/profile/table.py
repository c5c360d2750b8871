"""A profile's sums, as rows of numbers and as a printed table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from treadle.runtime.profile.records import Amount, Entry, ProfileData

if TYPE_CHECKING:
    from rich.console import RenderableType


_HEADINGS = (
    "kernel", "device", "count", "total", "mean", "moved", "GB/s", "operations", "GFLOP/s",
)  # fmt: skip
_LEFT = 2  # columns of text, aligned left; columns of numbers are aligned right
_UNKNOWN = "–"
_TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns"))
_SIZES = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))
_COUNTS = ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))
_ESTIMATED = "~ the sizes of the arrays that the kernel reads, and of those that it writes"
_READS = "* of reads: the host's time for the copy, once the work before it is done"


@dataclass(frozen=True, slots=True)
class Row:
    """One kernel, replay or kind of copy on one device.

    `seconds` is the device's time, or the host's if `on_host`, summed over those whose time is
    known (`timed` of them). `bytes` and `operations` are None where unknown; `estimated` bytes are
    the sizes of the arrays that a kernel reads plus those that it writes.
    """

    kind: str  # "kernel", "library", "replay", "upload", "read", "copy" or "zero"
    name: str
    device: str
    count: int
    timed: int
    seconds: float
    on_host: bool
    bytes: int | None
    operations: int | None
    estimated: bool

    @property
    def mean(self) -> float | None:
        """The mean time in seconds, if any is known."""
        return self.seconds / self.timed if self.timed else None

    @property
    def bytes_per_second(self) -> float | None:
        """The achieved bandwidth, if it is known."""
        return self._rate(self.bytes)

    @property
    def operations_per_second(self) -> float | None:
        """The achieved operations per second, if they are known."""
        return self._rate(self.operations)

    def _rate(self, amount: int | None) -> float | None:
        if amount is None or not self.seconds or self.timed < self.count:
            return None
        return amount / self.seconds


@dataclass(frozen=True, slots=True)
class ProfileTable:
    """The rows, longest total time first, and notes that explain them."""

    title: str
    rows: tuple[Row, ...]
    notes: tuple[str, ...]

    def __str__(self) -> str:
        lines = [_HEADINGS, *map(_cells, self.rows)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        text = [self.title]
        for line in lines:
            cells = zip(line, widths, strict=True)
            padded = (
                cell.ljust(width) if i < _LEFT else cell.rjust(width)
                for i, (cell, width) in enumerate(cells)
            )
            text.append("  ".join(padded).rstrip())
        return "\n".join((*text, *self.notes))

    __repr__ = __str__

    def __rich__(self) -> RenderableType:
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        table = Table(header_style="bold", box=None, pad_edge=False)
        for i, heading in enumerate(_HEADINGS):
            table.add_column(
                heading,
                justify="left" if i < _LEFT else "right",
                overflow="fold",
                no_wrap=i > 0,
            )
        for row in self.rows:
            table.add_row(*map(Text, _cells(row)))
        notes = (Text(note, style="dim") for note in self.notes)
        return Group(Text(self.title), table, *notes)


def tabulate(notes: ProfileData) -> ProfileTable:
    """The table of a profile that has ended."""
    groups: dict[tuple[str, str, str], list[Entry]] = {}
    for entry in notes.entries:
        if entry.kind not in ("wait", "compile"):
            groups.setdefault((entry.kind, entry.name, entry.device), []).append(entry)
    rows = [_row(entries, notes) for entries in groups.values()]
    rows.sort(key=lambda row: -row.seconds)
    title = f"profile of {_readable(notes.seconds, _TIMES)}"
    return ProfileTable(title, tuple(rows), tuple(_notes(notes, rows)))


def _row(entries: list[Entry], notes: ProfileData) -> Row:
    first = entries[0]
    if first.kind == "read":
        spans = [(entry.began, entry.ended) for entry in entries]
        on_host = notes.is_gpu(first.device)
    else:
        spans = [entry.on_device for entry in entries if entry.on_device is not None]
        on_host = not notes.timed.get(first.device, True)
    amount = Amount(0, 0)
    for entry in entries:
        amount += entry.amount
    return Row(
        first.kind,
        first.name,
        first.device,
        len(entries),
        len(spans),
        sum(end - start for start, end in spans),
        on_host,
        amount.bytes,
        amount.operations,
        amount.estimated,
    )


def _cells(row: Row) -> tuple[str, ...]:
    name = row.name if row.kind in ("kernel", "library", "replay") else f"({row.name})"
    about, mark = "~" if row.estimated else "", "*" if row.on_host else ""
    speed, pace = row.bytes_per_second, row.operations_per_second
    return (
        name,
        row.device,
        str(row.count),
        _readable(row.seconds if row.timed else None, _TIMES) + mark,
        _readable(row.mean, _TIMES) + mark,
        about + _readable(row.bytes, _SIZES),
        _UNKNOWN if speed is None else f"{about}{_digits(speed / 1e9)}{mark}",
        _readable(row.operations, _COUNTS),
        _UNKNOWN if pace is None else f"{_digits(pace / 1e9)}{mark}",
    )


def _notes(notes: ProfileData, rows: list[Row]) -> Iterable[str]:
    if not rows:
        yield "nothing ran on a device"
    if any(row.estimated for row in rows):
        yield _ESTIMATED
    for device, timed in notes.timed.items():
        if not timed:
            yield (
                f"* {device} has no timestamps: the host's time, which waits before and after each"
            )
    if any(row.kind == "read" and row.on_host for row in rows):
        yield _READS
    lost = sum(row.count - row.timed for row in rows)
    if lost:
        yield f"{lost} without a time: {notes.untimed}"
    for kind, label in (("compile", "compiled or loaded"), ("wait", "waited for devices")):
        found = [entry for entry in notes.entries if entry.kind == kind]
        if found:
            total = _readable(sum(entry.ended - entry.began for entry in found), _TIMES)
            times = f"{len(found)} time{'s' * (len(found) > 1)}"
            yield f"{label}: {times}, {total} of the host's"
    for device, peak in notes.memory.items():
        yield f"memory of arrays on {device}: {_readable(peak, _SIZES)} at most"


def _readable(value: float | None, units: tuple[tuple[float, str], ...]) -> str:
    """A number in the unit that suits it.

    >>> _readable(0.0123, _TIMES), _readable(24000, _SIZES), _readable(None, _SIZES)
    ('12.3 ms', '24 kB', '–')
    """
    if value is None:
        return _UNKNOWN
    size, unit = next((one for one in units if value >= one[0]), units[-1])
    return f"{_digits(value / size)} {unit}".rstrip()


def _digits(value: float) -> str:
    """Three digits, without an exponent.

    >>> [_digits(v) for v in (3024.4, 51.04, 0.00213, 0)]
    ['3024', '51', '0.00213', '0']
    """
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"
