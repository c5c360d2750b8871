"""Sparse tensors of `treadle.torch` beside PyTorch's: results, their layouts and text, gradients,
and what is refused."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import treadle as td
import treadle.torch as mine
from tests.parity.comparing import torch

pytestmark = [
    pytest.mark.skipif(torch is None, reason="PyTorch is not installed"),
    pytest.mark.filterwarnings("ignore"),
]
DEVICES = ["cpu", *(["webgpu"] if td.is_available("webgpu") else [])]


class Drawn:
    """A matrix with equal indices, another one with some of them, and dense factors, as tensors of
    one library. `values` and `dense` are leaves."""

    def __init__(self, t: Any, seed: Any, device: str, dtype: str) -> None:
        r = np.random.default_rng(seed)
        n, m, k = (int(each) for each in r.choice([1, 2, 7, 31, 33], 3))
        count = int(r.choice([0, r.integers(0, 3 * n * m // 2 + 1)], p=[0.1, 0.9]))
        self.t, self.n, self.m, self.k, self.device = t, n, m, k, device

        def given(a: Any, kind: str = dtype) -> Any:
            found = t.tensor(np.asarray(a).astype(kind))
            return found.to(device) if t is mine else found

        floats = dtype.startswith("float")
        draw = (lambda *s: r.normal(size=s)) if floats else (lambda *s: r.integers(-3, 4, s))
        at = r.integers(0, [[n], [m]], (2, count))
        self.at, self.values = given(at, "int64"), given(draw(count))
        self.x = t.sparse_coo_tensor(self.at, self.values, (n, m))
        other = r.integers(0, [[n], [m]], (2, count // 2 + 1))
        self.y = t.sparse_coo_tensor(given(other, "int64"), given(draw(count // 2 + 1)), (n, m))
        self.square = t.sparse_coo_tensor(self.at.flip(0), self.values, (m, n))
        self.dense, self.same = given(draw(m, k)), given(draw(n, m))
        self.row, self.rows = given(draw(m)), given(draw(k, n))
        self.out = given(draw(n, k))
        self.hybrid = t.sparse_coo_tensor(self.at, given(draw(count, 3)), (n, m, 3))
        self.stack = t.sparse_coo_tensor(
            t.cat([self.at[:1] * 0 + 1, self.at]), self.values, (2, n, m)
        )
        self.chosen = given(r.integers(0, n, 5), "int64")
        self.sparser = given(draw(n, m) * (r.random((n, m)) < 0.3))


# Of floats and integers.
COMMON: dict[str, Callable[[Any], Any]] = {
    "itself": lambda d: d.x,
    "coalesce": lambda d: d.x.coalesce(),
    "to_dense": lambda d: d.x.to_dense(),
    "hybrid": lambda d: d.hybrid.coalesce(),
    "hybrid to_dense": lambda d: d.hybrid.to_dense(),
    "transpose": lambda d: d.x.t(),
    "transpose of three axes": lambda d: d.stack.transpose(0, 2),
    "sum": lambda d: d.x.sum(),
    "sum of rows": lambda d: d.t.sum(d.x, dim=1),
    "sum of columns": lambda d: d.t.sparse.sum(d.x, 0),
    "sum of both": lambda d: d.t.sparse.sum(d.x, (0, 1)),
    "sum of hybrid": lambda d: d.t.sparse.sum(d.hybrid, 2),
    "mm": lambda d: d.t.sparse.mm(d.x, d.dense),
    "spmm": lambda d: d.t.spmm(d.x, d.dense),
    "matmul": lambda d: d.x @ d.dense,
    "matmul of a coalesced one": lambda d: d.x.coalesce() @ d.dense,
    "mv": lambda d: d.x @ d.row,
    "transposed @ dense": lambda d: d.square.t().matmul(d.dense),
    "smm": lambda d: d.t.smm(d.x, d.dense).to_dense(),
    "addmm": lambda d: d.t.sparse.addmm(d.out, d.x, d.dense, beta=2, alpha=3),
    "sparse @ sparse": lambda d: d.t.sparse.mm(d.x, d.square),
    "bmm": lambda d: d.t.bmm(d.stack, d.t.stack([d.dense, d.dense])),
    "sparse + sparse": lambda d: d.x + d.y,
    "sparse - sparse": lambda d: d.t.sub(d.x, d.y, alpha=2),
    "dense + sparse": lambda d: d.same + d.x,
    "dense - sparse": lambda d: d.same - d.x,
    "dense += sparse": lambda d: d.same.clone().add_(d.x),
    "sparse * 3": lambda d: 3 * d.x,
    "sparse * tensor of one": lambda d: d.x * d.t.tensor(2, device=d.device),
    "sparse * sparse": lambda d: d.x.coalesce() * d.y.coalesce(),
    "sparse * dense": lambda d: d.x.coalesce() * d.same,
    "sparse / 2": lambda d: d.x / 2,
    "negative": lambda d: -d.x,
    "abs": lambda d: d.x.abs(),
    "square": lambda d: d.x.coalesce() ** 2,
    "in place": lambda d: d.x.clone().mul_(2),
    "to_sparse": lambda d: d.sparser.to_sparse(),
    "to_sparse of rows": lambda d: d.sparser.to_sparse(1),
    "sparse_mask": lambda d: d.same.sparse_mask(d.x.coalesce()),
    "index_select": lambda d: d.x.coalesce().index_select(0, d.chosen),
    "row": lambda d: d.x.coalesce()[d.n - 1],
    "cat": lambda d: d.t.cat([d.x, d.y], 1),
    "zeros_like": lambda d: d.t.zeros_like(d.x),
    "float": lambda d: d.x.to(d.dense).float() if d.device == "cpu" else d.x,
    "CSR": lambda d: d.x.coalesce().to_sparse_csr(),
    "CSC": lambda d: d.x.coalesce().to_sparse_csc(),
    "CSR to dense": lambda d: d.sparser.to_sparse_csr().to_dense(),
    "CSR to COO": lambda d: d.sparser.to_sparse_csr().to_sparse(),
    "CSR of its parts": lambda d: d.t.sparse_csr_tensor(
        *(lambda c: (c.crow_indices(), c.col_indices(), c.values()))(d.sparser.to_sparse_csr()),
        size=(d.n, d.m)),
    "copy": lambda d: copy.deepcopy(d.x),
}  # fmt: skip
FLOATS: dict[str, Callable[[Any], Any]] = {
    "softmax": lambda d: d.t.sparse.softmax(d.x, 1),
    "log_softmax": lambda d: d.t.sparse.log_softmax(d.x, 0),
    "sqrt of abs": lambda d: d.x.abs().sqrt(),
    "log1p, relu": lambda d: d.t.relu(d.x.abs().log1p() - d.x.abs()),
    "CSR @ dense": lambda d: d.sparser.to_sparse_csr() @ d.dense,
    "CSR @ vector": lambda d: d.sparser.to_sparse_csr() @ d.row,
    "CSR.t() @ dense": lambda d: d.sparser.to_sparse_csr().t() @ d.rows.t(),
    "dense @ CSR": lambda d: d.rows @ d.sparser.to_sparse_csr(),
    "CSR * 2": lambda d: d.sparser.to_sparse_csr() * 2,
    "sampled_addmm": lambda d: d.t.sparse.sampled_addmm(
        d.sparser.to_sparse_csr(), d.out, d.dense.t(), beta=0.5, alpha=2.0),
}  # fmt: skip
# Those whose gradients PyTorch has.
DERIVED = [
    *("coalesce", "to_dense", "hybrid to_dense", "transpose", "sum", "sum of columns", "mm", "mv"),
    *("matmul", "addmm", "transposed @ dense", "sparse @ sparse", "sparse + sparse", "bmm"),
    *("dense + sparse", "sparse * 3", "sparse / 2", "negative", "to_sparse", "sparse_mask"),
    *("softmax", "log_softmax"),
]


def host(x: Any) -> Any:
    """The numbers of a result, and what it is."""
    if x.layout is mine.strided or x.layout is getattr(torch, "strided", None):
        return "strided", str(x.dtype), tuple(x.shape), [x.detach().cpu().numpy()]
    if x.is_sparse:
        x = x.detach().coalesce()
        parts = [x.indices(), x.values()]
    else:
        names = ("ccol_indices", "row_indices") if "csc" in str(x.layout) else (
            "crow_indices", "col_indices")  # fmt: skip
        parts = [getattr(x, name)() for name in names] + [x.values()]
    numbers = [each.detach().cpu().numpy() for each in parts]
    return str(x.layout), str(x.dtype), tuple(x.shape), numbers


def agree(found: Any, wanted: Any, dtype: str, what: str, device: str = "cpu") -> None:
    """Layout, dtype, shape and elements."""
    (form, kind, shape, parts), (layout, their_kind, extents, expected) = host(found), host(wanted)
    assert (form, shape) == (layout, extents), what
    if device == "cpu":
        assert kind.split(".")[-1] == their_kind.split(".")[-1], what
    tolerance = {"float64": 1e-10, "float32": 2e-4}.get(kind.split(".")[-1], 0)
    for one, other in zip(parts, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance, err_msg=what)


@pytest.mark.parametrize("device", DEVICES)
def test_results(device):
    seed = np.random.SeedSequence()
    is_cpu, r = device == "cpu", np.random.default_rng()
    for dtype in r.choice(["float32", "float64", "int64", "int32"], 2) if is_cpu else ["float32"]:
        cases = {**COMMON, **(FLOATS if dtype.startswith("float") else {})}
        for name in r.choice(list(cases), 14 if is_cpu else 8, replace=False):
            what = f"{name}, {dtype}, {seed}"
            ours, theirs = (
                Drawn(t, seed, where, dtype) for t, where in ((mine, device), (torch, "cpu"))
            )
            try:
                wanted = cases[name](theirs)
            except (RuntimeError, NotImplementedError):
                assert dtype.startswith("int"), what  # PyTorch has some of floats alone
                continue
            agree(cases[name](ours), wanted, dtype, what, device)


def test_gradients():
    for name in np.random.default_rng().choice(DERIVED, 4, replace=False):
        _compare_gradients(name, np.random.SeedSequence())


def _compare_gradients(name: str, child: np.random.SeedSequence) -> None:
    case = {**COMMON, **FLOATS}[name]
    found = []
    for t in (mine, torch):
        d = Drawn(t, child, "cpu", "float64")
        leaves = [d.values, d.dense, d.same, d.sparser, d.out, d.row]
        for each in leaves:
            each.requires_grad_()
        result = case(_again(d))
        result = result if result.layout is t.strided else result.to_dense()
        weights = np.random.default_rng(3).normal(size=tuple(result.shape))
        (result * t.tensor(weights)).sum().backward()
        found.append([each.grad for each in leaves])
    for one, other in zip(*found, strict=True):
        assert (one is None or not one.any()) == (other is None or not other.any()), name
        if one is not None and other is not None:
            agree(one, other, "float64", f"{name}, {child}")


def _again(d: Drawn) -> Drawn:
    """The sparse tensors of leaves that are recorded now."""
    t, (n, m) = d.t, (d.n, d.m)
    d.x = t.sparse_coo_tensor(d.at, d.values, (n, m))
    d.square = t.sparse_coo_tensor(d.at.flip(0), d.values, (m, n))
    d.hybrid = t.sparse_coo_tensor(d.at, d.values[:, None] * t.ones(3, dtype=t.float64), (n, m, 3))
    d.stack = t.sparse_coo_tensor(t.cat([d.at[:1] * 0 + 1, d.at]), d.values, (2, n, m))
    return d


def test_products_of_leaves_have_sparse_gradients_and_second_ones():
    child = np.random.SeedSequence()
    for t in (mine, torch):
        d = Drawn(t, child, "cpu", "float64")
        x = d.x.coalesce().detach().requires_grad_()
        assert x.is_leaf
        (t.sparse.mm(x, d.dense) ** 2).sum().backward()
        if t is mine:
            found = x.grad
        else:
            agree(found, x.grad, "float64", "sparse gradient")
    at, r = mine.tensor([[0, 1, 1, 2], [2, 0, 2, 2]]), np.random.default_rng()
    values, dense = (mine.tensor(r.normal(size=s), requires_grad=True) for s in ((4,), (3, 2)))

    def product(v, w):
        return mine.sparse.mm(mine.sparse_coo_tensor(at, v, (3, 3)), w) ** 2

    mine.autograd.gradgradcheck(product, (values, dense))


def test_text():
    for shape in ((2, 3), (40, 50)):
        r = np.random.default_rng()
        count = int(r.integers(0, 9))
        at, values = r.integers(0, [[shape[0]], [shape[1]]], (2, count)), r.normal(size=count)
        texts = []
        for t in (mine, torch):
            x = t.sparse_coo_tensor(t.tensor(at), t.tensor(values), shape)
            y = t.sparse_coo_tensor(t.tensor(at), t.tensor(values.astype("f")), shape,
                                    requires_grad=True)  # fmt: skip
            c = x.to_dense()
            forms = [x, y, y * 2, c.to_sparse_csr(), c.to_sparse_csc()]
            texts.append([*map(str, forms), str(t.zeros(2, 3, layout=t.sparse_coo)),
                          x.type(), isinstance(x, t.FloatTensor)])  # fmt: skip
        assert texts[0] == texts[1]


REFUSED: dict[str, Callable[[Any, Any], Any]] = {
    "sparse + dense": lambda t, x: x + t.ones(2, 3),
    "sparse + 1": lambda t, x: x + 1,
    "sizes": lambda t, x: x + t.ones(3, 3).to_sparse(),
    "sizes of factors": lambda t, x: x @ t.ones(2, 3),
    "dtypes": lambda t, x: x @ t.ones(3, 2, dtype=t.float64),
    "softmax": lambda t, x: t.fft.fft(x),
    "view": lambda t, x: x.view(3, 2),
    "indices": lambda t, x: x.indices(),
    "values": lambda t, x: x.values(),
    "of dense": lambda t, x: t.ones(2).indices(),
    "coalesce of dense": lambda t, x: t.ones(2).coalesce(),
    "numpy": lambda t, x: x.numpy(),
    "bool": lambda t, x: bool(x),
    "index": lambda t, x: x[5],
    "count of values": lambda t, x: t.sparse_coo_tensor([[0, 1]], [1.0, 2.0, 3.0]),
    "axes": lambda t, x: t.sparse_coo_tensor([[0, 1]], [1.0, 2.0], (2, 2)),
    "leaf": lambda t, x: x.requires_grad_().mul_(2),
    "divisor": lambda t, x: x / t.ones(2, 3),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_pytorch_refuses(name):
    for t in (torch, mine):
        x = t.sparse_coo_tensor([[0, 1, 1], [2, 0, 0]], [3.0, 4.0, 5.0], (2, 3))
        with pytest.raises((RuntimeError, TypeError, IndexError)) as caught:
            REFUSED[name](t, x)
        assert str(caught.value), name


def test_what_only_treadle_refuses_says_what_to_do():
    x = mine.eye(3).to_sparse()
    for call, words in (
        (lambda: mine.softmax(x, 1), "softmax does not take sparse tensors: x.to_dense"),
        (lambda: mine.ones(2, layout=mine.sparse_coo), "to_sparse"),
        (lambda: mine.nn.Linear(3, 2)(x.t()[0]), "dense"),
        (lambda: mine.sparse_coo_tensor([[0, 3]], [1.0, 2.0], (3,)), "found index 3"),
        (lambda: mine.sparse_coo_tensor([[0, -1]], [1.0, 2.0], (3,)), "negative index -1"),
        (lambda: mine.nn.Module().register_buffer("a", x), "attribute"),
        (lambda: mine.nn.Parameter(x), "dense"),
        *[(lambda: x @ mine.ones(3, 2).to(DEVICES[1]), "same device")][: len(DEVICES) - 1],
    ):
        with pytest.raises((RuntimeError, TypeError), match=words):
            call()
    with pytest.raises(AttributeError, match="without blocks"):
        mine.sparse_bsr_tensor  # noqa: B018


def test_older_constructors_modules_and_compiled_functions():
    for t in (mine, torch):
        x = t.sparse.FloatTensor(
            t.LongTensor([[0, 1], [1, 0]]), t.FloatTensor([2, 3]), t.Size([2, 2])
        )
        assert x.to_dense().tolist() == [[0, 2], [3, 0]]
        assert isinstance(x, t.Tensor)
        assert x.is_sparse
        assert (x._nnz(), x.sparse_dim(), x.dense_dim()) == (2, 2, 0)
        diagonals = t.sparse.spdiags(t.arange(9.0).reshape(3, 3), t.tensor([0, -1, 2]), (3, 4))
        assert diagonals.to_dense().tolist() == [[0, 0, 8, 0], [3, 1, 0, 0], [0, 4, 2, 0]]
        module = t.nn.Linear(2, 2)
        module.graph = x
        assert module.graph is x
        assert len(module.state_dict()) == 2
    x, d = mine.eye(4).to_sparse(), mine.ones(4, 2)
    step = mine.compile(lambda d: (x @ d) * 2)
    for scale in (1, 3, 5):
        assert step(d * scale).tolist() == [[2.0 * scale] * 2] * 4


def test_complex_factors():
    child = np.random.default_rng()
    a, b = (child.normal(size=(5, 5)) + 1j * child.normal(size=(5, 5)) for _ in range(2))
    found = [(t.tensor(a).to_sparse() @ t.tensor(b)).numpy() for t in (mine, torch)]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-12)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x = mine.tensor(a).requires_grad_()
        (x.to_sparse() @ mine.tensor(b)).abs().sum().backward()
    y = torch.tensor(a, requires_grad=True)
    (y @ torch.tensor(b)).abs().sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy(), rtol=1e-9)
