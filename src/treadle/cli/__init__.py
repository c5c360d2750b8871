"""The command line: `treadle devices`, `demo`, `transpile`, `cache`."""

from treadle.cli.app import main

__all__ = ["main"]
