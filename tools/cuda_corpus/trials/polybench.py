"""PolyBench-ACC, beyond what was asked: its CUDA kernels, at the smallest of its sizes."""

from __future__ import annotations

from tools.cuda_corpus.spec import FUSED, Argument, Array, Dims, Trial, filled, reals, result

FOLDER = "PolyBench-ACC/CUDA"
_DENSE = f"{FOLDER}/linear-algebra/kernels"
_SOLVERS = f"{FOLDER}/linear-algebra/solvers"
_STENCILS = f"{FOLDER}/stencils"
_MINING = f"{FOLDER}/datamining"
_ALPHA, _BETA = 1.5, 1.2
_LONG, _WIDE = 1024, 512  # of vectors, and matrices by them


def _bench(file: str, kernel: str, *arguments: Argument, grid: Dims, block: Dims = 256) -> Trial:
    return Trial(
        file, kernel, grid, block, arguments, FUSED, strip=True, include=(f"{FOLDER}/utilities",),
        defines=("MINI_DATASET",),
    )  # fmt: skip


def _square(file: str, kernel: str, size: int, *arguments: Argument) -> Trial:
    """A thread for each element of a square."""
    return _bench(file, kernel, *arguments, grid=(size // 32, size // 8), block=(32, 8))


def _line(file: str, kernel: str, size: int, *arguments: Argument) -> Trial:
    """A thread for each row or column."""
    return _bench(file, kernel, *arguments, grid=size // 256)


def _matrix(size: int, *, output: bool = False, low: float = -1.0) -> Array:
    return reals(size, size, low=low, output=output)


_PRODUCTS = (
    _square(
        f"{_DENSE}/2mm/2mm.cu", "mm2_kernel1", 256, *(256,) * 4, _ALPHA, _BETA, result(256, 256),
        _matrix(256), _matrix(256),
    ),
    _square(
        f"{_DENSE}/2mm/2mm.cu", "mm2_kernel2", 256, *(256,) * 4, _ALPHA, _BETA, _matrix(256),
        _matrix(256), _matrix(256, output=True),
    ),
    *(
        _square(
            f"{_DENSE}/3mm/3mm.cu", f"mm3_kernel{number}", 128, *(128,) * 5, _matrix(128),
            _matrix(128), result(128, 128),
        )
        for number in (1, 2, 3)
    ),
    _square(
        f"{_DENSE}/gemm/gemm.cu", "gemm_kernel", 128, 128, 128, 128, _ALPHA, _BETA, _matrix(128),
        _matrix(128), _matrix(128, output=True),
    ),
    _square(
        f"{_DENSE}/syr2k/syr2k.cu", "syr2k_kernel", 256, 256, 256, _ALPHA, _BETA, _matrix(256),
        _matrix(256), _matrix(256, output=True),
    ),
    _square(
        f"{_DENSE}/syrk/syrk.cu", "syrk_kernel", 256, 256, 256, _ALPHA, _BETA, _matrix(256),
        _matrix(256, output=True),
    ),
    _bench(
        f"{_DENSE}/doitgen/doitgen.cu", "doitgen_kernel1", 32, 32, 32, result(32, 32, 32),
        reals(32, 32, 32), _matrix(32), 3, grid=(1, 4), block=(32, 8),
    ),
    _bench(
        f"{_DENSE}/doitgen/doitgen.cu", "doitgen_kernel2", 32, 32, 32, reals(32, 32, 32),
        result(32, 32, 32), _matrix(32), 3, grid=(1, 4), block=(32, 8),
    ),
)  # fmt: skip


def _by_vector(name: str, kernel: str, *arguments: Argument) -> Trial:
    return _line(f"{_DENSE}/{name}/{name}.cu", kernel, _LONG, *arguments)


_PAIR = (_LONG, _LONG, _matrix(_LONG))

_VECTORS = (
    _by_vector("atax", "atax_kernel1", *_PAIR, reals(_LONG), filled(0, _LONG)),
    _by_vector("atax", "atax_kernel2", *_PAIR, filled(0, _LONG), reals(_LONG)),
    _by_vector("bicg", "bicg_kernel1", *_PAIR, reals(_LONG), filled(0, _LONG)),
    _by_vector("bicg", "bicg_kernel2", *_PAIR, reals(_LONG), filled(0, _LONG)),
    _square(
        f"{_DENSE}/gemver/gemver.cu", "gemver_kernel1", _LONG, _LONG, _ALPHA, _BETA,
        _matrix(_LONG, output=True), reals(_LONG), reals(_LONG), reals(_LONG), reals(_LONG),
    ),
    _by_vector(
        "gemver", "gemver_kernel2", _LONG, _ALPHA, _BETA, _matrix(_LONG),
        reals(_LONG, output=True), reals(_LONG), reals(_LONG),
    ),
    _by_vector(
        "gemver", "gemver_kernel3", _LONG, _ALPHA, _BETA, _matrix(_LONG), reals(_LONG),
        filled(0, _LONG),
    ),
    _by_vector(
        "gesummv", "gesummv_kernel", _LONG, _ALPHA, _BETA, _matrix(_LONG), _matrix(_LONG),
        filled(0, _LONG), reals(_LONG), filled(0, _LONG),
    ),
    *(
        _by_vector(
            "mvt", kernel, _LONG, _matrix(_LONG), reals(_LONG, output=True), reals(_LONG)
        )
        for kernel in ("mvt_kernel1", "mvt_kernel2")
    ),
)  # fmt: skip

_CORRELATION = f"{_MINING}/correlation/correlation.cu"
_COVARIANCE = f"{_MINING}/covariance/covariance.cu"
_GRAM_SCHMIDT = f"{_SOLVERS}/gramschmidt/gramschmidt.cu"
_LU = f"{_SOLVERS}/lu/lu.cu"
_BASE = (_WIDE, _WIDE)

_MATRICES = (
    _line(_CORRELATION, "mean_kernel", _WIDE, *_BASE, result(_WIDE), _matrix(_WIDE, low=0)),
    _line(_CORRELATION, "std_kernel", _WIDE, *_BASE, reals(_WIDE), result(_WIDE), _matrix(_WIDE)),
    _square(
        _CORRELATION, "reduce_kernel", _WIDE, *_BASE, reals(_WIDE), reals(_WIDE, low=0.5),
        _matrix(_WIDE, output=True),
    ),
    _line(_CORRELATION, "corr_kernel", _WIDE, *_BASE, filled(0, _WIDE, _WIDE), _matrix(_WIDE)),
    _line(_COVARIANCE, "mean_kernel", _WIDE, *_BASE, result(_WIDE), _matrix(_WIDE, low=0)),
    _square(
        _COVARIANCE, "reduce_kernel", _WIDE, *_BASE, reals(_WIDE), _matrix(_WIDE, output=True)
    ),
    _line(_COVARIANCE, "covar_kernel", _WIDE, *_BASE, filled(0, _WIDE, _WIDE), _matrix(_WIDE)),
    *(
        _line(
            _GRAM_SCHMIDT, f"gramschmidt_kernel{number}", _WIDE, *_BASE,
            _matrix(_WIDE, output=True), _matrix(_WIDE, low=0.5, output=True),
            _matrix(_WIDE, output=True), 3,
        )
        for number in (1, 2, 3)
    ),
    _line(_LU, "lu_kernel1", _WIDE, _WIDE, _matrix(_WIDE, low=0.5, output=True), 3),
    _square(_LU, "lu_kernel2", _WIDE, _WIDE, _matrix(_WIDE, output=True), 3),
)  # fmt: skip


def _implicit(number: int, *row: int) -> Trial:
    """A step of an alternating direction method, with a dominant diagonal."""
    return _line(
        f"{_STENCILS}/adi/adi.cu", f"adi_kernel{number}", 256, 256, _matrix(256),
        reals(256, 256, low=2.5, high=3, output=True), _matrix(256, output=True), *row,
    )  # fmt: skip


def _field(step: int, *before: Argument) -> Trial:
    edge = _WIDE + 1
    return _square(
        f"{_STENCILS}/fdtd-2d/fdtd2d.cu", f"fdtd_step{step}_kernel", _WIDE, *_BASE, *before,
        *(reals(edge, edge, output=True) for _ in range(3)), 3,
    )  # fmt: skip


_GRIDS = (
    *(_implicit(number) for number in (1, 2, 3)),
    _implicit(4, 7),
    _implicit(5),
    _implicit(6, 7),
    _square(
        f"{_STENCILS}/convolution-2d/2DConvolution.cu", "convolution2D_kernel", _LONG, _LONG,
        _LONG, _matrix(_LONG), result(_LONG, _LONG),
    ),
    _square(
        f"{_STENCILS}/convolution-3d/3DConvolution.cu", "convolution3D_kernel", 64, 64, 64, 64,
        reals(64, 64, 64), result(64, 64, 64), 5,
    ),
    _field(1, reals(500)),
    _field(2),
    _field(3),
    *(
        _line(
            f"{_STENCILS}/jacobi-1d-imper/jacobi1D.cu", f"runJacobiCUDA_kernel{number}", _LONG,
            _LONG, reals(_LONG, output=True), reals(_LONG, output=True),
        )
        for number in (1, 2)
    ),
    *(
        _square(
            f"{_STENCILS}/jacobi-2d-imper/jacobi2D.cu", f"runJacobiCUDA_kernel{number}", 256, 256,
            _matrix(256, output=True), _matrix(256, output=True),
        )
        for number in (1, 2)
    ),
)  # fmt: skip

TRIALS = (*_PRODUCTS, *_VECTORS, *_MATRICES, *_GRIDS)
