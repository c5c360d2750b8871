"""A file that was read, and its form as bytes, for the cache on disk.

The bytes are a pickle. A node is in it as a call of its class with its fields, which takes half of
the time that pickle takes for frozen dataclasses. Of other classes and functions none is read back.
"""

from __future__ import annotations

import io
import pickle
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from operator import attrgetter
from typing import Any

from treadle.core.source import Span
from treadle.cuda_cpp.source.tokens import Token
from treadle.cuda_cpp.syntax import tree


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file without errors, with all that it includes.

    `texts` are the files' texts by name, for messages, and `unknown_headers` the headers that were
    skipped, each with the place of its #include. `looked_for` has each path at which a header was
    looked for, and the digest of what was there (`source.files.digest_of`): if these are the same,
    and so is the text, reading it again gives the same. `tokens` counts what was parsed. Of one
    that is `checked` it is known that nothing in its functions is ill-formed, and what `warnings`
    there are, with their places.
    """

    unit: tree.TranslationUnit
    texts: Mapping[str, str]
    unknown_headers: tuple[tuple[str, Span], ...]
    looked_for: Mapping[str, str]
    tokens: int
    checked: bool = False
    warnings: tuple[tuple[str, Span], ...] = ()


def to_bytes(source: SourceFile) -> bytes:
    """The file as bytes. Raises RecursionError for a file that is nested too deeply."""
    written = io.BytesIO()
    _Writer(written).dump(source)
    return zlib.compress(written.getvalue(), 1)


def from_bytes(content: bytes) -> SourceFile:
    """The file of such bytes. Raises ValueError for others."""
    try:
        source = _Reader(io.BytesIO(zlib.decompress(content))).load()
    except (zlib.error, pickle.UnpicklingError, EOFError, TypeError, IndexError, KeyError) as error:
        raise ValueError(f"not a file that was read: {error}") from None
    if not isinstance(source, SourceFile):
        raise ValueError(f"not a file that was read, but a {type(source).__name__}")
    return source


_NODES = {
    f"{kind.__module__}.{kind.__qualname__}": kind
    for kind in (SourceFile, Span, Token, *vars(tree).values())
    if isinstance(kind, type) and (is_dataclass(kind) or kind is Token)
}


class _Writer(pickle.Pickler):
    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file, protocol=5)
        self._values: dict[type, Callable[[Any], tuple[Any, ...]]] = {}

    def reducer_override(self, node: Any) -> Any:
        """How a node is written: its class, and the values of its fields."""
        kind = type(node)
        values = self._values.get(kind)
        if values is None:
            if not is_dataclass(kind):
                return NotImplemented
            values = self._values[kind] = _getter(tuple(field.name for field in fields(kind)))
        return kind, values(node)


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        """A class of nodes."""
        found = _NODES.get(f"{module}.{name}")
        if found is None:
            raise pickle.UnpicklingError(f"{module}.{name} is not a class of syntax trees")
        return found


def _getter(names: tuple[str, ...]) -> Callable[[Any], tuple[Any, ...]]:
    """What gets the values of these fields as a tuple."""
    if len(names) == 1:
        (name,) = names
        return lambda node: (getattr(node, name),)
    return attrgetter(*names)
