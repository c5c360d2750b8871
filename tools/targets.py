"""Write the tables of docs/targets: what targets have, and what a construct is printed as.

A claim comes with its evidence: text that the printed kernel has in it, or the refusal. The test of
the pages (tests/unit/test_target_pages.py) compiles every kernel here for every target. Excerpts
are what a pattern finds in the printed text.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
THREADS = 64

COLUMNS = {
    "naga": "[WGSL, naga](wgsl.md)",
    "tint": "[WGSL, Tint](wgsl.md)",
    "llvm": "[LLVM](llvm.md)",
    "ptx": "[PTX](ptx.md)",
    "cuda": "[CUDA C++](cuda.md)",
    "msl": "[Metal](msl.md)",
    "numpy": "[NumPy](numpy.md)",
}


@dataclass(frozen=True)
class Claim:
    """One cell: the word that stands there, and what shows it, as a regular expression."""

    word: str
    evidence: str


def native(evidence: str) -> Claim:
    return Claim("native", evidence)


def emulated(evidence: str) -> Claim:
    return Claim("emulated", evidence)


def refused(evidence: str) -> Claim:
    return Claim("**refused**", evidence)


def source_of(type: str, body: str) -> str:
    """The text of a kernel over `x`, an array of a type."""
    lines = "".join(f"    {line}\n" for line in body.splitlines())
    return f"def probe(x: td.Array[td.{type}]):\n    i = td.grid(1)\n{lines}"


@dataclass(frozen=True)
class Row:
    """A feature: a kernel over `x`, an array of each of `types`, and a claim for each column."""

    feature: str
    types: str
    body: str
    claims: dict[str, Claim]

    def sources(self) -> list[str]:
        """The kernels' texts."""
        return [source_of(type, self.body) for type in self.types.split()]


_PAIRS = emulated(r"array<vec2<u32>>")
_NO_I64_ATOMICS = refused("the feature 'int64_atomics'")
_NO_F64 = refused("the feature 'float64'")
_METAL_NO_F64 = refused("Metal has no float64")
_METAL_NO_WIDE = refused("Metal has no atomic")
_WARP_LOOP = r"icmp ult i32 %\w+, 32"  # a region of a block as a loop over a warp's threads
_WGSL_BYTES = emulated(r"atomicAnd\(&x\[.*\], ~\((255|65535)u")
_REPORT = emulated("treadle_report")
_NUMPY_ATOMIC = emulated(r"atomic_number\(c, '(add|min|max)'")
_NUMPY_WARP = emulated(r"warp\(c, '")
_WGSL_LOOP = emulated(r"atomicCompareExchangeWeak\(&")

