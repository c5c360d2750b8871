"""NVIDIA's samples: 5_Domain_Specific."""

from __future__ import annotations

import math

import numpy as np

from tools.cuda_corpus.spec import (
    FAST,
    FUSED,
    MATH,
    Argument,
    Array,
    Levels,
    Norm,
    NumPy,
    Share,
    Trial,
    Vector,
    filled,
    given,
    integers,
    made,
    reals,
    result,
    words,
)

FOLDER = "cuda-samples/Samples/5_Domain_Specific"
_COLORS = Levels(1, "colors are rounded down from floats")
_FILTERED = Levels(2, "colors are rounded down from floats, twice")
_EDGES = Share(0.02, "at the set's edge the count of steps hangs on how products are fused")


def _black_scholes(file: str, unit: str) -> Trial:
    years = reals(500, 2, low=0.25, high=10)
    prices, strikes = reals(500, 2, low=5, high=30), reals(500, 2, low=1, high=100)
    return Trial(
        f"{FOLDER}/{file}", "BlackScholesGPU", grid=4, block=128, unit=f"{FOLDER}/{unit}",
        arguments=(result(500, 2), result(500, 2), prices, strikes, years, 0.02, 0.3, 1000),
        agreement=FAST,
    )  # fmt: skip


# --- Mandelbrot: 64 x 48 points, by blocks of 16 x 16 ---------------------------------------------


def _image(rng: np.random.Generator) -> NumPy:
    """Colors, of which every other column is far from its neighbours."""
    image = rng.integers(0, 8, (48, 64, 4))
    image[:, ::2] += 100
    return image.astype(np.uint8)


def _mandelbrot(kernel: str, real: type[np.generic], frame: int, *offsets: float) -> Trial:
    numbers: tuple[Argument, ...] = tuple(map(real, (*offsets, 0.1, 0.2, 0.05)))
    image = made(_image, output=True) if frame else result(48, 64, 4, dtype=np.uint8)
    return Trial(
        f"{FOLDER}/Mandelbrot/Mandelbrot_cuda.cu", kernel, grid=6, block=(16, 16),
        template=(real,) if len(offsets) == 2 else (), agreement=_EDGES,
        arguments=(
            image, 64, 48, 256, *numbers, Vector(np.uint8, (3, 5, 7, 0)), frame, 0, 4, 12, False,
        ),
    )  # fmt: skip


# --- binomial options -----------------------------------------------------------------------------

_OPTION = np.dtype([(name, "f4") for name in ("S", "X", "vDt", "puByDf", "pdByDf")])


def _options(rng: np.random.Generator) -> NumPy:
    """1024 options, prepared for 2048 steps."""
    price, strike = rng.uniform(5, 30, 1024), rng.uniform(5, 30, 1024)
    step = rng.uniform(0.25, 5, 1024) / 2048
    change, rate = 0.1 * np.sqrt(step), 0.06 * step
    up = (np.exp(rate) - np.exp(-change)) / (np.exp(change) - np.exp(-change))
    found = np.zeros(1024, _OPTION)
    columns = (price, strike, change, up * np.exp(-rate), (1 - up) * np.exp(-rate))
    for name, column in zip(_OPTION.names or (), columns, strict=True):
        found[name] = column
    return found


# --- recursive Gaussian ---------------------------------------------------------------------------


def _gaussian(sigma: float) -> tuple[float, ...]:
    alpha = 1.695 / sigma
    once, twice = math.exp(-alpha), math.exp(-2 * alpha)
    k = (1 - once) ** 2 / (1 + 2 * alpha * once - twice)
    a = (k, k * (alpha - 1) * once, k * (alpha + 1) * once, -k * twice)
    b = (-2 * once, twice)
    total = 1 + sum(b)
    return (*a, *b, (a[0] + a[1]) / total, (a[2] + a[3]) / total)


_SMOOTH = f"{FOLDER}/recursiveGaussian"
_QUASIRANDOM = "quasirandomGenerator_kernel.cu"
_TABLE = {"c_Table": words(3, 31)}


