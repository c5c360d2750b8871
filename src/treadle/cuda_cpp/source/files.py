"""Where headers are found, and files as they are read: each once."""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from treadle.core.source import Span
from treadle.cuda_cpp.source.diagnostics import MOST_STEPS, Diagnostics
from treadle.cuda_cpp.source.encodings import Undecodable, decoded
from treadle.cuda_cpp.source.headers import header_name, header_text
from treadle.cuda_cpp.source.lexer import Lexed, lex, normalized, printable
from treadle.cuda_cpp.source.tokens import Token

_LARGEST_FILE = 4 << 20  # characters, or bytes


@dataclass(frozen=True, slots=True)
class LoadedFile:
    """A file as tokens. `folder` is where it lies, if it lies anywhere; `ours`: one of our own.

    `name` is what the tokens carry, `identity` the same for one file by whatever path it is found.
    """

    name: str
    identity: str
    lexed: Lexed
    folder: Path | None = None
    ours: bool = False


class Files:
    """The files that one preprocessing reads."""

    def __init__(self, search: Sequence[Path]) -> None:
        self.search = [Path(folder) for folder in search]
        self.diagnostics = Diagnostics()
        self._loaded: dict[Path, LoadedFile | None] = {}
        self._lines: dict[str, list[str]] = {}

    def main(self, text: str, name: str) -> LoadedFile:
        """A file given as text."""
        if len(text) > _LARGEST_FILE:
            self.diagnostics.texts[name] = ""
            raise self.diagnostics.give_up(_too_large(name), Span(name, 1, 1, 2))
        text = normalized(text)
        path = Path(name)
        return self._file(name, text, path.parent if _is_file(path) else None)

    def ours(self, name: str, text: str) -> LoadedFile:
        """A file that we bring."""
        self.diagnostics.texts[name] = text
        return LoadedFile(name, name, _our_tokens(name, text), ours=True)

    def header(self, name: str) -> LoadedFile | None:
        """One of our own headers."""
        ours = header_name(name)
        return None if ours is None else self.ours(f"<{ours}>", header_text(ours))

    def line(self, file: str, number: int) -> str:
        """A line of a file that was read."""
        if file not in self._lines:
            self._lines[file] = self.diagnostics.texts[file].split("\n")
        return self._lines[file][number - 1]

    def find(self, name: str, quoted: bool, asking: LoadedFile, place: Token) -> LoadedFile | None:
        """The header that an #include in the file `asking` means.

        In quotes, the folder of that file comes first. Our own headers come before the folders to
        search, since a CUDA toolkit among these is of no use to us.
        """
        if quoted and asking.folder is not None:
            beside = self._load(asking.folder / name, place)
            if beside is not None:
                return beside
        ours = self.header(name)
        if ours is not None:
            return ours
        for folder in self.search:
            found = self._load(folder / name, place)
            if found is not None:
                return found
        return None

    def _load(self, path: Path, place: Token) -> LoadedFile | None:
        if path in self._loaded:
            return self._loaded[path]
        loaded = None
        if _is_file(path):
            try:
                if path.stat().st_size > _LARGEST_FILE:
                    self.diagnostics.error(_too_large(str(path)), place)
                else:
                    text = decoded(path.read_bytes())
                    loaded = self._file(str(path), normalized(text), path.parent)
            except Undecodable as reason:
                self.diagnostics.error(f"{path} {reason}", place)
            except OSError as error:
                self.diagnostics.error(f"{path} cannot be read: {error.strerror}", place)
        self._loaded[path] = loaded
        return loaded

    def _file(self, name: str, text: str, folder: Path | None) -> LoadedFile:
        self.diagnostics.texts[name] = printable(text)
        identity = os.path.realpath(name) if folder else name
        return LoadedFile(name, identity, lex(text, name, MOST_STEPS), folder)


def _too_large(name: str) -> str:
    return f"{name} is larger than {_LARGEST_FILE >> 20} MiB, too large for a file of code"


def _is_file(path: Path) -> bool:
    """Whether it is a regular file; no name, however odd, makes this fail."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


@functools.lru_cache(maxsize=256)
def _our_tokens(name: str, text: str) -> Lexed:
    return lex(text, name)