ROWS = (
    Row("`bool`, 8- and 16-bit integers in arrays", "bool u8 i16", "x[i] = x[0]", {
        "naga": _WGSL_BYTES, "tint": _WGSL_BYTES, "llvm": native(r"masked\.store\.v16i(8|16)"),
        "ptx": native(r"st\.global\.u(8|16)"), "cuda": native(r"(unsigned char|short)\* "),
        "msl": native(r"device (uchar|short)\* x"),
        "numpy": native(r"_(u8|i16) = view\("),
    }),
    Row("float16", "f16", "x[i] = x[i] * x[0]", {
        "naga": native("enable f16;"), "tint": native("enable f16;"),
        "llvm": native("fmul contract <16 x half>"), "ptx": native(r"mul\.f16"),
        "cuda": emulated(r"to_half\(to_float\(a\) \* to_float\(b\)\)"),
        "msl": native(r"device half\* x"),
        "numpy": native(r"_f16 = view\("),
    }),
    Row("bfloat16", "bf16", "x[i] = x[i] * x[0]", {
        "naga": emulated(r"round_bf16\("), "tint": emulated(r"round_bf16\("),
        "llvm": emulated(r"lshr <16 x i32> %\w+, splat \(i32 16\)"),
        "ptx": emulated(r"mul\.f32"), "cuda": emulated("struct bfloat16"),
        "msl": emulated("struct bfloat16"),
        "numpy": emulated(r"round_bf16\("),
    }),
    Row("float64", "f64", "x[i] = x[i] * x[0]", {
        "naga": native("array<f64>"), "tint": _NO_F64, "llvm": native("<16 x double>"),
        "ptx": native(r"mul\.f64"), "cuda": native(r"double\*"), "msl": _METAL_NO_F64,
        "numpy": native(r"_f64 = view\("),
    }),
    Row("64-bit integers", "i64", "x[i] = x[i] * x[0]", {
        "naga": native("array<i64>"), "tint": _PAIRS, "llvm": native("mul <16 x i64>"),
        "ptx": native(r"mul\.lo\.s64"), "cuda": native(r"long long\*"),
        "msl": native(r"device long\* x"),
        "numpy": native(r"_i64 = view\("),
    }),
    Row("atomics on 32-bit integers", "i32", "td.atomic_max(x, 0, x[i])", {
        "naga": native(r"atomicMax\(&x"), "tint": native(r"atomicMax\(&x"),
        "llvm": native("atomicrmw max"), "ptx": native(r"red\.global\.max\.s32"),
        "cuda": native(r"atomicMax\(&x"), "msl": native("atomic_fetch_max_explicit"),
        "numpy": _NUMPY_ATOMIC,
    }),
    Row("`atomic_add` on float32 in arrays", "f32", "td.atomic_add(x, 0, x[i])", {
        "naga": native(r"atomicAdd\(&x"), "tint": _WGSL_LOOP, "llvm": native("atomicrmw fadd"),
        "ptx": native(r"red\.global\.add\.f32"), "cuda": native(r"atomicAdd\(&x"),
        "msl": native(r"atomic_fetch_add_explicit\(\(device atomic_float\*\)"),
        "numpy": _NUMPY_ATOMIC,
    }),
    Row("`atomic_add` on float32 in shared memory", "f32",
        "s = td.shared(4, td.f32)\ntd.atomic_add(s, 0, x[i])", {
        "naga": _WGSL_LOOP, "tint": _WGSL_LOOP, "llvm": native("fadd"),
        "ptx": native(r"red\.shared\.add\.f32"), "cuda": native(r"atomicAdd\(&s"),
        "msl": emulated("atomic_compare_exchange_weak_explicit"),
        "numpy": _NUMPY_ATOMIC,
    }),
    Row("`atomic_min`, `atomic_max` on float32", "f32", "td.atomic_min(x, 0, x[i])", {
        "naga": _WGSL_LOOP, "tint": _WGSL_LOOP, "llvm": native("atomicrmw fminimum"),
        "ptx": emulated(r"atom\.global\.cas\.b32"), "cuda": emulated("atomicCAS"),
        "msl": emulated("atomic_compare_exchange_weak_explicit"),
        "numpy": _NUMPY_ATOMIC,
    }),
    Row("atomics on 64-bit integers in arrays", "i64", "td.atomic_add(x, 0, x[i])", {
        "naga": native(r"atomicAdd\(&x"), "tint": _NO_I64_ATOMICS, "llvm": native("atomicrmw add"),
        "ptx": native(r"red\.global\.add\.u64"), "cuda": native("atomicAdd"),
        "msl": _METAL_NO_WIDE,
        "numpy": _NUMPY_ATOMIC,
    }),
    Row("atomics on 64-bit integers in shared memory", "i64",
        "s = td.shared(4, td.i64)\ntd.atomic_add(s, 0, x[i])", {
        "naga": native(r"atomicAdd\(&s"), "tint": _NO_I64_ATOMICS, "llvm": native("add i64"),
        "ptx": native(r"red\.shared\.add\.u64"), "cuda": native("atomicAdd"),
        "msl": _METAL_NO_WIDE,
        "numpy": _NUMPY_ATOMIC,
    }),
    Row("`atomic_add` on float64", "f64", "td.atomic_add(x, 0, x[i])", {
        "naga": emulated("atomic_cas_x"), "tint": _NO_I64_ATOMICS, "llvm": native("atomicrmw fadd"),
        "ptx": native(r"red\.global\.add\.f64"), "cuda": native(r"atomicAdd\(&x"),
        "msl": _METAL_NO_F64,
        "numpy": _NUMPY_ATOMIC,
    }),
    Row("shuffles, votes, ballots", "f32", "x[i] = td.shuffle_xor(x[i], 1)", {
        "naga": native("subgroupShuffle"), "tint": native("subgroupShuffle"),
        "llvm": emulated(_WARP_LOOP), "ptx": native(r"shfl\.sync\.bfly\.b32"),
        "cuda": native("__shfl_sync"), "msl": native("simd_shuffle"),
        "numpy": _NUMPY_WARP,
    }),
    Row("`subgroup_sum`, `_min`, `_max`, `_prefix_sum`", "f32", "x[i] = td.subgroup_sum(x[i])", {
        "naga": native("subgroupAdd"), "tint": native("subgroupAdd"),
        "llvm": emulated(_WARP_LOOP), "ptx": emulated(r"shfl\.sync\.bfly\.b32"),
        "cuda": emulated("__shfl_sync"), "msl": native("simd_sum"),
        "numpy": _NUMPY_WARP,
    }),
    Row("`subgroup_sum`, … of 64-bit numbers", "i64", "x[i] = td.subgroup_sum(x[i])", {
        "naga": refused("WGSL has it for 32 bits"), "tint": refused("WGSL has it for 32 bits"),
        "llvm": emulated(_WARP_LOOP), "ptx": emulated(r"shfl\.sync\.bfly\.b32"),
        "cuda": emulated("__shfl_sync"), "msl": refused("Metal has it for 32 bits"),
        "numpy": _NUMPY_WARP,
    }),
    Row("`sync_threads`", "f32",
        "s = td.shared(64, td.f32)\ns[td.thread_idx.x] = x[i]\ntd.sync_threads()\n"
        "x[i] = s[63 - td.thread_idx.x]", {
        "naga": native("workgroupBarrier"), "tint": native("workgroupBarrier"),
        "llvm": emulated(r"(?s)icmp ult i32 %\w+, 64.*icmp ult i32 %\w+, 64"),
        "ptx": native(r"bar\.sync 0"), "cuda": native("__syncthreads"),
        "msl": native("threadgroup_barrier"),
        "numpy": emulated(r"c\.shared\("),
    }),
    Row("`sync_subgroup`", "f32", "td.sync_subgroup()\nx[i] = 1.0", {
        "naga": emulated("workgroupBarrier"), "tint": emulated("workgroupBarrier"),
        "llvm": emulated(_WARP_LOOP), "ptx": native(r"bar\.warp\.sync"),
        "cuda": native("__syncwarp"), "msl": native("simdgroup_barrier"),
        "numpy": emulated(r"store\("),
    }),
    Row("`thread_fence`, `thread_fence_block`", "f32",
        "x[i] = 1.0\ntd.thread_fence()\nx[0] = 2.0", {
        "naga": refused("no memory fence"), "tint": refused("no memory fence"),
        "llvm": native("fence acq_rel"), "ptx": native(r"fence\.acq_rel\.gpu"),
        "cuda": native("__threadfence"), "msl": refused("no memory fence"),
        "numpy": native(r"store\("),
    }),
    Row("`td.local` arrays", "f32",
        "a = td.local(8, td.f32)\nfor j in range(8):\n    a[(j * i) % 8] = x[j]\nx[i] = a[i % 8]", {
        "naga": native("var<private> a"), "tint": native("var<private> a"),
        "llvm": native(r"alloca \[512 x i8\]"), "ptx": native(r"\.local \.align 16 \.b8 a\[32\]"),
        "cuda": native(r"float a\[8\]"), "msl": native(r"float a\[8\]"),
        "numpy": native(r"c\.local\("),
    }),
    Row("`print`, and reports under `TREADLE_CHECK=1`", "f32", "print(x[i])", {
        "naga": _REPORT, "tint": _REPORT, "llvm": emulated("atomicrmw add"), "ptx": _REPORT,
        "cuda": _REPORT, "msl": _REPORT,
        "numpy": emulated("v_report_at"),
    }),
)  # fmt: skip

