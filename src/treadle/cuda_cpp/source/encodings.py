"""Files as text: UTF-8 with any bytes in it, and UTF-16 and UTF-32 by their marks."""

from __future__ import annotations

import codecs

# The marks at the start of a file. That of UTF-32 begins with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class Undecodable(Exception):
    """Why a file cannot be read as text: a sentence to follow its name."""


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
            f"says that it is {encoding.upper()}, and is none ({error.reason} at byte "
            f"{error.start + len(mark)}): save it as UTF-8"
        ) from None
