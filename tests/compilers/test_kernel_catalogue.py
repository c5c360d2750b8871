"""`treadle kernels`: all that it lists, through ptxas for generations of cards, and what its PTX
shows."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator

import pytest

import treadle as td
from tests.support.ptxas import assemble
from treadle.cli.kernel_catalogue import CATALOGUE
from treadle.cli.kernels import described, print_kernels
from treadle.core.errors import LaunchError, TreadleError, UnsupportedOnTarget
from treadle.drivers import offline
from treadle.kernels.factors import dtypes_of
from treadle.ptx_analysis.findings import report
from treadle.runtime.devices import Device

ARCHITECTURES = ("75", "80", "89", "90", "90a", "100")


@pytest.fixture
def rng(request: pytest.FixtureRequest) -> random.Random:
    seed = random.SystemRandom().randrange(1 << 30)
    print(f"seed {seed}")  # shown for a failed test
    return random.Random(seed)


def _spread() -> Iterator[tuple[str, str, str]]:
    """Two of each entry: the usual dtype for Hopper, and another one for another card."""
    others = [each for each in ARCHITECTURES if each != "90a"]
    for i, (name, entry) in enumerate(CATALOGUE.items()):
        yield name, entry.usual_dtype, "90a"
        dtypes = [each for each in entry.dtypes if each != entry.usual_dtype]
        yield name, dtypes[i % len(dtypes)], others[i % len(others)]


SPREAD = frozenset(_spread())
ALL = [
    (name, dtype, architecture)
    for name, entry in CATALOGUE.items()
    for dtype in entry.dtypes
    for architecture in ARCHITECTURES
]


@pytest.mark.parametrize(
    ("name", "dtype", "architecture"),
    [
        pytest.param(*each, marks=() if each in SPREAD else pytest.mark.slow, id="-".join(each))
        for each in ALL
    ],
)
def test_ptx(name, dtype, architecture):
    """Each kernel is assembled without spills; threads meet at its barriers, and accesses are
    guarded. The same few for every change, all with the slow tests."""
    if name == "gemm-tensor" and architecture == "75" and dtype in ("bf16", "tf32"):
        with pytest.raises(UnsupportedOnTarget, match="gemm-tiled needs none"):
            print_kernels(name, dtype, None, None, architecture, "ptx", None)
        return
    printed = print_kernels(name, dtype, None, None, architecture, "ptx", None)
    assert printed.texts
    for text in printed.texts.values():
        assembled = assemble(text, f"sm_{architecture}")
        assert assembled.error is None
        assert assembled.number("bytes spill stores") == 0
        if name != "causal-attention":  # almost the same as without the mask
            found = {one.kind for each in report(text) for one in each.findings}
            assert not found & {"barrier", "unchecked"}
        assert_comment_is_right(text)


def assert_comment_is_right(text: str) -> None:
    """The comment lists the parameters of the entry, in their order, and its block."""
    comment = [line[3:] for line in text.splitlines() if line.startswith("//")]
    entry = re.search(r"\.visible \.entry (\w+)\(([^)]*)\)", text)
    block = re.search(r"\.reqntid (\d+), (\d+), (\d+)", text)
    assert entry is not None
    assert block is not None
    assert f"block ({', '.join(block.groups())})" in "\n".join(comment)
    declared = re.findall(r"\.param (?:\.align 64 )?\.(\w+) (\w+)", entry[2])
    listed = re.findall(r"^  +(\d+)  (\S+)", "\n".join(comment), re.MULTILINE)
    assert [int(number) for number, _ in listed] == list(range(len(declared)))
    assert f'"{entry[1]}"' in "\n".join(comment)
    called = next(line for line in comment if "void *parameters[]" in line)
    assert called.count("&") == len(declared)


@pytest.mark.parametrize("dtype", CATALOGUE["gemm-tensor"].dtypes)
def test_tensor_cores_of_all_generations(dtype):
    """Each has its own instructions; those of Hopper alone are for `90a`, with tensor maps that the
    caller makes."""
    element = {"i8": "s8", "u8": "u8"}.get(dtype, dtype)
    size = dtypes_of(dtype)[0].itemsize
    for architecture in ("80", "90a", "100"):
        depth = 128 if architecture == "90a" else 64  # bytes
        tile = f"64x{64 if depth == 64 else 128}x{depth // size}"
        printed = print_kernels("gemm-tensor", dtype, None, tile, architecture, "ptx", None)
        (text,) = printed.texts.values()
        word = "wgmma.mma_async" if architecture == "90a" else "mma.sync"
        assert re.search(rf"\b{word}\.[\w.]*\.{element}\.{element}", text)
        assembled = assemble(text, f"sm_{architecture}")
        assert assembled.error is None
        assert assembled.number("bytes spill stores") == 0
        assert "C75" not in assembled.log
        assert_comment_is_right(text)
    with pytest.raises(ValueError, match="--sm 90a is for ptx"):  # CUDA C++ has none of them
        print_kernels("gemm-tensor", dtype, None, None, "90a", "cuda", None)


def test_boxes_need_lines_of_16_bytes():
    """Without them a tile of Hopper's own instructions is one of those that all cards have."""
    given = ("100x100x100", "128x256x64", "90a", "ptx", None)
    (text,) = print_kernels("gemm", "f16", *given).texts.values()
    assert "mma.sync" in text
    assert "wgmma" not in text


