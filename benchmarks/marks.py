"""What tables have in common: marks in pages and at old figures, values in units that suit them."""

from __future__ import annotations

from benchmarks.harness import number

OLD = " (old)"  # after the commit of a figure that is older than the code


def unmarked(page: str) -> str:
    """A page without the marks of old figures."""
    return page.replace(OLD, "")


def amount(value: float, unit: str) -> str:
    """A value with its unit, in one that suits it.

    >>> amount(0.000299, "s"), amount(0.0537, "s"), amount(1.5, "s"), amount(28754.0, "GFLOP/s")
    ('299 µs', '53.7 ms', '1.5 s', '28.8 TFLOP/s')
    """
    smaller = {"s": ((1e-3, 1e6, "µs"), (1.0, 1e3, "ms"))}
    for bound, factor, name in smaller.get(unit, ()):
        if value < bound:
            return f"{number(value * factor)} {name}"
    larger = {"GFLOP/s": "TFLOP/s", "GB/s": "TB/s", "G interactions/s": "T interactions/s"}
    if unit in larger and value >= 1e3:
        return f"{number(value / 1e3)} {larger[unit]}"
    return f"{number(value)} {unit}"


def page_with(page: str, text: str, what: str = "benchmarks") -> str:
    r"""The page's text with what stands between its marks as it should be now.

    >>> page_with("a <!-- b:begin -->\nold\n<!-- b:end --> c", "new\n", "b")
    'a <!-- b:begin -->\nnew\n<!-- b:end --> c'
    """
    begin, end = f"<!-- {what}:begin -->\n", f"<!-- {what}:end -->"
    before, rest = page.split(begin)
    _, after = rest.split(end)
    return f"{before}{begin}{text}{end}{after}"
