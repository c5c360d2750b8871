"""The words of code and pages are those of docs/design/words.md: words that are always wrong are
refused.

`CLEAN` lists the folders of `src/treadle` whose names, comments and docstrings use them already. To
check another folder, add it there; to refuse a word that has no right use, add it below.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "treadle"

CLEAN = (
    "actors", "autograd", "cli", "codegen", "core", "cuda_cpp", "data", "distributed", "drivers",
    "formats", "graph", "ir", "kernels", "lang", "nn", "optim", "quant", "runtime", "stencils",
    "tensor",
)  # fmt: skip

# What is wrong in a comment or docstring, wherever it stands, and what to write.
PROSE = {
    r"dear(er|est)?": "expensive, more expensive",
    r"nobody": "no kernel, no thread, no caller: name what does not",
    r"(somebody|someone)": "another thread, a kernel, the user: name it",
    r"whoever": "the caller, the user",
    r"lone": "single-threaded, single",
    r"fours": "vec4",
    r"told": "passed, stated; `uniform` for what is the same for all threads of a block",
    r"parted": "diverged, separated",
    r"(brought|come|came) together": "reconverged, fused",
    r"keepers?": "owner",
    r"strewn": "scattered, strided",
    r"dealt out": "distributed",
    r"work(s|ing)? alone": "serial threads, single-threaded",
    r"(many|few|\d+) turns": "iterations, trip count",
    r"gather(s|ed|ing)? (totals|sums|what)": "reduce, accumulate; gather is the operation GATHER",
    # "there is no X" is English; "X is no Y" is not what one writes of code.
    r"(?<!there )(?<!There )(is|are|was|were) no(?! (more|longer|less|fewer|other|such)\b)": (
        "is not a"
    ),
    r"Who(?= [^.?!]*[.;,])": "it, which; a caller, a user where it is a person",
}
# Parts of names (of modules, functions, classes, variables), and what to call the thing.
NAMES = {
    "alone": "serial, single, cpu",
    "beside": "adjacent, neighbour, others",
    "dear": "expensive",
    "fours": "vec4s",
    "gatherer": "reduction, accumulator",
    "keeper": "owner, selector",
    "lone": "serial, single, cpu",
    "nobody": "none",
    "parted": "diverged, partition, split",
    "somebody": "another",
    "strewn": "scattered, strided",
    "told": "passed, arguments, uniform",
    "turns": "iterations",
    "whoever": "caller",
}
# The glossary quotes wrong words, and the corpus's table quotes messages and foreign code.
QUOTING = {ROOT / "docs" / "design" / "words.md", ROOT / "docs" / "cuda_corpus.md"}
PAGES = [
    page
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))
    if page not in QUOTING
]


def found_in(text: str, words: dict[str, str]) -> Iterator[tuple[int, str, str]]:
    """The line (from 0), the word and what to write, of each wrong word of a text."""
    text = re.sub(r"[ \t]*\n[ \t]*", "\n", text)
    if not has_any(text, tuple(words)):
        return
    for pattern, right in words.items():
        for match in re.finditer(searched(pattern), text):
            yield text.count("\n", 0, match.start()), " ".join(match[0].split()), right


def searched(pattern: str) -> str:
    spaced = pattern.replace(" ", r"[ \n]")  # a phrase may go on in the next line
    return rf"(?<![\w-])(?:{spaced})(?![\w-])"


def has_any(text: str, patterns: tuple[str, ...]) -> bool:
    """Whether one of the patterns is in a text: most texts have none, which one search tells."""
    return re.search("|".join(map(searched, patterns)), text) is not None


def prose_of(source: str) -> Iterator[tuple[int, str]]:
    """The comments and docstrings of a Python file, with their first lines."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(source)):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            value = body[0].value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                yield value.lineno, value.value


def names_of(source: str) -> Iterator[tuple[int, str]]:
    """The names that a Python file uses, with their lines."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.NAME:
            yield token.start[0], token.string


def parts_of(name: str) -> list[str]:
    """The words of a name.

    >>> parts_of("_LoneRow_gatherer")
    ['lone', 'row', 'gatherer']
    """
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower().strip("_").split("_")


def wrong_words(source: str) -> list[tuple[int, str, str]]:
    """Line, word and what to write, for each wrong word of a Python file."""
    found = []
    # To read a file as Python takes long: only if something in it looks wrong.
    if any(found_in(source, PROSE)):
        found += [
            (line + below, word, right)
            for line, text in prose_of(source)
            for below, word, right in found_in(text, PROSE)
        ]
    if any(part in NAMES for name in set(re.findall(r"\w+", source)) for part in parts_of(name)):
        found += [
            (line, name, NAMES[part])
            for line, name in names_of(source)
            for part in parts_of(name)
            if part in NAMES
        ]
    return sorted(set(found))


@pytest.mark.parametrize("folder", CLEAN)
def test_words_of_the_code(folder):
    found = []
    files = sorted((SOURCE / folder).rglob("*.py"))
    assert files
    for file in files:
        where = file.relative_to(ROOT)
        found += [f"{where}: {p!r} in its name" for p in parts_of(file.stem) if p in NAMES]
        found += [
            f"{where}:{line}: {word!r}: write {right}"
            for line, word, right in wrong_words(file.read_text())
        ]
    assert not found, "words that docs/design/words.md replaces:\n" + "\n".join(found)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_words_of_the_pages(page):
    found = [
        f"{page.relative_to(ROOT)}:{line + 1}: {word!r}: write {right}"
        for line, word, right in found_in(page.read_text(encoding="utf-8"), PROSE)
    ]
    assert not found, "words that docs/design/words.md replaces:\n" + "\n".join(found)


WRONG = {
    "# a dear step": [(1, "dear", "expensive, more expensive")],
    '"""What\n\nnobody reads."""': [(3, "nobody", PROSE["nobody"])],
    'def f():\n    """It is\n    no pointer."""': [(2, "is no", "is not a")],
    "lone_row = 1": [(1, "lone_row", NAMES["lone"])],
    "class KeeperOfPages: ...": [(1, "KeeperOfPages", NAMES["keeper"])],
    "# Who writes to it, writes to a copy.": [(1, "Who", PROSE[r"Who(?= [^.?!]*[.;,])"])],
}
RIGHT = [
    "# there is no room left",
    "# it is no longer pending",
    "# users who write to it",
    "# clones: a cyclone, alone-standing",
    "x = 'nobody reads what a string says'",
    "alongside = cloned = returns = 1",
    "# the gradient is gathered from rows",
]


@pytest.mark.parametrize("source", WRONG)
def test_wrong_words_are_found(source):
    assert wrong_words(source) == WRONG[source]


@pytest.mark.parametrize("source", RIGHT)
def test_right_words_pass(source):
    assert wrong_words(source) == []
