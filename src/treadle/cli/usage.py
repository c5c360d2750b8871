"""What users give to commands, checked. Wrong usage ends with status 2 (`typer.BadParameter`); an
error of another kind reaches `app.main`, which makes one line of it and ends with status 1."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import typer
from rich.console import Console

from treadle.core.errors import TreadleError

# What commands raise for what they were given; any other exception is a fault of treadle itself.
# ValueError is the library's error for arguments, MemoryError that of files beyond the memory.
USER_ERRORS = (TreadleError, OSError, ImportError, ValueError, MemoryError)


class WrongUsage(TreadleError):
    """An option, or a name after a command, that has to be changed: one line, and status 2."""


_USUAL_PORTS = {"http": 80, "https": 443}
_ORIGIN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[!-~]+")


def say(message: str) -> None:
    """A line for people, on standard error."""
    Console(stderr=True).print(f"treadle: {message}", markup=False, highlight=False, soft_wrap=True)


@contextmanager
def wrong_usage(hint: str | None = None, kind: type[ValueError] = ValueError) -> Iterator[None]:
    """Makes errors of a kind wrong usage, of the option or argument that `hint` names."""
    try:
        yield
    except kind as error:
        raise typer.BadParameter(str(error), param_hint=hint) from error


def text_of_file(path: Path, hint: str) -> str:
    """The text of a file that an option names."""
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise typer.BadParameter(
            f"{path} is not text in UTF-8: {error.reason} at byte {error.start}", param_hint=hint
        ) from error


def text_of_input(hint: str) -> str:
    """The text of standard input, all of it."""
    try:
        text = sys.stdin.read()
    except UnicodeDecodeError as error:
        raise typer.BadParameter(
            f"standard input is not text in {error.encoding}: {error.reason} at byte {error.start}",
            param_hint=hint,
        ) from error
    return checked_text(text, hint, "standard input is")


def checked_text(text: str, hint: str, subject: str = "this is") -> str:
    """A text from the command line. Bytes that are not text come as halves of surrogate pairs."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise typer.BadParameter(
            f"{subject} not text in UTF-8 at character {error.start}", param_hint=hint
        ) from error
    return text


def checked_origins(origins: Sequence[str], hint: str) -> tuple[str, ...]:
    """The origins of web pages, each as browsers send it: another spelling would never match."""
    for given in origins:
        if given not in ("*", "null") and (meant := _origin(given)) != given:
            raise typer.BadParameter(
                f"{given!r} is not the origin of a web page: "
                + (f"write {meant}" if meant else "as https://page.example; * allows all pages"),
                param_hint=hint,
            )
    return tuple(origins)


def _origin(text: str) -> str | None:
    """The origin in an address, as browsers send it; None if it has none."""
    if not _ORIGIN.fullmatch(text):
        return None
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        return None
    if not parts.hostname:
        return None
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    usual = port is None or port == _USUAL_PORTS.get(parts.scheme)
    return f"{parts.scheme}://{host}" + ("" if usual else f":{port}")
