"""Rodinia's benchmarks, beyond what was asked: some of their kernels."""

from __future__ import annotations

import numpy as np

from tools.cuda_corpus.spec import (
    FAST,
    FUSED,
    Array,
    NumPy,
    Trial,
    filled,
    given,
    integers,
    made,
    reals,
    result,
)

FOLDER = "gpu-rodinia/cuda"
_LU = f"{FOLDER}/lud/cuda/lud_kernel.cu"
_ALIGNMENT = f"{FOLDER}/nw/needle_kernel.cu"
_NETWORK = f"{FOLDER}/backprop/backprop_cuda_kernel.cu"
_ELIMINATION = f"{FOLDER}/gaussian/gaussian.cu"
_SPECKLES = f"{FOLDER}/srad/srad_v2/srad_kernel.cu"
_FLOW = f"{FOLDER}/cfd/euler3d.cu"
_HELPERS = ("cuda-samples/Common",)
_SIZE, _TILE = 64, 16
_NODES, _CELLS = 500, 384
_PLACE = np.dtype([("lat", "f4"), ("lng", "f4")])
_NODE = np.dtype([("starting", "i4"), ("no_of_edges", "i4")])


def _dominant(rng: np.random.Generator) -> NumPy:
    return (rng.uniform(-1, 1, (_SIZE, _SIZE)) + 8 * np.eye(_SIZE)).astype(np.float32)


def _places(rng: np.random.Generator) -> NumPy:
    places = np.zeros(_NODES, _PLACE)
    places["lat"], places["lng"] = rng.uniform(-90, 90, _NODES), rng.uniform(-180, 180, _NODES)
    return places


def _four_edges(_: np.random.Generator) -> NumPy:
    nodes = np.zeros(_NODES, _NODE)
    nodes["starting"], nodes["no_of_edges"] = np.arange(_NODES) * 4, 4
    return nodes


def _flags(*, output: bool = False) -> Array:
    return made(lambda rng: rng.random(_NODES) < 0.3, output)


# Nodes to go on from, all of them visited: a kernel reads their costs while others are written.
_FRONT, _OTHERS = np.random.default_rng(4).random((2, _NODES)) < 0.3


def _gas(rng: np.random.Generator) -> NumPy:
    """Density, momentum and energy of cells, such that pressures are positive."""
    parts = [rng.uniform(1, 2, _CELLS), *rng.uniform(-1, 1, (3, _CELLS)), rng.uniform(5, 6, _CELLS)]
    return np.array(parts, np.float32)


_IMAGE = (_SIZE, _SIZE)
_DERIVATIVES = tuple(result(*_IMAGE) for _ in range(4))

