"""Kernels of flat code that compilers nest, and of nested code, with what they compute."""

from __future__ import annotations

import importlib.util
import textwrap
from collections.abc import Callable
from pathlib import Path

import treadle as td

Case = tuple[str, str, Callable[[int], int]]  # functions, the kernel's body, what o[i] gets


def returns(count: int) -> Case:
    links = "".join(f"if i == {j}:\n    o[i] = {2 * j}\n    return\n" for j in range(count))
    return "", f"{links}o[i] = -1", lambda i: 2 * i if i < count else -1


def other_returns(count: int) -> Case:
    links = "".join(
        f"if i * 7 % 1000 < {7 * j + 3}:\n    o[i] = {j}\n    return\n" for j in range(count)
    )
    return (
        "",
        f"{links}o[i] = -1",
        lambda i: next((j for j in range(count) if i * 7 % 1000 < 7 * j + 3), -1),
    )


def elifs(count: int) -> Case:
    links = "el".join(f"if i == {j * 5 % 601}:\n    o[i] = {j}\n" for j in range(count))
    known = {j * 5 % 601: j for j in range(count)}
    return "", f"{links}else:\n    o[i] = -1", lambda i: known.get(i, -1)


def elifs_of_ranges(count: int) -> Case:
    links = "el".join(f"if i * 3 < {3 * j + 1}:\n    o[i] = {j}\n" for j in range(count))
    return "", f"{links}else:\n    o[i] = -1", lambda i: i if i < count else -1


def ternaries(count: int) -> Case:
    value = "-1"
    for j in reversed(range(count)):
        value = f"{2 * j} if i < {j + 1} else ({value})"
    return "", f"o[i] = {value}", lambda i: 2 * i if i < count else -1


def continues(count: int) -> Case:
    links = "".join(
        f"    if i == {j} + r:\n        t += {j + 1}\n        continue\n" for j in range(count)
    )

    def want(i: int) -> int:
        return sum(i - r + 1 if 0 <= i - r < count else 1000 for r in range(3))

    return "", f"t = 0\nfor r in range(3):\n{links}    t += 1000\no[i] = t", want


def nested(count: int) -> Case:
    lines = ["o[i] = 0"]
    for j in range(count):
        lines += ["    " * j + f"if i > {j}:", "    " * (j + 1) + f"o[i] += {j + 1}"]
    return "", "\n".join(lines), lambda i: sum(range(1, min(i, count) + 1))


def nested_with_work_behind(count: int) -> Case:
    lines = ["t = 1"]
    for j in range(count):
        lines += ["    " * j + f"if i > {3 * j}:", "    " * (j + 1) + f"t = t * 3 + {j}"]
    lines += ["    " * (j + 1) + f"t = (t ^ {j}) + i" for j in reversed(range(count))]

    def want(i: int) -> int:
        t, depth = 1, sum(i > 3 * j for j in range(count))
        for j in range(depth):
            t = t * 3 + j
        for j in reversed(range(depth)):
            t = (t ^ j) + i
        return (t + 2**31) % 2**32 - 2**31

    return "", "\n".join([*lines, "o[i] = t"]), want


def mixture(count: int) -> Case:
    lines = ["t = 0", "for r in range(4):"]
    for j in range(count):
        lines += [
            (f"    if i + r == {j}:", f"        t += {j + 1}", "        continue"),
            (f"    if i * (r + 1) == {j}:", f"        t += {2 * j + 1}", "        break"),
            (f"    if i - r == {j}:", "        o[i] = t + 5", "        return"),
            (f"    if i > {j}:", "        t += 1"),
        ][j % 4]

    def want(i: int) -> int:
        t = 0
        for r in range(4):
            for j in range(count):
                if j % 4 == 0 and i + r == j:
                    t += j + 1
                    break
                if j % 4 == 1 and i * (r + 1) == j:
                    return t + 2 * j + 1
                if j % 4 == 2 and i - r == j:
                    return t + 5
                t += j % 4 == 3 and i > j
        return t

    return "", "\n".join([*lines, "o[i] = t"]), want


def returns_before_a_barrier(count: int) -> Case:
    """Each thread by itself, and all threads of the block at once."""
    alone = "".join(f"if i == {j}:\n    o[i] = {j}\n    return\n" for j in range(count))
    together = "".join(
        f"if td.block_idx.x == {j + 2}:\n    o[i] = {-j}\n    return\n" for j in range(count)
    )
    body = f"s = td.shared(64, td.i32)\nk = td.thread_idx.x\n{together}s[k] = k\n{alone}"

    def want(i: int) -> int:
        if i >= 128:
            return 2 - i // 64
        return i if i < count else 63 - i % 64

    return "", f"{body}td.sync_threads()\no[i] = s[63 - k]", want


def a_function(count: int) -> Case:
    links = "".join(f"    if x == {j}:\n        return {2 * j + 1}\n" for j in range(count))
    function = f"@td.func\ndef pick(x):\n{links}    return -5\n"
    return function, "o[i] = pick(i)", lambda i: 2 * i + 1 if i < count else -5


CASES = [
    (returns, 100), (other_returns, 100), (elifs, 480), (elifs_of_ranges, 120), (ternaries, 90),
    (continues, 100), (nested, 90), (nested_with_work_behind, 90), (mixture, 320),
    (returns_before_a_barrier, 40), (a_function, 100),
]  # fmt: skip


def kernel_of(case: Case, folder: Path) -> td.Kernel:
    """A kernel from its text."""
    functions, body, _ = case
    file = folder / "deep.py"
    file.write_text(
        f"import treadle as td\n{functions}\n@td.kernel\ndef deep(o: td.Array[td.i32]):\n"
        f"    i = td.grid(1)\n{textwrap.indent(body, '    ')}\n"
    )
    spec = importlib.util.spec_from_file_location("deep", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.deep
