"""Which line of the user's program is running, for errors and tables that come later."""

from __future__ import annotations

import os
import sys
from types import FrameType

from treadle.tensor.compiled.code_origin import is_package_file


def users_line() -> str:
    """The file and line of the user's code that is running."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and is_package_file(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is None:
        return ""
    return f"{os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno}"
