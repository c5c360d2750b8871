"""Write the tables of error bounds into docs/math.md, from treadle.lang.math."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "math.md"
BEGIN, END = "<!-- bounds:begin -->\n", "<!-- bounds:end -->"
FURTHER_BEGIN, FURTHER_END = "<!-- further:begin -->\n", "<!-- further:end -->"


def page_with_table(page: str) -> str:
    """The page's text with the tables as they should be now."""
    from treadle.lang import builtins
    from treadle.lang.math import FURTHER, FURTHER_BOUNDS, ULP_BOUNDS

    rows = ["| function | | float32 | float64 |", "|---|---|---|---|"]
    for name, bounds in sorted(ULP_BOUNDS.items()):
        meaning = _cell(builtins.NAMES[name].__doc__.splitlines()[0])
        rows.append(f"| `td.{name}` | {meaning} | {bounds['f32']:g} | {bounds['f64']:g} |")
    page = _replaced(page, BEGIN, END, rows)
    rows = ["| function | | float32 | float64 |", "|---|---|---|---|"]
    for name, bounds in sorted(FURTHER_BOUNDS.items()):
        if not bounds["f32"]:
            continue  # exact
        meaning = _cell(FURTHER[name].versions["f32"].__doc__)
        rows.append(f"| `{name}` | {meaning} | {bounds['f32']:g} | {bounds['f64']:g} |")
    return _replaced(page, FURTHER_BEGIN, FURTHER_END, rows)


def _cell(text: str | None) -> str:
    """The first sentence of a docstring."""
    first = " ".join(str(text).split("\n\n")[0].split())
    return first.split(". ")[0].rstrip(".").replace("|", r"\|")


def _replaced(page: str, begin: str, end: str, rows: list[str]) -> str:
    before, rest = page.split(begin)
    _, after = rest.split(end)
    return f"{before}{begin}\n" + "\n".join(rows) + f"\n\n{end}{after}"


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "src"))
    PAGE.write_text(page_with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
