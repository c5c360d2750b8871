"""Functions that make new arrays give them in row-major order, as NumPy's do, so that
`reshape(-1)` of a result is a view, through which it can be written."""

from __future__ import annotations

import functools
import inspect

import pytest

import treadle as td
from treadle.tensor.tensor import Tensor

F = td.nn.functional

# Views, in the order of the array that they show.
VIEWS = frozenset(
    {"broadcast_arrays", "broadcast_to", "diagonal", "flip", "matrix_transpose", "meshgrid",
     "moveaxis", "permute_dims", "rot90", "swapaxes"}
)  # fmt: skip
# Functions that take and give no arrays, or are kernels' own.
_KERNELS = frozenset(
    {"atomic_add", "atomic_and", "atomic_cas", "atomic_exchange", "atomic_max", "atomic_min",
    "atomic_or", "atomic_sub", "atomic_xor", "ballot", "bitcast", "clz", "cross", "ctz",
    "dot4_i8", "dot4_u8", "dot4_u8i8", "fma", "fragment", "grid",
    "grid_size", "lane", "length", "local", "mul_high", "normalize", "popcount", "rand_normal",
    "rand_uniform", "reverse_bits", "shared", "shuffle", "shuffle_down", "shuffle_up",
    "shuffle_xor", "static_range", "stencil", "stencil_loop", "subgroup_max", "subgroup_min",
    "subgroup_prefix_sum", "subgroup_size", "subgroup_sum", "sync_subgroup", "sync_threads",
    "thread_fence", "thread_fence_block", "vote_all", "vote_any"}
)  # fmt: skip
_OTHERS = frozenset(
    {"__array_namespace_info__", "actor", "allclose", "can_cast", "checkpoint", "compile",
    "cuda_module", "default_device", "device", "devices", "elementwise", "explain", "finfo", "func",
    "get_float32_matmul_precision", "grad",
    "hessian", "iinfo", "init", "interpret", "is_available", "is_grad_enabled", "isdtype", "jacfwd",
    "jacrev", "jvp", "kernel", "load", "load_gguf", "manual_seed", "memory_stats",
    "profile", "result_type",
    "save", "set_default_device", "set_float32_matmul_precision", "shard", "struct", "texture",
    "use_device", "value_and_grad", "vjp", "vmap"}
)  # fmt: skip


def _cube(*shape):
    shape = shape or (3, 4, 5)
    size = functools.reduce(int.__mul__, shape)
    return (td.arange(size, dtype=td.float32) * 7 % 11).reshape(shape)


def _regular(stack=2, n=4):
    """Matrices that have an inverse."""
    return _cube(stack, n, n) * 0.1 + 3 * td.eye(n)


def _symmetric():
    made = _regular()
    return made + made.mT


def _integers(*shape):
    return (_cube(*shape) % 3).to(td.int32)


def _image(dims, channels=4, side=6):
    return _cube(2, channels, *(side,) * dims)


def _kernel(dims, one=4, other=4):
    return _cube(one, other, *(3,) * dims) * 0.1


def _pooled(dims):
    values, indices = getattr(F, f"max_pool{dims}d")(_image(dims), 2, return_indices=True)
    return values, indices, 2


