"""Write the table of compilers' faults into its page: `python tools/faults.py`."""

from __future__ import annotations

from pathlib import Path

from treadle.codegen.faults import FAULTS, Fault

PAGE = Path(__file__).resolve().parent.parent / "docs" / "design" / "compiler-faults.md"
BEGIN, END = "<!-- faults: written by tools/faults.py -->", "<!-- end of faults -->"


def section(fault: Fault) -> str:
    """One fault, as the page has it."""
    instead = f"{fault.printed}, in `{fault.where}`" if fault.printed else "nothing: see below"
    return (
        f"### {fault.name[0].upper()}{fault.name[1:]}\n\n"
        f"- **Compiler:** {fault.compiler}, {fault.versions}\n"
        f"- **Pattern:** {fault.pattern}\n"
        f"- **Printed instead:** {instead}\n"
        f"- **Test:** `{fault.test}`\n"
    )


def with_table(page: str) -> str:
    """The page with the faults of today between its marks."""
    before, rest = page.split(BEGIN)
    after = rest.split(END)[1]
    return f"{before}{BEGIN}\n\n{chr(10).join(map(section, FAULTS))}\n{END}{after}"


if __name__ == "__main__":
    PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
