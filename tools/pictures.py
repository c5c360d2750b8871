"""Draw the pictures of the README and of docs/design/arrays.md into docs/images.

SVG with colours for light and dark pages. The test of the documentation holds the files against
this script: run it after a change.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"

_STYLE = """
  text { font: 13px ui-sans-serif, system-ui, sans-serif; fill: #24292f; }
  .code { font: 13px ui-monospace, monospace; }
  .head { font-weight: 600; font-size: 15px; }
  .dim { fill: #57606a; font-size: 12px; }
  .box { fill: #f6f8fa; stroke: #57606a; }
  .memory { fill: #ddf4ff; stroke: #0969da; }
  .view { fill: none; stroke: #57606a; stroke-dasharray: 4 3; }
  .kernel { fill: #fff8c5; stroke: #9a6700; }
  .read { fill: #54aeff; } .write { fill: #fb8f44; }
  .line { fill: none; stroke: #57606a; stroke-width: 1.3; }
  .tip { fill: #57606a; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; } .dim { fill: #9198a1; }
    .box { fill: #21262d; stroke: #9198a1; }
    .memory { fill: #0c2d6b; stroke: #4493f8; }
    .view { stroke: #9198a1; }
    .kernel { fill: #341a00; stroke: #d29922; }
    .read { fill: #1f6feb; } .write { fill: #bd561d; }
    .line { stroke: #9198a1; } .tip { fill: #9198a1; }
  }
"""


class Picture:
    """Shapes in the order in which they are drawn."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" role="img">',
            f"<title>{escape(title)}</title>",
            f"<style>{_STYLE}</style>",
            '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
            'markerHeight="7" orient="auto"><path class="tip" d="M0 0 8 4 0 8z"/></marker></defs>',
        ]

    def text(self, x: int, y: int, text: str, kind: str = "", anchor: str = "start") -> None:
        """A line of text whose start (or middle, or end) is at (x, y)."""
        style = f' class="{kind}"' if kind else ""
        self.parts.append(
            f'<text x="{x}" y="{y}" text-anchor="{anchor}"{style}>{escape(text)}</text>'
        )

    def box(self, x: int, y: int, width: int, height: int, kind: str, *lines: str) -> None:
        """A box whose centre is at (x, y), with lines of text in it."""
        left, top = x - width // 2, y - height // 2
        self.parts.append(
            f'<rect class="{kind}" x="{left}" y="{top}" width="{width}" height="{height}" rx="6"/>'
        )
        first = y + 5 - 8 * (len(lines) - 1)
        for number, line in enumerate(lines):
            self.text(x, first + 16 * number, line, "code" if number == 0 else "dim", "middle")

    def arrow(self, *points: tuple[int, int]) -> None:
        """A line through points, with a tip at the last one."""
        path = " ".join(f"{x} {y}" for x, y in points)
        self.parts.append(f'<path class="line" d="M{path}" marker-end="url(#tip)"/>')

    def bar(self, x: int, y: int, width: int, kind: str) -> int:
        """A bar of memory traffic; where it ends."""
        self.parts.append(
            f'<rect class="{kind}" x="{x}" y="{y - 8}" width="{width}" height="16" rx="2"/>'
        )
        return x + width + 2

    def svg(self) -> str:
        """The picture as text."""
        return "\n".join([*self.parts, "</svg>", ""])


# --- a softmax, fused and one by one --------------------------------------------------------------

_EXTENT = 4096
_MIB = _EXTENT * _EXTENT * 4 >> 20  # of the array
# Operations and their heights in the picture; what a kernel of its own reads and writes, in arrays
# (a column of one number for each row is nothing beside them).
_SOFTMAX = {
    "max": (110, 1, 0),
    "subtract": (210, 1, 1),
    "exp": (260, 1, 1),
    "sum": (310, 1, 0),
    "divide": (410, 1, 1),
}


def fusion() -> str:
    """A softmax over rows as graph, as one kernel for each operation, and as one kernel."""
    p = Picture(900, 470, "A softmax as a graph, as five kernels and as one")
    p.text(20, 26, "The graph", "head")
    left, right = 85, 205
    p.box(left, 60, 120, 36, "memory", "x", f"{_EXTENT} × {_EXTENT}")
    p.box(right, 110, 100, 28, "box", "max")
    p.box(right, 160, 100, 28, "view", "view")
    p.box(left, 210, 100, 28, "box", "subtract")
    p.box(left, 260, 100, 28, "box", "exp")
    p.box(right, 310, 100, 28, "box", "sum")
    p.box(right, 360, 100, 28, "view", "view")
    p.box(left, 410, 100, 28, "box", "divide")
    p.arrow((145, 66), (right, 66), (right, 95))
    p.arrow((right, 124), (right, 145))
    p.arrow((right, 174), (right, 210), (137, 210))
    p.arrow((left, 78), (left, 195))
    p.arrow((left, 224), (left, 245))
    p.arrow((135, 260), (right, 260), (right, 295))
    p.arrow((right, 324), (right, 345))
    p.arrow((right, 374), (right, 410), (137, 410))
    p.arrow((left, 274), (left, 395))
    p.text(20, 456, "views: one value of a row, seen along all of it (stride 0)", "dim")

    unit = 62
    total = sum(reads + writes for _, reads, writes in _SOFTMAX.values())
    p.text(330, 26, f"One by one: 5 kernels, {total * _MIB} MiB", "head")
    for name, (y, reads, writes) in _SOFTMAX.items():
        p.box(385, y, 100, 28, "kernel", name)
        end = 450
        for _ in range(reads):
            end = p.bar(end, y, unit, "read")
        for _ in range(writes):
            end = p.bar(end, y, unit, "write")
    p.bar(450, 60, 14, "read")
    p.text(470, 65, f"{_MIB} MiB read", "dim")
    p.bar(560, 60, 14, "write")
    p.text(580, 65, "written", "dim")

    p.text(670, 26, f"Fused: 1 kernel, {2 * _MIB} MiB", "head")
    p.box(770, 225, 200, 270, "kernel")
    for y, line, kind in (
        (115, "for each row, which", "dim"),
        (131, f"is {_EXTENT * 4 >> 10} KiB and stays near:", "dim"),
        (170, "m = max(x)", "code"),
        (210, "e = exp(x - m)", "code"),
        (230, "s = sum(e)", "code"),
        (270, "y = e / s", "code"),
        (310, "the three passes after", "dim"),
        (326, "each other; x comes from", "dim"),
        (342, "memory in the first only", "dim"),
    ):
        p.text(685, y, line, kind)
    p.bar(p.bar(705, 410, unit, "read"), 410, unit, "write")
    p.arrow((770, 360), (770, 395))
    return p.svg()


# --- cells, views and versions --------------------------------------------------------------------


def versions() -> str:
    """What tensors hold while a write waits for a reader of the old contents."""
    p = Picture(900, 330, "Tensors, a cell, and two versions of an array")
    for x, name in ((20, "Tensors"), (330, "Cells"), (560, "Nodes")):
        p.text(x, 26, name, "head")
    p.box(130, 75, 220, 44, "box", "x", "all of the cell")
    p.box(130, 145, 220, 44, "box", "part = x[::2]", "view: shape (3,), strides (2,)")
    p.box(130, 285, 220, 44, "box", "y = part * 10", "before the write")
    p.box(375, 110, 110, 44, "box", "cell", "what x is now")
    p.box(375, 285, 110, 44, "box", "cell", "of y")
    p.arrow((240, 75), (290, 75), (290, 103), (318, 103))
    p.arrow((240, 145), (290, 145), (290, 117), (318, 117))
    p.arrow((240, 285), (318, 285))

    p.box(640, 75, 170, 44, "box", "write", "x[1:3] = 0: version 2")
    p.box(640, 180, 170, 44, "memory", "memory", "arange(6): version 1")
    p.box(820, 230, 120, 32, "view", "view (2,)")
    p.box(640, 285, 170, 44, "box", "multiply", "by 10")
    p.arrow((430, 110), (490, 110), (490, 75), (553, 75))
    p.arrow((430, 285), (553, 285))
    p.arrow((640, 97), (640, 156))
    p.arrow((725, 285), (820, 285), (820, 248))
    p.arrow((820, 214), (820, 180), (727, 180))
    p.text(735, 62, "takes the memory over,", "dim")
    p.text(735, 78, "and so runs after what", "dim")
    p.text(735, 94, "still reads version 1", "dim")
    return p.svg()


# --- what runs where ------------------------------------------------------------------------------

_WRITTEN = (
    ("@td.kernel", "kernels in Python"),
    ("td.cuda_module", "kernels in CUDA C++"),
    ("td.Tensor", "NumPy-style arrays"),
    ("td.nn", "PyTorch-style training"),
)
_RUNS = (
    ("NVIDIA GPUs", "PTX, through", "the CUDA driver"),
    ("other GPUs", "WGSL, through Vulkan,", "Metal, Direct3D, OpenGL"),
    ("the CPU", "LLVM IR, in its", "vector units"),
)


def overview() -> str:
    """What users write, the one representation it becomes, and where that runs."""
    p = Picture(560, 290, "What users write is compiled for NVIDIA GPUs, other GPUs and the CPU")
    middle, last = 264, 467
    for x, name in ((85, "You write"), (middle, "treadle compiles"), (last, "It runs on")):
        p.text(x, 22, name, "head", "middle")
    p.box(middle, 160, 110, 90, "kernel", "one typed IR", "checked, fused,", "optimized")
    for number, lines in enumerate(_WRITTEN):
        y = 64 + 64 * number
        p.box(85, y, 166, 48, "box", *lines)
        p.arrow((168, y), (188, y), (188, 160), (207, 160))
    for number, lines in enumerate(_RUNS):
        y = 72 + 88 * number
        p.box(last, y, 180, 68, "memory", *lines)
        p.arrow((319, 160), (347, 160), (347, y), (375, y))
    return p.svg()


PICTURES = {"fusion.svg": fusion, "overview.svg": overview, "versions.svg": versions}


def main() -> None:
    """Write all of them."""
    for name, draw in PICTURES.items():
        (IMAGES / name).write_text(draw(), encoding="utf-8")


if __name__ == "__main__":
    main()