# What each function that needs more than one array is called with; axes that are not the last.
CALLS = {
    "astype": lambda f: f(_cube().mT, td.int32),
    "full": lambda f: f((3, 4), 1.0),
    "linspace": lambda f: f(0.0, 1.0, 5),
    "outer": lambda f: f(_cube(3), _cube(4)),
    "reshape": lambda f: f(_cube().mT, (4, 15)),
    "searchsorted": lambda f: f(_cube(4), _cube().mT),
    "gather": lambda f: f(_cube(), 0, _integers(2, 4, 5).to(td.int64)),
    "take_along_axis": lambda f: f(_cube(), _integers(2, 4, 5).to(td.int64), axis=0),
    "take": lambda f: f(_cube(), td.asarray([2, 0]), axis=0),
    "index_select": lambda f: f(_cube(), 0, td.asarray([2, 0])),
    "index_add": lambda f: f(_cube(), 0, td.asarray([2, 0]), _cube(2, 4, 5)),
    "index_copy": lambda f: f(_cube(), 0, td.asarray([2, 0]), _cube(2, 4, 5)),
    "index_fill": lambda f: f(_cube(), 0, td.asarray([2, 0]), 7.0),
    "masked_fill": lambda f: f(_cube().mT, _cube().mT > 5, 7.0),
    "masked_select": lambda f: f(_cube().mT, _cube().mT > 5),
    "scatter": lambda f: f(_cube(), 0, _integers(2, 4, 5).to(td.int64), _cube(2, 4, 5)),
    "scatter_add": lambda f: f(_cube(), 0, _integers(2, 4, 5).to(td.int64), _cube(2, 4, 5)),
    "scatter_reduce": lambda f: f(_cube(), 0, _integers(2, 4, 5).to(td.int64), _cube(2, 4, 5),
                                  "sum"),
    "topk": lambda f: f(_cube(), 2, axis=0),
    "bucketize": lambda f: f(_cube().mT, [1.0, 5.0]),
    "cross": lambda f: f(_cube(), _cube() + 1, axis=0),
    "digitize": lambda f: f(_cube().mT, [1.0, 5.0]),
    "kthvalue": lambda f: f(_cube(), 2, axis=0, keepdims=True),
    **{name: lambda f: f(_cube(), [0.3, 0.5], axis=0)
       for name in ("nanpercentile", "nanquantile", "percentile", "quantile")},
    "interp": lambda f: f(_cube().mT, [0.0, 5.0], [1.0, 2.0]),
    "convolve": lambda f: f(_cube(5), _cube(3)),
    "lerp": lambda f: f(_cube().mT, _cube().mT + 1, 0.5),
    "pad": lambda f: f(_cube().mT, 2, "reflect"),
    "stft": lambda f: f(_cube(3, 20), 4),
    "unique": lambda f: f(_integers(3, 4), axis=1),
    "linalg.cholesky": lambda f: f(_symmetric()),
    "linalg.cross": lambda f: f(_cube(), _cube() + 1, axis=0),
    "linalg.eigh": lambda f: f(_symmetric()),
    "linalg.eigvalsh": lambda f: f(_symmetric()),
    "linalg.lstsq": lambda f: f(_cube(2, 3, 5), _cube(2, 3, 2)),
    "linalg.qr": lambda f: f(_cube(2, 5, 3)),
    "linalg.pinv": lambda f: f(_cube(2, 5, 3)),
    "linalg.solve": lambda f: f(_regular(1)[0], _cube(3, 4, 5)),
    "linalg.svd": lambda f: f(_cube(2, 3, 5)),
    "linalg.solve_triangular": lambda f: f(_regular(), _cube(2, 3, 4), upper=False, left=False),
    "F.affine_grid": lambda f: f(_cube(2, 2, 3), (2, 3, 4, 5)),
    "F.batch_norm": lambda f: f(_image(2), td.zeros(4), td.ones(4)),
    "F.cosine_embedding_loss": lambda f: f(_cube(3, 4), _cube(3, 4) + 1, td.ones(3)),
    "F.ctc_loss": lambda f: f(
        F.log_softmax(_cube(5, 2, 4)), td.ones((2, 3), dtype=td.int32), td.asarray([5, 5]),
        td.asarray([2, 2]), reduction="none"),
    "F.embedding": lambda f: f(_integers(3, 4), _cube(3, 5)),
    "F.embedding_bag": lambda f: f(_integers(3, 4), _cube(3, 5)),
    "F.fold": lambda f: f(_cube(2, 12, 4), (3, 3), (2, 2)),
    "F.grid_sample": lambda f: f(_image(2), _cube(2, 3, 3, 2) * 0.1),
    "F.layer_norm": lambda f: f(_cube().mT, (4,)),
    "F.linear": lambda f: f(_cube(), _cube(2, 5)),
    "F.multi_margin_loss": lambda f: f(_cube(3, 4), _integers(3), reduction="none"),
    "F.multilabel_margin_loss": lambda f: f(_cube(3, 4), _integers(3, 4), reduction="none"),
    "F.nll_loss": lambda f: f(_cube(3, 4), _integers(3), reduction="none"),
    "F.packed_attention": lambda f: f(*[_cube(2, 4, 3).mT] * 3, [0, 1, 3]),
    "F.pdist": lambda f: f(_cube(4, 3)),
    "F.pixel_shuffle": lambda f: f(_image(2), 2),
    "F.pixel_unshuffle": lambda f: f(_image(2), 2),
    "F.rms_norm": lambda f: f(_cube().mT, (4,)),
    **{f"F.conv{n}d": lambda f, n=n: f(_image(n), _kernel(n)) for n in (1, 2, 3)},
    **{f"F.conv_transpose{n}d": lambda f, n=n: f(_image(n), _kernel(n)) for n in (1, 2, 3)},
    **{f"F.lp_pool{n}d": lambda f, n=n: f(_image(n), 2.0, 2) for n in (1, 2, 3)},
    **{f"F.max_unpool{n}d": lambda f, n=n: f(*_pooled(n)) for n in (1, 2, 3)},
    **{f"bitwise_{name}": lambda f: f(_integers(3, 4).mT, _integers(4, 3))
       for name in ("and", "or", "xor", "left_shift", "right_shift")},
}  # fmt: skip
CALLS["linalg.outer"] = CALLS["outer"]
SPACES = {"": td, "linalg.": td.linalg, "fft.": td.fft, "F.": F}
# What other functions are called with, the first that they take.
USUAL = (
    lambda: (_cube(),), lambda: (_regular(),), lambda: (_cube(), _cube() + 1),
    lambda: (_regular(), _regular()), lambda: (_cube(), 2), lambda: (_cube(), (0, 1)),
    lambda: ([_cube(), _cube()],), lambda: (_cube(), _cube(), _cube()), lambda: (_image(2), 2),
    lambda: (_image(3), 2), lambda: (_regular(), _regular(), _regular()), lambda: ((3, 4),),
    lambda: (4,), lambda: (_integers(3),), lambda: ("ij,jk->ki", _cube(3, 4), _cube(4, 5)),
    lambda: (_cube(), 2, 2), lambda: (_image(2), 1, 2), lambda: (_cube(3, 4), _integers(3)),
    lambda: (_cube() > 5, _cube(), _cube()),
)  # fmt: skip