def _quasirandom(folder: str, *input_: Array) -> tuple[Trial, Trial]:
    file = f"{FOLDER}/{folder}/{_QUASIRANDOM}"
    numbers = np.uint32(5), np.uint32(1000)
    return (
        Trial(
            file, "quasirandomGeneratorKernel", grid=2, block=(64, 3), constants=_TABLE,
            arguments=(result(3, 1000), *numbers), agreement=FUSED,
        ),
        Trial(
            file, "inverseCNDKernel", grid=2, block=128, agreement=FAST,
            arguments=(result(1000), *input_, np.uint32(1000)),
        ),
    )  # fmt: skip


def fluids(file: str) -> tuple[Trial, ...]:
    """The kernels of the fluid simulations that use no texture: 64 x 64 cells."""
    pitch = np.uint64(64 * 8)
    field = reals(64 * 64, 2, output=True)
    return (
        Trial(
            file, "addForces_k", block=(9, 9), agreement=FUSED, strip=True,
            arguments=(field, 64, 64, 10, 12, 5.8, -3.5, 4, pitch),
        ),
        Trial(
            file, "diffuseProject_k", grid=2, block=(32, 4), agreement=FUSED, strip=True,
            arguments=(
                reals(33 * 64, 2, output=True), reals(33 * 64, 2, output=True), 33, 64, 0.09,
                0.0025, 16,
            ),
        ),
        Trial(
            file, "updateVelocity_k", grid=2, block=(32, 4), agreement=FUSED, strip=True,
            arguments=(result(64 * 64, 2), reals(64, 66), reals(64, 66), 64, 66, 64, 16, pitch),
        ),
        Trial(
            file, "advectParticles_k", grid=2, block=(32, 4), agreement=FUSED, strip=True,
            arguments=(
                reals(64 * 64, 2, low=0, output=True), reals(64 * 64, 2), 64, 64, 0.09, 16, pitch,
            ),
        ),
    )  # fmt: skip


def waves(file: str, strip: bool = False) -> Trial:
    """The wave of the graphics samples."""
    return Trial(
        file, "simple_vbo_kernel", grid=(4, 4), block=(8, 8), agreement=MATH, strip=strip,
        arguments=(result(32 * 32, 4), np.uint32(32), np.uint32(32), 1.25),
    )  # fmt: skip


_PITCH = np.uint64(32 * 16)

