"""The command line: `treadle devices`, `demo`, `transpile`, `profile`, `bench`, `cache`."""

from treadle.cli.app import main

__all__ = ["main"]
