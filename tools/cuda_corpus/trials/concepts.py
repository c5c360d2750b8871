"""NVIDIA's samples: 2_Concepts_and_Techniques."""

from __future__ import annotations

from functools import cache

import numpy as np

from tools.cuda_corpus.spec import (
    FUSED,
    Levels,
    NumPy,
    Printed,
    Record,
    Trial,
    filled,
    given,
    integers,
    made,
    reals,
    result,
    words,
)

FOLDER = "cuda-samples/Samples/2_Concepts_and_Techniques"
IMAGE = Levels(1, "colors are rounded down from floats")


# --- frames that are checked: one byte is wrong, and one thread says so ---------------------------

_FRAMES = f"{FOLDER}/EGLStream_CUDA_CrossGPU/kernel.cu"
_WRONG = np.full(64, 5, np.int8)
_WRONG[21] = 6


def _checked(kernel: str) -> Trial:
    return Trial(
        _FRAMES, kernel, block=64, agreement=Printed(), strip=True,
        arguments=(given(_WRONG, np.int8), np.int8(64), np.int8(5), np.int8(7), 3),
    )  # fmt: skip


# --- particles: a grid of 16 x 16 x 16 cells over a cube from -1 to 1 -----------------------------

PARTICLES = f"{FOLDER}/particles/particles_kernel_impl.cuh"
PARTICLES_UNIT = f"{FOLDER}/particles/particleSystem_cuda.cu"
COUNT, CELLS = 500, 16
_SIMULATION = np.dtype([
    ("colliderPos", "f4", 3), ("colliderRadius", "f4"), ("gravity", "f4", 3),
    ("globalDamping", "f4"), ("particleRadius", "f4"), ("gridSize", "u4", 3), ("numCells", "u4"),
    ("worldOrigin", "f4", 3), ("cellSize", "f4", 3), ("numBodies", "u4"),
    ("maxParticlesPerCell", "u4"), ("spring", "f4"), ("damping", "f4"), ("shear", "f4"),
    ("attraction", "f4"), ("boundaryDamping", "f4"),
])  # fmt: skip
PARTICLE_CONSTANTS = {
    "cudaParams": Record(
        _SIMULATION,
        (
            (-0.5, -0.5, 0.5), 0.4, (0, -0.0003, 0), 1.0, 0.06, (CELLS,) * 3, CELLS**3, (-1,) * 3,
            (2 / CELLS,) * 3, COUNT, 100, 0.5, 0.02, 0.1, 0.01, -0.5,
        ),
    )
}  # fmt: skip


@cache
def sorted_particles() -> tuple[NumPy, NumPy, NumPy]:
    """Positions, sorted by cell, and where each cell's particles begin and end."""
    rng = np.random.default_rng(7)
    positions = rng.uniform(-1, 1, (COUNT, 4)).astype(np.float32)
    x, y, z = np.floor((positions[:, :3] + 1) * (CELLS / 2)).astype(int).T % CELLS
    cell = (z * CELLS + y) * CELLS + x
    order = np.argsort(cell, kind="stable")
    numbers = np.arange(CELLS**3)
    start = np.searchsorted(cell[order], numbers)
    end = np.searchsorted(cell[order], numbers, side="right")
    start = np.where(start == end, 0xFFFFFFFF, start)
    return positions[order], start.astype(np.uint32), end.astype(np.uint32)


# --- segmentation: a graph of 600 vertices --------------------------------------------------------

_GRAPH = f"{FOLDER}/segmentationTreeThrust/kernels.cuh"
_VERTICES, _EDGES, _NONE = 600, 2000, 0xFFFFFFFF
_MORE = np.uint32(_VERTICES)


def _graph(kernel: str, *arguments: object) -> Trial:
    return Trial(
        _GRAPH, kernel, grid=8, block=256,
        unit=f"{FOLDER}/segmentationTreeThrust/segmentationTree.cu",
        arguments=arguments,  # type: ignore[arg-type]
    )  # fmt: skip


def _pairs(_: np.random.Generator) -> NumPy:
    """Vertices 0 and 1 follow each other; each of the others follows one before it."""
    following = np.arange(_VERTICES) // 2
    following[0] = 1
    return following.astype(np.uint32)


def _permutation(rng: np.random.Generator) -> NumPy:
    return rng.permutation(_VERTICES).astype(np.uint32)


def _ends(rng: np.random.Generator) -> NumPy:
    """The ends of edges, of which every fifth is none."""
    ends = rng.integers(0, _VERTICES, _EDGES).astype(np.uint32)
    ends[::5] = _NONE
    return ends


_OFFSETS = given(np.arange(_VERTICES) * 3 + 1, np.uint32)
_STARTS = integers(_EDGES, high=_VERTICES, dtype=np.uint32)
_MAPPING = integers(_VERTICES, high=100, dtype=np.uint32)


def _bit(*sizes: int) -> tuple[np.uint32, ...]:
    return tuple(map(np.uint32, sizes))


def _sorting(file: str, kernel: str, *sizes: int) -> Trial:
    """A step over 2048 keys with values."""
    return Trial(
        f"{FOLDER}/sortingNetworks/{file}", kernel, grid=4, block=256,
        arguments=(
            result(2048, dtype=np.uint32), result(2048, dtype=np.uint32), words(2048), words(2048),
            *_bit(*sizes),
        ),
    )  # fmt: skip


_SHUFFLES = f"{FOLDER}/shfl_scan"

