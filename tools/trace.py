"""Write docs/targets/trace.md: one kernel, and what the printers and NVIDIA's assembler make of it.

The machine code needs the packages nvidia-cuda-nvcc (ptxas) and nvidia-cuda-nvdisasm; without them
the part of the page that has it stays as it is.
"""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "targets" / "trace.md"
# Target, language of its block in the page.
TARGETS = {
    "ir": "text", "ptx": "text", "cuda": "cpp", "wgsl": "wgsl", "msl": "cpp", "llvm": "llvm",
    "numpy": "text",
}  # fmt: skip
_BLOCK = 256


def parts() -> dict[str, str]:
    """What the page shows by name: the kernel's own text, and the text for each target."""
    page = PAGE.read_text(encoding="utf-8")
    source = re.search(r"```python\n(.*?)```", page, re.DOTALL)
    assert source is not None
    kernel = _kernel(source[1])
    texts = {name: kernel.source(name, block=_BLOCK).rstrip("\n") + "\n" for name in TARGETS}
    return {**texts, "llvm": _inner_loop(texts["llvm"])}


def with_parts(page: str, new: dict[str, str]) -> str:
    """The page with each part's block as it should be now."""
    for name, text in new.items():
        begin, end = f"<!-- {name}:begin -->\n", f"<!-- {name}:end -->"
        before, rest = page.split(begin)
        _, after = rest.split(end)
        page = f"{before}{begin}\n```{TARGETS.get(name, 'text')}\n{text}```\n\n{end}{after}"
    return page


def machine_code(ptx: str) -> str | None:
    """The instructions that `ptxas` makes of PTX for an H100; None without NVIDIA's tools."""
    tools = Path(sysconfig.get_paths()["purelib"]) / "nvidia" / "cu13" / "bin"
    assembler, disassembler = tools / "ptxas", tools / "nvdisasm"
    if not (assembler.exists() and disassembler.exists()):
        return None
    with tempfile.TemporaryDirectory() as folder:
        code, binary = Path(folder) / "kernel.ptx", Path(folder) / "kernel.cubin"
        code.write_text(ptx, encoding="utf-8")
        subprocess.run([assembler, "-arch=sm_90", code, "-o", binary], check=True)
        shown = subprocess.run([disassembler, "-c", binary], check=True, capture_output=True)
    lines = re.findall(r"/\*[0-9a-f]{4}\*/\s+(.*?)\s*;", shown.stdout.decode())
    kept = [line for line in lines if not line.startswith("NOP")]
    return "".join(f"{line} ;\n" for line in kept)


def _kernel(text: str):
    import treadle as td

    body = text[text.index("def ") :]
    return td.kernel(source=body)


def _inner_loop(text: str) -> str:
    """The block of a kernel's LLVM assembly that works on whole vectors: the first with a store."""
    for block in re.split(r"^(?=\w+:$)", text, flags=re.MULTILINE):
        if "masked.load" in block and re.search(r"store <|masked\.store", block):
            return f"; …\n{block}; …\n"
    raise ValueError("no block loads and stores vectors")


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "src"))
    texts = parts()
    page = PAGE.read_text(encoding="utf-8")
    assembled = machine_code(texts["ptx"])
    if assembled is None:
        print("ptxas or nvdisasm is missing: the machine code stays as it is", file=sys.stderr)
    else:
        texts["sass"] = assembled
    PAGE.write_text(with_parts(page, texts), encoding="utf-8")
