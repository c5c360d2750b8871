"""A progress line of a loop, with the loss and other values."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from treadle.tensor.tensor import Tensor

if TYPE_CHECKING:  # training without a screen need not wait for the import
    from rich.console import Console
    from rich.progress import Progress

Item = TypeVar("Item")
_SECONDS_BETWEEN_READS = 0.25


def progress(
    iterable: Iterable[Item],
    description: str = "",
    *,
    total: int | None = None,
    show: bool | None = None,
    console: Console | None = None,
) -> Tracked[Item]:
    """An iterable that shows on the screen how far it is.

    `set(loss=loss)` shows numbers beside it. Tensors are read four times a second at most, so that
    a step need not wait for its loss. Nothing is shown where the output is not a terminal, unless
    `show` is True; with False nothing is shown anywhere. It goes to standard error, or to a
    `rich` console.

    >>> import treadle as td
    >>> batches = td.data.progress([1.0, 2.0], "epoch 1")
    >>> for loss in batches:
    ...     batches.set(loss=loss)
    """
    return Tracked(iterable, description, total, show, console)


class Tracked(Generic[Item]):
    """What `td.data.progress` gives."""

    def __init__(
        self,
        iterable: Iterable[Item],
        description: str,
        total: int | None,
        show: bool | None,
        console: Console | None,
    ) -> None:
        self._iterable = iterable
        self._description = description
        self._total = total if total is not None else _length(iterable)
        self._console = console or _standard_error()
        self._is_shown = self._console.is_terminal if show is None else show
        self._values: dict[str, Any] = {}
        self._next_read = 0.0
        self._screen: Progress | None = None

    def __len__(self) -> int:
        return len(self._iterable)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[Item]:
        if not self._is_shown:
            yield from self._iterable
            return
        with _screen(self._console, self._total is not None) as screen:
            task = screen.add_task(self._description, total=self._total, values="")
            self._screen = screen
            try:
                for item in self._iterable:
                    yield item
                    screen.advance(task)
                    if time.monotonic() >= self._next_read:
                        self._read()
                self._read()
            finally:
                self._screen = None

    def set(self, **values: Any) -> None:
        """Show these numbers, texts or tensors of one element from now on."""
        if self._is_shown:
            self._values |= {
                name: value.detach() if isinstance(value, Tensor) else value
                for name, value in values.items()
            }

    def _read(self) -> None:
        self._next_read = time.monotonic() + _SECONDS_BETWEEN_READS
        if self._screen is not None:
            shown = "  ".join(f"{name} {_text(value)}" for name, value in self._values.items())
            self._screen.update(self._screen.task_ids[0], values=shown)


def _standard_error() -> Console:
    from rich.console import Console

    return Console(stderr=True)


def _screen(console: Console, known: bool) -> Progress:
    """A bar if the length is known, otherwise a spinner."""
    from rich import progress as parts

    columns = [
        parts.TextColumn("{task.description}", markup=False),
        parts.BarColumn(bar_width=24) if known else parts.SpinnerColumn(),
        parts.MofNCompleteColumn(),
        parts.TimeElapsedColumn(),
        *([parts.TimeRemainingColumn()] if known else []),
        parts.TextColumn("{task.fields[values]}", markup=False),
    ]
    return parts.Progress(*columns, console=console, transient=False)


def _text(value: Any) -> str:
    number = value.item() if isinstance(value, Tensor) else value
    return f"{number:.4g}" if isinstance(number, float) else str(number)


def _length(iterable: Any) -> int | None:
    try:
        return len(iterable)
    except TypeError:
        return None
