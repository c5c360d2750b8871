"""Files that were read, kept on disk between processes: one that is large takes a second to read,
and a fifth of that to load.

An entry depends on the text of the file and on the options. It is taken only if each place at which
a header was looked for has what it had.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from treadle.core.version import __version__
from treadle.cuda_cpp.source.files import digest_of
from treadle.cuda_cpp.syntax.source_file import SourceFile, from_bytes, to_bytes
from treadle.runtime import disk_cache, settings

_FEWEST_TOKENS = 20_000  # which take about 60 ms to read


def entry_of(
    text: str, file: str, defines: Mapping[str, str], include: Sequence[Path], *options: object
) -> str:
    """The name of a file's entry; "" if nothing is kept."""
    if not settings.disk_cache or not disk_cache.is_usable():
        return ""
    content = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return disk_cache.key_of(
        "CUDA C++", __version__, disk_cache.source_state(), content, file,
        repr((dict(defines), [str(folder) for folder in include], options)),
    )  # fmt: skip


def load(entry: str) -> SourceFile | None:
    """The file as it was read; None if there is no entry, or if a header changed."""
    content = disk_cache.load(entry) if entry else None
    if content is None:
        return None
    try:
        source = from_bytes(content)
    except ValueError:
        disk_cache.discard(entry)
        return None
    same = all(digest_of(Path(path)) == digest for path, digest in source.looked_for.items())
    return source if same else None


def save(entry: str, source: SourceFile) -> None:
    """Keep a file, if it is large."""
    if not entry or source.tokens < _FEWEST_TOKENS:
        return
    try:
        content = to_bytes(source)
    except RecursionError:  # nested too deeply: it is read again
        return
    disk_cache.save(entry, content)
