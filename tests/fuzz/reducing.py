"""Smaller and smaller inputs with the same fault.

`reduced_tape` shortens what a generator decides by, so that all it finds is again a program that
the generator draws. `reduced_text` goes on with the source itself, in Python or CUDA C++: it takes
lines out, with the blocks that hang on them, and puts an operand, 0 or 1 in the place of what
stands in parentheses. It leaves alone what keeps a kernel free of races and of memory that was
never written: barriers, indices that are written to, and what is written into shared and local
arrays as long as they are there. Neither knows what is wrong; they ask `still_wrong` of each
attempt.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

_OPENING, _CLOSING = "([{", ")]}"
_BARRIERS = ("sync_threads", "__syncthreads", "__syncwarp", "sync_subgroup")


@dataclass
class Attempts:
    """A question about candidates, until the time is over."""

    still_wrong: Callable[..., bool]
    until: float
    count: int = 0

    def over(self) -> bool:
        return time.monotonic() > self.until

    def accept(self, candidate: object) -> bool:
        """Whether a candidate still has the fault; nothing has once the time is over."""
        if self.over():
            return False
        self.count += 1
        return self.still_wrong(candidate)


def reduced_tape(tape: bytes, still_wrong: Callable[[bytes], bool], seconds: float) -> bytes:
    """A shorter tape, of smaller bytes, with the same fault."""
    attempts = Attempts(still_wrong, time.monotonic() + seconds)
    changed = True
    while changed and not attempts.over():
        before = tape
        size = max(len(tape) // 2, 1)
        while size:
            at = 0
            while at < len(tape) and not attempts.over():
                shorter = tape[:at] + tape[at + size :]
                zeroed = tape[:at] + bytes(len(tape[at : at + size])) + tape[at + size :]
                if attempts.accept(shorter):
                    tape = shorter
                elif zeroed != tape and attempts.accept(zeroed):
                    tape = zeroed
                else:
                    at += size
            size //= 2
        changed = tape != before
    return tape


def reduced_text(text: str, still_wrong: Callable[[str], bool], seconds: float) -> str:
    """A shorter source with the same fault."""
    attempts = Attempts(still_wrong, time.monotonic() + seconds)
    changed = True
    while changed and not attempts.over():
        before = text
        text = _fewer_lines(text, attempts)
        text = _simpler(text, attempts)
        changed = text != before
    return text


# --- lines ----------------------------------------------------------------------------------------


def _fewer_lines(text: str, attempts: Attempts) -> str:
    at = len(text.splitlines()) - 1
    while at >= 0 and not attempts.over():
        for candidate in _without(text.splitlines(), at):
            if attempts.accept(candidate):
                text = candidate
                break
        at = min(at, len(text.splitlines())) - 1
    return text


def _without(lines: list[str], at: int) -> Iterator[str]:
    """The text without a line: with its block, or with the block in its place."""
    end = _block_end(lines, at)
    kept = "\n".join([*lines[:at], *lines[end:]])
    if not any(_is_needed(line, kept) for line in lines[at:end]):
        yield _joined([*lines[:at], *lines[end:]])
        if lines[at].strip().startswith(("for", "while", "if")):
            yield _joined([*lines[:at], f"{_margin(lines[at])}pass", *lines[end:]])
    if end > at + 1:
        deeper = len(_margin(lines[at + 1])) - len(_margin(lines[at]))
        moved = [line[deeper:] for line in lines[at + 1 : end]]
        yield _joined([*lines[:at], *moved, *lines[end:]])


_ARRAY = re.compile(r"__shared__ [\w ]+ (\w+)|(\w+) = td\.(?:shared|local)\(")
_C_ARRAY = re.compile(r"[\w ]+ (\w+)\[\d+\];")


def _is_needed(line: str, rest: str) -> bool:
    """Whether a line is a barrier, or makes or writes an array that the rest still speaks of."""
    if any(word in line for word in _BARRIERS):
        return bool(_ARRAY.search(rest)) or "td." in rest
    names = {a or b for a, b in _ARRAY.findall(rest + line)}
    names |= set(_C_ARRAY.findall(rest + line))
    for name in names & set(re.findall(r"\w+", line)):
        written = re.search(rf"\b{name}\b(?:\[[^=]*\])?\s*(?:[-+*/%^&|]|<<|>>)?=(?!=)", line)
        declared = name in {a or b for a, b in _ARRAY.findall(line)} | set(_C_ARRAY.findall(line))
        if (written or declared or "atomic" in line) and re.search(rf"\b{name}\b", rest):
            return True
    return False


def _joined(lines: Sequence[str]) -> str:
    return "\n".join(lines) + "\n"


def _margin(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _block_end(lines: Sequence[str], at: int) -> int:
    """The line after the block that a line begins (Python's, which its margin tells)."""
    end = at + 1
    if not lines[at].rstrip().endswith(":"):
        return end
    while end < len(lines) and len(_margin(lines[end])) > len(_margin(lines[at])):
        end += 1
    return end


# --- parentheses ----------------------------------------------------------------------------------


def _simpler(text: str, attempts: Attempts) -> str:
    """Replace what stands in parentheses, the largest first."""
    at = 0
    while not attempts.over():
        groups = [g for g in _groups(text) if g[0] >= at]
        if not groups:
            return text
        start, end = groups[0]
        for candidate in _instead(text, start, end):
            if len(candidate) < len(text) and attempts.accept(candidate):
                text = candidate
                break
        else:
            at = start + 1
    return text


def _groups(text: str) -> list[tuple[int, int]]:
    """Where parentheses open and close, from the left; none where an element is written."""
    stack: list[int] = []
    found: list[tuple[int, int]] = []
    line_start = 0
    for place, letter in enumerate(text):
        if letter == "\n":
            stack, line_start = [], place + 1
        elif letter in _OPENING:
            stack.append(place)
        elif letter in _CLOSING and stack:
            start = stack.pop()
            if letter == ")" and not _is_place(text, start, place, line_start):
                found.append((start, place + 1))
    return sorted(found)


def _is_place(text: str, start: int, end: int, line_start: int) -> bool:
    """Whether a group belongs to a place that is written to, or declares something."""
    before = text[line_start:start].lstrip()
    if before.startswith(("def ", "@", "class ", "__global__", "__device__", "struct ")):
        return True
    if before == "if " and text[start : end + 1] == "(i == 0)":  # the thread that writes first
        return True
    if "td.shared" in before or "td.local" in before or "range" in before:
        return True
    rest = text[end:].split("\n", 1)[0]
    written = before.split("[")[0].isidentifier() and "[" in before and "=" not in before
    return written and "=" in rest


def _instead(text: str, start: int, end: int) -> Iterator[str]:
    """The text with each part of a group in its place, and with numbers there."""
    head = start
    while head and (text[head - 1].isalnum() or text[head - 1] in "._"):
        head -= 1
    inside = text[start + 1 : end - 1]
    arguments = _split(inside, ",")
    atomic = "atomic" in text[head:start]
    if not atomic:
        for part in arguments if len(arguments) > 1 else _operands(inside):
            yield f"{text[:head]}({part.strip()}){text[end:]}"
        if head < start and len(arguments) == 1:
            yield f"{text[:head]}({inside}){text[end:]}"
    if len(arguments) == 1 and len(inside) > 1:
        for number in ("0", "1"):
            yield f"{text[: start + 1]}{number}{text[end - 1 :]}"


def _split(text: str, sign: str) -> list[str]:
    depth, parts, last = 0, [], 0
    for place, letter in enumerate(text):
        depth += (letter in _OPENING) - (letter in _CLOSING)
        if depth == 0 and text.startswith(sign, place):
            parts.append(text[last:place])
            last = place + len(sign)
    return [*parts, text[last:]]


_INFIX = (
    " if ", " else ", " ? ", " : ", " and ", " or ", " && ", " || ", " == ", " != ", " <= ", " >= ",
    " < ", " > ", " | ", " ^ ", " & ", " << ", " >> ", " + ", " - ", " * ", " // ", " / ", " % ",
)  # fmt: skip


def _operands(inside: str) -> list[str]:
    """The operands of the operators that stand in a text outside of parentheses."""
    parts = [inside]
    for sign in _INFIX:
        parts = [piece for part in parts for piece in _split(part, sign)]
    if len(parts) == 1 and inside[:1] in ("-", "~", "!", "+"):
        return [inside[1:]]
    return parts if len(parts) > 1 else []
