"""The command line: `treadle devices`, `demo`, `transpile`, `profile`, `bench`, `generate`, …"""

from __future__ import annotations

import sys
from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> None:
    """`treadle.cli.app.main`, which it imports; Ctrl-C ends that without a traceback, too."""
    try:
        from treadle.cli.app import main as run
    except KeyboardInterrupt:
        sys.stderr.write("treadle: stopped\n")
        sys.exit(130)
    run(arguments)
