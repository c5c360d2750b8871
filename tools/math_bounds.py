"""Write the table of error bounds into docs/math.md, from treadle.lang.math."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "math.md"
BEGIN, END = "<!-- bounds:begin -->\n", "<!-- bounds:end -->"


def page_with_table(page: str) -> str:
    """The page's text with the table as it should be now."""
    from treadle.lang import builtins
    from treadle.lang.math import ULP_BOUNDS

    rows = ["| function | | float32 | float64 |", "|---|---|---|---|"]
    for name, bounds in sorted(ULP_BOUNDS.items()):
        meaning = str(builtins.NAMES[name].__doc__).rstrip(".").replace("|", r"\|")
        rows.append(f"| `td.{name}` | {meaning} | {bounds['f32']:g} | {bounds['f64']:g} |")
    before, rest = page.split(BEGIN)
    _, after = rest.split(END)
    return f"{before}{BEGIN}\n" + "\n".join(rows) + f"\n\n{END}{after}"


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "src"))
    PAGE.write_text(page_with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