TRIALS = (
    _black_scholes("BlackScholes/BlackScholes_kernel.cuh", "BlackScholes/BlackScholes.cu"),
    _black_scholes(
        "BlackScholes_nvrtc/BlackScholes_kernel.cuh", "BlackScholes_nvrtc/BlackScholes_kernel.cuh"
    ),
    Trial(
        f"{FOLDER}/HSOpticalFlow/addKernel.cuh", "AddKernel", grid=4, block=256,
        unit=f"{FOLDER}/HSOpticalFlow/flowCUDA.cu",
        arguments=(reals(1000), reals(1000), 999, result(1000)),
    ),
    _mandelbrot("Mandelbrot0", np.float32, 0, -2.0, -1.2),
    _mandelbrot("Mandelbrot0", np.float64, 0, -2.0, -1.2),
    _mandelbrot("MandelbrotDS0", np.float32, 0, -2.0, 1e-9, -1.2, 1e-9),
    _mandelbrot("Mandelbrot1", np.float32, 1, -2.0, -1.2),
    _mandelbrot("MandelbrotDS1", np.float32, 1, -2.0, 1e-9, -1.2, 1e-9),
    Trial(
        f"{FOLDER}/NV12toBGRandResize/nv12_to_bgr_planar.cu", "nv12ToBGRplanarBatchKernel",
        block=(16, 16), agreement=FUSED,
        arguments=(
            integers(2, 48, 64, high=256, dtype=np.uint8), 64, result(2, 3, 32, 64), 256, 64, 32, 2,
        ),
    ),
    Trial(
        f"{FOLDER}/NV12toBGRandResize/utils.cu", "floatToChar", grid=4, block=256,
        arguments=(
            reals(2, 3, 30, 30, low=0, high=255.9), result(2, 30, 30, 3, dtype=np.uint8), 30, 30, 2,
        ),
    ),
    Trial(
        f"{FOLDER}/binomialOptions_nvrtc/binomialOptions_kernel.cu", "binomialOptionsKernel",
        grid=8, block=128, constants={"d_OptionData": made(_options)},
        read_back={"d_CallValue": (np.float32, (1024,))}, agreement=FAST,
    ),
    Trial(
        f"{FOLDER}/convolutionFFT2D/convolutionFFT2D.cuh", "modulateAndNormalize_kernel", grid=4,
        block=256, unit=f"{FOLDER}/convolutionFFT2D/convolutionFFT2D.cu", agreement=FUSED,
        arguments=(reals(1000, 2, output=True), reals(1000, 2), 999, 0.01),
    ),
    Trial(
        f"{FOLDER}/fastWalshTransform/fastWalshTransform_kernel.cuh", "fwtBatch2Kernel",
        grid=(2, 3), block=64, unit=f"{FOLDER}/fastWalshTransform/fastWalshTransform.cu",
        arguments=(result(3, 512), reals(3, 512), 128),
    ),
    Trial(
        f"{FOLDER}/fastWalshTransform/fastWalshTransform_kernel.cuh", "modulateKernel",
        grid=2, block=128, unit=f"{FOLDER}/fastWalshTransform/fastWalshTransform.cu",
        arguments=(reals(1000, output=True), reals(1000), 999), agreement=FUSED,
    ),
    *fluids(f"{FOLDER}/fluidsGL/fluidsGL_kernels.cu"),
    Trial(
        f"{FOLDER}/marchingCubes/marchingCubes_kernel.cu", "compactVoxels", grid=4, block=64,
        arguments=(
            result(256, dtype=np.uint32), given(np.arange(256) % 3 == 0, np.uint32),
            given((np.arange(256) + 2) // 3, np.uint32), np.uint32(256),
        ),
    ),
    Trial(
        f"{FOLDER}/p2pBandwidthLatencyTest/p2pBandwidthLatencyTest.cu", "delay",
        arguments=(filled(1, 1, dtype=np.int32), np.uint64(1000)),
    ),
    Trial(
        f"{FOLDER}/p2pBandwidthLatencyTest/p2pBandwidthLatencyTest.cu", "copyp2p", grid=2,
        block=128, arguments=(result(1000, 4, dtype=np.int32), integers(1000, 4), np.uint64(999)),
    ),
    *_quasirandom("quasirandomGenerator", words(1000)),
    *_quasirandom("quasirandomGenerator_nvrtc"),
    Trial(
        f"{_SMOOTH}/recursiveGaussian_kernel.cuh", "d_simpleRecursive_rgba", grid=2, block=32,
        unit=f"{_SMOOTH}/recursiveGaussian_cuda.cu",
        arguments=(words(48, 64), result(48, 64, dtype=np.uint32), 64, 48, 0.3),
        agreement=_FILTERED,
    ),
    Trial(
        f"{_SMOOTH}/recursiveGaussian_kernel.cuh", "d_recursiveGaussian_rgba", grid=2, block=32,
        unit=f"{_SMOOTH}/recursiveGaussian_cuda.cu",
        arguments=(words(48, 64), result(48, 64, dtype=np.uint32), 64, 48, *_gaussian(5.0)),
        agreement=_FILTERED,
    ),
    Trial(
        f"{FOLDER}/simpleD3D11Texture/texture_2d.cu", "cuda_kernel_texture_2d", grid=(4, 4),
        block=(8, 8), agreement=Norm(1e-5, MATH.why, np.float32),
        arguments=(
            made(lambda rng: rng.random(32 * 32 * 4, np.float32).view(np.uint8), output=True), 32,
            32, _PITCH, 0.7,
        ),
    ),
    Trial(
        f"{FOLDER}/simpleD3D11Texture/texture_3d.cu", "cuda_kernel_texture_3d", grid=(4, 4),
        block=(8, 8), agreement=_COLORS,
        arguments=(
            result(5, 32, 32, 4, dtype=np.uint8), 32, 32, 5, np.uint64(128), np.uint64(4096), 0.7,
        ),
    ),
    Trial(
        f"{FOLDER}/simpleD3D11Texture/texture_cube.cu", "cuda_kernel_texture_cube", grid=(4, 4),
        block=(8, 8), agreement=_COLORS,
        arguments=(result(32, 32, 4, dtype=np.int8), 32, 32, np.uint64(128), 3, 0.7),
    ),
    waves(f"{FOLDER}/simpleGL/simpleGL.cu"),
    Trial(
        f"{FOLDER}/simpleVulkan/SineWaveSimulation.cu", "sinewave", grid=2, block=128,
        arguments=(result(30, 40), np.uint32(40), np.uint32(30), 1.25), agreement=MATH,
    ),
)  # fmt: skip
