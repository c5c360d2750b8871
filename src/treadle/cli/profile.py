"""What `treadle profile` does: a program under a profile, a table, a trace."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

from rich.console import Console

from treadle.cli.transpile import check_output
from treadle.core.errors import TreadleError
from treadle.core.paths import no_file
from treadle.runtime.devices import set_default_device
from treadle.runtime.profile.session import Profile, profile


def profile_script(
    script: Path, arguments: list[str], output: Path | None, device: str | None
) -> int:
    """Run a program, show the table, write the trace; the status that the program ended with.

    TreadleError says in one line what is wrong, with a program that fails after its table.
    """
    if not script.is_file():
        raise TreadleError(no_file(script))
    if output is not None:
        check_output(output)
    if device is not None:
        set_default_device(device)
    measured = profile()
    try:
        with measured:
            return _run(script, arguments)
    finally:
        _show(measured, output)


def _run(script: Path, arguments: list[str]) -> int:
    sys.argv = [str(script), *arguments]
    sys.path.insert(0, str(script.resolve().parent))
    try:
        runpy.run_path(str(script), run_name="__main__")
    except SystemExit as end:
        return _status(end.code)
    except SyntaxError as error:
        raise TreadleError(f"{error.filename}:{error.lineno}: {error.msg}") from error
    except Exception as error:
        words = " ".join(f"{type(error).__name__}: {error}".split())
        raise TreadleError(
            f"{script} failed: {words} (treadle --debug profile … shows the traceback)"
        ) from error
    return 0


def _status(code: object) -> int:
    """What a program's sys.exit means: as Python itself takes it."""
    if code is None or isinstance(code, int):
        return int(code or 0)
    sys.stderr.write(f"{code}\n")
    return 1


def _show(measured: Profile, output: Path | None) -> None:
    sys.stdout.flush()
    console, table = Console(), measured.table()
    if console.is_terminal:
        console.print(table)
    else:
        sys.stdout.write(f"{table}\n")
    if output is not None:
        measured.save(output)
        sys.stdout.write(f"saved {output}: open it in https://ui.perfetto.dev\n")