SHARED = {"naga": 16, "tint": 64, "llvm": 64, "ptx": 96, "cuda": 96, "msl": 32, "numpy": 64}
"""KiB of shared memory that a block may have in text printed without a device."""


def printed(source: str, column: str) -> str:
    """A kernel's text in a column's language, without a device."""
    import treadle as td

    kernel: Any = td.kernel(source=source)
    if column != "naga":
        text: str = kernel.source("wgsl" if column == "tint" else column, block=THREADS)
        return text
    from treadle.codegen import pipeline
    from treadle.codegen.records import Options, Target
    from treadle.core.dim3 import Dim3
    from treadle.core.limits import Limits
    from treadle.ir.signature import Signature
    from treadle.runtime.arguments import declared_arguments

    ir = kernel.lower(Signature(declared_arguments(kernel))).kernel
    features = {"float16", "float64", "int64", "subgroups", "float_atomics", "int64_atomics"}
    target = Target("wgsl", "naga", Limits(subgroup_size=32), frozenset(features))
    options = Options(Dim3(THREADS), tuple((b.name, k) for k, b in enumerate(ir.buffers)))
    return pipeline.print_code(pipeline.lower(ir, options, target), options, target).source


def table() -> str:
    """The table in Markdown."""
    lines = [f"| | {' | '.join(COLUMNS.values())} |", f"|---|{'---|' * len(COLUMNS)}"]
    lines += [
        f"| {row.feature} | {' | '.join(row.claims[name].word for name in COLUMNS)} |"
        for row in ROWS
    ]
    sizes = " | ".join(f"{SHARED[name]} KiB" for name in COLUMNS)
    lines.append(f"| shared memory of a block in `source` | {sizes} |")
    return "\n".join(lines)


