"""`treadle kernels`: kernels of the library as text, for devices that need not be here."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from treadle.cli.kernel_catalogue import CATALOGUE, Asked, Entry, launch
from treadle.cli.transpile import Printed, check_output
from treadle.core.dim3 import Dim3
from treadle.core.dtypes import BY_SHORT_NAME
from treadle.core.limits import DeviceInfo, Limits
from treadle.core.version import __version__
from treadle.drivers import offline
from treadle.runtime.devices import Device, use_device
from treadle.runtime.graphs import Graph
from treadle.tensor.dtypes import supports

TARGETS = ("ptx", "cuda", "msl", "wgsl")
_OF_NVIDIA = ("ptx", "cuda")
_USUAL_SM = "80"
# What numbers of the products' kernels mean. A load is of four elements where the text has vectors.
_MEANINGS = {
    "grid.0": "blocks along x, before it is folded", "grid.1": "along y", "grid.2": "along z",
    "a.size": "of A", "b.size": "of B", "c.size": "of C",
    "m": "rows of C", "n": "columns of C", "k": "what is summed over",
    "extent1": "axes of a stack of matrices", "extent2": "likewise",
    "a_line": "loads from a row of A to the next", "a_step": "from a column of A to the next",
    "a_offset": "loads before A", "b_line": "from a column of B to the next",
    "b_step": "loads from a row of B to the next", "b_offset": "loads before B",
    "a0": "steps of A along a stack", "b0": "steps of B along a stack",
    "matrices": "of a stack", "chunk": "what a block sums over",
}  # fmt: skip
_PRODUCTS = frozenset({"gemm", "gemm-tensor", "gemm-tiled", "gemm-naive"})
# Of CUtensorMapDataType. Numbers of float32 become TF32 as they are copied.
_MAPPED = {"f16": "FLOAT16", "bf16": "BFLOAT16", "f32": "TFLOAT32", "i8": "UINT8", "u8": "UINT8"}
_GROUPS = (
    "Any number of blocks computes all tiles; as many as the card runs at once are the fastest.",
)
# What a device must have for a text, by language and feature. All cards of NVIDIA's have them.
_NEEDS = {
    ("wgsl", "float16"): "the feature shader-f16",
    ("wgsl", "subgroups"): "the feature subgroups, with subgroups of 32 threads",
    ("msl", "subgroups"): "SIMD groups of 32 threads, as GPUs of Apple's have",
    ("msl", "float_atomics"): "Metal 3, for atomic operations on floats",
}


def listing(chosen: str | None = None) -> str:
    """The names of the catalogue, or the one that is chosen, for people. ValueError for a name that
    is not there."""
    if chosen is not None and chosen not in CATALOGUE:
        raise ValueError(_no_kernel(chosen))
    lines = []
    for name, entry in CATALOGUE.items():
        if chosen not in (None, name):
            continue
        sizes, usual = "x".join(entry.sizes), "x".join(map(str, entry.usual))
        lines.append(f"{name:20}{entry.summary}")
        tile = "; --tile RxCxD" if entry.has_tiles else ""
        lines.append(f"{'':20}--dtype {', '.join(_dtypes_shown(entry))}; --size {sizes}, "
                     f"usually {usual}{tile}")  # fmt: skip
    return "\n".join(lines)


def _no_kernel(name: str) -> str:
    return f"there is no kernel {name!r}; there are {', '.join(CATALOGUE)}"


def _dtypes_shown(entry: Entry) -> list[str]:
    return [entry.usual_dtype, *(name for name in entry.dtypes if name != entry.usual_dtype)]


def print_kernels(
    name: str,
    dtype: str | None,
    size: str | None,
    tile: str | None,
    sm: str | None,
    target: str,
    output: Path | None,
) -> Printed:
    """The text of a catalogue's entry: of each kernel that it launches. ValueError for what was
    written wrongly, TreadleError for what cannot be."""
    entry = CATALOGUE.get(name)
    if entry is None:
        raise ValueError(_no_kernel(name))
    if output is not None:
        check_output(output)
    sizes = _numbers("--size", size, entry.sizes) if size else entry.usual
    if tile and not entry.has_tiles:
        with_tiles = ", ".join(key for key, one in CATALOGUE.items() if one.has_tiles)
        raise ValueError(f"--tile is for {with_tiles}: {name} has no tile to choose")
    wanted = _numbers("--tile", tile, ("ROWS", "COLUMNS", "DEPTH")) if tile else None
    info = described(target, sm)
    device = Device(offline.Backend(info), info)
    short = dtype or entry.usual_dtype
    if short not in entry.dtypes:
        others = [key for key, one in CATALOGUE.items() if short in one.dtypes and one is not entry]
        known = f"; {', '.join(others)} {'has' if len(others) == 1 else 'have'} it" * bool(others)
        raise ValueError(
            f"{name} is printed for {', '.join(entry.dtypes)}, not for {short!r}{known}"
        )
    there = [each for each in entry.dtypes if _has(device, each)]
    if short not in there:
        raise ValueError(f"{target} has no {short}: there {name} is printed for {', '.join(there)}")
    asked = Asked(device, short, sizes, None if wanted is None else wanted[:3])  # type: ignore[arg-type]
    with use_device(device), Graph(device).capture():  # where the planner tries nothing
        launch(entry, asked)
    stream = device.handle.default_stream
    assert isinstance(stream, offline.Stream)
    texts: dict[str, str] = {}
    for number, each in enumerate(stream.launches, 1):
        what = f"{name}: {entry.summary}"
        if len(stream.launches) > 1:
            what += f" (launch {number} of {len(stream.launches)})"
        named = dict(zip(entry.sizes, sizes, strict=True))
        head = "\n".join(f"// {line}".rstrip() for line in _head(what, short, info, each, named))
        key = each.code.name if each.code.name not in texts else f"{each.code.name}{number}"
        texts[key] = f"{head}\n{each.code.source}"
    return Printed(texts, ())


def _has(device: Device, short: str) -> bool:
    """Whether a device computes with what `--dtype` names."""
    dtype = BY_SHORT_NAME.get(short)
    return dtype is None or supports(device, dtype)


def described(target: str, sm: str | None) -> DeviceInfo:
    """The device that a kernel is printed for."""
    if target not in _OF_NVIDIA and sm is None:
        return offline.generic_device(target)
    try:
        return offline.find_card(sm or _USUAL_SM, target)
    except ValueError as error:
        raise ValueError(f"--{error}") from None


def _numbers(option: str, text: str, names: Sequence[str]) -> tuple[int, ...]:
    """The numbers of "128x256x64"."""
    parts = text.lower().split("x")
    shown = "x".join(names)
    if len(parts) != len(names) or not all(part.isascii() and part.isdigit() for part in parts):
        raise ValueError(f"{option} is {shown}, {len(names)} whole numbers, not {text!r}")
    found = tuple(map(int, parts))
    if min(found) < 1 or math.prod(found) > 1 << 42:
        raise ValueError(f"{option} {text}: each number is at least 1, and their product not huge")
    return found


def _head(
    what: str, dtype: str, info: DeviceInfo, one: offline.Launch, sizes: Mapping[str, int]
) -> list[str]:
    """What a caller has to know: the launch, the parameters with their values, how to call it."""
    code, grid = one.code, one.grid
    asked = _grid_of(one)
    folded = (
        f"The grid of {tuple(asked)} blocks is folded, since devices take no more along an axis."
    )
    shown = ", ".join(f"{name} = {size}" for name, size in sizes.items())
    is_card = code.target in _OF_NVIDIA
    static = code.shared_bytes - code.dynamic_shared
    lines = [
        what,
        f"{dtype}, for {info.name}; printed by treadle {__version__}",
        *_needs(one),
        "",
        f"Launch for {shown}: grid {tuple(grid)}, block {tuple(code.workgroup)}, {static} bytes of "
        f"shared memory and {code.dynamic_shared} of dynamic shared memory.",
        *((folded,) if asked != grid else ()),
        *(_GROUPS if code.maps and what.startswith("gemm") else ()),
        "Numbers that depend on the sizes are those of this launch; the text serves other sizes if "
        "these are multiples of the same powers of two.",
        "",
        "Buffers"
        + (", as 64-bit addresses" if is_card else ", by their bindings")
        + " (bytes are those that treadle allocates; whole 16 bytes of the elements are enough):",
    ]
    for number, (binding, size) in enumerate(zip(code.bindings, one.buffers, strict=True)):
        access = "written" if binding.writes else "read"
        lines.append(f"  {number:2}  {' = '.join(binding.buffers):12} {access}, {size} bytes")
    lines.append(
        "Numbers, behind them:" if is_card else f"Numbers, a block of {code.layout.size} bytes:"
    )
    meanings: dict[float, str] = {}
    for name, size in sizes.items():
        meanings[size] = f"{meanings[size]} or {name}" if size in meanings else name
    for number, (slot, value) in enumerate(zip(code.layout.slots, one.numbers, strict=True)):
        meaning = meanings.get(value, "") if value > 1 else ""
        if what.partition(":")[0] in _PRODUCTS:
            meaning = _MEANINGS.get(slot.parameter.name, "")
            if slot.parameter.name.endswith(".size"):
                meaning = f"{_unit(slot.parameter.name[0], int(value), sizes)} {meaning}"
        place = f"{len(code.bindings) + number:2}" if is_card else f"at {slot.offset:3}"
        note = f"  ({meaning})" if meaning else ""
        lines.append(f"  {place}  {slot.parameter.name:12} {slot.stored} = {value}{note}")
    if is_card:
        lines += [*_matrices(one), "", *_call(one)]
    return lines


def _needs(one: offline.Launch) -> list[str]:
    """What a device must have for a launch, besides taking the language."""
    code = one.code
    named = [_NEEDS.get((code.target, feature)) for feature in sorted(code.requires)]
    lines = [f"Needs {each}." for each in named if each is not None]
    largest = max(one.buffers, default=0)
    if code.target == "wgsl" and largest > Limits().max_binding_size:
        lines.append(f"Needs a maxStorageBufferBindingSize of at least {largest} bytes.")
    target = re.search(r"^\.target sm_(\d+)(a?)", code.source, re.MULTILINE)
    if target is not None:
        number = f"{int(target[1]) / 10}"
        lines += [
            f"For compute capability {number} alone: no other card takes this text."
            if target[2]
            else f"Cards of compute capability {number} and newer take it, where a block may have "
            "that much shared memory."
        ]
    return lines


def _grid_of(one: offline.Launch) -> Dim3:
    """The grid as the kernel sees it, of which a folded one has the extents among its numbers."""
    extents = list(one.grid)
    for slot, value in zip(one.code.layout.slots, one.numbers, strict=True):
        match slot.parameter.origin:
            case ("grid", int(axis)) if one.code.folded:
                extents[axis] = int(value)
    return Dim3(*extents)


def _unit(matrix: str, value: int, sizes: Mapping[str, int]) -> str:
    """What the size of a matrix of a product counts."""
    rows, columns = {"a": ("M", "K"), "b": ("K", "N"), "c": ("M", "N")}[matrix]
    elements = sizes[rows] * sizes[columns]
    return "elements" if value == elements else f"loads, each of {elements // value} elements,"


def _matrices(one: offline.Launch) -> list[str]:
    """The descriptions of matrices that the caller has to make, the parameters behind numbers."""
    code = one.code
    if not code.maps:
        return []
    lines = ["Tensor maps, behind them, CUtensorMaps:"]
    first = len(code.bindings) + len(code.layout.slots)
    for number, (name, each) in enumerate(zip(_map_names(one), code.maps, strict=True)):
        buffer = code.bindings[each.binding].buffers[0]
        lines.append(f"  {first + number:2}  {name:12} boxes of the matrix in {buffer}")
    lines += ["", "Each is made before the launch (CUDA 12.4 or newer):"]
    for name, each, matrix in zip(_map_names(one), code.maps, one.matrices, strict=True):
        buffer = re.sub(r"\W", "_", code.bindings[each.binding].buffers[0])
        start = f" + {matrix.address}" if matrix.address else ""
        rank = len(matrix.extents)
        box = matrix.box + (1,) * (rank - 2)
        extents, steps, boxes, ones = (
            ", ".join(map(str, each)) for each in (matrix.extents, matrix.steps, box, (1,) * rank)
        )
        lines += [
            f"  cuuint64_t extents_{name}[] = {{{extents}}};",
            f"  cuuint64_t steps_{name}[] = {{{steps}}};  // bytes",
            f"  cuuint32_t box_{name}[] = {{{boxes}}}, ones_{name}[] = {{{ones}}};",
            f"  cuTensorMapEncodeTiled(&{name}, CU_TENSOR_MAP_DATA_TYPE_{_MAPPED[matrix.element]}, "
            f"{rank}, (void *)({buffer}{start}),",
            f"      extents_{name}, steps_{name}, box_{name}, ones_{name},",
            "      CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,",
            "      CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);",
        ]
    return lines


def _map_names(one: offline.Launch) -> list[str]:
    names = [one.code.bindings[each.binding].buffers[0] for each in one.code.maps]
    return [f"map_of_{re.sub(r'[^A-Za-z0-9]', '_', name)}_{at}" for at, name in enumerate(names)]


def _call(one: offline.Launch) -> list[str]:
    """How CUDA's driver API launches it."""
    code = one.code
    names = [binding.buffers[0] for binding in code.bindings]
    names += [slot.parameter.name for slot in code.layout.slots]
    names += _map_names(one)
    parameters = ", ".join("&" + re.sub(r"\W", "_", name) for name in names)
    lines = [
        "With CUDA's driver API:",
        f'  cuModuleGetFunction(&kernel, module, "{code.entry}");',
    ]
    if code.dynamic_shared:
        lines.append(
            "  cuFuncSetAttribute(kernel, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, "
            f"{code.dynamic_shared});"
        )
    extents = ", ".join(map(str, (*one.grid, *code.workgroup, code.dynamic_shared)))
    return [
        *lines,
        f"  void *parameters[] = {{{parameters}}};",
        f"  cuLaunchKernel(kernel, {extents}, stream, parameters, 0);",
        "",
    ]
