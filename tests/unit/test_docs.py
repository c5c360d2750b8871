"""The documentation tells the truth: its examples run, and it names every dependency.

A page becomes a module in which everything but its ```python blocks is blank, so lines keep their
numbers and a kernel's source can be found. The blocks run in order, in one namespace. A block below
a line <!-- no-run --> is only compiled, as is one below <!-- needs LIBRARY --> where that is not
installed. (Behind ```python it would keep the page from being laid out.) What stands in a block
```output is what the block before it prints.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import gc
import importlib.util
import inspect
import io
import re
import sys
import tomllib
import types
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

import treadle as td
from tools import pictures
from tools.website.sections import PAGES as SECTIONS

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# Made as the site is built, which fails if a link to them leads nowhere.
MADE = {
    ROOT / "docs" / "reference" / f"{name}.md"
    for name in ("index", "numpy", "torch", *(p.name for p in SECTIONS))
}
FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,})(?P<info>.*)$")
MARK = re.compile(r"^ *<!-- (.*) -->$")


@dataclass(frozen=True)
class Block:
    """The text of a fenced block; `line` is the number of its first line in the page, and `mark`
    what a comment in the line above the block says."""

    language: str
    mark: str
    line: int
    text: str


def blocks(page: str) -> Iterator[Block]:
    """The fenced blocks of a page, with their indentation (in a tab, say) removed."""
    lines = iter(enumerate(page.splitlines(), start=1))
    mark = ""
    for number, line in lines:
        opening = FENCE.match(line)
        if opening is None:
            comment = MARK.match(line)
            mark = comment[1] if comment else ""
            continue
        indent, ticks = len(opening["indent"]), opening["ticks"]
        body: list[str] = []
        for _, inner in lines:
            if inner.strip() == ticks:
                break
            body.append(inner[indent:] if not inner[:indent].strip() else inner)
        else:
            raise ValueError(f"the block that starts in line {number} does not end")
        text = "".join(f"{text}\n" for text in body)
        yield Block(opening["info"].strip(), mark, number + 1, text)
        mark = ""


def code_of(block: Block, filename: str) -> types.CodeType:
    padded = "\n" * (block.line - 1) + block.text
    flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    return compile(padded, filename, "exec", flags=flags, dont_inherit=True)


def run(code: types.CodeType, module: types.ModuleType) -> None:
    if code.co_flags & inspect.CO_COROUTINE:  # it awaits, outside of any function

        async def main() -> None:
            await eval(code, module.__dict__)

        asyncio.run(main())
    else:
        exec(code, module.__dict__)


def runs(block: Block) -> bool:
    """Whether a block is more than compiled."""
    word, _, library = block.mark.partition(" ")
    if word == "needs":
        return importlib.util.find_spec(library) is not None
    return word != "no-run"


def outputs(page: str) -> dict[int, str]:
    """What python blocks print, by their lines, as far as the page shows it."""
    found: dict[int, str] = {}
    before: Block | None = None
    for block in blocks(page):
        if block.language == "output":
            assert before is not None, f"line {block.line}: output of nothing"
            assert before.language == "python", f"line {block.line}: output of {before.language}"
            found[before.line] = block.text
        before = block
    return found


def page_name(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def has_python(page: Path) -> bool:
    return any(block.language == "python" for block in blocks(page.read_text(encoding="utf-8")))


@pytest.mark.parametrize("page", [page for page in PAGES if has_python(page)], ids=page_name)
def test_examples_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = page.read_text(encoding="utf-8")
    found = [b for b in blocks(text) if b.language == "python"]
    expected = outputs(text)
    lines: list[str] = []
    for block in found:
        lines += [""] * (block.line - 1 - len(lines)) + block.text.splitlines()
    source = tmp_path / (page.stem.replace("-", "_") + "_page.py")
    source.write_text("\n".join(lines) + "\n", encoding="utf-8")

    module = types.ModuleType(source.stem)
    module.__file__ = str(source)
    monkeypatch.setitem(sys.modules, source.stem, module)
    monkeypatch.chdir(tmp_path)
    gc.collect()  # a page that looks at memory finds none of another page's
    for block in found:
        code = code_of(block, str(source))
        if not runs(block):
            continue
        printed = io.StringIO()
        try:
            with contextlib.redirect_stdout(printed):
                run(code, module)
        except Exception as error:
            at = f"the block at {page_name(page)}:{block.line} failed"
            raise AssertionError(f"{at}: {type(error).__name__}: {error}") from error
        if block.line in expected:
            told = printed.getvalue().replace(f"on {td.default_device().id},", "on cpu,")
            assert told == expected[block.line], f"{page_name(page)}:{block.line}"


@pytest.mark.parametrize("page", PAGES, ids=page_name)
def test_blocks_say_their_language(page: Path) -> None:
    for block in blocks(page.read_text(encoding="utf-8")):
        one_word = re.fullmatch(r"\w+", block.language)  # pages with others are laid out wrongly
        assert one_word, f"{page_name(page)}:{block.line}"
        assert block.language not in ("py", "python3", "pycon"), "write python, so that it is run"


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=page_name)
def test_links_to_files_lead_somewhere(page: Path) -> None:
    text = re.sub(r"^( *)```.*?^\1```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if not target.startswith(("http://", "https://", "#")):
            path = (page.parent / target.partition("#")[0]).resolve()
            assert path.exists() or path in MADE, target


def test_the_front_page_is_short() -> None:
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(page.splitlines()) <= 150
    assert page.count("![") == 1


def test_pictures_are_those_of_the_script() -> None:
    for name, draw in pictures.PICTURES.items():
        drawn = (pictures.IMAGES / name).read_text(encoding="utf-8")
        assert drawn == draw(), f"{name}: run python tools/pictures.py"


def test_each_dependency_has_its_reason() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    required = list(project["dependencies"])
    for extra in project["optional-dependencies"].values():
        required += extra
    names = {re.split(r"[^\w-]", requirement)[0] for requirement in required} - {"treadle"}
    reasons = (ROOT / "docs/design/dependencies.md").read_text(encoding="utf-8")
    assert sorted(name for name in names if f"`{name}`" not in reasons) == []


def test_the_map_of_the_house_shows_every_room() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^\| `([^`]+)` \|", page, flags=re.M))
    package = ROOT / "src" / "treadle"
    rooms = {path.parent.relative_to(package).as_posix() for path in package.rglob("*.py")} - {"."}
    folders = {"benchmarks", "docs", "examples", "tools"}
    files = (path for path in ROOT.glob("tests/*/*.*") if path.parent.name != "__pycache__")
    folders |= {path.parent.relative_to(ROOT).as_posix() for path in files}
    assert named == rooms | folders


def test_the_index_of_the_design_names_every_page_and_layer() -> None:
    index = (ROOT / "docs/design/index.md").read_text(encoding="utf-8")
    pages = {path.name for path in (ROOT / "docs/design").glob("*.md")} - {"index.md"}
    assert pages == set(re.findall(r"\]\(([\w-]+\.md)\)", index))
    rows = re.findall(r"^\| (`[^|]+`) \|", index, flags=re.M)
    layers = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    packages = (path.parent.name for path in (ROOT / "src/treadle").glob("*/__init__.py"))
    assert layers == set(packages)


def test_recipes_name_files_and_tables_that_exist() -> None:
    """Each `path` in docs/design/adding.md, and each `TABLE` of a path."""
    page = (ROOT / "docs/design/adding.md").read_text(encoding="utf-8")
    rooms = (
        ".", "src/treadle", "src/treadle/lang/math", "src/treadle/autograd/rules",
        "src/treadle/cuda_cpp/builtins", "tests/device/gradients", "tests/unit/cuda_cpp",
    )  # fmt: skip
    folders = [ROOT / room for room in rooms]
    paths = set(re.findall(r"`(?:python )?([\w/*.]+\.(?:py|md|yml))`", page))
    assert len(paths) > 30
    missing = {path for path in paths if not any(any(each.glob(path)) for each in folders)}
    assert missing == set()
    tables = re.findall(r"`(_?[A-Z][A-Z_]+)`[^`]{0,40} of\s+`([\w/.]+\.py)`", page)
    assert len(tables) > 12
    for table, path in tables:
        found = [file for each in folders for file in each.glob(path)]
        texts = [file.read_text(encoding="utf-8") for file in found]
        assert any(re.search(rf"^{table}\b", text, re.M) for text in texts), (table, path)