# --- excerpts ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Excerpt:
    """A construct, a kernel over `x` that has it, and where to find it in a target's text."""

    construct: str
    type: str
    body: str
    wgsl: str = ""
    llvm: str = ""
    ptx: str = ""
    cuda: str = ""
    msl: str = ""
    numpy: str = ""


_CPP_LOAD = r"load\(x, 7, .*?\)"
EXCERPTS = (
    Excerpt("`i = td.grid(1)`", "f32", "x[i] = 1.0",
        r"let i = .*;", r"add nsw nuw <16 x i32> .*", r"add\.s32 %i, .*",
        r"int i = .*;", r"int i = .*;",
        numpy=r"v_i = .*"),
    Excerpt("`x[i] = 1.0`, dropped outside of `x`", "f32", "x[i] = 1.0",
        r"if \(u32.*\n.*", r"call void @llvm\.masked\.store\.v16f32\.p0",
        r"setp\.lt\.u32.*;|@%p1 st\.global.*", r"if \(i < x_size.*\n.*", r"if \(i < param.*\n.*",
        numpy=r"store\(.*"),
    Excerpt("`x[7]`, 0 outside of `x`", "f32", "x[i] = x[7]",
        r"load_x\(7, .*?\)", r"phi float .*",
        r"mov\.f32 .*0f00000000;|@%p\d ld.*", _CPP_LOAD, _CPP_LOAD,
        numpy=r"load\(b0_f32, 7.*"),
    Excerpt("`a * b + c`", "f32", "x[i] = x[i] * x[i] + x[i]",
        r"load_x\(i.*\*.*\+.*;", r"(fmul|fadd) contract <16 x float>", r"(mul|add)\.f32 .*",
        r"x\[i\] \* .*;", r"x\[i\] \* .*;",
        numpy=r"\(\(t.*?\).*?\)"),
    Excerpt("`a // b` of integers", "i32", "x[i] = x[i] // x[7]",
        r"floordiv_i32\(load.*;", r"fdiv <16 x double>", r"div\.s32 .*|selp\.b32.*",
        r"floor_div\(x.*;", r"floor_div\(x.*;",
        numpy=r"\(t.*//.*?\)"),
    Excerpt("`td.i32(a)` of a float", "f32", "x[i] = td.f32(td.i32(x[i]))",
        r"cast_f32_i32\(load.*?\)\)", r"fptosi <16 x float>", r"cvt\.rzi\.s32\.f32.*",
        r"to_i32\(x.*?\)", r"to_i32\(x.*?\)",
        numpy=r"truncate\(.*?, i32\)"),
    Excerpt("`td.minimum(a, b)`", "f32", "x[i] = td.minimum(x[i], x[7])",
        r"min_f32\(load.*;", r"@llvm\.minimum\.v16f32", r"min\.f32 .*|setp\.nan.*|selp.*",
        r"minimum\(x.*;", r"minimum\(x.*;",
        numpy=r"min_\(.*?\)"),
    Excerpt("`td.sqrt(a)`", "f32", "x[i] = td.sqrt(x[i])",
        r"sqrt\(load_x.*;", r"@llvm\.sqrt\.v16f32", r"sqrt\.rn\.f32.*", r"sqrtf\(.*\)",
        r"precise::sqrt\(.*\)",
        numpy=r"sqrt\(.*?\)"),
    Excerpt("`for j in range(n)`", "f32", "for j in range(x.size):\n    x[j] = x[j] * 2.0",
        r"for \(.*\{", "", r"\w+_\d+:|@!?%p\d bra .*", r"for \(.*\{", r"for \(.*\{",
        numpy=r"l_\d+ = Trips.*|for .*:"),
    Excerpt("`td.shared(64, td.f32)`", "f32",
        "s = td.shared(64, td.f32)\ns[td.thread_idx.x] = x[i]\ntd.sync_threads()\n"
        "x[i] = s[63 - td.thread_idx.x]",
        r"var<workgroup>.*", r"alloca \[256 x i8\]", r"\.shared .align.*", r"__shared__ .*",
        r"threadgroup float.*",
        numpy=r"c\.shared\(.*?\)"),
    Excerpt("`td.local(8, td.f32)`", "f32",
        "a = td.local(8, td.f32)\nfor j in range(8):\n    a[(j * i) % 8] = x[j]\nx[i] = a[i % 8]",
        r"var<private> a.*", r"alloca \[512 x i8\]", r"\.local .align.*", r"float a\[8\];",
        r"float a\[8\];",
        numpy=r"c\.local\(.*?\)"),
    Excerpt("`td.sync_threads()`", "f32", "x[i] = 1.0\ntd.sync_threads()\nx[0] = 2.0",
        r"\w+Barrier\(\);", "", r"bar\.sync 0;", r"__syncthreads\(\);", r"threadgroup_barrier.*"),
    Excerpt("`td.thread_fence()`", "f32", "x[i] = 1.0\ntd.thread_fence()\nx[0] = 2.0",
        "", "fence acq_rel", r"fence.*;", r"__threadfence\(\);", ""),
    Excerpt("`td.atomic_add(x, 0, a)`", "f32", "td.atomic_add(x, 0, 1.0)",
        r"(?<=    )atomic_add_x.*;", r"@llvm\.vector\.reduce\.fadd\.v16f32|atomicrmw fadd",
        r"@%p1 red.*", r"atomicAdd.*;", r"atomic_fetch.*;",
        numpy=r"atomic_number\(.*"),
    Excerpt("`td.atomic_min(x, 0, a)`", "f32", "td.atomic_min(x, 0, 1.0)",
        r"atomicCompareExchangeWeak", r"atomicrmw fminimum", r"atom\.global\.cas\.b32",
        r"atomicCAS", r"atomic_compare_exchange_weak_explicit"),
    Excerpt("`td.shuffle_xor(a, 1)`", "f32", "x[i] = td.shuffle_xor(x[i], 1)",
        r"subgroupShuffle\(.*;", "", r"shfl\.sync\.bfly\.b32", r"__shfl_sync\(.*;",
        r"simd_shuffle\(.*;",
        numpy=r"warp\(.*?\)"),
    Excerpt("`td.ballot(p)`", "u32", "x[i] = td.ballot(i > 3)",
        r"subgroupBallot.*;", "", r"vote\.sync\.ballot.*", r"__ballot_sync\(.*;",
        r"simd_ballot\(.*;"),
    Excerpt("`td.subgroup_sum(a)`", "f32", "x[i] = td.subgroup_sum(x[i])",
        r"subgroupAdd", "", r"shfl\.sync\.bfly\.b32|add\.f32", r"warp_sum\(load.*;",
        r"simd_sum"),
    Excerpt("`x[i]` of a `td.vec4[td.f32]`", "vec4[td.f32]", "x[i] = x[i] * x[i]",
        r"array<vec4<f32>>", "", r"@%p1 (ld|st)\.global\.v4\.f32", r"float4\*", r"device float4\*",
        numpy=r"store\(.*"),
    Excerpt("`x[i]` of a `td.vec3[td.f32]`", "vec3[td.f32]", "x[i] = x[i] * x[i]",
        r"array<f32>", "", r"@%p1 st.*", r"float3\*", r"device packed_float3\*"),
)  # fmt: skip