TRIALS = (
    Trial(
        _FRAMES, "writeDataToBuffer", grid=4, block=64, strip=True,
        arguments=(result(256, dtype=np.int8), np.int8(9)),
    ),
    _checked("testKernelConsumer"),
    _checked("testKernelProducer"),
    Trial(_FRAMES, "getNumErrors", strip=True, arguments=(result(1, dtype=np.int32),)),
    *(
        Trial(
            f"{FOLDER}/boxFilter/boxFilter_kernel.cu", f"d_boxfilter_{axis}_global", grid=2,
            block=32, arguments=(reals(64, 64), result(64, 64), 64, 64, 5), agreement=FUSED,
        )
        for axis in "xy"
    ),
    Trial(
        f"{FOLDER}/boxFilter/boxFilter_kernel.cu", "d_boxfilter_rgba_y", grid=2, block=32,
        arguments=(words(48, 64), result(48, 64, dtype=np.uint32), 64, 48, 5), agreement=IMAGE,
    ),
    Trial(
        f"{FOLDER}/dct8x8/dct8x8_kernel_quantization.cuh", "CUDAkernelQuantizationFloat",
        grid=(4, 4), block=(8, 8), unit=f"{FOLDER}/dct8x8/dct8x8.cu",
        arguments=(reals(32, 32, low=-500, high=500, output=True), 32), agreement=FUSED,
    ),
    Trial(
        PARTICLES, "calcHashD", grid=2, block=256, unit=PARTICLES_UNIT,
        constants=PARTICLE_CONSTANTS,
        arguments=(
            result(COUNT, dtype=np.uint32), result(COUNT, dtype=np.uint32), reals(COUNT, 4),
            np.uint32(COUNT),
        ),
    ),
    Trial(
        PARTICLES, "collideD", grid=2, block=256, unit=PARTICLES_UNIT, constants=PARTICLE_CONSTANTS,
        arguments=(
            result(COUNT, 4), made(lambda _: sorted_particles()[0]), reals(COUNT, 4),
            made(lambda rng: rng.permutation(COUNT).astype(np.uint32)),
            made(lambda _: sorted_particles()[1]), made(lambda _: sorted_particles()[2]),
            np.uint32(COUNT),
        ),
        agreement=FUSED,
    ),
    _graph("addScalar", integers(_VERTICES, dtype=np.uint32, output=True), -3, _MORE),
    _graph("markSegments", _OFFSETS, filled(0, _EDGES, dtype=np.uint32), _MORE),
    _graph(
        "getVerticesMapping", made(_permutation), made(_permutation),
        result(_VERTICES, dtype=np.uint32), _MORE,
    ),
    _graph(
        "getSuccessors", _OFFSETS, integers(_EDGES, dtype=np.uint32),
        result(_VERTICES, dtype=np.uint32), _MORE, np.uint32(_EDGES),
    ),
    _graph("removeCycles", made(_pairs, output=True), _MORE),
    _graph(
        "getRepresentatives", given(np.arange(_VERTICES) // 2, np.uint32),
        result(_VERTICES, dtype=np.uint32), _MORE,
    ),
    _graph(
        "invalidateLoops", _STARTS, _MAPPING,
        integers(_EDGES, high=_VERTICES, dtype=np.uint32, output=True), np.uint32(_EDGES),
    ),
    _graph(
        "calculateEdgesInfo", _STARTS, _MAPPING, made(_ends), reals(_EDGES),
        result(_EDGES, dtype=np.uint32), result(_EDGES, dtype=np.uint32), np.uint32(_EDGES),
        np.uint32(100),
    ),
    _graph(
        "makeNewEdges", integers(1500, high=_EDGES, dtype=np.uint32), _MAPPING, _STARTS,
        reals(_EDGES), result(1500, dtype=np.uint32), result(1500), np.uint32(1500),
    ),
    Trial(
        f"{_SHUFFLES}/shfl_integral_image.cuh", "shfl_vertical_shfl", grid=2, block=(32, 8),
        unit=f"{_SHUFFLES}/shfl_scan.cu",
        arguments=(integers(1080, 64, dtype=np.uint32, output=True), 64, 1080),
    ),
    Trial(
        f"{_SHUFFLES}/shfl_scan.cu", "shfl_scan_test", grid=4, block=256, shared=32,
        arguments=(integers(1024, output=True), 32, result(4, dtype=np.int32)),
    ),
    Trial(
        f"{_SHUFFLES}/shfl_scan.cu", "uniform_add", grid=4, block=256,
        arguments=(integers(1024, output=True), integers(4), 1023),
    ),
    _sorting("bitonicSort.cu", "bitonicMergeGlobal", 2048, 1024, 512, 1),
    _sorting("oddEvenMergeSort.cu", "oddEvenMergeGlobal", 2048, 1024, 256, 1),
    Trial(
        f"{FOLDER}/streamOrderedAllocation/streamOrderedAllocation.cu", "vectorAddGPU", grid=4,
        block=256, arguments=(reals(1000), reals(1000), result(1000), 999),
    ),
    Trial(
        f"{FOLDER}/streamOrderedAllocationIPC/streamOrderedAllocationIPC.cu", "simpleKernel",
        grid=2,
        block=128, arguments=(result(1000, dtype=np.int8), 999, np.int8(-5)),
    ),
    Trial(
        f"{FOLDER}/streamOrderedAllocationP2P/streamOrderedAllocationP2P.cu", "copyP2PAndScale",
        grid=4, block=256, arguments=(integers(1000), result(1000, dtype=np.int32), 999),
    ),
    Trial(
        f"{FOLDER}/threadMigration/threadMigration_kernel.cu", "kernelFunction", block=32,
        arguments=(result(32, dtype=np.int32),),
    ),
)  # fmt: skip
