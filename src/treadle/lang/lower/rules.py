"""The functions that modules below their own call while a kernel is lowered, as one record."""

from __future__ import annotations

from treadle.lang.lower import arrays, calls, functions, mathematics, statements
from treadle.lang.lower.context import Rules

RULES = Rules(
    body=statements.lower_body,
    call=calls.lower_call,
    power=mathematics.power,
    copied=arrays.copied,
    call_device_function=functions.call_device_function,
)
