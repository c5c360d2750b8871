"""Write what cffi reads from the header of wgpu-native, as tables that it loads without reading it.

`drivers/webgpu_native/wgpu_header.py` has them: reading the header takes cffi 0.15 s, and each type
that is named then another 15 ms. `tests/unit/drivers/test_wgpu_header.py` says when
they are out of date: run `python tools/wgpu_header.py` after another version of wgpu was installed.
"""

from __future__ import annotations

import ast
import sys
import tempfile
import textwrap
from pathlib import Path

from cffi import FFI, recompiler

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "src"))

from treadle.drivers.webgpu_native import wgpu_native  # noqa: E402

WRITTEN = ROOT / "src" / "treadle" / "drivers" / "webgpu_native" / "wgpu_header.py"
_HEAD = '''"""The declarations of wgpu-native's header, as cffi keeps them.

Written by tools/wgpu_header.py.
"""

# mypy: ignore-errors
# ruff: noqa: E501
# fmt: off

import _cffi_backend

SHA256 = "{digest}"  # of the header
ffi = _cffi_backend.FFI(
    "wgpu",
'''


def text() -> str:
    """The text of the module, for the installed header."""
    header = wgpu_native.header_of(wgpu_native.resources())
    ffi = FFI()
    ffi.cdef(header)
    ffi.set_source("wgpu", None)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "tables.py")
        recompiler.make_py_source(ffi, "wgpu", str(path))
        (call,) = (
            each.value for each in ast.parse(path.read_text()).body if isinstance(each, ast.Assign)
        )
    assert isinstance(call, ast.Call)
    lines = [_HEAD.format(digest=wgpu_native.digest_of(header))]
    for keyword in call.keywords:
        lines += [f"    {keyword.arg}={_value(keyword.value)},\n"]
    return "".join(lines) + ")\n"


def _value(value: ast.expr) -> str:
    found = ast.literal_eval(value)
    if isinstance(found, bytes):
        parts = [found[at : at + 20] for at in range(0, len(found), 20)]
        return "(\n" + "".join(f"        {part!r}\n" for part in parts) + "    )"
    if isinstance(found, tuple):
        entries = ", ".join(repr(each).replace(" ", "\0") for each in found) + ","
        wrapped = textwrap.wrap(entries, 90, break_long_words=False, break_on_hyphens=False)
        return "(\n" + "".join(f"        {line}\n" for line in wrapped).replace("\0", " ") + "    )"
    return repr(found)


if __name__ == "__main__":
    WRITTEN.write_text(text())
    print(WRITTEN.relative_to(ROOT))
