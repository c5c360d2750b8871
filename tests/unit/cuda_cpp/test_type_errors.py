"""What C++ forbids is said when a file is opened, all of it; what it allows is opened."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

import treadle as td
from tests.support.ill_formed import ILL_FORMED, NOT_FOR_GXX, PRELUDE, WELL_FORMED
from tests.support.ill_formed_declarations import (
    ILL_FORMED_DECLARATIONS,
    WELL_FORMED_DECLARATIONS,
)
from treadle.core.errors import CompileErrors

_ILL_FORMED = ILL_FORMED + ILL_FORMED_DECLARATIONS
_WELL_FORMED = WELL_FORMED + WELL_FORMED_DECLARATIONS
SHIM = Path(__file__).parents[2] / "support" / "ill_formed_shim.h"


def _text(declarations: str, body: str) -> str:
    if not body:
        return f"{declarations}\n"
    kernel = f"__global__ void k(int *x, const int *c, float *y, int n, A a) {{\n{body}\n}}\n"
    return f"{declarations}\n{kernel}"


def _joined(rows) -> tuple[str, dict[int, int]]:
    """All programs as one text, each in a namespace, and the program of each line."""
    text, owner = PRELUDE, {}
    for number, row in enumerate(rows):
        first = text.count("\n") + 1
        text += f"namespace r{number} {{\n{_text(*row[:2])}}}\n"
        owner |= dict.fromkeys(range(first, text.count("\n") + 1), number)
    return text, owner


def _refused_by_gxx(text: str, path: Path) -> set[int]:
    """The lines with errors."""
    path.write_text(f'#include "{SHIM}"\n#line 1 "rows.cpp"\n{text}')
    command = ["g++", "-std=c++20", "-fsyntax-only", "-w", "-fmax-errors=0", str(path)]
    said = subprocess.run(command, capture_output=True, text=True).stderr
    return {int(line) for line in re.findall(r"rows\.cpp:(\d+):\d+: error", said)}


def test_each_of_a_table(tmp_path):
    text, owner = _joined(_ILL_FORMED)
    with pytest.raises(CompileErrors) as caught:
        td.cuda_module(text)
    said: dict[int, list[str]] = {number: [] for number in range(len(_ILL_FORMED))}
    for error in caught.value.errors:
        said[owner[error.line]].append(error.message)
    for number, (declarations, body, words) in enumerate(_ILL_FORMED):
        assert any(re.search(words, one) for one in said[number]), (
            declarations,
            body,
            said[number],
        )
    refused = {owner[line] for line in _refused_by_gxx(text, tmp_path / "ill_formed.cpp")}
    taken = {_ILL_FORMED[one][:2] for one in range(len(_ILL_FORMED)) if one not in refused}
    assert taken == NOT_FOR_GXX  # so that no row is in the table for nothing


@pytest.mark.filterwarnings("ignore::treadle.core.errors.CompileWarning")
def test_what_is_like_these(tmp_path):
    text, _ = _joined(_WELL_FORMED)
    assert not _refused_by_gxx(text, tmp_path / "well_formed.cpp")
    td.cuda_module(text)


def test_twenty_are_shown():
    lines = "".join(f"x[{k}] = x;\n" for k in range(13))
    source = "".join(f"__global__ void k{k}(int *x) {{\n{lines}}}\n" for k in range(2))
    with pytest.raises(CompileErrors) as caught:
        td.cuda_module(source)
    assert [one.line for one in caught.value.errors] == [*range(2, 15), *range(17, 30)]
    shown = str(caught.value)
    assert shown.startswith("26 errors\n\n<cuda source>:2:6: a value of type int* does not convert")
    assert shown.endswith("and 6 more")
    assert shown.count("does not convert to int") == 20


def test_what_devices_lack_is_no_error_of_the_file():
    module = td.cuda_module("""
__global__ void thrown(int *x) { if (x[0]) throw 1; }
__global__ void good(int *x) { x[0] = 3; }
""")
    x = td.zeros(1, dtype=td.int32, device="cpu")
    module.good[1, 1](x)
    assert x.tolist() == [3]


def test_types_of_what_may_be_moved_from():
    td.cuda_module("""
#include <type_traits>
#include <utility>
template <class T> __device__ auto passed(T &&v) -> decltype(std::forward<T>(v)) {
    return std::forward<T>(v);
}
__global__ void k(int *x) {
    int a = 1;
    const float b = 1;
    static_assert(std::is_same_v<decltype(std::move(a)), int &&>);
    static_assert(std::is_same_v<decltype(std::move(b)), const float &&>);
    static_assert(std::is_same_v<decltype(std::declval<int>()), int &&>);
    static_assert(std::is_same_v<decltype(std::forward<int &>(a)), int &>);
    static_assert(std::is_same_v<decltype(passed(a)), int &>);
    static_assert(std::is_same_v<decltype(passed(1)), int &&>);
    x[0] = a + (int)b;
}
""")