TRIALS = (
    *(
        Trial(
            _LU, kernel, grid=grid, block=block, agreement=FUSED,
            arguments=(made(_dominant, output=True), _SIZE, _TILE),
        )
        for kernel, grid, block in (
            ("lud_diagonal", 1, _TILE), ("lud_perimeter", 2, 2 * _TILE),
            ("lud_internal", (2, 2), (_TILE, _TILE)),
        )
    ),
    *(
        Trial(
            _ALIGNMENT, kernel, grid=2, block=_TILE,
            arguments=(
                integers(65, 65, low=-10, high=10), integers(65, 65, output=True), 65, 10, 2, 4,
            ),
        )
        for kernel in ("needle_cuda_shared_1", "needle_cuda_shared_2")
    ),
    Trial(
        f"{FOLDER}/pathfinder/pathfinder.cu", "dynproc_kernel", grid=3, block=256, strip=True,
        arguments=(
            5, integers(19, 500, high=10), integers(500, high=10), result(500, dtype=np.int32),
            500, 20, 0, 5,
        ),
    ),
    Trial(
        f"{FOLDER}/nn/nn_cuda.cu", "euclid", grid=2, block=256, strip=True, agreement=FUSED,
        arguments=(made(_places), result(_NODES), _NODES, 30.0, 90.0),
    ),
    Trial(
        _NETWORK, "bpnn_layerforward_CUDA", grid=(1, 4), block=(_TILE, _TILE), agreement=FAST,
        arguments=(reals(65), reals(17), reals(65, 17, output=True), result(4, 16), 64, 16),
    ),
    Trial(
        _NETWORK, "bpnn_adjust_weights_cuda", grid=(1, 4), block=(_TILE, _TILE), agreement=FUSED,
        arguments=(
            reals(17), 16, reals(65), 64, reals(65, 17, output=True), reals(65, 17, output=True),
        ),
    ),
    Trial(
        _ELIMINATION, "Fan1", block=_SIZE, strip=True, agreement=FUSED,
        arguments=(reals(*_IMAGE, output=True), made(_dominant), _SIZE, 3),
    ),
    Trial(
        _ELIMINATION, "Fan2", grid=(4, 4), block=(_TILE, _TILE), strip=True, agreement=FUSED,
        arguments=(
            reals(*_IMAGE), reals(*_IMAGE, output=True), reals(_SIZE, output=True), _SIZE, _SIZE, 3,
        ),
    ),
    Trial(
        _SPECKLES, "srad_cuda_1", grid=(4, 4), block=(_TILE, _TILE), agreement=FUSED,
        arguments=(
            *_DERIVATIVES, reals(*_IMAGE, low=0.5, high=1.5), result(*_IMAGE), _SIZE, _SIZE, 0.05,
        ),
    ),
    Trial(
        _SPECKLES, "srad_cuda_2", grid=(4, 4), block=(_TILE, _TILE), agreement=FUSED,
        arguments=(
            *(reals(*_IMAGE) for _ in range(4)), reals(*_IMAGE, output=True),
            reals(*_IMAGE, low=0), _SIZE, _SIZE, 0.5, 0.05,
        ),
    ),
    Trial(
        f"{FOLDER}/bfs/kernel.cu", "Kernel", block=512, unit=f"{FOLDER}/bfs/bfs.cu", strip=True,
        arguments=(
            made(_four_edges), integers(_NODES * 4, high=_NODES),
            given(_FRONT, np.bool_, output=True), filled(False, _NODES, dtype=np.bool_),
            given(_FRONT | _OTHERS, np.bool_), filled(3, _NODES, dtype=np.int32),
            _NODES,
        ),
    ),
    Trial(
        f"{FOLDER}/bfs/kernel2.cu", "Kernel2", block=512, unit=f"{FOLDER}/bfs/bfs.cu", strip=True,
        arguments=(
            _flags(output=True), _flags(output=True), _flags(output=True),
            filled(False, 1, dtype=np.bool_), _NODES,
        ),
    ),
    Trial(
        _FLOW, "cuda_initialize_variables", grid=2, block=192, strip=True, include=_HELPERS,
        constants={"ff_variable": given([1.4, 1.2, 0, 0, 3.5], "f4")},
        arguments=(_CELLS, result(5, _CELLS)),
    ),
    Trial(
        _FLOW, "cuda_compute_step_factor", grid=2, block=192, strip=True, include=_HELPERS,
        agreement=FUSED,
        arguments=(_CELLS, made(_gas), reals(_CELLS, low=0.5), result(_CELLS)),
    ),
    Trial(
        _FLOW, "cuda_time_step", grid=2, block=192, strip=True, include=_HELPERS, agreement=FUSED,
        arguments=(
            1, _CELLS, made(_gas), result(5, _CELLS), reals(_CELLS, low=0), reals(5, _CELLS),
        ),
    ),
    Trial(
        f"{FOLDER}/hotspot/hotspot.cu", "calculate_temp", grid=(5, 5), block=(_TILE, _TILE),
        strip=True, agreement=FUSED,
        arguments=(
            2, reals(60, 60, low=0, high=1e-3), reals(60, 60, low=320, high=340), result(60, 60),
            60, 60, 2, 2, 3.1e-5, 10.0, 10.0, 70.0, 1.46e-7, 1e-3,
        ),
    ),
    Trial(
        f"{FOLDER}/hotspot3D/opt1.cu", "hotspotOpt1", grid=(1, 2), block=(64, 4), strip=True,
        agreement=FUSED,
        arguments=(
            reals(8, 8, 64), reals(8, 8, 64, low=320, high=340), result(8, 8, 64), 0.01, 64, 8, 8,
            0.1, 0.1, 0.1, 0.1, 0.05, 0.05, 0.4,
        ),
    ),
    Trial(
        f"{FOLDER}/huffman/hist.cu", "histo_kernel", grid=2, block=256, strip=True,
        arguments=(
            integers(1000, high=256, dtype=np.uint8), np.int64(1000),
            filled(0, 256, dtype=np.uint32),
        ),
    ),
)  # fmt: skip
