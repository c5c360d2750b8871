"""The files of a translation unit, each read once: the search for headers, and encodings."""

from __future__ import annotations

import codecs
import functools
import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from treadle.core.source import Span
from treadle.cuda_cpp.source.diagnostics import MOST_STEPS, Diagnostics
from treadle.cuda_cpp.source.headers import header_name, header_text
from treadle.cuda_cpp.source.lexer import Lexed, lex, normalized, printable
from treadle.cuda_cpp.source.tokens import Token

_LARGEST_FILE = 4 << 20  # characters, or bytes


@dataclass(frozen=True, slots=True)
class LoadedFile:
    """A file as tokens. `folder` holds the file, if it is on disk; a `built_in` header comes with
    treadle.

    `name` is the file name in its tokens; `identity` does not depend on the path by which the file
    was found.
    """

    name: str
    identity: str
    lexed: Lexed
    folder: Path | None = None
    built_in: bool = False


class Files:
    """The files that one run of the preprocessor reads."""

    def __init__(self, search: Sequence[Path]) -> None:
        self.search = [Path(folder) for folder in search]
        self.diagnostics = Diagnostics()
        self.looked_for: dict[str, str] = {}  # the digest of what was at each path
        self._loaded: dict[Path, LoadedFile | None] = {}
        self._lines: dict[str, list[str]] = {}

    def main(self, text: str, name: str) -> LoadedFile:
        """A file whose text is given."""
        if len(text) > _LARGEST_FILE:
            self.diagnostics.texts[name] = ""
            raise self.diagnostics.give_up(_too_large(name), Span(name, 1, 1, 2))
        text = normalized(text)
        path = Path(name)
        return self._file(name, text, path.parent if _is_file(path) else None)

    def built_in(self, name: str, text: str) -> LoadedFile:
        """A file that comes with treadle."""
        self.diagnostics.texts[name] = text
        return LoadedFile(name, name, _built_in_tokens(name, text), built_in=True)

    def header(self, name: str) -> LoadedFile | None:
        """A built-in header; None if there is none of this name."""
        built_in = header_name(name)
        return None if built_in is None else self.built_in(f"<{built_in}>", header_text(built_in))

    def line(self, file: str, number: int) -> str:
        """A line of a file that was read."""
        if file not in self._lines:
            self._lines[file] = self.diagnostics.texts[file].split("\n")
        return self._lines[file][number - 1]

    def find(self, name: str, quoted: bool, asking: LoadedFile, place: Token) -> LoadedFile | None:
        """The header that an #include in the file `asking` names.

        If it is quoted, the folder of that file is searched first. Built-in headers come before the
        search folders: the headers of a CUDA toolkit there cannot be compiled here.
        """
        if quoted and asking.folder is not None:
            found = self._load(asking.folder / name, place)
            if found is not None:
                return found
        built_in = self.header(name)
        if built_in is not None:
            return built_in
        for folder in self.search:
            found = self._load(folder / name, place)
            if found is not None:
                return found
        return None

    def _load(self, path: Path, place: Token) -> LoadedFile | None:
        if path in self._loaded:
            return self._loaded[path]
        loaded = None
        self.looked_for[str(path)] = ""
        if _is_file(path):
            try:
                if path.stat().st_size > _LARGEST_FILE:
                    self.diagnostics.error(_too_large(str(path)), place)
                else:
                    content = path.read_bytes()
                    self.looked_for[str(path)] = _digest(path, content)
                    loaded = self._file(str(path), normalized(decoded(content)), path.parent)
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


def digest_of(path: Path) -> str:
    """A digest of the file at a path and of where it really lies; "" if there is none to read."""
    try:
        return _digest(path, path.read_bytes()) if _is_file(path) else ""
    except OSError:
        return ""


def _digest(path: Path, content: bytes) -> str:
    return hashlib.sha256(os.fsencode(os.path.realpath(path)) + b"\0" + content).hexdigest()


def _too_large(name: str) -> str:
    return f"{name} is larger than {_LARGEST_FILE >> 20} MiB, too large for a file of code"


def _is_file(path: Path) -> bool:
    """Whether it is a regular file. False for names that the system refuses."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


@functools.lru_cache(maxsize=256)
def _built_in_tokens(name: str, text: str) -> Lexed:
    return lex(text, name)


# --- encodings -----------------------------------------------------------------------------------

# Byte order marks. That of UTF-32 begins with that of UTF-16, so it is tried first.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class Undecodable(Exception):
    """The bytes of a file are not text: the message is a sentence that follows its name."""


def decoded(content: bytes) -> str:
    """A file's text. Bytes that are not valid UTF-8, as comments may have, become surrogates."""
    found = (one for one in _MARKS if content.startswith(one[0]))
    mark, encoding = next(found, (b"", "utf-8"))
    content = content.removeprefix(mark)
    if encoding == "utf-8":
        if b"\0" in content:
            raise Undecodable(
                "has null bytes, so it is not text in UTF-8: save it as UTF-8, or, if it is "
                "UTF-16, with the mark that says so (a byte order mark)"
            )
        return content.decode("utf-8", "surrogateescape")
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        raise Undecodable(
            f"begins with the mark of {encoding.upper()}, but is not valid ({error.reason} at byte "
            f"{error.start + len(mark)}): save it as UTF-8"
        ) from None