def test_attention_by_own_instructions():
    """Its matrices have more axes than those of products."""
    found = print_kernels("causal-attention", "f16", None, None, "90a", "ptx", None).texts
    text = "".join(found.values())
    assert ".target sm_90a" in text
    extents = [line for line in text.splitlines() if "cuuint64_t extents_" in line]
    boxes = [line for line in text.splitlines() if "cuuint32_t box_" in line]
    assert len(extents) == len(boxes) == text.count("cuTensorMapEncodeTiled(&") >= 3
    for one, other in zip(extents, boxes, strict=True):
        assert other.count(",") == 2 * one.count(",") + 1


def test_tensor_maps_are_described():
    """Their extents, steps and boxes, for the caller's `cuTensorMapEncodeTiled`."""
    (text,) = print_kernels(
        "gemm", "f16", "264x520x72", "128x128x64", "90a", "ptx", None
    ).texts.values()
    assert text.count("cuTensorMapEncodeTiled(&") == 2
    a, b = (text[text.index(f"extents_map_of_{name}[]") :] for name in ("a_0", "b_1"))
    assert a.startswith("extents_map_of_a_0[] = {72, 264, 1};")
    assert b.startswith("extents_map_of_b_1[] = {520, 72, 1};")
    assert "steps_map_of_b_1[] = {1040, 1040};  // bytes" in b
    assert "box_map_of_a_0[] = {64, 128, 1}" in a
    assert "CU_TENSOR_MAP_DATA_TYPE_FLOAT16" in b
    (text,) = print_kernels("gemm-tensor", "tf32", None, None, "90a", "ptx", None).texts.values()
    assert text.count("CU_TENSOR_MAP_DATA_TYPE_TFLOAT32") == 2


@pytest.mark.parametrize("target", ["cuda", "msl", "wgsl"])
def test_other_languages(target, rng):
    name = rng.choice(["gemm-bias-residual", "softmax", "rms-norm", "swiglu", "gemm-naive"])
    (text,) = print_kernels(name, "f32", None, None, None, target, None).texts.values()
    assert text.startswith(f"// {name}: ")
    word = {"cuda": "__global__", "msl": "kernel void", "wgsl": "@compute"}[target]
    assert word in text


def test_tiles(rng):
    """A tile that was asked for is the one that is printed; what cannot be is refused in words."""
    (text,) = print_kernels("gemm", "f16", None, "64x128x32", "80", "ptx", None).texts.values()
    assert "grid (32, 64, 1)" in text
    assert "mma.sync" in text
    (text,) = print_kernels("gemm", "f32", None, "64x64x16", "80", "ptx", None).texts.values()
    assert "grid (64, 64, 1)" in text
    assert "mma.sync" not in text
    with pytest.raises(
        TreadleError, match=r"there is no tile of 100x100x10 .*there are .*64x64x32"
    ):
        print_kernels("gemm", "f16", None, "100x100x10", "80", "ptx", None)
    (text,) = print_kernels("gemm", "f16", None, "64x128x64", "90a", "ptx", None).texts.values()
    assert "m64n128k16" in text
    with pytest.raises(TreadleError, match="more shared memory than the 101376 bytes"):
        print_kernels("gemm", "f16", None, "128x256x64", "89", "ptx", None)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("gem", None, None, None, None, "ptx"), "there is no kernel 'gem'; there are gemm, "),
        (("softmax", "i8", None, None, None, "ptx"), "is printed for f16, bf16, f32, f64, not"),
        (("softmax", None, "12", None, None, "ptx"), "--size is ROWSxCOLUMNS, 2 whole numbers"),
        (("softmax", None, "0x4", None, None, "ptx"), "each number is at least 1"),
        (("softmax", None, None, "1x2x3", None, "ptx"), "--tile is for gemm, gemm-tensor"),
        (("gemm", None, None, "64x64", None, "ptx"), "--tile is ROWSxCOLUMNSxDEPTH"),
        (("gemm", None, None, None, "60", "ptx"), "--sm is one of 70, 75,"),
        (("gemm", None, None, None, "x", "ptx"), "--sm is one of 70, 75,"),
        (("gemm", None, None, None, "100a", "ptx"), "121 and 90a, not '100a'"),
        (("gemm", "tf32", None, None, None, "ptx"), "not for 'tf32'; gemm-tensor has it"),
        (("gemm", None, None, None, "80", "msl"), "--sm is for ptx and cuda, not for msl"),
        (("gemm", "f64", None, None, None, "msl"), "msl has no f64: there gemm is printed for f16"),
        (("quantized", "q4_0", "7x1x7", None, None, "ptx"), "is a multiple of 32, not 7"),
    ],
)
def test_wrong_usage(given, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        print_kernels(*given, None)


def test_a_device_that_is_not_here():
    """Nothing can be read from it or replayed on it."""
    info = described("ptx", "90")
    device = Device(offline.Backend(info), info)
    x = td.empty((4, 4), device=device)
    with pytest.raises(LaunchError, match="offline:sm_90 is not here"):
        (x + 1).numpy()
    graph = td.Graph(device)
    with graph.capture():
        (x + 1).realize()
    with pytest.raises(LaunchError, match="nothing can be replayed"):
        graph.replay()