def _functions():
    for prefix, space in SPACES.items():
        for name in sorted(space.__all__):
            function = getattr(space, name)
            is_type = isinstance(function, (type, td.DType)) or type(function).__name__ == "Scalar"
            if callable(function) and not is_type and name not in (*VIEWS, *_KERNELS, *_OTHERS):
                yield prefix + name, function


FUNCTIONS = dict(_functions())


def _tensors(value):
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (tuple, list)):
        for each in value:
            yield from _tensors(each)


def _called(name, function):
    if name in CALLS:
        return CALLS[name](function)
    parameters = inspect.signature(function).parameters
    axis = next((each for each in ("axis", "axes") if each in parameters), None)
    for keywords in [{axis: 0}, {axis: (0,)}, {axis: (0, 1)}] if axis else [{}]:
        for given in USUAL:
            try:
                found = function(*given(), **keywords)
                if list(_tensors(found)):
                    return found
            except (TypeError, ValueError, IndexError, AttributeError):
                continue
    raise AssertionError(f"{name}: say in CALLS what to call it with")


@pytest.mark.parametrize("name", FUNCTIONS)
def test_new_arrays_are_row_major(name):
    with td.use_device("cpu"):  # strides do not depend on the device
        found = list(_tensors(_called(name, FUNCTIONS[name])))
    assert found
    for each in found:
        assert each.contiguous() is each, f"strides {each.strides} of shape {each.shape}"


def test_writes_through_a_flat_view_of_a_result(device):
    x = td.asarray([[3.0, 1.0], [2.0, 4.0]])
    for made, expected in (
        (td.sort(x, axis=0), [[7.0, 1.0], [3.0, 4.0]]),
        (td.argsort(x, axis=0), [[7, 0], [0, 1]]),
        (td.topk(x, 2, axis=0).values, [[7.0, 4.0], [2.0, 1.0]]),
        (td.topk(x, 2, axis=0).indices, [[7, 1], [1, 0]]),
    ):
        made.reshape(-1)[0] = 7
        assert made.tolist() == expected


def test_layers_give_row_major_results(device):
    recurrent = td.nn.LSTM(5, 4, batch_first=True)
    attention = td.nn.MultiheadAttention(4, 2)
    x = _cube(3, 2, 4)
    for each in (*_tensors(recurrent(_cube())), *_tensors(attention(x, x, x))):
        assert each.contiguous() is each


def test_gradients_through_a_result_along_the_first_axis(device):
    x = td.asarray([[3.0, 1.0], [2.0, 4.0]]).requires_grad_()
    weights = td.asarray([[1.0, 2.0], [3.0, 4.0]])
    (td.sort(x, axis=0) * weights + td.topk(x, 2, axis=0).values * weights).sum().backward()
    assert x.grad.tolist() == [[3.0 + 1.0, 2.0 + 4.0], [1.0 + 3.0, 4.0 + 2.0]]