def excerpt(one: Excerpt, target: str) -> str:
    """What a construct is printed as: the lines, or parts of lines, that its pattern finds."""
    pattern = getattr(one, target)
    text = printed(source_of(one.type, one.body), "tint" if target == "wgsl" else target)
    found = [match[0] for match in re.finditer(pattern, text)]
    if not found or any("|" in one for one in found):  # which would end a table's cell
        raise SystemExit(f"{target}: nothing fit for a table is like {pattern!r} ({one.construct})")
    lines = [" ".join(line.split()) for match in dict.fromkeys(found) for line in match.split("\n")]
    return "<br>".join(f"`{line}`" for line in lines)


def excerpts(target: str) -> str:
    """The table of a target's page in Markdown."""
    lines = ["| in a kernel | printed |", "|---|---|"]
    lines += [
        f"| {one.construct} | {excerpt(one, target)} |" for one in EXCERPTS if getattr(one, target)
    ]
    return "\n".join(lines)


# --- pages ---------------------------------------------------------------------------------------


def refusals(*columns: str) -> str:
    """What is refused of the rows above, and with which words, in Markdown."""
    from treadle.core.errors import UnsupportedOnTarget

    found: dict[str, dict[str, list[str]]] = {}  # features and columns by message
    for row in ROWS:
        for column in columns:
            if row.claims[column].word != "**refused**":
                continue
            try:
                printed(row.sources()[0], column)
            except UnsupportedOnTarget as error:
                found.setdefault(error.message, {}).setdefault(row.feature, []).append(column)
    lines = ["| what | message |", "|---|---|"]
    for message, features in found.items():
        what = "<br>".join(
            feature + (f" ({', '.join(names)})" if len(columns) > 1 else "")
            for feature, names in features.items()
        )
        lines.append(f"| {what} | {message} |")
    return "\n".join(lines)


def pages() -> dict[tuple[Path, str], str]:
    """The tables, by the page and the mark in it where they belong."""
    folder = ROOT / "docs" / "targets"
    made = {(folder / "index.md", "targets"): table()}
    for target in ("wgsl", "llvm", "ptx", "cuda", "msl", "numpy"):
        made[folder / f"{target}.md", "excerpts"] = excerpts(target)
    made[folder / "wgsl.md", "refused"] = refusals("naga", "tint")
    made[folder / "msl.md", "refused"] = refusals("msl")
    return made


def page_with_table(page: str, mark: str, made: str) -> str:
    """A page's text with a table as it should be now."""
    begin, end = f"<!-- {mark}:begin -->\n", f"<!-- {mark}:end -->"
    before, rest = page.split(begin)
    _, after = rest.split(end)
    return f"{before}{begin}\n{made}\n\n{end}{after}"


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "src"))
    for (path, mark), made in pages().items():
        page = path.read_text(encoding="utf-8")
        path.write_text(page_with_table(page, mark, made), encoding="utf-8")
