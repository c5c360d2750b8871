"""The page to chat in: one file without outside resources, and the headers that hold it to that."""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

TEXT = Path(__file__).with_name("page.html").read_text(encoding="utf-8")


def _hash(tag: str) -> str:
    found = re.search(rf"<{tag}>(.*?)</{tag}>", TEXT, re.DOTALL)
    assert found is not None
    digest = hashlib.sha256(found[1].encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"


HEADERS = {
    "content-security-policy": (
        f"default-src 'none'; script-src {_hash('script')}; style-src {_hash('style')}; "
        "connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
}
