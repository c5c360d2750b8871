"""The types of ggml's tensors: plain numbers, and blocks of numbers that share their scales.

A tensor's rows are made of whole blocks, which lie one after the other. The numbers are those of
files, so a type that ggml no longer has keeps its own, and stands in `REMOVED`.
"""

from __future__ import annotations

from typing import NamedTuple


class GgmlType(NamedTuple):
    """A type of elements: its name here, its number in files, and the size of its blocks."""

    name: str
    number: int
    elements: int  # of a block
    nbytes: int  # of a block


TYPES: dict[str, GgmlType] = {
    name: GgmlType(name, number, elements, nbytes)
    for name, number, elements, nbytes in (
        ("f32", 0, 1, 4),
        ("f16", 1, 1, 2),
        ("q4_0", 2, 32, 18),
        ("q4_1", 3, 32, 20),
        ("q5_0", 6, 32, 22),
        ("q5_1", 7, 32, 24),
        ("q8_0", 8, 32, 34),
        ("q8_1", 9, 32, 40),
        ("q2_k", 10, 256, 84),
        ("q3_k", 11, 256, 110),
        ("q4_k", 12, 256, 144),
        ("q5_k", 13, 256, 176),
        ("q6_k", 14, 256, 210),
        ("q8_k", 15, 256, 292),
        ("iq2_xxs", 16, 256, 66),
        ("iq2_xs", 17, 256, 74),
        ("iq3_xxs", 18, 256, 98),
        ("iq1_s", 19, 256, 50),
        ("iq4_nl", 20, 32, 18),
        ("iq3_s", 21, 256, 110),
        ("iq2_s", 22, 256, 82),
        ("iq4_xs", 23, 256, 136),
        ("i8", 24, 1, 1),
        ("i16", 25, 1, 2),
        ("i32", 26, 1, 4),
        ("i64", 27, 1, 8),
        ("f64", 28, 1, 8),
        ("iq1_m", 29, 256, 56),
        ("bf16", 30, 1, 2),
        ("tq1_0", 34, 256, 54),
        ("tq2_0", 35, 256, 66),
        ("mxfp4", 39, 32, 17),
        ("nvfp4", 40, 64, 36),
        ("q1_0", 41, 128, 18),
    )
}
NUMBERED: dict[int, GgmlType] = {row.number: row for row in TYPES.values()}

# Repacked for one processor's instructions, or given up: no file is written with these today.
REMOVED: dict[int, str] = {
    4: "q4_2",
    5: "q4_3",
    31: "q4_0_4_4",
    32: "q4_0_4_8",
    33: "q4_0_8_8",
    36: "iq4_nl_4_4",
    37: "iq4_nl_4_8",
    38: "iq4_nl_8_8",
}
